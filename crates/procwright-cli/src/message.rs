//! Messages of this command itself: to stderr, behind `procwright: `.
//!
//! One thread writes them, in their order, so that a stderr that takes nothing (a pipe
//! that nobody reads, a terminal after Ctrl-S) holds up neither the run's loop nor its
//! deadlines. At the end the command waits for that thread, [`LONGEST_WAIT`] at most;
//! signals end it meanwhile. A non-blocking write was no way: the mode of the
//! descriptor is shared with the program, and terminals and old kernels know none
//! besides.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::poll;
use procwright_os::sync::{Condvar, Mutex};
use procwright_os::thread::spawn_quiet;

/// Longest time for which the end of the command is held up by a stderr that takes
/// nothing. Enough for whoever reads slowly, and no reason for a job that is to end at a
/// deadline to stay for ever.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Longest time for which a stop of this command is held up so: the shell's prompt comes
/// after what is said about the stop.
const LONGEST_WAIT_AT_STOP: Duration = Duration::from_millis(500);

/// Most bytes of a line of a message. Words of a program can be 128 KiB each.
const MOST_OF_LINE: usize = 1000;

/// Most bytes of the end of a line that was cut: there it says what happened.
const MOST_OF_END: usize = 300;

/// Most lines of a message, of which a tree of many processes has one for each.
const MOST_LINES: usize = 60;

/// Most messages that wait. The latest go first: the first name the cause.
const MOST_WAITING: usize = 50;

/// A line at the bottom of the terminal, which no message may run into.
pub(crate) trait StatusLine: Send + Sync {
    /// Calls `write` while the line is erased, and draws it again.
    fn with_line_erased(&self, write: &mut dyn FnMut());

    /// Does what [`StatusLine::with_line_erased`] does unless another thread has
    /// locked the line. Returns whether it was done.
    fn try_with_line_erased(&self, write: &mut dyn FnMut()) -> bool;
}

static STATUS_LINE: Mutex<Option<Weak<dyn StatusLine>>> = Mutex::new(None);

/// True if the person's terminal is raw. The flag orders nothing else: a message
/// that sees the old value has at worst the wrong line ends.
static IS_RAW: AtomicBool = AtomicBool::new(false);

/// Texts on their way to stderr.
#[derive(Debug)]
struct Outbox {
    waiting: VecDeque<String>,
    has_thread: bool,
    is_writing: bool,
    /// True once stderr has taken nothing for too long: nobody waits for it any more.
    is_given_up: bool,
    /// First error of a write.
    error: Option<io::ErrorKind>,
}

static OUTBOX: Mutex<Outbox> = Mutex::new(Outbox {
    waiting: VecDeque::new(),
    has_thread: false,
    is_writing: false,
    is_given_up: false,
    error: None,
});

/// Notified when a text comes, and when one has been written.
static OUTBOX_CHANGED: Condvar = Condvar::new();

/// Erases `line` around each message from now on, as long as it exists.
pub(crate) fn set_status_line(line: &Arc<impl StatusLine + 'static>) {
    let line: Weak<dyn StatusLine> = Arc::downgrade(line) as _;
    *STATUS_LINE.lock() = Some(line);
}

/// Notes that the person's terminal is raw from now on, or no longer.
pub(crate) fn set_raw_terminal(is_raw: bool) {
    IS_RAW.store(is_raw, Ordering::Relaxed);
}

/// Prints a message, behind those that were posted, and returns when stderr has taken
/// it. Only its first line is marked; the caller has indented the others, such as
/// `hint:` lines. A message that cannot be written is dropped: there is no other place
/// for it.
///
/// # Blocking
/// [`LONGEST_WAIT`] at most.
pub(crate) fn print(message: impl Display) {
    post(message);
    flush();
}

/// Hands a message over to be printed soon. Never blocks, as the run's deadlines would
/// wait as well.
pub(crate) fn post(message: impl Display) {
    put(format!("procwright: {}\n", shortened(&message.to_string())));
}

/// Writes a text as it is, such as a report that was asked for.
///
/// # Errors
/// Those of the write, and `TimedOut` if stderr took nothing.
///
/// # Blocking
/// [`LONGEST_WAIT`] at most.
pub(crate) fn print_text(text: String) -> io::Result<()> {
    put(text);
    match flush() {
        true => OUTBOX.lock().error.map_or(Ok(()), |kind| Err(kind.into())),
        false => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "nobody reads stderr",
        )),
    }
}

/// Waits until stderr has taken all messages. Returns whether it has.
///
/// # Blocking
/// [`LONGEST_WAIT`] at most, and only once.
pub(crate) fn flush() -> bool {
    let is_flushed = flush_within(LONGEST_WAIT);
    OUTBOX.lock().is_given_up |= !is_flushed;
    is_flushed
}

