//! The file of a journal: read once, then appended to, a line at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::error::JournalError;
use super::line::{self, Line};
use procwright_os::file::open_at_once;
use procwright_os::poll;
use procwright_os::sync::Mutex;
use procwright_os::time::Deadline;
use serde_json::Value;

/// How long a lock may be held that is nobody's any more:
///
/// 1. A map clones itself, to start a program. Both have the file.
/// 2. The map is killed.
/// 3. Another map wants the file.
/// 4. The program is executed, or cannot be, and the file is closed.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the lock is tried meanwhile.
const LOOKED_EVERY: Duration = Duration::from_millis(10);

/// A journal that only this process writes, as long as it is open.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    file: Mutex<File>,
    /// True if each line is on the disk before anything follows from it.
    pub(super) is_synced: bool,
}

/// How much of a file is lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Bytes of lines that have an end.
    pub(super) whole: u64,
    /// Bytes behind them.
    pub(super) torn: u64,
}

impl JournalFile {
    /// Opens the file, makes it if it is not there, and locks it.
    ///
    /// # Errors
    /// [`JournalError::Io`], [`JournalError::NotRegular`], and [`JournalError::Busy`] if another
    /// map has it.
    ///
    /// # Blocking
    /// [`PATIENCE`] at most, while another has it.
    #[doc(alias = "flock")]
    pub(super) fn open(path: PathBuf) -> Result<JournalFile, JournalError> {
        let mut options = File::options();
        // A FIFO and a terminal are not waited for, and then refused.
        let opened = open_at_once(options.read(true).append(true).create(true), &path);
        let refused = |what, error| JournalError::io(what, &path, error);
        let file = opened.map_err(|error| refused("open", error))?;
        let metadata = file.metadata().map_err(|error| refused("open", error))?;
        if !metadata.is_file() {
            return Err(JournalError::NotRegular { path });
        }
        match lock(&file) {
            Ok(true) => {}
            Ok(false) => return Err(JournalError::Busy { path }),
            Err(error) => return Err(JournalError::io("lock", &path, error)),
        }
        Ok(JournalFile {
            path,
            file: Mutex::new(file),
            is_synced: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `each` for each line. Changes nothing: the file may not be ours.
    ///
    /// # Errors
    /// Those of reading, and [`JournalError::Foreign`].
    pub(super) fn read(
        &self,
        mut each: impl FnMut(Line) -> Result<(), JournalError>,
    ) -> Result<Extent, JournalError> {
        let file = self.file.lock();
        let refused = |error| JournalError::io("read", &self.path, error);
        (&*file).rewind().map_err(refused)?;
        let mut reader = BufReader::new(&*file);
        let (mut text, mut number, mut whole) = (Vec::new(), 0, 0);
        loop {
            text.clear();
            let length = reader.read_until(b'\n', &mut text).map_err(refused)?;
            if text.pop_if(|last| *last == b'\n').is_none() {
                let torn = length as u64;
                return Ok(Extent { whole, torn });
            }
            number += 1;
            whole += length as u64;
            let line = line::parse(&text).map_err(|problem| JournalError::Foreign {
                path: self.path.clone(),
                line: number,
                problem,
            });
            each(line?)?;
        }
    }

    /// Takes away a last line without an end. The process that wrote it was killed in the middle
    /// of the write, so nothing has followed from it.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub(super) fn cut(&self, extent: Extent) -> Result<(), JournalError> {
        if extent.torn == 0 {
            return Ok(());
        }
        let cut = self.file.lock().set_len(extent.whole);
        cut.map_err(|error| JournalError::io("write", &self.path, error))
    }

    /// Appends a line, by one write: when this returns, the line survives the death of this
    /// process, and that of the machine if [`is_synced`](JournalFile::is_synced).
    ///
    /// # Errors
    /// Those of the write. The line is not there then, or not whole, which is as good.
    pub(super) fn append(&self, line: &Value) -> Result<(), JournalError> {
        let mut text = line.to_string();
        text.push('\n');
        let mut file = self.file.lock();
        let written = self.write(&mut file, text.as_bytes());
        drop(file);
        written.map_err(|error| JournalError::io("write", &self.path, error))
    }

    /// Gives the file up for other maps. A lock is that of the open file, which a program between
    /// its clone and its exec has as well, so that a close alone would leave it locked.
    pub(super) fn unlock(&self) {
        let _ = rustix::fs::flock(&*self.file.lock(), FlockOperation::Unlock);
    }

    fn write(&self, file: &mut File, text: &[u8]) -> io::Result<()> {
        let before = file.metadata()?.len();
        if let Err(error) = file.write_all(text) {
            // A full disk may have taken a part, into which the next line would run.
            let _ = file.set_len(before);
            return Err(error);
        }
        match self.is_synced {
            true => file.sync_data(),
            false => Ok(()),
        }
    }
}

impl Drop for JournalFile {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// Locks the file, if nobody else has it for longer than [`PATIENCE`].
fn lock(file: &File) -> io::Result<bool> {
    let until = Instant::now() + PATIENCE;
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                let again = Deadline::at(Instant::now() + LOOKED_EVERY);
                // A signal makes the next look a bit earlier.
                let _ = poll::poll(&mut [], again);
            }
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}
