//! `--input-wanted`: what is said, and done, when the program waits for input.

use std::io;

use procwright::explain::Waiting;
use procwright::{Cancel, Command, Event, Reason, Report};
use procwright_os::sync::Mutex;

use crate::args::InputWantedArg;
use crate::message;

/// The waits for input of a program, whose caller wants to hear of them.
#[derive(Debug)]
pub(super) struct InputWanted {
    /// Stops the program at the first; none where it goes on. One serves all attempts: behind
    /// one that has asked there is no other.
    stop: Option<Cancel>,
    latest: Mutex<Option<Asked>>,
}

/// What a program waited for that wanted input.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) waiting: Waiting,
    pub(crate) prompt: Option<String>,
}

impl InputWanted {
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(wish: InputWantedArg) -> io::Result<InputWanted> {
        let stop = match wish {
            InputWantedArg::Tell => None,
            InputWantedArg::Fail => Some(Cancel::new()?),
        };
        Ok(InputWanted {
            stop,
            latest: Mutex::new(None),
        })
    }

    /// Has the run of `command` look for such waits.
    pub(super) fn attach<'a>(&self, command: Command<'a>) -> Command<'a> {
        let command = command.input_wanted();
        match &self.stop {
            Some(stop) => command.cancel_on(stop),
            None => command,
        }
    }

    /// Says that the program waits, and stops it if that is wanted.
    pub(super) fn tell(&self, event: &Event, waiting: &Waiting, prompt: Option<&String>) {
        *self.latest.lock() = Some(Asked {
            waiting: waiting.clone(),
            prompt: prompt.cloned(),
        });
        match &self.stop {
            None => message::post(event),
            Some(stop) => {
                let hint = match waiting.fd {
                    Some(0) => "--stdin FILE gives it an answer, --stdin null an end",
                    _ => "procwright run setsid -w CMD leaves it no terminal to ask at",
                };
                message::post(format_args!(
                    "{}\n  it is stopped, as --input-wanted says\n  hint: {hint}; many programs \
                     have an option that answers, such as --yes",
                    event.fact()
                ));
                stop.cancel();
            }
        }
    }

    /// The latest wait that was told.
    pub(super) fn latest(&self) -> Option<Asked> {
        self.latest.lock().clone()
    }

    /// True once the program is stopped at such a wait, or has ended at that very moment.
    pub(super) fn stops(&self) -> bool {
        self.stop.as_ref().is_some_and(Cancel::is_cancelled)
    }

    /// True if this is the report of a run that was stopped at such a wait, and not by a signal.
    pub(super) fn has_stopped(&self, report: &Report, signal: Option<i32>) -> bool {
        self.stops() && report.reason == Reason::Cancelled && signal.is_none()
    }
}