fn flush_within(longest: Duration) -> bool {
    let until = Instant::now() + longest;
    let mut outbox = OUTBOX.lock();
    while outbox.is_writing || !outbox.waiting.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if outbox.is_given_up || left == Duration::ZERO {
            return false;
        }
        (outbox, _) = OUTBOX_CHANGED.wait_timeout(outbox, left);
    }
    !outbox.is_given_up
}

fn put(text: String) {
    let text = with_line_ends(text);
    let mut outbox = OUTBOX.lock();
    if outbox.is_given_up || outbox.waiting.len() >= MOST_WAITING {
        return;
    }
    outbox.waiting.push_back(text);
    if !outbox.has_thread {
        outbox.has_thread = spawn_quiet("procwright-words", write_all).is_ok();
    }
    if !outbox.has_thread {
        // Where no thread can be had, what finds room at once is written here.
        let texts: String = outbox.waiting.drain(..).collect();
        if poll::is_writable(io::stderr()) {
            outbox.error = io::stderr()
                .write_all(texts.as_bytes())
                .err()
                .map(|e| e.kind());
        }
        return;
    }
    OUTBOX_CHANGED.notify_all();
}

/// Writes what comes, as long as the process lives.
fn write_all() {
    let mut outbox = OUTBOX.lock();
    loop {
        let Some(text) = outbox.waiting.pop_front() else {
            outbox = OUTBOX_CHANGED.wait(outbox);
            continue;
        };
        outbox.is_writing = true;
        drop(outbox);
        let mut written = Ok(());
        // One write, so that a program's output does not come in between.
        with_line_erased(&mut || written = io::stderr().write_all(text.as_bytes()));
        outbox = OUTBOX.lock();
        outbox.is_writing = false;
        outbox.error = outbox.error.or(written.err().map(|error| error.kind()));
        OUTBOX_CHANGED.notify_all();
    }
}

/// Calls `stop`, which stops this process, when what is to be said before has been
/// written, and while the status line is erased, unless the terminal takes nothing.
pub(crate) fn before_stop(stop: &mut dyn FnMut()) {
    flush_within(LONGEST_WAIT_AT_STOP);
    let is_done = match status_line() {
        Some(line) if poll::is_writable(io::stderr()) => line.try_with_line_erased(stop),
        _ => false,
    };
    if !is_done {
        stop();
    }
}

/// Calls `write`, which writes to the terminal, while the status line is erased.
fn with_line_erased(write: &mut dyn FnMut()) {
    match status_line() {
        Some(line) => line.with_line_erased(write),
        None => write(),
    }
}

fn status_line() -> Option<Arc<dyn StatusLine>> {
    let line = STATUS_LINE.lock().clone();
    line.and_then(|line| line.upgrade())
}

/// `text` with the line ends that stderr needs: on a raw terminal a newline does
/// not go to the beginning of the line.
fn with_line_ends(text: String) -> String {
    match IS_RAW.load(Ordering::Relaxed) && io::stderr().is_terminal() {
        true => text.replace('\n', "\r\n"),
        false => text,
    }
}

/// `message` without the middle of lines that are too long, and of too many lines.
fn shortened(message: &str) -> String {
    let lines: Vec<String> = message.lines().map(shortened_line).collect();
    match lines.len() {
        n if n <= MOST_LINES => lines.join("\n"),
        n => {
            let (head, tail) = (&lines[..MOST_LINES - 10], &lines[n - 10..]);
            let left_out = n - MOST_LINES;
            format!(
                "{}\n  … ({left_out} lines) …\n{}",
                head.join("\n"),
                tail.join("\n")
            )
        }
    }
}

fn shortened_line(line: &str) -> String {
    if line.len() <= MOST_OF_LINE {
        return line.to_owned();
    }
    let head = line.floor_char_boundary(MOST_OF_LINE - MOST_OF_END);
    let tail = line.ceil_char_boundary(line.len() - MOST_OF_END);
    let left_out = tail - head;
    format!("{} … ({left_out} bytes) … {}", &line[..head], &line[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_beginning_and_their_end() {
        assert_eq!(shortened("one\n  hint: two"), "one\n  hint: two");
        let long = format!("begin {} end", "é".repeat(50_000));
        let cut = shortened(&long);
        assert!(
            cut.starts_with("begin éé") && cut.ends_with("éé end"),
            "{cut}"
        );
        assert!(cut.len() < 1100 && cut.contains(" bytes) … "), "{cut}");
        let many: Vec<String> = (0..1000).map(|n| format!("line {n}")).collect();
        let cut = shortened(&many.join("\n"));
        assert!(
            cut.starts_with("line 0\n") && cut.ends_with("\nline 999"),
            "{cut}"
        );
        assert_eq!(cut.lines().count(), MOST_LINES + 1);
        assert!(cut.contains("… (940 lines) …"), "{cut}");
    }
}
