//! `procwright queue send`: sends what stdin or the arguments say.

use std::io::{self, BufRead, Read};
use std::os::unix::ffi::OsStrExt;

use procwright::queue::{Error, Sender};

use super::{refused, trouble};
use crate::args::{FormatArg, SendArgs};
use crate::exit::End;
use crate::message::say;

pub(super) fn send(args: &SendArgs) -> Result<End, End> {
    let opened = match args.wait {
        Some(timeout) => Sender::open_within(&args.name, timeout),
        None => Sender::open(&args.name),
    };
    let mut sender = opened.map_err(|error| match error {
        Error::TimedOut => {
            say(format_args!(
                "nobody receives from {:?} within the time",
                args.name
            ));
            End::TIMED_OUT
        }
        other => refused(&other),
    })?;
    sender.set_overflow(args.overflow.into());
    let mut feed = Feed {
        args,
        sender,
        sent: 0,
    };
    if args.message.is_empty() {
        let stdin = io::stdin().lock();
        match args.format {
            FormatArg::Lines => feed.lines(stdin)?,
            FormatArg::Records => feed.records(stdin)?,
        }
    } else {
        for message in &args.message {
            feed.send(message.as_bytes())?;
        }
    }
    let dropped = feed.sender.dropped();
    if dropped > 0 {
        say(format_args!(
            "{dropped} messages were dropped: the queue was full"
        ));
    }
    Ok(End::OK)
}

struct Feed<'a> {
    args: &'a SendArgs,
    sender: Sender,
    sent: u64,
}

impl Feed<'_> {
    fn send(&mut self, message: &[u8]) -> Result<(), End> {
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
                let end = refused(&error);
                say(format_args!("{} messages were sent before", self.sent));
                Err(end)
            }
        }
    }

    /// The last line may have no newline.
    fn lines(&mut self, mut from: impl BufRead) -> Result<(), End> {
        let mut line = Vec::new();
        loop {
            line.clear();
            match from.read_until(b'\n', &mut line) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(unread(&error)),
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            self.send(&line)?;
        }
    }

    fn records(&mut self, mut from: impl BufRead) -> Result<(), End> {
        let mut record = Vec::new();
        loop {
            if from.fill_buf().map_err(|error| unread(&error))?.is_empty() {
                return Ok(());
            }
            let mut length = [0; 4];
            from.read_exact(&mut length)
                .map_err(|error| unread(&error))?;
            let length = u32::from_le_bytes(length);
            record.clear();
            // Not reserved: the length may be nonsense, and as long as the memory.
            let mut body = (&mut from).take(length.into());
            body.read_to_end(&mut record)
                .map_err(|error| unread(&error))?;
            if record.len() < length as usize {
                return Err(unread(&io::ErrorKind::UnexpectedEof.into()));
            }
            self.send(&record)?;
        }
    }
}

fn unread(error: &io::Error) -> End {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => trouble("stdin ends in the middle of a record"),
        _ => trouble(format_args!("cannot read stdin: {error}")),
    }
}
