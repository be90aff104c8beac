//! What this command says of its own: to stderr, marked as its own.

use std::fmt::Display;
use std::io::Write;

/// Says something. Only the first line is marked; others, such as `hint:`
/// lines, are indented by whoever wrote them.
pub(crate) fn say(message: impl Display) {
    // In one write, so that a program's output does not come in between. What
    // cannot be said is not said: there is no other place for it.
    let text = format!("procwright: {message}\n");
    let _ = std::io::stderr().write_all(text.as_bytes());
}
