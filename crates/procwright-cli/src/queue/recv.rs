//! `procwright queue recv`: prints the messages of a queue.

use std::io;
use std::mem;
use std::os::fd::AsFd;
use std::time::Instant;

use procwright::queue::{self, Error, LaneStat, LaneState, Options, Receiver};
use procwright::time::{Deadline, Timeout};
use procwright::wait::Waitable;
use rustix::event::{PollFd, PollFlags};

use super::failure::failure;
use crate::args::{FormatArg, RecvArgs};
use crate::exit::Termination;
use crate::{message, poll, stdout};

/// Messages of a sender that are written at once, at most.
const MOST_AT_ONCE: u64 = 256;

pub(super) fn recv(args: &RecvArgs) -> Result<Termination, Termination> {
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let options = Options::new().lanes(args.lanes).limit(limit);
    let receiver = options.open(&args.name).map_err(|error| match error {
        Error::NameTaken { .. } => Termination::trouble(format_args!(
            "{error}\n  hint: one process receives, and hands on to many: procwright queue recv \
             --until-closed {} | procwright map -j 2 CMD",
            args.name
        )),
        error => failure(error),
    })?;
    let stat = queue::stat(&args.name).map_err(failure)?;
    let mut printer = QueuePrinter {
        args,
        receiver,
        first_claims: stat.claims,
        had_senders: !stat.taken.is_empty(),
        printed: 0,
        text: Vec::new(),
    };
    let done = printer.run();
    printer.close(done.is_ok());
    done
}

struct QueuePrinter<'a> {
    args: &'a RecvArgs,
    receiver: Receiver,
    /// Lanes that had been claimed when this began, ever.
    first_claims: u32,
    /// True if there was a sender at any time.
    had_senders: bool,
    printed: u64,
    /// Text of the next write.
    text: Vec<u8>,
}

impl QueuePrinter<'_> {
    fn run(&mut self) -> Result<Termination, Termination> {
        let begun = Instant::now();
        let whole = self.args.timeout.unwrap_or(Timeout::NEVER).starting(begun);
        let idle = self.args.idle_timeout.unwrap_or(Timeout::NEVER);
        let mut silent = idle.starting(begun);
        let ready = self.receiver.readiness_fd().map_err(failure)?;
        let ready = ready.try_clone_to_owned().map_err(cannot_wait)?;
        loop {
            if self.args.count.is_some_and(|count| self.printed >= count) {
                return Ok(Termination::OK);
            }
            // `has_come` is called before the wait: it arms the descriptor, which from
            // then on tells of messages that come.
            if self.receiver.has_come() {
                self.print()?;
                silent = idle.starting(Instant::now());
                if !whole.reached(Instant::now()) {
                    continue;
                }
            } else if self.args.until_closed && self.all_senders_left()? {
                return Ok(Termination::OK);
            }
            let until = whole.min(silent);
            if until.reached(Instant::now()) {
                return Ok(Termination::TIMED_OUT);
            }
            sleep(&ready, until)?;
        }
    }

    /// Writes messages of one sender. They count as received once they are written.
    fn print(&mut self) -> Result<(), Termination> {
        let left = self
            .args
            .count
            .map_or(MOST_AT_ONCE, |count| count - self.printed);
        let most = left.min(MOST_AT_ONCE) as usize;
        let batch = match self.receiver.recv_many(most) {
            Ok(batch) => batch,
            // The other senders go on.
            Err(error @ Error::Damaged { .. }) => {
                message::print(error);
                return Ok(());
            }
            Err(error) => return Err(failure(error)),
        };
        self.text.clear();
        for message in batch.iter() {
            match self.args.format {
                FormatArg::Lines => {
                    self.text.extend_from_slice(message);
                    self.text.push(b'\n');
                }
                FormatArg::Records => {
                    // No message is longer than a gibibyte.
                    let length = message.len() as u32;
                    self.text.extend_from_slice(&length.to_le_bytes());
                    self.text.extend_from_slice(message);
                }
            }
        }
        if let Err(termination) = stdout::print(&self.text) {
            // Dropping the batch would receive the messages. The next receiver gets
            // them instead.
            mem::forget(batch);
            return Err(termination);
        }
        self.printed += batch.len() as u64;
        Ok(())
    }

    /// Returns whether there were senders, and there are none now.
    fn all_senders_left(&mut self) -> Result<bool, Termination> {
        let stat = queue::stat(&self.args.name).map_err(failure)?;
        // A sender that came and left between two looks has claimed a lane.
        self.had_senders |= stat.claims != self.first_claims;
        Ok(self.had_senders && stat.taken.is_empty())
    }

    /// Closes the queue unless there are senders, which keep it for the next
    /// receiver. They see this receiver's death by the end of this process. Says what was not
    /// printed, unless stdout takes nothing, which is why it was not.
    fn close(mut self, may_count: bool) {
        let stat = queue::stat(&self.args.name);
        let sends = |lane: &LaneStat| lane.state == LaneState::Taken;
        if stat.as_ref().is_ok_and(|stat| stat.taken.iter().any(sends)) {
            if stat.is_ok_and(|stat| stat.taken.iter().any(|lane| lane.waiting > Some(0))) {
                message::print(format_args!(
                    "messages that were not printed wait for the next who receives from {:?}, as \
                     long as a sender is there",
                    self.args.name
                ));
            }
            mem::forget(self.receiver);
            return;
        }
        let lost = if may_count { self.count_unprinted() } else { 0 };
        if lost > 0 {
            let were = if lost == 1 {
                "message was"
            } else {
                "messages were"
            };
            message::print(format_args!(
                "{lost} {were} not printed, and lost: no sender has the queue any more, which \
                 ends with this command\n  hint: --until-closed prints all that is sent"
            ));
        }
    }

    /// Receives what would be lost with the queue, to count it.
    fn count_unprinted(&mut self) -> u64 {
        let mut count = 0;
        while self.receiver.has_come() {
            match self.receiver.recv_many(MOST_AT_ONCE as usize) {
                Ok(batch) => count += batch.len() as u64,
                Err(_) => break,
            }
        }
        count
    }
}

/// Sleeps until there may be a message, or stdout has lost its reader.
fn sleep(ready: &impl AsFd, until: Deadline) -> Result<(), Termination> {
    let stdout = io::stdout();
    let mut fds = [
        PollFd::new(ready, PollFlags::IN),
        PollFd::new(&stdout, PollFlags::empty()),
    ];
    poll::wait_ready(&mut fds, until.remaining(Instant::now())).map_err(cannot_wait)?;
    // POLLERR is that of a pipe. A terminal that has hung up fails the next write.
    match fds[1].revents().contains(PollFlags::ERR) {
        true => Err(Termination::BROKEN_PIPE),
        false => Ok(()),
    }
}

fn cannot_wait(error: io::Error) -> Termination {
    Termination::trouble(format_args!("cannot wait: {error}"))
}
