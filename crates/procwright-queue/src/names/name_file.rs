//! The file of a name.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use super::entries::{
    ENTRY_SIZE, HEAD_SIZE, MAGIC, NameEntry, entries, entry_line, open_queue_of, owner, parse_head,
};
use super::name::QueueName;
use crate::error::Error;
use crate::format::VERSION;
use procwright_os::private_dir::PrivateDir;
use procwright_os::shared_memory;

/// A queue that was opened from a process that has it.
#[derive(Debug)]
pub(crate) struct FoundQueue {
    pub(crate) file: OwnedFd,
    pub(crate) nonce: u64,
}

/// The file of a name.
#[derive(Debug)]
pub(crate) struct NameFile {
    name: QueueName,
    folder: PrivateDir,
    file: File,
}

/// Locked bytes: byte 0 by the process that is about to receive, byte 1 by a sender that
/// writes over the line of another.
const RECEIVE_LOCK: u64 = 0;
const REPLACE_LOCK: u64 = 1;

/// Largest part of a file that is read: a longer one is nonsense.
const MAX_FILE_SIZE: u64 = 1 << 22;

/// Number of lines from which it is worth to look for one whose process is gone.
const CLEAN_FROM: usize = 32;

impl NameFile {
    /// Locks byte 0, without waiting. False if another process has the lock, or the file
    /// has not its name any more.
    #[doc(alias = "F_OFD_SETLK")]
    pub(crate) fn lock(&self) -> Result<bool, Error> {
        if !shared_memory::lock(self.file.as_fd(), RECEIVE_LOCK)? {
            return Ok(false);
        }
        let is_named = self.is_named();
        if !matches!(is_named, Ok(true)) {
            self.unlock();
        }
        is_named
    }

    pub(crate) fn unlock(&self) {
        shared_memory::unlock(self.file.as_fd(), RECEIVE_LOCK);
    }

    /// Returns whether the file still has its name.
    pub(crate) fn is_named(&self) -> Result<bool, Error> {
        Ok(self.folder.names(self.name.text(), &self.file)?)
    }

