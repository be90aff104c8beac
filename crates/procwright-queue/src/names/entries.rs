//! The lines of a name's file, and the queues that they lead to.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::Error;
use crate::format::{QueueHeader, VERSION};
use procwright_os::{proc, shared_memory};

/// First word of the file; the version of the queue's format and its number follow.
pub(super) const MAGIC: &str = "procwright-queue";
pub(super) const HEAD_SIZE: usize = MAGIC.len() + " 0000000001 0123456789abcdef\n".len();
/// Size of a line: a process, its start, and its number for the queue's file.
pub(super) const ENTRY_SIZE: usize = "0000000001 00000000000000000001 0000000001\n".len();

/// Owner of a descriptor of the queue, as a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DescriptorOwner {
    pub(super) pid: u32,
    /// Start of the process, in clock ticks since boot; 0 if that cannot be known.
    pub(super) start_ticks: u64,
    /// Number of the descriptor.
    pub(super) number: u32,
}

pub(super) fn entry_line(file: BorrowedFd<'_>) -> String {
    let pid = std::process::id();
    let ticks = proc::stat(pid.cast_signed()).map_or(0, |stat| stat.start_ticks);
    format!("{pid:010} {ticks:020} {:010}\n", file.as_raw_fd())
}

/// The number of the queue in the first line; none if that makes no sense.
///
/// # Errors
/// If it is of another version.
pub(super) fn parse_head(bytes: &[u8]) -> Result<Option<u64>, Error> {
    let Some(head) = bytes.get(..HEAD_SIZE) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(head).ok();
    let parts: Option<Vec<&str>> = text
        .and_then(|text| text.strip_suffix('\n'))
        .map(|text| text.split(' ').collect());
    let Some([MAGIC, version, nonce]) = parts.as_deref() else {
        return Ok(None);
    };
    match version.parse() {
        Ok(VERSION) => Ok(u64::from_str_radix(nonce, 16).ok()),
        Ok(other) => Err(Error::WrongVersion(other)),
        Err(_) => Ok(None),
    }
}

/// A line behind the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameEntry {
    pub(super) at: usize,
    pub(super) length: usize,
    /// Owner of the descriptor; none if the line makes no sense.
    pub(super) owner: Option<DescriptorOwner>,
}

pub(super) fn entries(bytes: &[u8]) -> impl Iterator<Item = NameEntry> {
    let mut at = HEAD_SIZE;
    let lines = bytes.get(HEAD_SIZE..).unwrap_or_default();
    lines
        .split_inclusive(|byte| *byte == b'\n')
        .map(move |line| {
            let begins = at;
            at += line.len();
            // A process that was killed in the middle of its line may have left the
            // beginning of this one.
            let whole = line.len().checked_sub(ENTRY_SIZE).map(|from| &line[from..]);
            NameEntry {
                at: begins,
                length: line.len(),
                owner: whole.and_then(owner),
            }
        })
}

pub(super) fn owner(line: &[u8]) -> Option<DescriptorOwner> {
    let text = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let mut numbers = text.split(' ');
    let owner = DescriptorOwner {
        pid: numbers.next()?.parse().ok()?,
        start_ticks: numbers.next()?.parse().ok()?,
        number: numbers.next()?.parse().ok()?,
    };
    numbers.next().is_none().then_some(owner)
}

/// The queue with this number, opened from a process that has it under that descriptor;
/// none if the descriptor is something else or the process is gone.
pub(super) fn open_queue_of(owner: DescriptorOwner, nonce: u64) -> Result<Option<OwnedFd>, Error> {
    let file = match shared_memory::open_of_process(owner.pid, owner.number) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // The process is another user's and has the number of one of ours, or it is
            // ours and may not be looked into: then it may have the queue.
            let stat = proc::stat(owner.pid.cast_signed());
            return match stat {
                Ok(stat) if stat.start_ticks == owner.start_ticks => Err(denied(owner.pid)),
                _ => Ok(None),
            };
        }
        Err(error) => return Err(Error::from_io(error)),
    };
    match QueueHeader::read(file.as_fd()) {
        Ok(header) if header.nonce == nonce => Ok(Some(file)),
        Ok(_) | Err(Error::Invalid(_) | Error::WrongVersion(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn denied(pid: u32) -> Error {
    let what = format!(
        "process {pid} has the queue of that name, and may not be looked into \
         (PR_SET_DUMPABLE)"
    );
    Error::Io(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_makes_no_sense_hides_no_other() {
        let line = |pid: u32| format!("{pid:010} {:020} {:010}\n", 7, 3);
        let head = format!("{MAGIC} {VERSION:010} {:016x}\n", 9);
        assert_eq!(head.len(), HEAD_SIZE);
        let text = format!("{head}{}00001{}what\n{}0000", line(1), line(2), line(3));
        let found: Vec<_> = entries(text.as_bytes()).collect();
        let pids: Vec<_> = found.iter().map(|line| line.owner.map(|h| h.pid)).collect();
        assert_eq!(pids, [Some(1), Some(2), None, Some(3), None]);
        for line in &found {
            let whole = &text.as_bytes()[line.at..][..line.length];
            assert_eq!(owner(whole).is_some(), line.length == ENTRY_SIZE);
        }
        assert_eq!(parse_head(text.as_bytes()).unwrap(), Some(9));
        let newer = text.replacen("0000000001", "0000000002", 1);
        assert!(matches!(
            parse_head(newer.as_bytes()),
            Err(Error::WrongVersion(2))
        ));
        for end in 0..HEAD_SIZE {
            assert_eq!(parse_head(&text.as_bytes()[..end]).unwrap(), None);
            assert_eq!(entries(&text.as_bytes()[..end]).count(), 0);
        }
    }
}
