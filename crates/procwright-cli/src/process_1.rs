//! The command as process 1 of a container, or of any other pid namespace.
//!
//! The kernel gives that process no default action: a signal that would end another
//! process is dropped there, unless it is caught, blocked, or SIGKILL from outside
//! (pid_namespaces(7)). It also becomes the parent of all orphans, which stay zombies
//! until it reaps them. `run` reads its signals and reaps orphans wherever it runs;
//! what is here is for all other times, and for the other subcommands.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use procwright::process::reap_orphans;
use procwright_os::thread::spawn_quiet;
use signal_hook::consts::SIGCHLD;
use signal_hook::flag::register_conditional_shutdown;
use signal_hook::iterator::Signals;

use crate::exit::{SIGNALLED, TERMINATION_SIGNALS, is_process_1};

/// Makes signals that ask to terminate end this process, by the exit code that a shell
/// would make of its death. Those that are ignored stay so.
///
/// # Errors
/// Those of sigaction(2).
pub(crate) fn end_by_signals() -> io::Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    for signal in TERMINATION_SIGNALS {
        if !signal.is_ignored() {
            let (number, code) = (signal.number(), SIGNALLED + signal.number());
            register_conditional_shutdown(number, code, Arc::clone(&always))?;
        }
    }
    Ok(())
}

/// The command line of this process, to be run as its child; none unless it is process 1. For
/// `map` and `pipe`, which have several children: an orphan that has ended could not be told from
/// one whose status is about to be taken.
pub(crate) fn ourselves_as_a_child() -> Option<Vec<OsString>> {
    if !is_process_1() {
        return None;
    }
    // Where there is no /proc to find it by, it runs without reaping.
    let own = std::env::current_exe().ok()?;
    let words = std::env::args_os().skip(1);
    Some(std::iter::once(own.into()).chain(words).collect())
}

/// Reaps orphans from now on, on a thread that sleeps until one has ended. Not for
/// `run`, whose program is a child as well.
///
/// # Errors
/// No thread or no descriptor can be had.
pub(crate) fn reap_in_background() -> io::Result<()> {
    let mut ends = Signals::new([SIGCHLD])?;
    spawn_quiet("procwright-reaper", move || {
        // Some may have ended before SIGCHLD was caught.
        reap_orphans(0);
        for _ in ends.forever() {
            reap_orphans(0);
        }
    })?;
    Ok(())
}
