//! Names: how a queue is found by who was given nothing but its name.
//!
//! A name is a small text file that says which processes have the queue, and under
//! which number each. A queue is opened from there (`/proc/PID/fd/N`); so it lives
//! as long as anybody has it, and leaves nothing behind but that file.
//!
//! What the file says is never believed. It is looked at who has the number now, and
//! whether that is a queue with the number that the file names; so it does no harm
//! when a process has ended and its number is another's.
//!
//! # Who writes
//!
//! Who is about to receive, or to remove the name, locks byte 0 of the file and then
//! sees whether it has its name still. It waits for nobody: whoever has that lock is
//! about to receive. It writes to a file only while that is empty, and removes it and
//! begins another in place of one that nobody can be found by; so a file is never
//! that of two queues.
//!
//! A sender writes a line behind all others, which takes no lock, and then sees
//! whether the file still has its name. If there are many lines, it takes the place
//! of one who is gone, under the lock of byte 1; if somebody has that, it does not
//! wait either. *Not a new file renamed into place*: one who is killed before that
//! leaves it lying there, and what a sender writes meanwhile is lost.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::queue::Error;
use crate::queue::format::{Header, VERSION};
use crate::sys::folder::Folder;
use crate::sys::{proc, shared};

/// A name that a queue can have, and where it would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    text: String,
    base: PathBuf,
    below: Vec<PathBuf>,
}

/// Somebody's queue.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) file: OwnedFd,
    pub(super) nonce: u64,
}

/// The queue of that name, as somebody has it, and the file that said so.
///
/// # Errors
/// [`Error::NoQueue`], [`Error::BadName`], [`Error::WrongVersion`]; [`Error::Io`] if
/// the directory is not ours alone, or only processes have it into which we may not
/// look.
pub(super) fn find(name: &str) -> Result<(Found, NameFile), Error> {
    let name = Name::new(name)?;
    let file = name.file()?;
    match file.find()? {
        Some(found) => Ok((found, file)),
        None => Err(Error::NoQueue(name.text)),
    }
}

const LONGEST: usize = 64;

/// Where names are, if it is said.
const VARIABLE: &str = "PROCWRIGHT_QUEUE_DIR";

impl Name {
    pub(super) fn new(text: &str) -> Result<Name, Error> {
        let may_be = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if !(1..=LONGEST).contains(&text.len())
            || text.starts_with('.')
            || !text.bytes().all(may_be)
        {
            return Err(Error::BadName(text.into()));
        }
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let (base, below) = match (set(VARIABLE), set("XDG_RUNTIME_DIR")) {
            (Some(directory), _) => {
                let directory = std::path::absolute(directory)?;
                let last = directory.file_name().map(PathBuf::from);
                (directory.clone(), last.into_iter().collect())
            }
            (None, Some(base)) => (base.into(), vec!["procwright".into(), "queues".into()]),
            (None, None) => {
                let ours = format!("procwright-{}", rustix::process::geteuid().as_raw());
                ("/tmp".into(), vec![ours.into(), "queues".into()])
            }
        };
        let base = match below.len() {
            1 => base.parent().unwrap_or(Path::new("/")).into(),
            _ => std::path::absolute(base)?,
        };
        Ok(Name {
            text: text.into(),
            base,
            below,
        })
    }

    /// All that have a file.
    pub(super) fn all() -> Result<Vec<String>, Error> {
        // Any name lies in that directory.
        let folder = match Name::new("a")?.folder(false) {
            Err(Error::NoQueue(_)) => return Ok(Vec::new()),
            folder => folder?,
        };
        let mut names = folder.list()?;
        names.retain(|name| Name::new(name).is_ok());
        names.sort_unstable();
        Ok(names)
    }

