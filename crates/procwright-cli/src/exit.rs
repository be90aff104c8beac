//! Every exit code of this command, in one place.

use std::fmt::Display;

use procwright::error::{SpawnError, Step};
use procwright::process::{Exit, Signal};

use crate::message;

/// Some of the commands of a map have failed.
const FAILED: u8 = 1;
/// The queue's receiver is dead or has left, there is no queue, or it is full.
const REFUSED: u8 = 1;
/// A wait timed out. Not `STOPPED`: nothing was stopped, and util-linux's
/// waitpid(1) uses this code.
const TIMED_OUT: u8 = 3;
/// Stopped by a limit: a timeout, an idle timeout, an output limit.
const STOPPED: u8 = 124;
/// Wrong usage, and errors of this command itself.
const TROUBLE: u8 = 125;
/// The program was found but could not be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The program was not found.
const NOT_FOUND: u8 = 127;
/// Added to the number of a signal.
pub(crate) const SIGNALLED: i32 = 128;

/// Signals that ask a process to terminate.
pub(crate) const TERMINATION_SIGNALS: [Signal; 4] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// Returns whether this process is the first of its pid namespace, which cannot die by a
/// signal of its own: see [`process_1`](crate::process_1).
#[doc(alias = "getpid")]
#[doc(alias = "init")]
pub(crate) fn is_process_1() -> bool {
    std::process::id() == 1
}

/// How this command terminates.
///
/// Functions that may end the command early return `Result<_, Termination>`: the
/// reason is printed where it is known, and `?` carries the exit code to `main`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Termination {
    /// Exits with this code.
    Code(u8),
    /// Dies by this signal, so that the parent sees that it was one: a shell breaks
    /// off a loop only if the command died by SIGINT. As process 1, which cannot die by
    /// a signal of its own, it exits with 128 + its number.
    Signal(i32),
}

impl Termination {
    pub(crate) const OK: Termination = Termination::Code(0);
    pub(crate) const FAILED: Termination = Termination::Code(FAILED);
    pub(crate) const REFUSED: Termination = Termination::Code(REFUSED);
    pub(crate) const TIMED_OUT: Termination = Termination::Code(TIMED_OUT);
    pub(crate) const STOPPED: Termination = Termination::Code(STOPPED);
    pub(crate) const TROUBLE: Termination = Termination::Code(TROUBLE);
    /// The reader of stdout is gone: as in any other tool of a pipeline.
    pub(crate) const BROKEN_PIPE: Termination = Termination::Signal(signal_hook::consts::SIGPIPE);

    /// Prints what is wrong, and returns [`Termination::TROUBLE`].
    pub(crate) fn trouble(message: impl Display) -> Termination {
        message::print(message);
        Termination::TROUBLE
    }

    /// Termination after a program that ended by itself.
    pub(crate) fn after_program(status: Exit) -> Termination {
        match status {
            Exit::Code(code) => Termination::Code(u8::try_from(code).unwrap_or(TROUBLE)),
            Exit::Signal { signal, .. } if signal == Signal::INT => {
                Termination::Signal(signal.number())
            }
            Exit::Signal { signal, .. } => {
                Termination::Code(u8::try_from(SIGNALLED + signal.number()).unwrap_or(TROUBLE))
            }
            _ => Termination::TROUBLE,
        }
    }

    /// Termination after a program that did not start.
    pub(crate) fn after_spawn_error(error: &SpawnError) -> Termination {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        Termination::Code(match (error.step, error.source.kind()) {
            (Step::Exec, NotFound | NotADirectory) => NOT_FOUND,
            (Step::Exec, _) => NOT_EXECUTABLE,
            _ => TROUBLE,
        })
    }

    /// Ends this process.
    #[doc(alias = "exit")]
    pub(crate) fn terminate(self) -> ! {
        message::flush();
        let code = match self {
            Termination::Code(code) => code.into(),
            Termination::Signal(signal) => {
                // Where the signal does not end this process, abort(3) does, which process
                // 1 survives as well: a protection fault is what it dies by then.
                if !is_process_1() {
                    // Returns only for signals that do not end a process by default.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                SIGNALLED + signal
            }
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "this is how main ends the process"
        )]
        std::process::exit(code)
    }
}
