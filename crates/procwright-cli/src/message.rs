//! What this command says of its own: to stderr, marked as its own.

use std::fmt::Display;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A line at the bottom of the terminal, which nothing that is said may run into.
pub(crate) trait Line: Send + Sync {
    /// Writes while the line is away.
    fn without(&self, write: &mut dyn FnMut());
}

static LINE: Mutex<Option<Weak<dyn Line>>> = Mutex::new(None);

/// From now on makes way for `line`, as long as somebody has it.
pub(crate) fn make_way_for(line: &Arc<impl Line + 'static>) {
    let line: Weak<dyn Line> = Arc::downgrade(line) as _;
    *LINE.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
}

/// Says something. Only the first line is marked; others, such as `hint:`
/// lines, are indented by whoever wrote them.
pub(crate) fn say(message: impl Display) {
    // In one write, so that a program's output does not come in between. What
    // cannot be said is not said: there is no other place for it.
    let text = format!("procwright: {message}\n");
    without_line(&mut || drop(std::io::stderr().write_all(text.as_bytes())));
}

/// Writes what else goes to the terminal.
pub(crate) fn without_line(write: &mut dyn FnMut()) {
    let line = LINE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match line.and_then(|line| line.upgrade()) {
        Some(line) => line.without(write),
        None => write(),
    }
}
