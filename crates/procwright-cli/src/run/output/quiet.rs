//! `--quiet`: output that is shown only if the run fails.

use std::collections::VecDeque;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use procwright::StdStream;
use procwright_os::sync::Mutex;
use tempfile::SpooledTempFile;

use crate::message;
use crate::stdio;

/// Bytes that are kept in memory before they go to disk.
const MEMORY: usize = 16 * 1024 * 1024;

/// Bytes of the end that are kept in memory once the spool takes no more: the end is
/// where a failure says why.
const TAIL: usize = 1024 * 1024;

/// Memory that a piece of the tail takes beside its bytes.
const OVERHEAD: usize = 64;

/// Bytes in front of each piece in the spool: its stream, and its length.
const HEADER: usize = 5;

/// The output of one run, in order.
#[derive(Debug)]
pub(super) struct QuietOutput {
    /// Directory of the file; None if nothing may go to disk.
    directory: Option<PathBuf>,
    kept: Mutex<KeptPieces>,
}

#[derive(Debug)]
struct KeptPieces {
    spool: SpooledTempFile,
    /// Bytes of whole pieces in the spool.
    length: u64,
    /// True if the spool takes no more.
    is_full: bool,
    /// Latest pieces since then.
    tail: VecDeque<(StdStream, Vec<u8>)>,
    /// Memory that the tail takes.
    tail_bytes: usize,
    /// Bytes that are neither in the spool nor in the tail.
    missing: u64,
}

impl QuietOutput {
    pub(super) fn new(directory: Option<&Path>) -> QuietOutput {
        QuietOutput {
            directory: directory.map(Path::to_owned),
            kept: Mutex::new(KeptPieces::new(directory)),
        }
    }

    /// Keeps a piece of a stream.
    pub(super) fn keep(&self, stream: StdStream, bytes: &[u8]) {
        let mut kept = self.kept.lock();
        let why_full = match (kept.is_full, &self.directory) {
            (true, _) => None,
            (false, None) if kept.length as usize + HEADER + bytes.len() > MEMORY => {
                Some(String::from("no more than 16 MiB are kept in memory"))
            }
            _ => match kept.spool(stream, bytes) {
                Ok(()) => return,
                Err(error) => Some(error.to_string()),
            },
        };
        kept.is_full = true;
        kept.keep_in_tail(stream, bytes);
        drop(kept);
        if let Some(why) = why_full {
            message::post(format_args!(
                "cannot keep all of the output: {why}\n  \
                 the program goes on; the beginning and the end are kept"
            ));
        }
    }

    /// Writes the output to the streams of this command, and discards it.
    pub(super) fn show(&self) {
        let mut kept = self.take();
        let mut has_failed = [false; 2];
        let mut show = |stream: StdStream, bytes: &[u8]| {
            // A stream without a reader is given up. The other may have one.
            let has_failed = &mut has_failed[stdio::index(stream)];
            *has_failed = *has_failed || stdio::write_all(stream, bytes).is_err();
        };
        if let Err(error) = kept.replay(&mut show) {
            message::print(format_args!(
                "cannot read back the output that was kept: {error}"
            ));
        }
        if kept.missing > 0 {
            message::print(format_args!(
                "{} bytes of the output are missing here",
                kept.missing
            ));
        }
        for (stream, bytes) in &kept.tail {
            show(*stream, bytes);
        }
    }

    /// Discards the output.
    pub(super) fn discard(&self) {
        drop(self.take());
    }

    fn take(&self) -> KeptPieces {
        let new = KeptPieces::new(self.directory.as_deref());
        std::mem::replace(&mut *self.kept.lock(), new)
    }
}

impl KeptPieces {
    fn new(directory: Option<&Path>) -> KeptPieces {
        let spool = match directory {
            Some(directory) => tempfile::spooled_tempfile_in(MEMORY, directory),
            None => tempfile::spooled_tempfile(MEMORY),
        };
        KeptPieces {
            spool,
            length: 0,
            is_full: false,
            tail: VecDeque::new(),
            tail_bytes: 0,
            missing: 0,
        }
    }

    fn spool(&mut self, stream: StdStream, bytes: &[u8]) -> io::Result<()> {
        // A piece is one read, which never is too long for 32 bits.
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut header = [0; HEADER];
        header[0] = u8::from(stream == StdStream::Stderr);
        header[1..].copy_from_slice(&length.to_ne_bytes());
        self.spool.write_all(&header)?;
        self.spool.write_all(bytes)?;
        self.length += (HEADER + bytes.len()) as u64;
        Ok(())
    }

    fn keep_in_tail(&mut self, stream: StdStream, bytes: &[u8]) {
        self.tail.push_back((stream, bytes.to_vec()));
        self.tail_bytes += bytes.len() + OVERHEAD;
        while self.tail_bytes > TAIL
            && let Some((_, oldest)) = self.tail.pop_front()
        {
            self.tail_bytes -= oldest.len() + OVERHEAD;
            self.missing += oldest.len() as u64;
        }
    }

    /// Passes each piece in the spool to `show`.
    fn replay(&mut self, show: &mut dyn FnMut(StdStream, &[u8])) -> io::Result<()> {
        self.spool.seek(SeekFrom::Start(0))?;
        let mut spool = io::BufReader::with_capacity(64 * 1024, &mut self.spool);
        let mut bytes = Vec::new();
        let mut left = self.length;
        while left > 0 {
            let mut header = [0; HEADER];
            spool.read_exact(&mut header)?;
            let [stream, length @ ..] = header;
            let length = u64::from(u32::from_ne_bytes(length));
            bytes.clear();
            spool.by_ref().take(length).read_to_end(&mut bytes)?;
            show(StdStream::BOTH[usize::from(stream)], &bytes);
            left = left.saturating_sub(HEADER as u64 + length);
        }
        Ok(())
    }
}
