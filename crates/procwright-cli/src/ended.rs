//! What is said of a process that has ended: a line of text, or of JSON.
//!
//! `docs/reference/wait.schema.json` says exactly what the JSON looks like.

use std::time::Duration;

use jiff::Timestamp;
use procwright::process::{Exit, Id};
use procwright::wait::{Event, Mechanism};
use serde_json::{Value, json};

use crate::figures::Seconds;

/// One that has ended.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) id: Id,
    /// Its name; none if it was gone when the wait began.
    pub(crate) name: Option<&'a str>,
    /// What was awaited of it.
    pub(crate) event: Event,
    pub(crate) how: How,
    /// For how long we had waited.
    pub(crate) waited: Duration,
}

/// How it ended, as far as one can say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    /// While we waited, or it was a zombie when that began.
    Seen {
        exit: Exit,
        at: Timestamp,
        mechanism: Option<Mechanism>,
    },
    /// There was no such process.
    GoneBefore,
}

impl Ended<'_> {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let How::Seen { exit, .. } = self.how else {
            return format!("{} is not there: it has ended, or never was", self.id);
        };
        let pid = self.id.pid();
        let name = self.name.unwrap_or("?");
        let reaped = match self.event {
            Event::Reaped => " and was reaped",
            _ => "",
        };
        let waited = Seconds(self.waited);
        match exit {
            // Its reason is a sentence, behind which the time would be lost.
            Exit::Unknown(why) => format!(
                "{pid} {name} ended{reaped} after {waited}, it is not known how: {}",
                why.reason()
            ),
            exit => format!("{pid} {name} {exit}{reaped} after {waited}"),
        }
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let (status, at, mechanism) = match self.how {
            How::Seen {
                exit,
                at,
                mechanism,
            } => (
                exit.to_json(),
                Some(format!("{at:.3}")),
                mechanism.map(Mechanism::name),
            ),
            How::GoneBefore => (json!({"kind": "unknown", "why": "gone_before"}), None, None),
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
        let ended = Ended {
            id: Id::new(7, Some(70)).unwrap(),
            name: Some("prog"),
            event,
            how: How::Seen {
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
            "7 prog was ended by SIGKILL (core dumped) and was reaped after 3.214 s"
        );
        assert!(
            seen(Exit::Unknown(Unknown::NotReaped), Event::Exited)
                .starts_with("7 prog ended after 3.214 s, it is not known how: it was not our")
        );
        let gone = Ended {
            id: "7:70".parse().unwrap(),
            name: None,
            event: Event::Exited,
            how: How::GoneBefore,
            waited: Duration::ZERO,
        };
        assert_eq!(gone.text(), "7:70 is not there: it has ended, or never was");
    }

    #[test]
    fn times_have_milliseconds() {
        let at: Timestamp = "2026-01-02T03:04:05.006007Z".parse().unwrap();
        let ended = Ended {
            id: Id::new(7, None).unwrap(),
            name: None,
            event: Event::Exited,
            how: How::Seen {
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
