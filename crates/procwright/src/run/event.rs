//! Events of a run, or of a child that the caller holds.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::quote::quote;
use crate::spool::elastic;
use crate::std_stream::PerStream;
use procwright_explain::{Diagnosis, Waiting};
use procwright_os::time::Seconds;
use procwright_process::holders::{Holder, Holders};

/// [`Until::Exit`](crate::Until::Exit) as it is written in Rust.
pub(crate) const UNTIL_EXIT: &str = "until(Until::Exit)";

/// An event of a run that goes on, or of a child that the caller holds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The program has exited, but a second later other processes still hold
    /// its pipes, and [`Until::Eof`] waits for them; or they have not been silent for as
    /// long as [`Until::Silent`] says, and a second more.
    ///
    /// [`Until::Eof`]: crate::Until::Eof
    /// [`Until::Silent`]: crate::Until::Silent
    Held {
        /// The command as a shell takes it.
        command: String,
        /// `stdout`, `stderr` or `stdout and stderr`.
        streams: String,
        /// The processes that hold them.
        holders: Vec<Holder>,
        /// True if every process could be asked.
        complete: bool,
        /// The silence that ends the wait as well, if one does.
        silence: Option<Duration>,
    },
    /// Nobody reads a stream of a child as fast as it comes, the memory for that is
    /// nearly full, and bytes begin to go to files. Told once for each stream.
    Spilling {
        /// The command as a shell takes it.
        command: String,
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// The directory of the files, which have no names.
        directory: PathBuf,
    },
    /// Bytes of a child's stream cannot go to files, for now or for good. None is
    /// lost; the child waits once the memory is full. Files are tried again as soon
    /// as room was made, and once a second.
    Degraded {
        /// The command as a shell takes it.
        command: String,
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// The step that failed.
        what: &'static str,
        /// The `errno` value, 0 if the reason is not the system's.
        errno: i32,
        /// The reason in words.
        reason: String,
    },
    /// Bytes of a child's stream are dropped for the first time, by
    /// [`Overflow::DropOldest`](crate::Overflow::DropOldest) or
    /// [`Overflow::DropNewest`](crate::Overflow::DropNewest).
    Dropping {
        /// The command as a shell takes it.
        command: String,
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// The offset in the stream of the first of them.
        offset: u64,
    },
    /// More came of a child's stream than may be kept, by
    /// [`Overflow::Fail`](crate::Overflow::Fail). No more is read.
    Overflowed {
        /// The command as a shell takes it.
        command: String,
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// The offset in the stream of the first byte that was too much.
        offset: u64,
    },
    /// The program has not ended by the time of
    /// [`explain_after`](crate::Command::explain_after), and this is why.
    Explained {
        /// The command as a shell takes it.
        command: String,
        /// That time.
        after: Duration,
        /// What was found out, or why nothing could be.
        diagnosis: Result<Box<Diagnosis>, String>,
    },
    /// The program, or one that it has started, has begun to wait for input, and this was asked
    /// for by [`input_wanted`](crate::Command::input_wanted). Told once for each wait.
    InputWanted {
        /// The command as a shell takes it.
        command: String,
        /// Who waits, where, and who could end that.
        waiting: Box<Waiting>,
        /// The unfinished last line of the output that came last, as it came, if that comes to
        /// us and has one.
        prompt: Option<String>,
    },
    /// The hook was behind by more events than are kept for it, and some were left out
    /// here.
    Missed {
        /// The command as a shell takes it.
        command: String,
        /// How many.
        count: u64,
    },
}

impl Event {
    /// The event in words, without the advice that [`Display`](fmt::Display) adds.
    pub fn fact(&self) -> String {
        match self {
            Event::Held {
                command,
                streams,
                holders,
                complete,
                silence,
            } => held(command, streams, holders, *complete, *silence),
            Event::Spilling {
                command,
                stream,
                directory,
            } => format!(
                "nobody reads the {stream} of {command} as fast as it comes; what is too much \
                 for the memory goes to files in {}",
                directory.display()
            ),
            Event::Degraded {
                command,
                stream,
                what,
                reason,
                ..
            } => format!(
                "the {stream} of {command} cannot go to disk: cannot {what} ({reason}); nothing \
                 is lost, but the program waits once the memory is full"
            ),
            Event::Dropping {
                command,
                stream,
                offset,
            } => format!(
                "nobody reads the {stream} of {command} as fast as it comes; bytes of it are \
                 dropped from offset {offset} on"
            ),
            Event::Overflowed {
                command,
                stream,
                offset,
            } => format!(
                "nobody reads the {stream} of {command} as fast as it comes; at offset {offset} \
                 it was more than may be kept, and no more is read"
            ),
            Event::Explained {
                command,
                after,
                diagnosis,
            } => {
                let why = match diagnosis {
                    Ok(diagnosis) => {
                        let sentence = || diagnosis.sentence.trim_end_matches('.').to_owned();
                        let why = diagnosis.why().unwrap_or_else(sentence);
                        // What is well may take its time: that is what is to be said here.
                        match why.strip_prefix("Nothing hangs: ") {
                            Some(does) => does.to_owned(),
                            None => why,
                        }
                    }
                    Err(error) => format!("why could not be found out: {error}"),
                };
                format!("{command} has not ended after {}: {why}", Seconds(*after))
            }
            Event::InputWanted {
                command,
                waiting,
                prompt,
            } => {
                let asks = prompt
                    .as_ref()
                    .map(|prompt| format!(", and asks: {prompt:?}"));
                let asks = asks.unwrap_or_default();
                format!("{command} wants input: {}{asks}", waiting.text)
            }
            Event::Missed { command, count } => format!(
                "{count} events of {command} are missing here: the hook was still at work on \
                 earlier ones"
            ),
        }
    }

