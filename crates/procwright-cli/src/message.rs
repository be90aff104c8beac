//! Messages of this command itself: to stderr, behind `procwright: `.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::poll;
use procwright_os::sync::Mutex;

/// A line at the bottom of the terminal, which no message may run into.
pub(crate) trait StatusLine: Send + Sync {
    /// Calls `write` while the line is erased, and draws it again.
    fn with_line_erased(&self, write: &mut dyn FnMut());

    /// Does what [`StatusLine::with_line_erased`] does unless another thread has
    /// locked the line. Returns whether it was done.
    fn try_with_line_erased(&self, write: &mut dyn FnMut()) -> bool;
}

static STATUS_LINE: Mutex<Option<Weak<dyn StatusLine>>> = Mutex::new(None);

/// Messages that stderr did not take at once.
static DEFERRED: Mutex<String> = Mutex::new(String::new());

/// Most bytes that [`DEFERRED`] keeps.
const MOST_DEFERRED: usize = 2 * 1024;

/// True if the person's terminal is raw. The flag orders nothing else: a message
/// that sees the old value has at worst the wrong line ends.
static IS_RAW: AtomicBool = AtomicBool::new(false);

/// Erases `line` around each message from now on, as long as it exists.
pub(crate) fn set_status_line(line: &Arc<impl StatusLine + 'static>) {
    let line: Weak<dyn StatusLine> = Arc::downgrade(line) as _;
    *STATUS_LINE.lock() = Some(line);
}

/// Notes that the person's terminal is raw from now on, or no longer.
pub(crate) fn set_raw_terminal(is_raw: bool) {
    IS_RAW.store(is_raw, Ordering::Relaxed);
}

/// `text` with the line ends that stderr needs: on a raw terminal a newline does
/// not go to the beginning of the line.
fn with_line_ends(text: String) -> String {
    match IS_RAW.load(Ordering::Relaxed) && std::io::stderr().is_terminal() {
        true => text.replace('\n', "\r\n"),
        false => text,
    }
}

/// Prints a message, behind those that were deferred. Only its first line is
/// marked; the caller has indented the others, such as `hint:` lines.
pub(crate) fn print(message: impl Display) {
    // One write, so that a program's output does not come in between. A message that
    // cannot be written is dropped: there is no other place for it.
    let text = format!("procwright: {message}\n");
    write(with_line_ends(
        std::mem::take(&mut *DEFERRED.lock()) + &text,
    ));
}

/// Prints a message in the middle of a run without blocking, which would hold up
/// the run's deadlines: if stderr has no room, the message is deferred.
pub(crate) fn print_or_defer(message: impl Display) {
    let text = format!("procwright: {message}\n");
    // The lock is not held during the write.
    let pending = std::mem::take(&mut *DEFERRED.lock()) + &text;
    let all = with_line_ends(pending.clone());
    let mut put = || drop(std::io::stderr().write_all(all.as_bytes()));
    let printed = poll::is_writable(std::io::stderr())
        && match status_line() {
            Some(line) => line.try_with_line_erased(&mut put),
            None => {
                put();
                true
            }
        };
    if !printed {
        let mut deferred = DEFERRED.lock();
        deferred.insert_str(0, &pending);
        while deferred.len() > MOST_DEFERRED {
            // The latest message goes: the first names the cause.
            let line = deferred.trim_end_matches('\n').rfind('\n');
            deferred.truncate(line.map_or(0, |end| end + 1));
        }
    }
}

/// Prints the messages that were deferred.
pub(crate) fn print_deferred() {
    let deferred = std::mem::take(&mut *DEFERRED.lock());
    if !deferred.is_empty() {
        write(with_line_ends(deferred));
    }
}

fn write(text: String) {
    with_line_erased(&mut || drop(std::io::stderr().write_all(text.as_bytes())));
}

/// Calls `write`, which writes something else to the terminal, while the status
/// line is erased.
pub(crate) fn with_line_erased(write: &mut dyn FnMut()) {
    match status_line() {
        Some(line) => line.with_line_erased(write),
        None => write(),
    }
}

fn status_line() -> Option<Arc<dyn StatusLine>> {
    let line = STATUS_LINE.lock().clone();
    line.and_then(|line| line.upgrade())
}
