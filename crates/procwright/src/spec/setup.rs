//! One table of what is set up in a program's process before its first instruction and has
//! a plain value: front ends make their options from it.

use std::path::PathBuf;

use super::Spec;
use procwright_os::Invalid;
use procwright_os::spawn::MOST_PROCESSORS;
use procwright_process::Signal;

/// An option of the set-up, as a front end offers it.
///
/// It stands in [`SETUP`] once; parameters, flags, checks and their texts in Python, Ruby and
/// the command follow from there.
#[derive(Clone, Copy, Debug)]
pub struct SetupOption {
    /// Its name, that of the member of [`Spec`].
    pub name: &'static str,
    /// The flag of the command, without the dashes.
    pub flag: &'static str,
    /// What its values are.
    pub kind: SetupKind,
    /// What stands for a value in the help; empty for what has none.
    pub placeholder: &'static str,
    /// What would do, for the error of what would not: in the words of all languages.
    pub hint: &'static str,
    /// What it is for, in a line.
    pub about: &'static str,
    /// What else there is to know.
    pub details: &'static str,
    set: fn(&mut Spec, SetupValue) -> Result<(), Invalid>,
}

/// The kind of value that an option of the set-up has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupKind {
    /// It is asked for, or not.
    Flag,
    /// A number.
    Number,
    /// Numbers.
    Numbers,
    /// A word.
    Text,
    /// Signals, by name or number.
    Signals,
    /// The path of a directory.
    Path,
}

/// A value of an option of the set-up.
#[derive(Clone, Debug)]
pub enum SetupValue {
    /// Of [`SetupKind::Flag`].
    Flag(bool),
    /// Of [`SetupKind::Number`].
    Number(i64),
    /// Of [`SetupKind::Numbers`].
    Numbers(Vec<i64>),
    /// Of [`SetupKind::Text`].
    Text(String),
    /// Of [`SetupKind::Signals`].
    Signals(Vec<Signal>),
    /// Of [`SetupKind::Path`].
    Path(PathBuf),
}

const SIGNALS: &str = "name signals, such as \"USR1\" or \"SIGTERM\", in a list; SIGKILL and \
                       SIGSTOP cannot be blocked or ignored";
const PROCESSORS: &str = "pass a list of one or more processors by their numbers from 0 on, such \
                          as [0, 1]";
const OOM: &str = "pass a number from -1000, never, to 1000, first of all";

