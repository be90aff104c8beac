//! How this command ends: every exit code it has, in one place.

use procwright::error::{SpawnError, Step};
use procwright::process::{Exit, Signal};

use crate::args::wrong_usage;
use crate::message::say;

/// What was asked for could not be: nobody receives from a queue.
const REFUSED: u8 = 1;
/// A wait timed out. Not `STOPPED`: nothing was stopped, and util-linux's
/// waitpid(1) says the same.
const TIMED_OUT: u8 = 3;
/// Stopped by a limit: a timeout, an idle timeout, an output limit.
const STOPPED: u8 = 124;
/// Wrong usage, and errors of our own.
const TROUBLE: u8 = 125;
/// The program was found but could not be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The program was not found.
const NOT_FOUND: u8 = 127;
/// Added to the number of a signal.
const SIGNALLED: i32 = 128;

/// How this command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With this exit code.
    Code(u8),
    /// By this signal, so that our parent sees that it was one: a shell breaks
    /// off a loop only if the command died by SIGINT.
    Signal(i32),
}

impl End {
    pub(crate) const OK: End = End::Code(0);
    pub(crate) const REFUSED: End = End::Code(REFUSED);
    pub(crate) const TIMED_OUT: End = End::Code(TIMED_OUT);
    pub(crate) const STOPPED: End = End::Code(STOPPED);
    pub(crate) const TROUBLE: End = End::Code(TROUBLE);
    /// Nobody reads our output any more: as any other tool in a pipeline.
    pub(crate) const BROKEN_PIPE: End = End::Signal(signal_hook::consts::SIGPIPE);

    pub(crate) fn leave(self) -> ! {
        let code = match self {
            End::Code(code) => code.into(),
            End::Signal(signal) => {
                // Does not return for those that end a process by default.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
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

/// After a program that ended by itself.
pub(crate) fn of_program(status: Exit) -> End {
    match status {
        Exit::Code(code) => End::Code(u8::try_from(code).unwrap_or(TROUBLE)),
        Exit::Signal { signal, .. } if signal == Signal::INT => End::Signal(signal.number()),
        Exit::Signal { signal, .. } => {
            End::Code(u8::try_from(SIGNALLED + signal.number()).unwrap_or(TROUBLE))
        }
        _ => End::TROUBLE,
    }
}

/// After a program that did not start.
pub(crate) fn of_spawn(error: &SpawnError) -> End {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    End::Code(match (error.step, error.source.kind()) {
        (Step::Exec, NotFound | NotADirectory) => NOT_FOUND,
        (Step::Exec, _) => NOT_EXECUTABLE,
        _ => TROUBLE,
    })
}

/// Shows what clap has to say: help and version are no errors.
pub(crate) fn of_usage(error: &clap::Error) -> End {
    if !error.use_stderr() {
        // What cannot be shown (a closed pipe) changes nothing.
        let _ = error.print();
        return End::OK;
    }
    // Without a subcommand it is the whole help that clap has to say.
    match error.to_string().starts_with("error: ") {
        true => say(wrong_usage(error)),
        false => drop(error.print()),
    }
    End::TROUBLE
}
