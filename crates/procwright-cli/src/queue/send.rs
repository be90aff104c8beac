//! `procwright queue send`: sends the arguments, or stdin.

use std::io::{self, BufRead, Read};
use std::os::unix::ffi::OsStrExt;

use procwright::queue::{self, Error, ReceiverState, Sender};

use super::failure::failure;
use crate::args::{FormatArg, SendArgs};
use crate::exit::Termination;
use crate::message;

pub(super) fn send(args: &SendArgs) -> Result<Termination, Termination> {
    let opened = match args.wait {
        Some(timeout) => Sender::open_within(&args.name, timeout),
        None => Sender::open(&args.name),
    };
    let mut sender = opened.map_err(|error| match error {
        Error::NoQueue { .. } => {
            message::print(format_args!(
                "{error}\n  hint: --wait 3 waits three seconds for one who receives"
            ));
            Termination::REFUSED
        }
        error => failure(error),
    })?;
    sender.set_overflow(args.overflow.into());
    let mut feeder = QueueFeeder {
        args,
        sender,
        sent: 0,
    };
    // As an option that takes a file has it.
    let from_stdin = args.message.is_empty() || args.message == ["-"];
    if from_stdin {
        let stdin = io::stdin().lock();
        match args.format {
            FormatArg::Lines => feeder.send_lines(stdin)?,
            FormatArg::Records => feeder.send_records(stdin)?,
        }
    } else {
        for message in &args.message {
            feeder.send(message.as_bytes())?;
        }
    }
    let dropped = feeder.sender.dropped();
    if dropped > 0 {
        message::print(format_args!(
            "{} dropped: the queue was full",
            messages(dropped)
        ));
    }
    check_receiver(&args.name)
}

/// Looks whether the receiver has ended and left what was sent here.
///
/// # Errors
/// It has. That nothing is said proves nothing: it may end at the next moment.
fn check_receiver(name: &str) -> Result<Termination, Termination> {
    let Ok(stat) = queue::stat(name) else {
        return Ok(Termination::OK);
    };
    let own = i32::try_from(std::process::id()).ok();
    let mut lanes = stat.taken.iter();
    let is_left = lanes.any(|lane| lane.pid == own && lane.waiting > Some(0));
    if stat.receiver.state == ReceiverState::Alive || !is_left {
        return Ok(Termination::OK);
    }
    message::print(
        "the receiver has ended before it had all that was sent\n  \
         hint: what it has left is lost, unless others send as well and another receiver takes over",
    );
    Err(Termination::REFUSED)
}

struct QueueFeeder<'a> {
    args: &'a SendArgs,
    sender: Sender,
    sent: u64,
}

impl QueueFeeder<'_> {
    fn send(&mut self, message: &[u8]) -> Result<(), Termination> {
        let sent = match self.args.timeout {
            Some(timeout) => self.sender.send_timeout(message, timeout),
            None => self.sender.send(message),
        };
        match sent {
            Ok(()) => {
                self.sent += 1;
                Ok(())
            }
            Err(error) => {
                let end = match error {
                    Error::TimedOut => {
                        message::print("the queue is full, and there was no room within the time");
                        Termination::TIMED_OUT
                    }
                    other => failure(other),
                };
                message::print(format_args!("{} sent before", messages(self.sent)));
                Err(end)
            }
        }
    }

    /// Sends each line. The last one may have no newline.
    fn send_lines(&mut self, mut from: impl BufRead) -> Result<(), Termination> {
        let mut line = Vec::new();
        loop {
            line.clear();
            match from.read_until(b'\n', &mut line) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(cannot_read(error)),
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            self.send(&line)?;
        }
    }

    /// Sends each record.
    fn send_records(&mut self, mut from: impl BufRead) -> Result<(), Termination> {
        let mut record = Vec::new();
        loop {
            if from.fill_buf().map_err(cannot_read)?.is_empty() {
                return Ok(());
            }
            let mut length = [0; 4];
            from.read_exact(&mut length).map_err(cannot_read)?;
            let length = u32::from_le_bytes(length);
            record.clear();
            // No memory is reserved: the length may be nonsense.
            let mut body = (&mut from).take(length.into());
            body.read_to_end(&mut record).map_err(cannot_read)?;
            if record.len() < length as usize {
                return Err(cannot_read(io::ErrorKind::UnexpectedEof.into()));
            }
            self.send(&record)?;
        }
    }
}

/// `1 message was`
fn messages(count: u64) -> String {
    match count {
        1 => "1 message was".to_owned(),
        count => format!("{count} messages were"),
    }
}

fn cannot_read(error: io::Error) -> Termination {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Termination::trouble("stdin ends in the middle of a record")
        }
        _ => Termination::trouble(format_args!("cannot read stdin: {error}")),
    }
}
