//! What this command says of its own: to stderr, marked as its own.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A line at the bottom of the terminal, which nothing that is said may run into.
pub(crate) trait Line: Send + Sync {
    /// Writes while the line is away.
    fn without(&self, write: &mut dyn FnMut());

    /// The same, unless somebody has the line in hand: false then.
    fn try_without(&self, write: &mut dyn FnMut()) -> bool;
}

static LINE: Mutex<Option<Weak<dyn Line>>> = Mutex::new(None);

/// What was to be said while nobody took it.
static LATER: Mutex<String> = Mutex::new(String::new());

/// So much is kept of it.
const MOST: usize = 2 * 1024;

/// Whether the terminal that people look at is raw.
static RAW: AtomicBool = AtomicBool::new(false);

/// From now on makes way for `line`, as long as somebody has it.
pub(crate) fn make_way_for(line: &Arc<impl Line + 'static>) {
    let line: Weak<dyn Line> = Arc::downgrade(line) as _;
    *LINE.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
}

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
    let text = format!("procwright: {message}\n");
    write(for_terminal(std::mem::take(&mut *later()) + &text));
}

/// Says something in the middle of a run, whose deadlines would wait as well: if
/// whoever reads stderr does not take it at once, it is said later.
pub(crate) fn say_in_run(message: impl Display) {
    let text = format!("procwright: {message}\n");
    // Not held during the write.
    let kept = std::mem::take(&mut *later()) + &text;
    let all = for_terminal(kept.clone());
    let mut put = || drop(std::io::stderr().write_all(all.as_bytes()));
    let said = takes_more()
        && match line() {
            Some(line) => line.try_without(&mut put),
            None => {
                put();
                true
            }
        };
    if !said {
        let mut later = later();
        later.insert_str(0, &kept);
        while later.len() > MOST {
            // The latest goes: the first is the cause.
            let line = later.trim_end_matches('\n').rfind('\n');
            later.truncate(line.map_or(0, |end| end + 1));
        }
    }
}

/// Says what was kept for later.
pub(crate) fn say_the_rest() {
    let kept = std::mem::take(&mut *later());
    if !kept.is_empty() {
        write(for_terminal(kept));
    }
}

fn later() -> MutexGuard<'static, String> {
    LATER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether stderr has room: a pipe for a page, which is more than we ever say at
/// once, a terminal for some lines.
fn takes_more() -> bool {
    let stderr = std::io::stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

fn write(text: String) {
    without_line(&mut || drop(std::io::stderr().write_all(text.as_bytes())));
}

/// Writes what else goes to the terminal.
pub(crate) fn without_line(write: &mut dyn FnMut()) {
    match line() {
        Some(line) => line.without(write),
        None => write(),
    }
}

fn line() -> Option<Arc<dyn Line>> {
    let line = LINE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    line.and_then(|line| line.upgrade())
}