/// All options of the set-up.
pub const SETUP: &[SetupOption] = &[
    SetupOption {
        name: "blocked_signals",
        flag: "block-signal",
        kind: SetupKind::Signals,
        placeholder: "SIGNAL",
        hint: SIGNALS,
        about: "Start it with these signals blocked",
        details: "They stay pending until the program unblocks them. A signal that stops the \
                  program, such as TERM, then does nothing before SIGKILL. SIGKILL and SIGSTOP \
                  are refused.",
        set: |spec, value| match value {
            SetupValue::Signals(signals) => {
                spec.blocked_signals = signals;
                Ok(())
            }
            _ => Err(odd("blocked_signals")),
        },
    },
    SetupOption {
        name: "ignored_signals",
        flag: "ignore-signal",
        kind: SetupKind::Signals,
        placeholder: "SIGNAL",
        hint: SIGNALS,
        about: "Start it with these signals ignored",
        details: "Besides those that its caller ignores. SIGKILL and SIGSTOP are refused.",
        set: |spec, value| match value {
            SetupValue::Signals(signals) => {
                spec.ignored_signals = signals;
                Ok(())
            }
            _ => Err(odd("ignored_signals")),
        },
    },
    SetupOption {
        name: "default_signals",
        flag: "default-signal",
        kind: SetupKind::Signals,
        placeholder: "SIGNAL",
        hint: "name signals, such as \"HUP\" or \"SIGINT\", in a list",
        about: "Have these signals do what they do by default",
        details: "Also if the caller ignores them, as SIGHUP under nohup, and SIGINT of a job \
                  in the background.",
        set: |spec, value| match value {
            SetupValue::Signals(signals) => {
                spec.default_signals = signals;
                Ok(())
            }
            _ => Err(odd("default_signals")),
        },
    },
    SetupOption {
        name: "cpu_affinity",
        flag: "cpu-affinity",
        kind: SetupKind::Numbers,
        placeholder: "LIST",
        hint: PROCESSORS,
        about: "Run it on these processors alone",
        details: "By their numbers, as taskset(1) has them. One that is not there, or not in the \
                  cpuset of the cgroup, is an error.",
        set: |spec, value| match value {
            SetupValue::Numbers(numbers) => {
                let processors = numbers
                    .into_iter()
                    .map(u32::try_from)
                    .collect::<Result<_, _>>();
                let Ok(processors) = processors else {
                    return Err(Invalid::new(
                        "cpu_affinity",
                        "has a number of no processor",
                        PROCESSORS,
                    ));
                };
                spec.cpu_affinity = Some(processors);
                Ok(())
            }
            _ => Err(odd("cpu_affinity")),
        },
    },
    SetupOption {
        name: "sched_policy",
        flag: "sched-policy",
        kind: SetupKind::Text,
        placeholder: "POLICY",
        hint: "pass the name of a policy, such as \"batch\", \"idle\" or \"rr:10\"",
        about: "Schedule it so: batch, idle, other, fifo:N, rr:N",
        details: "As by chrt(1). fifo and rr have a priority from 1 to 99, and need rights: \
                  CAP_SYS_NICE or the limit rtprio.",
        set: |spec, value| match value {
            SetupValue::Text(text) => {
                spec.sched_policy = Some(text.parse()?);
                Ok(())
            }
            _ => Err(odd("sched_policy")),
        },
    },
    SetupOption {
        name: "ionice",
        flag: "ionice",
        kind: SetupKind::Text,
        placeholder: "CLASS",
        hint: "pass a class and a level, such as \"idle\" or \"best-effort:7\"",
        about: "Class of its I/O: idle, best-effort:N, realtime:N",
        details: "As by ionice(1), with a level from 0, the first, to 7; 4 without one. \
                  realtime needs rights; none takes the class from the nice value.",
        set: |spec, value| match value {
            SetupValue::Text(text) => {
                spec.ionice = Some(text.parse()?);
                Ok(())
            }
            _ => Err(odd("ionice")),
        },
    },
    SetupOption {
        name: "oom_score_adj",
        flag: "oom-score-adj",
        kind: SetupKind::Number,
        placeholder: "N",
        hint: OOM,
        about: "Have it killed earlier where memory is short",
        details: "From -1000, never, to 1000, first of all, as in /proc/PID/oom_score_adj. To go \
                  below the least value that was set with CAP_SYS_RESOURCE, 0 if none was, needs \
                  that capability.",
        set: |spec, value| match value {
            SetupValue::Number(number) => {
                let Ok(number) = i32::try_from(number) else {
                    return Err(Invalid::new(
                        "oom_score_adj",
                        format!("is {number}, which is out of range"),
                        OOM,
                    ));
                };
                spec.oom_score_adj = Some(number);
                Ok(())
            }
            _ => Err(odd("oom_score_adj")),
        },
    },
    SetupOption {
        name: "cgroup",
        flag: "cgroup",
        kind: SetupKind::Path,
        placeholder: "DIR",
        hint: "pass the directory of a cgroup, such as /sys/fs/cgroup/jobs",
        about: "Start it in the cgroup with this directory",
        details: "Of either version. It is in there before it runs and before it can start \
                  anything. A cgroup that is frozen is refused: the start would wait.",
        set: |spec, value| match value {
            SetupValue::Path(path) => {
                spec.cgroup = Some(path);
                Ok(())
            }
            _ => Err(odd("cgroup")),
        },
    },
    SetupOption {
        name: "chroot",
        flag: "chroot",
        kind: SetupKind::Path,
        placeholder: "DIR",
        hint: "pass the directory that is to be its root",
        about: "Have it see this directory as /",
        details: "The program, its cwd and PATH are looked for in there, files of its stdin, \
                  stdout and stderr, and names of users, are not. It starts in the new / unless \
                  a cwd is given. Needs CAP_SYS_CHROOT; a root user can leave it again.",
        set: |spec, value| match value {
            SetupValue::Path(path) => {
                spec.chroot = Some(path);
                Ok(())
            }
            _ => Err(odd("chroot")),
        },
    },
    SetupOption {
        name: "no_new_privs",
        flag: "no-new-privs",
        kind: SetupKind::Flag,
        placeholder: "",
        hint: "pass true or false",
        about: "Have no program of it gain rights by exec",
        details: "Set-user-ID bits and file capabilities then do nothing, for it and all that it \
                  starts, for good.",
        set: |spec, value| match value {
            SetupValue::Flag(asked) => {
                spec.no_new_privs = asked;
                Ok(())
            }
            _ => Err(odd("no_new_privs")),
        },
    },
    SetupOption {
        name: "new_keyring",
        flag: "new-keyring",
        kind: SetupKind::Flag,
        placeholder: "",
        hint: "pass true or false",
        about: "Give it a new session keyring, an empty one",
        details: "It then cannot use the keys of the caller's session keyring, such as those of \
                  Kerberos or fscrypt.",
        set: |spec, value| match value {
            SetupValue::Flag(asked) => {
                spec.new_keyring = asked;
                Ok(())
            }
            _ => Err(odd("new_keyring")),
        },
    },
];

