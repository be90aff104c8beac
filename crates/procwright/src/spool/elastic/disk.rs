//! The part that lies on disk: a row of files without names.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::spool::budget::Share;
use crate::sys::file;

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
pub(super) struct Segment {
    file: Arc<OwnedFd>,
    size: u64,
    written: u64,
    read: u64,
    /// A write has failed: what is in it can be read, but no more goes in.
    sealed: bool,
}

impl Segment {
    /// Makes a file with room for `size` bytes that is sure to be there, or for
    /// less on a disk that is nearly full: a part of what is left, for what has been
    /// read of a file is free only once all of it has been.
    ///
    /// # Errors
    /// Those of making it, and that there is no room.
    pub(super) fn make(directory: &Path, asked: u64) -> io::Result<Segment> {
        let file = file::scratch(directory)?;
        let mut size = asked;
        loop {
            match file::reserve(&file, 0, size) {
                Ok(()) => break,
                // What is left of a nearly full disk is better than nothing.
                Err(_) if size / 2 >= LEAST => size /= 2,
                Err(e) => return Err(e),
            }
        }
        let part = (size / PARTS).max(LEAST);
        if size < asked && part < size && rustix::fs::ftruncate(&file, part).is_ok() {
            size = part;
        }
        Ok(Segment {
            file: Arc::new(file),
            size,
            written: 0,
            read: 0,
            sealed: false,
        })
    }

    fn room(&self) -> u64 {
        match self.sealed {
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
pub(super) struct Extent {
    pub(super) file: Arc<OwnedFd>,
    pub(super) at: u64,
    pub(super) length: u64,
}

/// Where the next bytes go.
#[derive(Debug)]
pub(super) enum Target {
    Extent(Extent),
    /// A new file of this size has to be made first.
    Make(u64),
    /// No more may be kept.
    Full,
}

#[derive(Debug)]
pub(super) struct Disk {
    directory: PathBuf,
    /// The most that files may take; none until it has been looked up.
    limit: Option<u64>,
    /// Whoever made it said how much.
    said: bool,
    segments: VecDeque<Segment>,
    free: Vec<Segment>,
    allocated: u64,
    unread: u64,
    peak: u64,
}

impl Disk {
    pub(super) fn new(directory: PathBuf, limit: Option<u64>) -> Disk {
        Disk {
            directory,
            limit,
            said: limit.is_some(),
            segments: VecDeque::new(),
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

    /// Whether there are files.
    pub(super) fn has_files(&self) -> bool {
        self.allocated > 0
    }

    /// The bytes that lie here and have not been read.
    pub(super) fn unread(&self) -> u64 {
        self.unread
    }

    /// The most that there ever were.
    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    // The spill thread's side.

    /// The most that files may take of that now, and whether it is less than its
    /// own limit.
    pub(super) fn limit(&self, share: &Share) -> (u64, bool) {
        share.disk(self.limit.unwrap_or(0), self.said)
    }

    /// Where more goes, if files may take `limit` bytes.
    pub(super) fn target(&mut self, limit: u64) -> Target {
        if self.segments.back().is_none_or(|last| last.room() == 0) {
            let Some(segment) = self.free.pop() else {
                let size = SEGMENT
                    .min((limit / PARTS).max(LEAST))
                    .min(limit.saturating_sub(self.allocated));
                let files = self.segments.len() as u64;
                return match size > 0 && files < limit / SEGMENT + SMALL_FILES {
                    true => Target::Make(size),
                    false => Target::Full,
                };
            };
            self.segments.push_back(segment);
        }
        match self.segments.back() {
            Some(last) => Target::Extent(Extent {
                file: Arc::clone(&last.file),
                at: last.written,
                length: last.room(),
            }),
            None => Target::Full,
        }
    }

    pub(super) fn add(&mut self, segment: Segment) {
        self.allocated += segment.size;
        self.free.push(segment);
    }

    /// The first `n` bytes of the target have been written.
    pub(super) fn wrote(&mut self, n: u64) {
        if let Some(last) = self.segments.back_mut() {
            last.written += n;
            self.unread += n;
            self.peak = self.peak.max(self.unread);
        }
    }

    /// Writing to the target has failed: that file gets no more. What comes back
    /// is to be dropped without the lock.
    pub(super) fn refused(&mut self) -> Option<Segment> {
        let last = self.segments.back_mut()?;
        last.sealed = true;
        if last.read < last.written {
            return None;
        }
        let last = self.segments.pop_back()?;
        self.allocated -= last.size;
        Some(last)
    }

    // The consumer's side.

    /// The next bytes to be read, in one file.
    pub(super) fn next(&mut self) -> Option<Extent> {
        let first = self.segments.iter().find(|segment| !segment.is_done())?;
        Some(Extent {
            file: Arc::clone(&first.file),
            at: first.read,
            length: first.written - first.read,
        })
    }

    /// The next `n` bytes have been read. With `busy` the last file is being
    /// written. Whether a file has become free for more, and files that are to
    /// be dropped without the lock, since that can take milliseconds.
    pub(super) fn read(&mut self, n: u64, busy: bool) -> (bool, Vec<Segment>) {
        self.unread -= n;
        if let Some(first) = self.segments.iter_mut().find(|segment| !segment.is_done()) {
            first.read += n;
        }
        if self.unread == 0 && !busy {
            return (true, self.release());
        }
        let mut dropped = Vec::new();
        let mut freed = false;
        while self.segments.len() > 1 && self.segments.front().is_some_and(Segment::is_done) {
            let Some(mut segment) = self.segments.pop_front() else {
                break;
            };
            freed = true;
            if segment.sealed || self.free.len() >= KEPT {
                self.allocated -= segment.size;
                dropped.push(segment);
            } else {
                segment.rewind();
                self.free.push(segment);
            }
        }
        (freed, dropped)
    }

    /// Gives all files back; to be dropped without the lock. What was in them
    /// still counts as not read.
    pub(super) fn release(&mut self) -> Vec<Segment> {
        self.allocated = 0;
        self.segments.drain(..).chain(self.free.drain(..)).collect()
    }
}