    /// Readable once a file in the directory of the names, which is made if it is not
    /// there, was made, written to or removed.
    pub(super) fn watch(&self) -> Result<OwnedFd, Error> {
        Ok(self.folder(true)?.watch()?)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn folder(&self, make: bool) -> Result<Folder, Error> {
        let below: Vec<&OsStr> = self.below.iter().map(|step| step.as_os_str()).collect();
        Folder::open(&self.base, &below, make).map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::NotFound if !make => return Error::NoQueue(self.text.clone()),
                io::ErrorKind::PermissionDenied => {
                    "it, or what it lies in, is another user's or others may enter it".into()
                }
                io::ErrorKind::NotADirectory => {
                    "it, or what it lies in, is a link or no directory".into()
                }
                _ => error.to_string(),
            };
            let place = below
                .iter()
                .fold(self.base.clone(), |at, step| at.join(step));
            let what = format!(
                "the directory of the names of queues, {}, cannot be used: {why}; {VARIABLE} \
                 names another",
                place.display()
            );
            Error::Io(io::Error::new(error.kind(), what))
        })
    }

    /// Its file.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if there is none.
    pub(super) fn file(&self) -> Result<NameFile, Error> {
        self.open(false)
    }

    /// Its file, an empty one if there is none.
    pub(super) fn make_file(&self) -> Result<NameFile, Error> {
        self.open(true)
    }

    fn open(&self, make: bool) -> Result<NameFile, Error> {
        let folder = self.folder(make)?;
        let file = folder.file(&self.text, make).map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::NotFound => return Error::NoQueue(self.text.clone()),
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

    /// Removes it, if it still is that of this queue.
    pub(super) fn remove(&self, nonce: u64) {
        // Nobody can be told; and what stays behind does no harm.
        let Ok(file) = self.file() else { return };
        if matches!(file.lock(), Ok(true)) {
            if file.nonce().is_ok_and(|its| its == Some(nonce)) {
                let _ = file.remove();
            }
            file.unlock();
        }
    }
}

/// The file that a name is.
#[derive(Debug)]
pub(super) struct NameFile {
    name: Name,
    folder: Folder,
    file: File,
}

/// Byte 0: who is about to receive. Byte 1: who takes the place of one who is gone.
const RECEIVING: u64 = 0;
const REPLACING: u64 = 1;

/// What begins the file; then the version of the queue's format and its number.
const HEADLINE: &str = "procwright-queue";
const HEAD: usize = HEADLINE.len() + " 0000000001 0123456789abcdef\n".len();
/// A process, when it was started, and its number for the file.
const LINE: usize = "0000000001 00000000000000000001 0000000001\n".len();

/// No more of a file is read than this: then it is nonsense.
const MOST: u64 = 1 << 22;

/// If there are so many lines, it is worth to look for one whose process is gone.
const MANY: usize = 32;

impl NameFile {
    /// To be about to receive; false if somebody is, or the file has not its name
    /// any more. It waits for nobody.
    pub(super) fn lock(&self) -> Result<bool, Error> {
        if !shared::lock(self.file.as_fd(), RECEIVING)? {
            return Ok(false);
        }
        let is_named = self.is_named();
        if !matches!(is_named, Ok(true)) {
            self.unlock();
        }
        is_named
    }

    pub(super) fn unlock(&self) {
        shared::unlock(self.file.as_fd(), RECEIVING);
    }

    /// Whether it has its name still.
    pub(super) fn is_named(&self) -> Result<bool, Error> {
        Ok(self.folder.names(&self.name.text, &self.file)?)
    }

    /// By who has locked it.
    pub(super) fn remove(&self) -> Result<(), Error> {
        Ok(self.folder.remove(&self.name.text)?)
    }