fn odd(option: &str) -> Invalid {
    let hint = "pass a value of the kind that SETUP names";
    Invalid::new(option, "has a value of another kind", hint)
}

impl SetupOption {
    /// The option with this name.
    pub fn named(name: &str) -> Option<&'static SetupOption> {
        SETUP.iter().find(|option| option.name == name)
    }

    /// Sets it in `spec`.
    ///
    /// # Errors
    /// The fault of the value, so far as it can be found without its companions.
    pub fn set(&self, spec: &mut Spec, value: SetupValue) -> Result<(), Invalid> {
        (self.set)(spec, value)?;
        spec.check_setup()
    }
}

impl Spec {
    /// Finds what is wrong with the values of [`SETUP`].
    pub(super) fn check_setup(&self) -> Result<(), Invalid> {
        let immutable = |signal: &&Signal| [Signal::KILL, Signal::STOP].contains(signal);
        for (option, signals, verb) in [
            ("blocked_signals", &self.blocked_signals, "block"),
            ("ignored_signals", &self.ignored_signals, "ignore"),
        ] {
            if let Some(signal) = signals.iter().find(immutable) {
                let problem = format!("has {signal}, which no process can {verb}");
                return Err(Invalid::new(option, problem, "leave it out"));
            }
        }
        let both = |signal: &&Signal| self.ignored_signals.contains(signal);
        if let Some(signal) = self.default_signals.iter().find(both) {
            return Err(Invalid::new(
                "default_signals",
                format!("has {signal}, which is in ignored_signals as well"),
                "leave it out of one of them",
            ));
        }
        if let Some(processors) = &self.cpu_affinity {
            if processors.is_empty() {
                return Err(Invalid::new("cpu_affinity", "is empty", PROCESSORS));
            }
            let impossible = |number: &&u32| **number as usize >= MOST_PROCESSORS;
            if let Some(number) = processors.iter().find(impossible) {
                let problem = format!("has {number}, and no kernel counts so many processors");
                return Err(Invalid::new("cpu_affinity", problem, PROCESSORS));
            }
        }
        if let Some(number) = self.oom_score_adj
            && !(-1000..=1000).contains(&number)
        {
            return Err(Invalid::new(
                "oom_score_adj",
                format!("is {number}, which is out of range"),
                OOM,
            ));
        }
        self.ionice.map_or(Ok(()), |priority| priority.check())?;
        self.sched_policy.map_or(Ok(()), |policy| policy.check())
    }
}
