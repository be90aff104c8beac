//! What a child waits for, and why it does not end.

use std::io;
use std::path::Path;

use super::child::Child;
use procwright_explain::{BETWEEN, Diagnosis, Waiting};

impl Child {
    /// What it waits for: input, room for its output, a child, a lock, time, somebody else, or
    /// nothing that is known. Where it waits for another process of its tree, this is what
    /// that one waits for.
    ///
    /// ```
    /// use procwright::explain::WaitKind;
    /// use procwright::{Command, Stdin};
    ///
    /// let mut child = Command::shell("cat; true").stdin(Stdin::Pipe).spawn()?;
    /// // Nothing announces that a program has begun to wait.
    /// let waiting = loop {
    ///     let waiting = child.waiting_for()?;
    ///     if waiting.kind == WaitKind::Input {
    ///         break waiting;
    ///     }
    /// };
    /// assert_eq!((&*waiting.name, waiting.fd), ("cat", Some(0)));
    /// assert!(waiting.text.contains("waits for input on stdin"), "{}", waiting.text);
    /// drop(child.stdin.take());
    /// child.wait(None)?;
    /// assert!(child.waiting_for()?.text.ends_with("has ended"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported` where there is no `/proc`, and those of reading it.
    ///
    /// # Blocking
    /// While all processes of the machine are looked at, once: some milliseconds, and more
    /// where there are thousands.
    pub fn waiting_for(&self) -> io::Result<Waiting> {
        if self.try_wait().is_some() {
            return Ok(self.has_ended());
        }
        match procwright_explain::waiting_for(self.pid()) {
            // It was reaped meanwhile, or its number has gone to another.
            _ if self.try_wait().is_some() => Ok(self.has_ended()),
            seen => seen,
        }
    }

    /// Why it does not end: who of its tree waits for whom, whether that is a deadlock, and
    /// what to do. What `procwright doctor` says of it.
    ///
    /// ```
    /// use procwright::Command;
    ///
    /// let child = Command::new("sleep").arg("60").spawn()?;
    /// let diagnosis = child.explain()?;
    /// assert!(diagnosis.text(false).contains("sleep"));
    /// child.stop();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported` where there is no `/proc`, `NotFound` if it has ended and was reaped, and
    /// those of reading `/proc`.
    ///
    /// # Blocking
    /// For 200 ms, and while all processes of the machine are looked at, twice.
    pub fn explain(&self) -> io::Result<Diagnosis> {
        let has_ended = || io::Error::new(io::ErrorKind::NotFound, "the program has ended");
        if self.try_wait().is_some() {
            return Err(has_ended());
        }
        match procwright_explain::examine(&[self.pid()], BETWEEN) {
            _ if self.try_wait().is_some() => Err(has_ended()),
            found => found,
        }
    }

    fn has_ended(&self) -> Waiting {
        let name = self.argv().first().map(Path::new);
        let name = name.and_then(Path::file_name).unwrap_or_default();
        Waiting::ended(self.pid(), &name.to_string_lossy())
    }
}
