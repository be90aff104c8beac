//! What a run tells while it goes on.

use std::fmt;

use crate::holders::Holder;

/// What a run tells while it goes on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The program has exited, but a second later other processes still hold
    /// its pipes, and [`Until::Eof`] waits for them.
    ///
    /// [`Until::Eof`]: crate::Until::Eof
    Held {
        /// The command as a shell takes it.
        command: String,
        /// `stdout`, `stderr` or `stdout and stderr`.
        streams: String,
        /// Who holds them.
        holders: Vec<Holder>,
        /// Whether every process could be asked.
        complete: bool,
    },
}

impl Event {
    /// What happened, without the advice that [`Display`](fmt::Display) adds in
    /// the words of the library.
    pub fn fact(&self) -> String {
        let Event::Held {
            command,
            streams,
            holders,
            complete,
        } = self;
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
        format!(
            "{command} has exited, but its {streams} {verb} held open by {who}; \
             waiting for that to end"
        )
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (until=\"exit\" would not wait)", self.fact())
    }
}
