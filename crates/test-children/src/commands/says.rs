//! `says WORD…`: does one thing a word, in this order. `out:TEXT` and `err:TEXT`
//! write, with one write each; `\n`, `\r` and `\e` in the text are what they are
//! in C. `ack` waits for a line of stdin, and is a failure without one. `meet` writes
//! lines to both pipes until they have met there. `exit:N` ends.

use std::io;

use super::obey::line;
use crate::args::Failure;
use crate::process::{STDERR, STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "says",
    usage: "out:TEXT|err:TEXT|ack|meet|exit:N ...",
    about: "writes to both streams, each word with one write; ack waits for a line",
    run,
};

fn run(args: Args) -> Outcome {
    for word in args.raw() {
        let word = word.to_string_lossy().into_owned();
        let (what, text) = word.split_once(':').unwrap_or((&word, ""));
        let bytes = || {
            let text = text.replace("\\n", "\n").replace("\\r", "\r");
            text.replace("\\e", "\x1b").into_bytes()
        };
        match what {
            "out" => write_all(STDOUT, &bytes())?,
            "err" => write_all(STDERR, &bytes())?,
            "ack" => drop(
                line()?
                    .ok_or(io::ErrorKind::UnexpectedEof)
                    .map_err(io::Error::from)?,
            ),
            "meet" => meet()?,
            "exit" => return text.parse().map_err(|_| Failure::usage("no exit code")),
            _ => return Err(Failure::usage(format!("no such word: {word:?}"))),
        }
    }
    Ok(0)
}

/// Writes to both until bytes of stdout were still in their pipe after bytes of stderr had been
/// written behind them. Whoever reads both cannot know which were first: either both pipes had
/// some when one was read, or stderr was read while stdout had some.
fn meet() -> io::Result<()> {
    loop {
        write_all(STDOUT, b"out\n")?;
        write_all(STDERR, b"err\n")?;
        if rustix::io::ioctl_fionread(STDOUT)? > 0 {
            return Ok(());
        }
    }
}
