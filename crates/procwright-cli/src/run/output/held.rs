//! `--quiet`: output that is shown only if the run fails.

use std::collections::VecDeque;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::SpooledTempFile;

use super::own;
use crate::message::{say, say_in_run};

/// What is kept in memory before it goes to disk.
const MEMORY: usize = 16 * 1024 * 1024;

/// What is kept in memory of the end, once the rest can be kept nowhere: that is
/// where a failure says why.
const TAIL: usize = 1024 * 1024;

/// What a piece costs beside its bytes.
const OVERHEAD: usize = 64;

/// In front of each piece: its stream, and its length.
const HEADER: usize = 5;

/// The output of one run, in order.
#[derive(Debug)]
pub(super) struct Held {
    /// None if nothing may go to disk.
    directory: Option<PathBuf>,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    spool: SpooledTempFile,
    /// Up to where it holds whole pieces.
    length: u64,
    /// It takes no more.
    is_full: bool,
    /// The latest pieces since then.
    tail: VecDeque<(u8, Vec<u8>)>,
    /// The memory that they take.
    tail_bytes: usize,
    /// The bytes that are neither there nor here.
    missing: u64,
}

impl Held {
    pub(super) fn new(directory: Option<&Path>) -> Held {
        Held {
            directory: directory.map(Path::to_owned),
            inside: Mutex::new(Inside::new(directory)),
        }
    }

    /// Keeps a piece of a stream, 0 or 1.
    pub(super) fn keep(&self, index: usize, bytes: &[u8]) {
        let mut inside = self.lock();
        let full = match (inside.is_full, &self.directory) {
            (true, _) => None,
            (false, None) if inside.length as usize + HEADER + bytes.len() > MEMORY => {
                Some(String::from("no more than 16 MiB are kept in memory"))
            }
            _ => match inside.spool(index, bytes) {
                Ok(()) => return,
                Err(error) => Some(error.to_string()),
            },
        };
        inside.is_full = true;
        inside.keep_in_tail(index, bytes);
        drop(inside);
        if let Some(why) = full {
            say_in_run(format_args!(
                "cannot keep all of the output: {why}\n  \
                 the program goes on; the beginning and the end are kept"
            ));
        }
    }

    /// Shows what is kept, where it would have gone, and forgets it.
    pub(super) fn show(&self) {
        let mut inside = self.forgotten();
        let mut gone = [false; 2];
        let mut show = |index: usize, bytes: &[u8]| {
            // Nobody reads it: the other may still be read.
            gone[index] = gone[index] || own::write_all(index, bytes).is_err();
        };
        if let Err(error) = inside.replay(&mut show) {
            say(format_args!(
                "cannot read back the output that was kept: {error}"
            ));
        }
        if inside.missing > 0 {
            say(format_args!(
                "{} bytes of the output are missing here",
                inside.missing
            ));
        }
        for (index, bytes) in &inside.tail {
            show(usize::from(*index), bytes);
        }
    }

    /// Forgets what is kept.
    pub(super) fn forget(&self) {
        drop(self.forgotten());
    }

    fn forgotten(&self) -> Inside {
        let new = Inside::new(self.directory.as_deref());
        std::mem::replace(&mut *self.lock(), new)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn new(directory: Option<&Path>) -> Inside {
        let spool = match directory {
            Some(directory) => tempfile::spooled_tempfile_in(MEMORY, directory),
            None => tempfile::spooled_tempfile(MEMORY),
        };
        Inside {
            spool,
            length: 0,
            is_full: false,
            tail: VecDeque::new(),
            tail_bytes: 0,
            missing: 0,
        }
    }

    fn spool(&mut self, index: usize, bytes: &[u8]) -> io::Result<()> {
        // A piece is a read, and no read is that large.
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut header = [0; HEADER];
        header[0] = u8::from(index == 1);
        header[1..].copy_from_slice(&length.to_ne_bytes());
        self.spool.write_all(&header)?;
        self.spool.write_all(bytes)?;
        self.length += (HEADER + bytes.len()) as u64;
        Ok(())
    }

    fn keep_in_tail(&mut self, index: usize, bytes: &[u8]) {
        self.tail.push_back((u8::from(index == 1), bytes.to_vec()));
        self.tail_bytes += bytes.len() + OVERHEAD;
        while self.tail_bytes > TAIL
            && let Some((_, oldest)) = self.tail.pop_front()
        {
            self.tail_bytes -= oldest.len() + OVERHEAD;
            self.missing += oldest.len() as u64;
        }
    }

    fn replay(&mut self, show: &mut dyn FnMut(usize, &[u8])) -> io::Result<()> {
        self.spool.seek(SeekFrom::Start(0))?;
        let mut spool = io::BufReader::with_capacity(64 * 1024, &mut self.spool);
        let mut bytes = Vec::new();
        let mut left = self.length;
        while left > 0 {
            let mut header = [0; HEADER];
            spool.read_exact(&mut header)?;
            let [index, length @ ..] = header;
            let length = u64::from(u32::from_ne_bytes(length));
            bytes.clear();
            spool.by_ref().take(length).read_to_end(&mut bytes)?;
            show(usize::from(index), &bytes);
            left = left.saturating_sub(HEADER as u64 + length);
        }
        Ok(())
    }
}