    /// The event in words, with advice, for users of a front end, in which
    /// [`Until::Exit`](crate::Until::Exit) is written as `until_exit`. [`Display`](fmt::Display)
    /// writes it as this library does.
    pub fn explain_to(&self, until_exit: &str) -> String {
        let advice = match self {
            Event::Held { .. } => &format!("{until_exit} would not wait"),
            Event::Spilling { .. } => "PROCWRIGHT_SPOOL=0 keeps it in memory",
            Event::Degraded { .. } => "PROCWRIGHT_SPOOL_DIR names another directory",
            Event::Dropping { .. } => "an overflow of spill or block loses nothing",
            Event::Overflowed { .. } => "another overflow would go on",
            Event::Explained { diagnosis, .. } => {
                let text = diagnosis.as_ref().map(|found| found.text(false));
                // Its first sentence is the fact.
                let details = text.as_ref().ok().and_then(|text| text.split_once("\n\n"));
                return match details {
                    Some((_, details)) => format!("{}\n\n{}", self.fact(), details.trim_end()),
                    None => self.fact(),
                };
            }
            Event::InputWanted { .. } => "it goes on once it is answered",
            Event::Missed { .. } => "a hook that hands events on, and returns, gets all",
        };
        format!("{} ({advice})", self.fact())
    }

    /// That of a program which has exited, and these hold its outputs; `silence` ends the wait
    /// for them as well.
    pub(crate) fn of_holders(
        argv: &[OsString],
        holders: PerStream<Option<Holders>>,
        silence: Option<Duration>,
    ) -> Event {
        let mut streams = Vec::new();
        let mut all = Holders::nobody();
        for (stream, found) in holders {
            let Some(found) = found else { continue };
            streams.push(stream.name());
            all.absorb(found);
        }
        Event::Held {
            command: quote(argv),
            streams: streams.join(" and "),
            holders: all.list,
            complete: all.complete,
            silence,
        }
    }

    /// The event for that of a stream's queue.
    pub(crate) fn from_queue(command: &str, stream: &'static str, event: &elastic::Event) -> Event {
        let command = command.to_owned();
        match event {
            elastic::Event::Spilling { directory } => Event::Spilling {
                command,
                stream,
                directory: directory.clone(),
            },
            elastic::Event::Degraded { what, error } => Event::Degraded {
                command,
                stream,
                what,
                errno: error.raw_os_error().unwrap_or(0),
                reason: error.to_string(),
            },
            elastic::Event::Dropping { offset } => Event::Dropping {
                command,
                stream,
                offset: *offset,
            },
            elastic::Event::Overflowed { offset } => Event::Overflowed {
                command,
                stream,
                offset: *offset,
            },
        }
    }
}

fn held(
    command: &str,
    streams: &str,
    holders: &[Holder],
    complete: bool,
    silence: Option<Duration>,
) -> String {
    let names: Vec<_> = holders.iter().map(ToString::to_string).collect();
    let who = match (names.is_empty(), complete) {
        (true, _) => "a process that cannot be seen".to_owned(),
        (false, true) => names.join(", "),
        (false, false) => format!("{}, perhaps others", names.join(", ")),
    };
    let verb = match streams.contains(' ') {
        true => "are",
        false => "is",
    };
    let or_silence = silence.map(|silence| format!(", or to say nothing for {}", Seconds(silence)));
    format!(
        "{command} has exited, but its {streams} {verb} held open by {who}; \
         waiting for that to end{}",
        or_silence.unwrap_or_default()
    )
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.explain_to(UNTIL_EXIT))
    }
}
