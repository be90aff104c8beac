//! Signals that this command was started to ignore, and that its program is to ignore as
//! well: `trap '' PIPE` in a shell, `nohup`, a parent that ignores SIGCHLD.
//!
//! Most of them are inherited by themselves, as this command changes nothing about
//! them. SIGPIPE, SIGXFSZ and SIGCHLD are the ones that a runtime or a host ignores or
//! catches for itself, so that the library gives a program their default actions. This
//! command stands in the place of its caller, whose wish has to come through.

use std::sync::atomic::{AtomicBool, Ordering};

use procwright::Spec;
use procwright::process::Signal;

/// True if SIGPIPE was ignored at the start. Stored before there is another thread, so
/// that it orders nothing.
static IGNORES_SIGPIPE: AtomicBool = AtomicBool::new(false);

/// Called by the loader before `main`, since Rust's runtime ignores SIGPIPE before the
/// first line of ours, and nothing tells afterwards what was there.
extern "C" fn note_sigpipe() {
    IGNORES_SIGPIPE.store(Signal::PIPE.is_ignored(), Ordering::Relaxed);
}

// SAFETY: the section lists functions that the loader calls, in the C convention, and
// this is one; arguments that some loaders pass are ignored by it. It makes one system
// call and needs nothing of the standard library that `main` would set up.
#[used]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func")
)]
static AT_LOAD: extern "C" fn() = note_sigpipe;

/// Those of SIGPIPE, SIGXFSZ and SIGCHLD that were ignored when this command was started.
/// To be asked before one of them is caught or blocked here.
#[doc(alias = "SIG_IGN")]
pub(crate) fn ignored() -> Vec<Signal> {
    let mut ignored: Vec<Signal> = [Signal::XFSZ, Signal::CHLD]
        .into_iter()
        .filter(|signal| signal.is_ignored())
        .collect();
    if IGNORES_SIGPIPE.load(Ordering::Relaxed) {
        ignored.push(Signal::PIPE);
    }
    ignored
}

/// Has the program of `spec` ignore `signals`, which were ignored here, besides those that it
/// is said to ignore, and but for those that are said to have their default action.
pub(crate) fn pass_on(signals: &[Signal], spec: &mut Spec) {
    for signal in signals {
        if !spec.default_signals.contains(signal) && !spec.ignored_signals.contains(signal) {
            spec.ignored_signals.push(*signal);
        }
    }
}
