//! Stdin, stdout and stderr of the program, and how much of the output is kept.

use std::io::Read;
use std::path::PathBuf;

use bytes::Bytes;

use super::builder::Command;
use crate::error::BoxError;
use crate::run::StdinProducer;
use crate::spec::{Limit, Sink, Stdin};

impl Command<'_> {
    /// Sets what the program reads.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.spec.stdin = stdin;
        self
    }

    /// Gives the program these bytes to read.
    #[must_use]
    pub fn stdin_bytes(self, bytes: impl Into<Bytes>) -> Self {
        self.stdin(Stdin::Bytes(bytes.into()))
    }

    /// Gives the program the caller's own stdin.
    #[must_use]
    pub fn stdin_inherit(self) -> Self {
        self.stdin(Stdin::Inherit)
    }

    /// Gives the program what an iterator yields. The iterator runs on a thread of its
    /// own; an error stops the run and comes through. A child of
    /// [`spawn`](Command::spawn) is stopped by it as well, and
    /// [`Child::wait`](crate::Child::wait) says so.
    ///
    /// The run does not wait for an iterator that is inside `next` when the run ends:
    /// its thread ends when that returns.
    #[must_use]
    pub fn stdin_iter<I>(mut self, chunks: I) -> Self
    where
        I: IntoIterator<Item = Result<Bytes, BoxError>>,
        I::IntoIter: Send + 'static,
    {
        let mut chunks = chunks.into_iter();
        self.hooks.producer = Some(Box::new(move || chunks.next()));
        self
    }

    /// Gives the program what a reader gives, as [`Command::stdin_iter`] does.
    #[must_use]
    pub fn stdin_reader(mut self, mut reader: impl Read + Send + 'static) -> Self {
        let producer: StdinProducer = Box::new(move || {
            let mut chunk = vec![0; 64 * 1024];
            loop {
                return match reader.read(&mut chunk) {
                    Ok(0) => None,
                    Ok(n) => {
                        chunk.truncate(n);
                        Some(Ok(chunk.into()))
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(e) => Some(Err(e.into())),
                };
            }
        });
        self.hooks.producer = Some(producer);
        self
    }

    /// Sets where stdout goes.
    #[must_use]
    pub fn stdout(mut self, sink: Sink) -> Self {
        self.spec.stdout = sink;
        self
    }

    /// Sets where stderr goes.
    #[must_use]
    pub fn stderr(mut self, sink: Sink) -> Self {
        self.spec.stderr = sink;
        self
    }

    /// Sets how much output is kept.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.spec.limit = Some(limit);
        self
    }

    /// Keeps all output in a file too: stdout in this one, stderr in one with
    /// `.stderr` appended to its name. A FIFO that nobody reads is an error.
    #[must_use]
    pub fn keep_full(mut self, path: impl Into<PathBuf>) -> Self {
        self.spec.keep_full = Some(path.into());
        self
    }

    /// Records in which order the two streams were read. A spawned child's
    /// [`merged`](crate::Child::merged) then gives both as one, line by line, in
    /// place of its stdout and stderr.
    #[must_use]
    pub fn merged(mut self) -> Self {
        self.spec.merged = true;
        self
    }
}
