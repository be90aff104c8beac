//! The part of a queue that lies on disk: a row of files without names.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::spool::budget::Share;
use procwright_os::file;

/// The size of a file. Small enough to be given back soon, large enough that
/// making one is nothing beside filling it.
const SEGMENT: u64 = 16 << 20;

/// The least that is worth a file of its own, when the disk is nearly full.
const LEAST: u64 = 256 << 10;

/// The files among which little room is divided, at least.
const PARTS: u64 = 4;

/// Files beyond those that the limit is good for: a nearly full disk gives small
/// ones, and descriptors are scarce as well.
const SMALL_FILES: u64 = 16;

/// Empty files that are kept to be filled again.
const KEPT: usize = 2;

#[derive(Debug)]
pub(super) struct SpillFile {
    file: Arc<OwnedFd>,
    /// Bytes for which the disk has room reserved.
    size: u64,
    written: u64,
    read: u64,
    /// A write has failed: what is in the file can be read, but no more goes in.
    is_sealed: bool,
}

impl SpillFile {
    /// Makes a file with room for `size` bytes that is sure to be there, or for
    /// less on a disk that is nearly full: a part of what is left, for what has been
    /// read of a file is free only once all of it has been.
    ///
    /// # Errors
    /// Those of making it, and that there is no room.
    pub(super) fn make(directory: &Path, asked: u64) -> io::Result<SpillFile> {
        let file = file::temporary(directory)?;
        let mut size = asked;
        loop {
            match file::reserve(&file, 0, size) {
                Ok(()) => break,
                // The rest of a nearly full disk is better than nothing.
                Err(_) if size / 2 >= LEAST => size /= 2,
                Err(e) => return Err(e),
            }
        }
        let part = (size / PARTS).max(LEAST);
        if size < asked && part < size && rustix::fs::ftruncate(&file, part).is_ok() {
            size = part;
        }
        Ok(SpillFile {
            file: Arc::new(file),
            size,
            written: 0,
            read: 0,
            is_sealed: false,
        })
    }

    fn room(&self) -> u64 {
        match self.is_sealed {
            true => 0,
            false => self.size - self.written,
        }
    }

    fn is_done(&self) -> bool {
        self.read == self.written
    }

    fn rewind(&mut self) {
        (self.written, self.read) = (0, 0);
    }
}

/// A part of a file, and the file with it.
#[derive(Debug)]
pub(super) struct FileRange {
    pub(super) file: Arc<OwnedFd>,
    pub(super) at: u64,
    pub(super) length: u64,
}

/// The place of the next bytes.
#[derive(Debug)]
pub(super) enum WriteTarget {
    Range(FileRange),
    /// A new file of this size has to be made first.
    Make(u64),
    /// No more may be kept.
    Full,
}

#[derive(Debug)]
pub(super) struct SpillFiles {
    directory: PathBuf,
    /// The most that files may take; none until it has been looked up.
    limit: Option<u64>,
    /// The policy named the limit.
    limit_is_named: bool,
    /// Files with bytes, the oldest first. The last one is written to.
    files: VecDeque<SpillFile>,
    /// Empty files, to be filled next.
    free: Vec<SpillFile>,
    /// The size of all files.
    allocated: u64,
    unread: u64,
    /// The most bytes that were ever unread.
    peak: u64,
}

impl SpillFiles {
    pub(super) fn new(directory: PathBuf, limit: Option<u64>) -> SpillFiles {
        SpillFiles {
            directory,
            limit,
            limit_is_named: limit.is_some(),
            files: VecDeque::new(),
            free: Vec::new(),
            allocated: 0,
            unread: 0,
            peak: 0,
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn has_limit(&self) -> bool {
        self.limit.is_some()
    }

    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit.get_or_insert(limit);
    }

    /// True while files exist.
    pub(super) fn has_files(&self) -> bool {
        self.allocated > 0
    }

    /// The bytes that are on disk and have not been read.
    pub(super) fn unread(&self) -> u64 {
        self.unread
    }

    /// The most bytes that were ever unread.
    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    // The spill thread's side.

    /// The most that files may take now, and whether a share makes that less than the
    /// policy allows.
    pub(super) fn limit(&self, share: &Share) -> (u64, bool) {
        share.disk(self.limit.unwrap_or(0), self.limit_is_named)
    }

    /// The place of the next bytes, if files may take `limit` bytes.
    pub(super) fn target(&mut self, limit: u64) -> WriteTarget {
        if self.files.back().is_none_or(|last| last.room() == 0) {
            let Some(file) = self.free.pop() else {
                let size = SEGMENT
                    .min((limit / PARTS).max(LEAST))
                    .min(limit.saturating_sub(self.allocated));
                let files = self.files.len() as u64;
                return match size > 0 && files < limit / SEGMENT + SMALL_FILES {
                    true => WriteTarget::Make(size),
                    false => WriteTarget::Full,
                };
            };
            self.files.push_back(file);
        }
        match self.files.back() {
            Some(last) => WriteTarget::Range(FileRange {
                file: Arc::clone(&last.file),
                at: last.written,
                length: last.room(),
            }),
            None => WriteTarget::Full,
        }
    }

    pub(super) fn add(&mut self, file: SpillFile) {
        self.allocated += file.size;
        self.free.push(file);
    }

    /// The first `n` bytes of the target have been written.
    pub(super) fn wrote(&mut self, n: u64) {
        if let Some(last) = self.files.back_mut() {
            last.written += n;
            self.unread += n;
            self.peak = self.peak.max(self.unread);
        }
    }

    /// Gives no more to the file of the target, since a write has failed. The file comes
    /// back if nothing is to be read from it, to be dropped without the lock.
    pub(super) fn seal_target(&mut self) -> Option<SpillFile> {
        let last = self.files.back_mut()?;
        last.is_sealed = true;
        if last.read < last.written {
            return None;
        }
        let last = self.files.pop_back()?;
        self.allocated -= last.size;
        Some(last)
    }

    // The consumer's side.

    /// The next bytes to be read, in one file.
    pub(super) fn next(&mut self) -> Option<FileRange> {
        let first = self.files.iter().find(|file| !file.is_done())?;
        Some(FileRange {
            file: Arc::clone(&first.file),
            at: first.read,
            length: first.written - first.read,
        })
    }

    /// Counts the next `n` bytes as read; `is_writing` if the last file is being
    /// written. Returns whether a file has become free for more, and files that are to
    /// be dropped without the lock: a close frees their blocks, which can take
    /// milliseconds.
    pub(super) fn read(&mut self, n: u64, is_writing: bool) -> (bool, Vec<SpillFile>) {
        self.unread -= n;
        if let Some(first) = self.files.iter_mut().find(|file| !file.is_done()) {
            first.read += n;
        }
        if self.unread == 0 && !is_writing {
            return (true, self.release());
        }
        let mut dropped = Vec::new();
        let mut freed = false;
        while self.files.len() > 1 && self.files.front().is_some_and(SpillFile::is_done) {
            let Some(mut file) = self.files.pop_front() else {
                break;
            };
            freed = true;
            if file.is_sealed || self.free.len() >= KEPT {
                self.allocated -= file.size;
                dropped.push(file);
            } else {
                file.rewind();
                self.free.push(file);
            }
        }
        (freed, dropped)
    }

    /// Takes out all files, to be dropped without the lock. What was in them still
    /// counts as unread.
    pub(super) fn release(&mut self) -> Vec<SpillFile> {
        self.allocated = 0;
        self.files.drain(..).chain(self.free.drain(..)).collect()
    }
}
