//! Signals that arrive while commands run.
//!
//! The commands are in our process group and on our terminal, unless `--scope group` gives each
//! a group of its own. Ctrl-C then goes to them as well: nothing more is started, they answer it
//! as they do, and what is left a second later is stopped. That may be a command which was started
//! when the signal had gone to the group and had not been read here. A signal to this command
//! alone stops them at once. A second one ends the grace, and this command dies by the first.
//!
//! A signal that is no wish for an end but ends a process by default is held back, as by `run`:
//! sent to a job it has reached the commands. Ctrl-Z stops this command and those in its group,
//! by default.

use std::io;
use std::time::{Duration, Instant};

use procwright::map::Remote;
use procwright::process::job::{Arrival, Inbox};
use procwright::process::{Scope, Stop};
use procwright_os::wake::Wake;
use rustix::event::{PollFd, PollFlags};

use super::screen::Screen;
use crate::own_signals::{self, is_for_this_command, is_from_keyboard};
use crate::poll;

/// How often the line of progress has new figures.
const DRAWN_EVERY: Duration = Duration::from_secs(1);

/// How often it is looked whether all commands have ended, once a signal has asked for it.
const LOOKED_EVERY: Duration = Duration::from_millis(50);

/// How long commands may take to answer a key before they are stopped.
const AFTER_KEYS: Duration = Duration::from_secs(1);

/// The blocked signals of this process.
#[derive(Debug)]
pub(super) struct MapSignals {
    inbox: Inbox,
    stop: Stop,
    /// The signal that this command has to die by.
    fatal: Option<i32>,
    /// Time at which commands are stopped that have got a signal from the terminal.
    stop_at: Option<Instant>,
}

impl MapSignals {
    /// Blocks the signals; to be called before there is another thread. The commands are stopped
    /// by `stop`.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn block(stop: Stop) -> io::Result<MapSignals> {
        Ok(MapSignals {
            inbox: Inbox::new(own_signals::that_end_us())?,
            stop,
            fatal: None,
            stop_at: None,
        })
    }

    /// The signal that asked for the end, if one did.
    pub(super) fn fatal(&self) -> Option<i32> {
        self.fatal
    }

    /// Calls `work` while signals act by default.
    pub(super) fn unblocked<T>(&self, work: impl FnOnce() -> T) -> T {
        self.inbox.open(work)
    }

    /// Looks after signals, and draws the line of progress, until `is_done` is rung, or until
    /// all commands have ended that a signal has ended.
    ///
    /// # Errors
    /// Those of poll(2).
    pub(super) fn attend(
        &mut self,
        remote: &Remote,
        is_done: &Wake,
        screen: &Screen,
        mut draw: impl FnMut(),
    ) -> io::Result<()> {
        let mut next_drawing = Instant::now();
        let mut is_broken = false;
        loop {
            while let Some(arrival) = self.inbox.take() {
                if is_for_this_command(arrival) {
                    self.answer(arrival, remote);
                }
            }
            let now = Instant::now();
            if self.stop_at.is_some_and(|at| at <= now) {
                self.stop_at = None;
                remote.stop();
            }
            if self.fatal.is_some() && remote.is_over() {
                return Ok(());
            }
            if screen.has_line() && next_drawing <= now {
                draw();
                next_drawing = now + DRAWN_EVERY;
            }
            let looked = self.fatal.map(|_| now + LOOKED_EVERY);
            let drawn = screen.has_line().then_some(next_drawing);
            let until = [looked, drawn, self.stop_at].into_iter().flatten().min();
            let mut fds = vec![
                PollFd::new(&self.inbox, PollFlags::IN),
                PollFd::new(is_done, PollFlags::IN),
            ];
            if !is_broken {
                fds.push(PollFd::from_borrowed_fd(screen.broken(), PollFlags::IN));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            poll::wait_ready(&mut fds, left)?;
            if !fds[1].revents().is_empty() {
                return Ok(());
            }
            if !is_broken && !fds[2].revents().is_empty() {
                is_broken = true;
                remote.stop();
            }
        }
    }

    fn answer(&mut self, arrival: Arrival, remote: &Remote) {
        if self.fatal.is_some() {
            self.stop_at = None;
            remote.kill();
            return;
        }
        self.fatal = Some(arrival.signal.number());
        let reaches_commands = is_from_keyboard(arrival) && self.stop.scope() != Scope::Group;
        match reaches_commands {
            true => {
                remote.start_no_more();
                self.stop_at = Some(Instant::now() + AFTER_KEYS);
            }
            false => remote.stop(),
        }
    }
}
