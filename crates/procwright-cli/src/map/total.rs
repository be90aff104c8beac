//! How many items there are, for the line of progress.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use procwright_os::sync::Mutex;
use procwright_os::thread::spawn_quiet;

use super::items::{Items, read};

/// The number of items, once it is known: of lists it is from the beginning, of a file when a
/// thread has counted them. Those of a pipe are never counted: it is read as there is room for
/// commands, and what it will have is its writer's to say.
#[derive(Debug, Default)]
pub(super) struct Total(Arc<Mutex<Option<u64>>>);

impl Total {
    pub(super) fn of(items: &Items) -> Total {
        let total = Total::default();
        match items {
            Items::Product(product) => *total.0.lock() = product.rows(),
            Items::Read { from, end } => {
                if let Some(file) = FromHere::of(from.get_ref()) {
                    let (place, end) = (Arc::clone(&total.0), *end);
                    // Without a thread, or where the file cannot be read, nothing is said of it.
                    let _ = spawn_quiet("procwright-count", move || {
                        if let Ok(count) = count(file, end) {
                            *place.lock() = Some(count);
                        }
                    });
                }
            }
        }
        total
    }

    pub(super) fn known(&self) -> Option<u64> {
        *self.0.lock()
    }
}

/// A regular file from the place on where its reader will begin, which is not moved.
struct FromHere {
    file: File,
    at: u64,
}

impl FromHere {
    /// None if it is no regular file.
    fn of(file: &File) -> Option<FromHere> {
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let at = rustix::fs::tell(file).ok()?;
        let file = file.try_clone().ok()?;
        Some(FromHere { file, at })
    }
}

impl Read for FromHere {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

fn count(file: FromHere, end: u8) -> io::Result<u64> {
    let mut from = BufReader::with_capacity(256 << 10, file);
    let mut count = 0;
    while read(&mut from, end)?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek as _, SeekFrom, Write as _};

    #[test]
    fn a_file_is_counted_from_its_place_on() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"first\na\n\nb\nlast").unwrap();
        file.seek(SeekFrom::Start(6)).unwrap();
        let from_here = FromHere::of(&file).unwrap();
        assert_eq!(count(from_here, b'\n').unwrap(), 3);
        assert_eq!(file.stream_position().unwrap(), 6);
    }

    #[test]
    fn a_pipe_is_not_read() {
        let (read, _write) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(read));
        assert!(FromHere::of(&file).is_none());
    }
}
