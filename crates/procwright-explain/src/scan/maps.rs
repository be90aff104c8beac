//! What memory of a process is: `/proc/PID/maps`.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};

use super::{descriptors, files};
use crate::wait::Place;

/// The memory that an address is of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// This process alone may change it.
    Private,
    /// Others may have it as well.
    Shared(Place),
    /// That could not be read.
    Unknown,
}

/// The memory of a process that this address is of; `dir` is that of the process or of a thread.
pub(super) fn memory(dir: BorrowedFd<'_>, at: u64) -> Memory {
    let Ok(text) = read(dir) else {
        return Memory::Unknown;
    };
    let mut all = text.lines().filter_map(Mapping::parse);
    match all.find(|mapping| mapping.range.contains(&at)) {
        Some(mapping) if mapping.shared => Memory::Shared(mapping.place(at)),
        // Of one that may not be written to others may change the file.
        Some(mapping) if mapping.writable => Memory::Private,
        _ => Memory::Unknown,
    }
}

/// Those of `places` that a process or a thread has in its memory, at whatever address. `None` of
/// one that has no memory: it has ended, as the first thread of a process may have alone.
///
/// # Errors
/// When that may not be read.
pub(super) fn having(dir: BorrowedFd<'_>, places: &[Place]) -> io::Result<Option<Vec<Place>>> {
    let text = read(dir)?;
    let all: Vec<Mapping> = text.lines().filter_map(Mapping::parse).collect();
    let has = |place: &&Place| all.iter().any(|mapping| mapping.has(place));
    let found = places.iter().filter(has).copied();
    Ok((!text.is_empty()).then(|| found.collect()))
}

fn read(dir: BorrowedFd<'_>) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let maps = rustix::fs::openat(dir, "maps", flags, Mode::empty())?;
    let mut text = Vec::new();
    io::Read::read_to_end(&mut File::from(maps), &mut text)?;
    // A name of a file may be of any bytes, and stands last.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A line: `FROM-TO PERMISSIONS OFFSET MAJOR:MINOR INODE PATH`.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    writable: bool,
    shared: bool,
    /// That of its beginning.
    place: Place,
}

impl Mapping {
    fn parse(line: &str) -> Option<Mapping> {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let permissions = words.next()?.as_bytes();
        let hex = |word: &str| files::hex(word.as_bytes());
        let offset = hex(words.next()?)?;
        let (major, minor) = words.next()?.split_once(':')?;
        Some(Mapping {
            range: hex(from)?..hex(to)?,
            writable: permissions.get(1) == Some(&b'w'),
            shared: permissions.get(3) == Some(&b's'),
            place: Place {
                device: descriptors::device(hex(major)? as u32, hex(minor)? as u32),
                inode: words.next()?.parse().ok()?,
                offset,
            },
        })
    }

    fn place(&self, at: u64) -> Place {
        Place {
            offset: self.place.offset + (at - self.range.start),
            ..self.place
        }
    }

    fn has(&self, place: &Place) -> bool {
        let length = self.range.end.saturating_sub(self.range.start);
        let begin = self.place.offset;
        self.shared
            && (self.place.device, self.place.inode) == (place.device, place.inode)
            && (begin..begin.saturating_add(length)).contains(&place.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "7f0000001000-7f0000003000 rw-s 00002000 00:01 1037   /dev/zero (deleted)";

    fn place(offset: u64) -> Place {
        Place {
            device: 1,
            inode: 1037,
            offset,
        }
    }

    #[test]
    fn a_place_is_the_same_at_another_address() {
        let one = Mapping::parse(LINE).unwrap();
        assert_eq!(one.place(0x7f00_0000_2010), place(0x3010));
        let other = "560000000000-560000002000 r--s 00003000 00:01 1037 /dev/zero (deleted)";
        let other = Mapping::parse(other).unwrap();
        assert!(other.has(&place(0x3010)));
        assert!(!other.has(&place(0x2fff)), "before its beginning");
        assert!(!other.has(&place(0x5000)), "behind its end");
        let elsewhere = Place {
            inode: 1038,
            ..place(0x3010)
        };
        assert!(!other.has(&elsewhere));
    }

    #[test]
    fn a_private_mapping_of_the_file_has_another_word() {
        let mut private = Mapping::parse(LINE).unwrap();
        assert!(private.has(&place(0x2000)));
        private.shared = false;
        assert!(!private.has(&place(0x2000)));
    }

    #[test]
    fn what_is_no_mapping_is_none() {
        for line in [
            "",
            "x",
            "1-2 rw-s 0",
            "1-2 rw-s 0 00:01",
            "g-2 rw-s 0 00:01 5",
        ] {
            assert_eq!(Mapping::parse(line), None, "{line:?}");
        }
    }
}
