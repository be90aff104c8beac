//! Which signals a command takes that runs programs, and for whom they are.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use procwright::process::Signal;
use procwright::process::job::Arrival;

use crate::exit::TERMINATION_SIGNALS;

/// Signals that are not blocked.
const NOT_BLOCKED: [Signal; 13] = [
    // Faults of this process itself.
    Signal::ILL,
    Signal::TRAP,
    Signal::ABRT,
    Signal::BUS,
    Signal::FPE,
    Signal::SEGV,
    Signal::SYS,
    Signal::PIPE,
    Signal::XFSZ,
    // Signals that cannot be blocked.
    Signal::KILL,
    Signal::STOP,
    // Signals that do nothing by default.
    Signal::URG,
    Signal::WINCH,
];

/// Signals of job control, and SIGCHLD, which reports an end or a stop of a child.
pub(crate) const JOB_CONTROL: [Signal; 5] = [
    Signal::CHLD,
    Signal::CONT,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
];

/// A number above the last signal of any system.
const HIGHEST: i32 = 127;

/// Signals that would end this process, and are not ignored: those that ask it to
/// terminate, and those that are no wish for an end.
pub(crate) fn that_end_us() -> impl Iterator<Item = Signal> {
    let all = (1..=HIGHEST).filter_map(|number| Signal::new(number).ok());
    all.filter(|signal| !NOT_BLOCKED.contains(signal) && !JOB_CONTROL.contains(signal))
        .filter(|signal| !signal.is_ignored())
}

/// Returns whether the signal asks to terminate, or cannot have been for the program.
pub(crate) fn is_for_this_command(arrival: Arrival) -> bool {
    arrival.from_kernel || TERMINATION_SIGNALS.contains(&arrival.signal)
}

/// Returns whether the terminal has sent the signal, and so to the whole foreground
/// group.
pub(crate) fn is_from_keyboard(arrival: Arrival) -> bool {
    arrival.from_kernel && matches!(arrival.signal, Signal::INT | Signal::QUIT)
}

/// Makes a write beyond the limit of file sizes fail, where SIGXFSZ would end this
/// process. Programs get the default action again.
///
/// # Errors
/// Those of sigaction(2), in words.
#[doc(alias = "RLIMIT_FSIZE")]
pub(crate) fn survive_size_limits() -> Result<(), String> {
    let number = Signal::XFSZ.number();
    signal_hook::flag::register(number, Arc::new(AtomicBool::new(false)))
        .map(drop)
        .map_err(|error| format!("cannot catch signals: {error}"))
}