    /// Removes the file. The caller has locked it.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        Ok(self.folder.remove(self.name.text())?)
    }

    /// Returns whether the file was never written to.
    pub(crate) fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.file.metadata()?.len() == 0)
    }

    fn read(&self) -> Result<Vec<u8>, Error> {
        let length = self.file.metadata()?.len().min(MAX_FILE_SIZE);
        let mut bytes = vec![0; length as usize];
        let mut read = 0;
        while read < bytes.len() {
            match self.file.read_at(&mut bytes[read..], read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The number of the queue in the file; none if it makes no sense.
    pub(crate) fn nonce(&self) -> Result<Option<u64>, Error> {
        parse_head(&self.read()?)
    }

    /// The queue, opened from the first process in the file that still has it.
    pub(crate) fn find(&self) -> Result<Option<FoundQueue>, Error> {
        let bytes = self.read()?;
        let Some(nonce) = parse_head(&bytes)? else {
            return Ok(None);
        };
        let mut denied = None;
        for owner in entries(&bytes).filter_map(|line| line.owner) {
            match open_queue_of(owner, nonce) {
                Ok(Some(file)) => return Ok(Some(FoundQueue { file, nonce })),
                Ok(None) => {}
                Err(error) => denied = Some(error),
            }
        }
        match denied {
            // No other process has it, and whether these do is not known.
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    /// Writes a new queue into an empty file. The caller has locked it.
    pub(crate) fn write_new(&self, nonce: u64, file: BorrowedFd<'_>) -> Result<(), Error> {
        let text = format!("{MAGIC} {VERSION:010} {nonce:016x}\n{}", entry_line(file));
        Ok(self.file.write_all_at(text.as_bytes(), 0)?)
    }

    /// Writes the line of a new receiver. The caller has locked the file. The line takes
    /// the place of the second, since that is the first to be followed.
    pub(crate) fn write_receiver(&self, file: BorrowedFd<'_>) -> Result<(), Error> {
        Ok(self
            .file
            .write_all_at(entry_line(file).as_bytes(), HEAD_SIZE as u64)?)
    }

    /// Writes the line of one more process that has the queue.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if the file has not its name any more.
    pub(crate) fn add_sender(&self, nonce: u64, file: BorrowedFd<'_>) -> Result<(), Error> {
        let line = entry_line(file);
        match self.reusable_entry(&line, nonce)? {
            Some(at) => {
                let written = self.file.write_all_at(line.as_bytes(), at);
                shared_memory::unlock(self.file.as_fd(), REPLACE_LOCK);
                written?;
            }
            None => shared_memory::append(self.file.as_fd(), line.as_bytes())?,
        }
        match self.is_named()? && self.nonce()? == Some(nonce) {
            true => Ok(()),
            false => Err(self.name.no_queue()),
        }
    }

    /// Offset of a line that may be written over: this process's own, or that of a process
    /// that is gone, if one is found at once. Byte 1 is locked then.
    fn reusable_entry(&self, ours: &str, nonce: u64) -> Result<Option<u64>, Error> {
        if !shared_memory::lock(self.file.as_fd(), REPLACE_LOCK)? {
            return Ok(None);
        }
        let found = self.read().map(|bytes| {
            // The line of the receiver is left alone.
            let lines: Vec<_> = entries(&bytes).skip(1).collect();
            // A sender of this process may have been there before, under the same
            // descriptor.
            let ours = owner(ours.as_bytes());
            let same = lines
                .iter()
                .find(|line| line.length == ENTRY_SIZE && line.owner == ours);
            same.or_else(|| dead_entry(&lines, nonce))
                .map(|line| line.at as u64)
        });
        if !matches!(found, Ok(Some(_))) {
            shared_memory::unlock(self.file.as_fd(), REPLACE_LOCK);
        }
        found
    }
}

impl QueueName {
    /// The file of the name.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if there is none.
    pub(crate) fn file(&self) -> Result<NameFile, Error> {
        self.open(false)
    }

    /// The file of the name, an empty one if there is none.
    pub(crate) fn make_file(&self) -> Result<NameFile, Error> {
        self.open(true)
    }

    fn open(&self, make: bool) -> Result<NameFile, Error> {
        let folder = self.folder(make)?;
        let file = folder.file(self.text(), make).map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::NotFound => return self.no_queue(),
                io::ErrorKind::InvalidInput => "what has the name of the queue is no file".into(),
                _ => format!("the file of the queue's name: {error}"),
            };
            Error::Io(io::Error::new(error.kind(), what))
        })?;
        Ok(NameFile {
            name: self.clone(),
            folder,
            file,
        })
    }

    /// Removes the file of the name, if it still is that of this queue.
    pub(crate) fn remove(&self, nonce: u64) {
        // Errors have no listener here, and a file that stays behind does no harm.
        let Ok(file) = self.file() else { return };
        if matches!(file.lock(), Ok(true)) {
            if file.nonce().is_ok_and(|its| its == Some(nonce)) {
                let _ = file.remove();
            }
            file.unlock();
        }
    }
}

/// The line of a process that is gone, if there are many lines and one is found at once.
fn dead_entry(lines: &[NameEntry], nonce: u64) -> Option<&NameEntry> {
    if lines.len() < CLEAN_FROM {
        return None;
    }
    // Eight lines are looked at, others each time. So the file has no more than some times
    // as many lines as there are processes, and no sender looks at all of them.
    let begin = procwright_liveness::nonce() as usize % lines.len();
    let tried = lines[begin..].iter().chain(&lines[..begin]).take(8);
    tried.into_iter().find(|line| match line.owner {
        Some(owner) => matches!(open_queue_of(owner, nonce), Ok(None)),
        None => line.length == ENTRY_SIZE,
    })
}