    /// Whether nobody has written to it yet.
    pub(super) fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.file.metadata()?.len() == 0)
    }

    fn read(&self) -> Result<Vec<u8>, Error> {
        let length = self.file.metadata()?.len().min(MOST);
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

    /// The number of the queue that it says it is of; none if it makes no sense.
    pub(super) fn nonce(&self) -> Result<Option<u64>, Error> {
        headline(&self.read()?)
    }

    /// The queue, as the first has it who is there.
    pub(super) fn find(&self) -> Result<Option<Found>, Error> {
        let bytes = self.read()?;
        let Some(nonce) = headline(&bytes)? else {
            return Ok(None);
        };
        let mut denied = None;
        for holder in entries(&bytes).filter_map(|line| line.holder) {
            match queue_of(holder, nonce) {
                Ok(Some(file)) => return Ok(Some(Found { file, nonce })),
                Ok(None) => {}
                Err(error) => denied = Some(error),
            }
        }
        match denied {
            // Nobody else has it, and it is not known whether they do.
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    /// Writes down a new queue, in an empty file, by who has locked it.
    pub(super) fn begin(&self, nonce: u64, file: BorrowedFd<'_>) -> Result<(), Error> {
        let text = format!("{HEADLINE} {VERSION:010} {nonce:016x}\n{}", line(file));
        Ok(self.file.write_all_at(text.as_bytes(), 0)?)
    }

    /// Writes down a new receiver of it, by who has locked it: in the first line,
    /// since it is the first to be asked.
    pub(super) fn receive(&self, file: BorrowedFd<'_>) -> Result<(), Error> {
        Ok(self.file.write_all_at(line(file).as_bytes(), HEAD as u64)?)
    }

    /// Writes down one more who has the queue.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if that is not its name any more.
    pub(super) fn join(&self, nonce: u64, file: BorrowedFd<'_>) -> Result<(), Error> {
        let line = line(file);
        match self.place(&line, nonce)? {
            Some(at) => {
                let written = self.file.write_all_at(line.as_bytes(), at);
                shared::unlock(self.file.as_fd(), REPLACING);
                written?;
            }
            None => shared::append(self.file.as_fd(), line.as_bytes())?,
        }
        match self.is_named()? && self.nonce()? == Some(nonce) {
            true => Ok(()),
            false => Err(Error::NoQueue(self.name.text.clone())),
        }
    }

    /// Where this line stands already, or that of one who is gone, if one is found at
    /// once. Byte 1 is locked then.
    fn place(&self, ours: &str, nonce: u64) -> Result<Option<u64>, Error> {
        if !shared::lock(self.file.as_fd(), REPLACING)? {
            return Ok(None);
        }
        let found = self.read().map(|bytes| {
            // Not the first, which is the receiver's.
            let lines: Vec<_> = entries(&bytes).skip(1).collect();
            // Somebody of this process was there before, under the same number.
            let ours = holder(ours.as_bytes());
            let same = lines
                .iter()
                .find(|line| line.length == LINE && line.holder == ours);
            same.or_else(|| gone(&lines, nonce))
                .map(|line| line.at as u64)
        });
        if !matches!(found, Ok(Some(_))) {
            shared::unlock(self.file.as_fd(), REPLACING);
        }
        found
    }
}

/// One who is gone, if that is worth to be looked for and is found at once.
fn gone(lines: &[Line], nonce: u64) -> Option<&Line> {
    if lines.len() < MANY {
        return None;
    }
    // A few of them, others each time: so the file has no more than some times as
    // many lines as there are processes, and nobody looks at all.
    let begin = crate::liveness::nonce() as usize % lines.len();
    let tried = lines[begin..].iter().chain(&lines[..begin]).take(8);
    tried.into_iter().find(|line| match line.holder {
        Some(holder) => matches!(queue_of(holder, nonce), Ok(None)),
        None => line.length == LINE,
    })
}

/// Who has the queue, as a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    pid: u32,
    /// When it was started, in clock ticks since boot; 0 if that cannot be known.
    start_ticks: u64,
    /// Its number for the file.
    number: u32,
}

fn line(file: BorrowedFd<'_>) -> String {
    let pid = std::process::id();
    let ticks = proc::stat(pid.cast_signed()).map_or(0, |stat| stat.start_ticks);
    format!("{pid:010} {ticks:020} {:010}\n", file.as_raw_fd())
}

/// # Errors
/// If it is of another version.
fn headline(bytes: &[u8]) -> Result<Option<u64>, Error> {
    let Some(head) = bytes.get(..HEAD) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(head).ok();
    let parts: Option<Vec<&str>> = text
        .and_then(|text| text.strip_suffix('\n'))
        .map(|text| text.split(' ').collect());
    let Some([HEADLINE, version, nonce]) = parts.as_deref() else {
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
struct Line {
    at: usize,
    length: usize,
    /// None if it makes no sense.
    holder: Option<Holder>,
}

fn entries(bytes: &[u8]) -> impl Iterator<Item = Line> {
    let mut at = HEAD;
    let lines = bytes.get(HEAD..).unwrap_or_default();
    lines
        .split_inclusive(|byte| *byte == b'\n')
        .map(move |line| {
            let begins = at;
            at += line.len();
            // In front there may be what somebody has left who was killed in the middle.
            let whole = line.len().checked_sub(LINE).map(|from| &line[from..]);
            Line {
                at: begins,
                length: line.len(),
                holder: whole.and_then(holder),
            }
        })
}

fn holder(line: &[u8]) -> Option<Holder> {
    let text = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let mut numbers = text.split(' ');
    let holder = Holder {
        pid: numbers.next()?.parse().ok()?,
        start_ticks: numbers.next()?.parse().ok()?,
        number: numbers.next()?.parse().ok()?,
    };
    numbers.next().is_none().then_some(holder)
}

/// The queue with this number that a process has under its number for it; none if
/// that is something else or the process is gone.
fn queue_of(holder: Holder, nonce: u64) -> Result<Option<OwnedFd>, Error> {
    let file = match shared::of_process(holder.pid, holder.number) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // One of another user that has the number of one of ours, or one of ours
            // that nobody may look into: that one may have the queue.
            let stat = proc::stat(holder.pid.cast_signed());
            return match stat {
                Ok(stat) if stat.start_ticks == holder.start_ticks => Err(denied(holder.pid)),
                _ => Ok(None),
            };
        }
        Err(error) => return Err(Error::of(error)),
    };
    match Header::of(file.as_fd()) {
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
        let head = format!("{HEADLINE} {VERSION:010} {:016x}\n", 9);
        assert_eq!(head.len(), HEAD);
        let text = format!("{head}{}00001{}what\n{}0000", line(1), line(2), line(3));
        let found: Vec<_> = entries(text.as_bytes()).collect();
        let pids: Vec<_> = found
            .iter()
            .map(|line| line.holder.map(|h| h.pid))
            .collect();
        assert_eq!(pids, [Some(1), Some(2), None, Some(3), None]);
        for line in &found {
            let whole = &text.as_bytes()[line.at..][..line.length];
            assert_eq!(holder(whole).is_some(), line.length == LINE);
        }
        assert_eq!(headline(text.as_bytes()).unwrap(), Some(9));
        let newer = text.replacen("0000000001", "0000000002", 1);
        assert!(matches!(
            headline(newer.as_bytes()),
            Err(Error::WrongVersion(2))
        ));
        for end in 0..HEAD {
            assert_eq!(headline(&text.as_bytes()[..end]).unwrap(), None);
            assert_eq!(entries(&text.as_bytes()[..end]).count(), 0);
        }
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        let long = "a".repeat(65);
        for name in ["", ".", "..", ".a", "a/b", "a b", "\u{e4}", "a\0", &long] {
            assert!(
                matches!(Name::new(name), Err(Error::BadName(_))),
                "{name:?}"
            );
        }
        for name in ["a", "A.b_c-9", "-", &long[1..]] {
            assert_eq!(Name::new(name).unwrap().text(), name);
        }
    }
}
