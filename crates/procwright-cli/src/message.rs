//! What this command says of its own: to stderr, marked as its own.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the terminal that people look at is raw.
static RAW: AtomicBool = AtomicBool::new(false);

/// Says that the person's terminal is raw from now on, or no longer.
pub(crate) fn mark_raw(raw: bool) {
    RAW.store(raw, Ordering::Relaxed);
}

/// The text as the terminal needs it: a raw one does not go to the beginning of
/// a line by itself.
fn for_terminal(text: String) -> String {
    match RAW.load(Ordering::Relaxed) && std::io::stderr().is_terminal() {
        true => text.replace('\n', "\r\n"),
        false => text,
    }
}

/// Says something. Only the first line is marked; others, such as `hint:`
/// lines, are indented by whoever wrote them.
pub(crate) fn say(message: impl Display) {
    // In one write, so that a program's output does not come in between. What
    // cannot be said is not said: there is no other place for it.
    let text = for_terminal(format!("procwright: {message}\n"));
    let _ = std::io::stderr().write_all(text.as_bytes());
}
