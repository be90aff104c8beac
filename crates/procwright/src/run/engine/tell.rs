//! What a run has to tell while it goes on: to its hook, or to stderr.

use std::io;
use std::os::fd::AsFd;

use super::run_state::Run;
use crate::run::event::Event;
use crate::spool::Memory;
use procwright_os::write_nowait;

impl<M: Memory> Run<'_, M> {
    /// Has the hook called, or writes to stderr.
    pub(super) fn tell(&mut self, event: &Event) {
        if !self.hand_to_hook(event) {
            write_to_stderr(&event.explain_to(self.host.until_exit));
        }
    }

    /// Has the hook called; false if there is none, or no thread or descriptor for it. Then
    /// the event goes to stderr: it is never silent, see `Command::on_event`.
    fn hand_to_hook(&mut self, event: &Event) -> bool {
        let Some(events) = &self.host.events else {
            return false;
        };
        match self.streams.wake() {
            Ok(wake) => events.tell(event.clone(), Some(&wake)).is_ok(),
            Err(_) => false,
        }
    }
}

/// Writes to stderr, if it takes that without a wait. Not by `eprintln`, which
/// panics when stderr is a closed pipe or a full disk, and the program would be
/// left running; and not through Rust's lock of stderr, which a thread that waits in
/// a write may hold.
fn write_to_stderr(event: &str) {
    let mut line = format!("procwright: {event}");
    if line.len() >= write_nowait::LONGEST {
        let mut end = write_nowait::LONGEST - "…\n".len();
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        line.truncate(end);
        line.push('…');
    }
    line.push('\n');
    let _ = write_nowait::try_write(io::stderr().as_fd(), line.as_bytes());
}
