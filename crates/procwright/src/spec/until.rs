//! When a run is over.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use procwright_os::Invalid;
use procwright_os::time::{Deadline, Timeout};

/// The condition for the end of a run. As text `eof`, `exit` and `silent:2s`, with the units
/// of a [`Timeout`].
///
/// ```
/// use procwright::Until;
/// use std::time::Duration;
///
/// let until: Until = "silent:1500ms".parse()?;
/// assert_eq!(until, Until::Silent(Duration::from_millis(1500)));
/// assert_eq!(until.to_string(), "silent:1.5s");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub enum Until {
    /// The program has exited and every holder of its pipes is gone.
    #[default]
    Eof,
    /// The program itself has exited and what was in its pipes then has been read. All
    /// that the program wrote is there; processes that it left
    /// behind go on and are named in `held_by`.
    Exit,
    /// The program has exited, and then nothing has come by its pipes for so long, or every
    /// holder of them is gone: for a program that leaves others behind which finish what it
    /// has begun. A silence before the exit does not count. Output that goes on keeps the
    /// run going, for ever if there is no timeout. Needs a stream that is captured or relayed.
    Silent(Duration),
}

impl Until {
    /// The silence that ends the run, if one does.
    pub(crate) fn silence(self) -> Option<Duration> {
        match self {
            Until::Silent(silence) => Some(silence),
            Until::Eof | Until::Exit => None,
        }
    }

    /// The time at which the silence is long enough that began with the exit, or, if that
    /// came later, with the last byte. Never as long as there was no exit.
    pub(crate) fn silent_at(self, exit: Option<Instant>, last_read: Option<Instant>) -> Deadline {
        match (self.silence(), exit) {
            (Some(silence), Some(exit)) => {
                Timeout::after(silence).starting(last_read.map_or(exit, |last| last.max(exit)))
            }
            _ => Deadline::NEVER,
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Eof => f.write_str("eof"),
            Until::Exit => f.write_str("exit"),
            Until::Silent(Duration::MAX) => f.write_str("silent:inf"),
            Until::Silent(silence) => write!(f, "silent:{}s", silence.as_secs_f64()),
        }
    }
}

impl FromStr for Until {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Until, Invalid> {
        let unknown = || {
            let problem = format!("is {text:?}, which is no end of a run");
            Invalid::new(
                "until",
                problem,
                "use eof, exit, or silent: and a time, as silent:2s",
            )
        };
        match text {
            "eof" => Ok(Until::Eof),
            "exit" => Ok(Until::Exit),
            _ => {
                let silence = text.strip_prefix("silent:").ok_or_else(unknown)?;
                let silence: Timeout = silence.parse().map_err(|_| unknown())?;
                Ok(Until::Silent(silence.duration().unwrap_or(Duration::MAX)))
            }
        }
    }
}

impl TryFrom<String> for Until {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Until, Invalid> {
        text.parse()
    }
}

impl From<Until> for String {
    fn from(until: Until) -> String {
        until.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_begins_with_the_exit_or_with_the_last_byte_after_it() {
        let silence = Duration::from_secs(2);
        let until = Until::Silent(silence);
        let exit = Instant::now();
        let [before, after] = [exit - silence, exit + silence];
        let at = |last_read| until.silent_at(Some(exit), last_read);
        assert_eq!(at(None), Deadline::at(exit + silence));
        assert_eq!(at(Some(before)), Deadline::at(exit + silence));
        assert_eq!(at(Some(after)), Deadline::at(after + silence));
        assert_eq!(until.silent_at(None, Some(before)), Deadline::NEVER);
        for other in [Until::Eof, Until::Exit, Until::Silent(Duration::MAX)] {
            assert_eq!(other.silent_at(Some(exit), None), Deadline::NEVER);
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for (text, until) in [
            ("eof", Until::Eof),
            ("exit", Until::Exit),
            ("silent:2s", Until::Silent(Duration::from_secs(2))),
            ("silent:0.25s", Until::Silent(Duration::from_millis(250))),
            ("silent:inf", Until::Silent(Duration::MAX)),
        ] {
            assert_eq!(text.parse(), Ok(until));
            assert_eq!(until.to_string(), text);
        }
        assert_eq!(
            "silent:2m".parse(),
            Ok(Until::Silent(Duration::from_secs(120)))
        );
        for wrong in [
            "",
            "Eof",
            "silent",
            "silent:",
            "silent:x",
            "silent:-1s",
            "silent: 2s",
            "2s",
        ] {
            let error = wrong.parse::<Until>().unwrap_err().to_string();
            assert!(
                error.ends_with("use eof, exit, or silent: and a time, as silent:2s"),
                "{error}"
            );
        }
    }
}
