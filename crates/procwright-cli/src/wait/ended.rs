//! The line about a process that has ended, as text or as JSON.
//!
//! `docs/reference/wait.schema.json` describes the JSON.

use std::time::Duration;

use jiff::Timestamp;
use procwright::process::{Exit, Id};
use procwright::wait::{Event, Mechanism};
use serde_json::{Value, json};

use crate::human::HumanDuration;

/// A process that has ended.
#[derive(Debug)]
pub(super) struct EndedProcess<'a> {
    pub(super) id: Id,
    /// Name of the process; None if it was gone when the wait began.
    pub(super) name: Option<&'a str>,
    /// Event that was waited for.
    pub(super) event: Event,
    pub(super) ending: Ending,
    /// Time since the wait began.
    pub(super) waited: Duration,
}

/// How a process ended, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// The process ended during the wait, or was a zombie before.
    Observed {
        exit: Exit,
        at: Timestamp,
        mechanism: Option<Mechanism>,
    },
    /// No such process was there when the wait began.
    GoneBefore,
}

impl EndedProcess<'_> {
    /// The line for people.
    pub(super) fn text(&self) -> String {
        let Ending::Observed { exit, .. } = self.ending else {
            return format!("{} is not there: it has ended, or never was", self.id);
        };
        let pid = self.id.pid();
        let name = self.name.unwrap_or("?");
        let reaped = match self.event {
            Event::Reaped => " and was reaped",
            _ => "",
        };
        let waited = HumanDuration(self.waited);
        match exit {
            // The reason is a sentence, so the time stands before it.
            Exit::Unknown(why) => format!(
                "{pid} {name} ended{reaped} after {waited}, it is not known how: {}",
                why.reason()
            ),
            exit => format!("{pid} {name} {exit}{reaped} after {waited}"),
        }
    }

    /// The line for programs.
    pub(super) fn json(&self) -> Value {
        let (status, at, mechanism) = match self.ending {
            Ending::Observed {
                exit,
                at,
                mechanism,
            } => (
                exit.to_json(),
                Some(format!("{at:.3}")),
                mechanism.map(Mechanism::name),
            ),
            Ending::GoneBefore => (json!({"kind": "unknown", "why": "gone_before"}), None, None),
        };
        json!({
            "pid": self.id.pid(),
            "inode": self.id.inode(),
            "name": self.name,
            "event": self.event.name(),
            "status": status,
            "waited_s": self.waited.as_secs_f64(),
            "ended_at": at,
            "mechanism": mechanism,
        })
    }
}

#[cfg(test)]
mod tests {
    use procwright::process::{Signal, Unknown};

    use super::*;

    fn seen(exit: Exit, event: Event) -> String {
        let ended = EndedProcess {
            id: Id::new(7, Some(70)).unwrap(),
            name: Some("prog"),
            event,
            ending: Ending::Observed {
                exit,
                at: Timestamp::UNIX_EPOCH,
                mechanism: Some(Mechanism::Pidfd),
            },
            waited: Duration::from_millis(3214),
        };
        ended.text()
    }

    #[test]
    fn lines_for_people() {
        assert_eq!(
            seen(Exit::Code(0), Event::Exited),
            "7 prog exited with code 0 after 3.214 s"
        );
        let dumped = Exit::Signal {
            signal: Signal::KILL,
            core: true,
        };
        assert_eq!(
            seen(dumped, Event::Reaped),
            "7 prog killed by SIGKILL (core dumped) and was reaped after 3.214 s"
        );
        assert!(
            seen(Exit::Unknown(Unknown::NotReaped), Event::Exited)
                .starts_with("7 prog ended after 3.214 s, it is not known how: it was not our")
        );
        let gone = EndedProcess {
            id: "7:70".parse().unwrap(),
            name: None,
            event: Event::Exited,
            ending: Ending::GoneBefore,
            waited: Duration::ZERO,
        };
        assert_eq!(gone.text(), "7:70 is not there: it has ended, or never was");
    }

    #[test]
    fn times_have_milliseconds() {
        let at: Timestamp = "2026-01-02T03:04:05.006007Z".parse().unwrap();
        let ended = EndedProcess {
            id: Id::new(7, None).unwrap(),
            name: None,
            event: Event::Exited,
            ending: Ending::Observed {
                exit: Exit::Code(0),
                at,
                mechanism: None,
            },
            waited: Duration::ZERO,
        };
        let json = ended.json();
        assert_eq!(json["ended_at"], "2026-01-02T03:04:05.006Z");
        assert_eq!(json["inode"], Value::Null);
    }
}
