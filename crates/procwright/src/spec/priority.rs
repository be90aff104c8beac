//! Priorities that have a class and a level, as `ionice(1)` and `chrt(1)` name them.

use std::fmt;
use std::str::FromStr;

use procwright_os::Invalid;

/// Class and level of a program's input and output, for schedulers that look at them.
#[doc(alias = "ioprio_set")]
#[doc(alias = "ionice")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoPriority {
    /// None of its own: the kernel takes one by the nice value.
    None,
    /// Only what nobody else wants.
    Idle,
    /// What all have, with a level from 0, the first, to 7.
    BestEffort(u8),
    /// Before all others, with a level from 0, the first, to 7. Needs CAP_SYS_NICE or
    /// CAP_SYS_ADMIN.
    Realtime(u8),
}

/// The policy by which a program gets processor time.
#[doc(alias = "sched_setscheduler")]
#[doc(alias = "chrt")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedPolicy {
    /// What all have.
    Other,
    /// For work that nobody waits for.
    Batch,
    /// Only what nobody else wants.
    Idle,
    /// Before all others until it waits, with a priority from 1 to 99, the first. Needs
    /// CAP_SYS_NICE or the limit `rtprio`.
    Fifo(u8),
    /// So too, in turns with those of its priority.
    RoundRobin(u8),
}

/// Said of what is no class with a level.
const IO_HINT: &str = "use \"none\", \"idle\", \"best-effort\" or \"realtime\", the last two with a \
                       level from 0, the first, to 7, such as \"best-effort:7\"";
const SCHED_HINT: &str = "use \"other\", \"batch\", \"idle\", or \"fifo\" or \"rr\" with a priority \
                          from 1 to 99, such as \"rr:10\"";

impl IoPriority {
    /// The level of `ionice -c best-effort` without one.
    const LEVEL: u8 = 4;

    /// The number of ioprio_set(2).
    pub(super) fn number(self) -> i32 {
        let (class, level) = match self {
            IoPriority::None => (0, 0),
            IoPriority::Realtime(level) => (1, level),
            IoPriority::BestEffort(level) => (2, level),
            IoPriority::Idle => (3, 0),
        };
        class << 13 | i32::from(level)
    }

    pub(super) fn check(self) -> Result<(), Invalid> {
        match self {
            IoPriority::BestEffort(8..) | IoPriority::Realtime(8..) => {
                Err(not_known("ionice", &self.to_string(), IO_HINT))
            }
            _ => Ok(()),
        }
    }
}

impl SchedPolicy {
    /// Policy and priority of sched_setscheduler(2).
    pub(super) fn numbers(self) -> (i32, i32) {
        match self {
            SchedPolicy::Other => (0, 0),
            SchedPolicy::Fifo(priority) => (1, priority.into()),
            SchedPolicy::RoundRobin(priority) => (2, priority.into()),
            SchedPolicy::Batch => (3, 0),
            SchedPolicy::Idle => (5, 0),
        }
    }

    pub(super) fn check(self) -> Result<(), Invalid> {
        match self {
            SchedPolicy::Fifo(0 | 100..) | SchedPolicy::RoundRobin(0 | 100..) => {
                Err(not_known("sched_policy", &self.to_string(), SCHED_HINT))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoPriority::None => f.write_str("none"),
            IoPriority::Idle => f.write_str("idle"),
            IoPriority::BestEffort(level) => write!(f, "best-effort:{level}"),
            IoPriority::Realtime(level) => write!(f, "realtime:{level}"),
        }
    }
}

impl fmt::Display for SchedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchedPolicy::Other => f.write_str("other"),
            SchedPolicy::Batch => f.write_str("batch"),
            SchedPolicy::Idle => f.write_str("idle"),
            SchedPolicy::Fifo(priority) => write!(f, "fifo:{priority}"),
            SchedPolicy::RoundRobin(priority) => write!(f, "rr:{priority}"),
        }
    }
}

impl FromStr for IoPriority {
    type Err = Invalid;

    /// Takes `idle`, `best-effort:7` and so on; without a level it is 4, as for `ionice(1)`.
    fn from_str(text: &str) -> Result<IoPriority, Invalid> {
        let refused = || not_known("ionice", text, IO_HINT);
        let (class, level) = split(text).ok_or_else(refused)?;
        let found = match (class, level) {
            ("none", None) => IoPriority::None,
            ("idle", None) => IoPriority::Idle,
            ("best-effort", level) => IoPriority::BestEffort(level.unwrap_or(Self::LEVEL)),
            ("realtime", level) => IoPriority::Realtime(level.unwrap_or(Self::LEVEL)),
            _ => return Err(refused()),
        };
        found.check().map_err(|_| refused())?;
        Ok(found)
    }
}

impl FromStr for SchedPolicy {
    type Err = Invalid;

    /// Takes `batch`, `rr:10` and so on.
    fn from_str(text: &str) -> Result<SchedPolicy, Invalid> {
        let refused = || not_known("sched_policy", text, SCHED_HINT);
        let found = match split(text).ok_or_else(refused)? {
            ("other", None) => SchedPolicy::Other,
            ("batch", None) => SchedPolicy::Batch,
            ("idle", None) => SchedPolicy::Idle,
            ("fifo", Some(priority)) => SchedPolicy::Fifo(priority),
            ("rr", Some(priority)) => SchedPolicy::RoundRobin(priority),
            _ => return Err(refused()),
        };
        found.check().map_err(|_| refused())?;
        Ok(found)
    }
}

/// The word, and the number behind a colon if there is one; none if that is no number.
fn split(text: &str) -> Option<(&str, Option<u8>)> {
    let Some((word, number)) = text.split_once(':') else {
        return Some((text, None));
    };
    let found: u8 = number.parse().ok()?;
    // The standard library takes a sign and zeros in front, too.
    (found.to_string() == number).then_some((word, Some(found)))
}

fn not_known(option: &str, text: &str, hint: &str) -> Invalid {
    Invalid::new(option, format!("is {text:?}, which is not known"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read() {
        let all = [
            IoPriority::None,
            IoPriority::Idle,
            IoPriority::BestEffort(0),
            IoPriority::Realtime(7),
        ];
        for one in all {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        assert_eq!("best-effort".parse(), Ok(IoPriority::BestEffort(4)));
        let all = [
            SchedPolicy::Other,
            SchedPolicy::Batch,
            SchedPolicy::Idle,
            SchedPolicy::Fifo(1),
            SchedPolicy::RoundRobin(99),
        ];
        for one in all {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
    }

    #[test]
    fn what_is_none_is_refused_with_the_choices() {
        for text in [
            "",
            "x",
            "idle:0",
            "none:1",
            "best-effort:8",
            "realtime:-1",
            "best-effort:+1",
            "best-effort:",
            "realtime:04",
            "idle ",
            "IDLE",
            "realtime:1:2",
            "realtime:999",
        ] {
            let error = text.parse::<IoPriority>().unwrap_err().to_string();
            let begins = format!("ionice is {text:?}, which is not known: use \"none\"");
            assert!(error.starts_with(&begins), "{error}");
        }
        for text in [
            "", "x", "other:1", "batch:0", "fifo", "rr", "fifo:0", "rr:100", "deadline",
        ] {
            let error = text.parse::<SchedPolicy>().unwrap_err().to_string();
            let begins = format!("sched_policy is {text:?}, which is not known: use \"other\"");
            assert!(error.starts_with(&begins), "{error}");
        }
    }
}
