//! The journal that GNU parallel writes with `--joblog`, for the tools that read it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::entry::{Entry, NotedEnd};
use super::error::JournalError;
use crate::quote::quote_whole;
use procwright_os::file::{is_unread_fifo, open_at_once};
use procwright_os::sync::Mutex;

/// A file in the form of GNU parallel's `--joblog`: a line of nine columns, parted by tabs, for
/// each command that has ended. It is an export: by its numbers alone nobody can tell what has
/// been done once the input has changed, so that a map is resumed by its [`Journal`](super::Journal).
#[derive(Debug)]
pub struct Joblog {
    path: PathBuf,
    file: Mutex<File>,
}

const HEADER: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

impl Joblog {
    /// Opens the file, makes it if it is not there, and empties it unless `append`.
    ///
    /// # Errors
    /// [`JournalError::Io`], and [`JournalError::Unread`] for a FIFO that nobody reads.
    pub fn open(path: impl AsRef<Path>, append: bool) -> Result<Joblog, JournalError> {
        let path = path.as_ref().to_owned();
        let open = || {
            let mut options = File::options();
            match append {
                true => options.append(true),
                false => options.write(true).truncate(true),
            };
            let file = open_at_once(options.create(true), &path)?;
            if file.metadata()?.len() == 0 {
                (&file).write_all(HEADER.as_bytes())?;
            }
            Ok(file)
        };
        let opened: io::Result<File> = open();
        let file = opened.map_err(|error| match is_unread_fifo(&path, &error) {
            true => JournalError::Unread { path: path.clone() },
            false => JournalError::io("open", &path, error),
        })?;
        Ok(Joblog {
            path,
            file: Mutex::new(file),
        })
    }

    pub(super) fn append(&self, entry: &Entry, end: &NotedEnd) -> Result<(), JournalError> {
        let line = line(entry, end);
        let written = self.file.lock().write_all(line.as_bytes());
        written.map_err(|error| JournalError::io("write", &self.path, error))
    }
}

fn line(entry: &Entry, end: &NotedEnd) -> String {
    use procwright_process::Exit;
    let (code, signal) = match end.past.status {
        Some(Exit::Code(code)) => (code, 0),
        Some(Exit::Signal { signal, .. }) => (0, signal.number()),
        // What could not be started, and what somebody else has reaped.
        Some(_) | None => (127, 0),
    };
    let code = match (code, signal, end.past.success) {
        // As parallel has it.
        _ if end.is_by_limit() => -1,
        // A command that was stopped, and made that a success, has not succeeded.
        (0, 0, false) => 255,
        (code, _, _) => code,
    };
    format!(
        "{}\t:\t{:.3}\t{:10.3}\t0\t{}\t{code}\t{signal}\t{}\n",
        entry.index + 1,
        entry.started_at,
        end.past.duration.as_secs_f64(),
        end.stdout_bytes.unwrap_or(0),
        quote_whole(&entry.argv).replace('\n', "\\n"),
    )
}
