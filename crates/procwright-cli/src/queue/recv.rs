//! `procwright queue recv`: prints what comes.

use std::io::{self, Write};
use std::mem;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use procwright::queue::{self, Error, LaneStat, LaneState, Options, Receiver};
use procwright::time::{Deadline, Timeout};
use procwright::wait::Waitable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::{refused, trouble};
use crate::args::{FormatArg, RecvArgs};
use crate::exit::End;
use crate::message::say;

/// What a lane takes at first, if it may take that much.
const FIRST: usize = 16 << 10;

/// So many messages of a sender are written at once.
const MOST: u64 = 256;

pub(super) fn recv(args: &RecvArgs) -> Result<End, End> {
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let options = Options::new().lanes(args.lanes).limit(limit);
    let options = options.first(limit.min(FIRST));
    let receiver = options.open(&args.name).map_err(|error| refused(&error))?;
    let stat = queue::stat(&args.name).map_err(|error| refused(&error))?;
    let mut printer = Printer {
        args,
        receiver,
        begun: stat.claims,
        had_senders: !stat.taken.is_empty(),
        printed: 0,
        text: Vec::new(),
    };
    let end = printer.run();
    printer.leave();
    end
}

struct Printer<'a> {
    args: &'a RecvArgs,
    receiver: Receiver,
    /// How often somebody had come when this began.
    begun: u32,
    /// Whether anybody was there who sends.
    had_senders: bool,
    printed: u64,
    /// What is written next.
    text: Vec<u8>,
}

impl Printer<'_> {
    fn run(&mut self) -> Result<End, End> {
        let begun = Instant::now();
        let whole = self.args.timeout.unwrap_or(Timeout::NEVER).starting(begun);
        let idle = self.args.idle_timeout.unwrap_or(Timeout::NEVER);
        let mut silent = idle.starting(begun);
        let ready = self
            .receiver
            .readiness_fd()
            .map_err(|error| refused(&error))?;
        let ready = ready.try_clone_to_owned().map_err(cannot_wait)?;
        loop {
            if self.args.count.is_some_and(|count| self.printed >= count) {
                return Ok(End::OK);
            }
            // Asked first: who is told that there is something need not wait, and from
            // the question on the descriptor tells of what comes.
            if self.receiver.has_come() {
                self.print()?;
                silent = idle.starting(Instant::now());
                if !whole.reached(Instant::now()) {
                    continue;
                }
            } else if self.args.until_closed && self.are_gone()? {
                return Ok(End::OK);
            }
            let until = whole.min(silent);
            if until.reached(Instant::now()) {
                return Ok(End::TIMED_OUT);
            }
            sleep(&ready, until)?;
        }
    }

    /// Writes what one sender has sent; only then it is received.
    fn print(&mut self) -> Result<(), End> {
        let left = self.args.count.map_or(MOST, |count| count - self.printed);
        let most = left.min(MOST) as usize;
        let batch = match self.receiver.recv_many(most) {
            Ok(batch) => batch,
            // The others go on.
            Err(error @ Error::Damaged { .. }) => {
                say(error);
                return Ok(());
            }
            Err(error) => return Err(refused(&error)),
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
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(&self.text).and_then(|()| stdout.flush());
        match written {
            Ok(()) => {
                self.printed += batch.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Whoever receives next gets them.
                mem::forget(batch);
                Err(match error.kind() {
                    io::ErrorKind::BrokenPipe => End::BROKEN_PIPE,
                    _ => trouble(format_args!("cannot write to stdout: {error}")),
                })
            }
        }
    }

    /// Whether some were there who sent, and none is now.
    fn are_gone(&mut self) -> Result<bool, End> {
        let stat = queue::stat(&self.args.name).map_err(|error| refused(&error))?;
        // Also one who came and left between two looks.
        self.had_senders |= stat.claims != self.begun;
        Ok(self.had_senders && stat.taken.is_empty())
    }

    /// Who sends keeps the queue, for who receives next: so it is closed only if nobody
    /// does. The end of this process says the rest.
    fn leave(self) {
        let stat = queue::stat(&self.args.name);
        let sends = |lane: &LaneStat| lane.state == LaneState::Taken;
        if stat.is_ok_and(|stat| stat.taken.iter().any(sends)) {
            mem::forget(self.receiver);
        }
    }
}

/// Until there may be something, or nobody reads what would be printed.
fn sleep(ready: &impl AsFd, until: Deadline) -> Result<(), End> {
    let stdout = io::stdout();
    let mut fds = [
        PollFd::new(ready, PollFlags::IN),
        PollFd::new(&stdout, PollFlags::empty()),
    ];
    let left = until.remaining(Instant::now());
    let left = left.map(|left| Timespec::try_from(left).unwrap_or(LONGEST));
    match poll(&mut fds, left.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(cannot_wait(error.into())),
    }
    // Of a pipe; a terminal that has hung up fails the next write.
    match fds[1].revents().contains(PollFlags::ERR) {
        true => Err(End::BROKEN_PIPE),
        false => Ok(()),
    }
}

const LONGEST: Timespec = Timespec {
    tv_sec: Duration::from_secs(1_000_000_000).as_secs() as i64,
    tv_nsec: 0,
};

fn cannot_wait(error: io::Error) -> End {
    trouble(format_args!("cannot wait: {error}"))
}
