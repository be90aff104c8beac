//! The file of a log, and its rotation.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use procwright_os::file::{is_unread_fifo, open_at_once};

use crate::poll;

/// Bytes by which a file may exceed its size for the end of a line.
const SLACK: u64 = crate::lines::LONGEST as u64 + 128;

/// Size beyond which a new file begins, and how many old ones are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    pub(super) size: u64,
    pub(super) keep: u32,
}

/// Outcome of a write.
#[derive(Debug, Default)]
pub(super) struct LogWrite {
    /// Bytes that are in the file; those behind them are not.
    pub(super) written: usize,
    /// Why not all of them are.
    pub(super) write_error: Option<io::Error>,
    /// New files that were begun.
    pub(super) rotations: u32,
    /// Why a new file could not be begun.
    pub(super) rotation_error: Option<io::Error>,
}

#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    rotation: Option<Rotation>,
    /// Size of the file, unless another process writes to it as well.
    size: u64,
    /// Size beyond which a new file is due.
    bound: u64,
    at_line_start: bool,
    /// Rest of a text that could not be written to its end.
    unfinished: Vec<u8>,
}

impl LogFile {
    /// Opens the file for appending.
    ///
    /// # Errors
    /// In words, with a hint.
    pub(super) fn open(path: &Path, rotation: Option<Rotation>) -> Result<LogFile, String> {
        let shown = path.display();
        let file = append_to(path).map_err(|error| {
            let hint = match is_unread_fifo(path, &error) {
                true => "nobody reads this FIFO: start its reader first",
                false => "the program was not started; name a file that can be written",
            };
            format!("cannot write the log {shown:?}: {error}\n  hint: {hint}")
        })?;
        let failed = |error: io::Error| format!("cannot write the log {shown:?}: {error}");
        let meta = file.metadata().map_err(failed)?;
        let is_plain = meta.file_type().is_file();
        if rotation.is_some() && !is_plain {
            return Err(format!(
                "the log {shown:?} is no plain file, so there is no new one to begin\n  \
                 hint: leave --log-size away"
            ));
        }
        let mut log = LogFile {
            path: path.to_owned(),
            file,
            rotation,
            size: meta.len(),
            bound: 0,
            at_line_start: !is_plain || ends_a_line(path),
            unfinished: Vec::new(),
        };
        log.bound = rotation.map_or(u64::MAX, |rotation| rotation.size);
        Ok(log)
    }

    pub(super) fn is_at_line_start(&self) -> bool {
        self.at_line_start
    }

    /// Writes a text of this command; false if nothing of it could be written. A rest
    /// that does not fit comes before anything else, see [`LogFile::finish`].
    pub(super) fn begin(&mut self, text: &[u8]) -> bool {
        let (n, _) = self.put(text);
        if n > 0 {
            self.unfinished = text[n..].to_vec();
        }
        n > 0
    }

    /// Writes the rest of a text that was begun; false if there still is one.
    pub(super) fn finish(&mut self) -> bool {
        let rest = std::mem::take(&mut self.unfinished);
        let (n, _) = self.put(&rest);
        self.unfinished = rest[n..].to_vec();
        self.unfinished.is_empty()
    }

    /// Writes `bytes`, and begins new files between lines of them.
    pub(super) fn write(&mut self, bytes: &[u8]) -> LogWrite {
        let mut outcome = LogWrite::default();
        while outcome.written < bytes.len() {
            let rest = &bytes[outcome.written..];
            let now = self.fitting(rest);
            if now == 0 {
                let size = self.rotation.map_or(u64::MAX, |rotation| rotation.size);
                match self.rotate() {
                    Ok(()) => {
                        outcome.rotations += 1;
                        self.bound = size;
                    }
                    // The old file goes on. The next try is after as much again.
                    Err(error) => {
                        outcome.rotation_error = Some(error);
                        let more = size.max(rest.len() as u64);
                        self.bound = self.size.saturating_add(more);
                    }
                }
                continue;
            }
            let (n, written) = self.put(&rest[..now]);
            outcome.written += n;
            if let Err(error) = written {
                outcome.write_error = Some(error);
                break;
            }
        }
        outcome
    }

    /// How many of `bytes` go into this file; 0 if a new one has to begin.
    fn fitting(&self, bytes: &[u8]) -> usize {
        let clip = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(bytes.len());
        let room = clip(self.bound.saturating_sub(self.size));
        if room == bytes.len() {
            return room;
        }
        let end = |part: &[u8]| part.iter().position(|&byte| byte == b'\n');
        if let Some(last) = bytes[..room].iter().rposition(|&byte| byte == b'\n') {
            return last + 1;
        }
        if self.at_line_start && self.size > 0 {
            return 0;
        }
        let room = clip((self.bound.saturating_add(SLACK)).saturating_sub(self.size));
        end(&bytes[..room]).map_or(room, |at| at + 1)
    }

    /// Writes `bytes` as they are. Returns how many were written, and the error that
    /// kept the others from it.
    fn put(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let (n, written) = poll::write_all(self.file.as_fd(), bytes);
        self.size += n as u64;
        if let Some(last) = bytes[..n].last() {
            self.at_line_start = *last == b'\n';
        }
        (n, written)
    }

    /// Begins a new file. A kill at any step loses no bytes: all are in a file with a
    /// name, but for those of the oldest file, which goes.
    fn rotate(&mut self) -> io::Result<()> {
        let keep = self.rotation.map_or(0, |rotation| rotation.keep);
        // Another program, such as logrotate(8), may have moved the file away.
        if self.has_its_name() {
            // Files move up to the first free name, so that none is lost needlessly.
            let free = (1..=keep).find(|&n| fs::symlink_metadata(self.old_path(n)).is_err());
            for n in (1..free.unwrap_or(keep)).rev() {
                unless_gone(fs::rename(self.old_path(n), self.old_path(n + 1)))?;
            }
            unless_gone(match keep {
                0 => fs::remove_file(&self.path),
                _ => fs::rename(&self.path, self.old_path(1)),
            })?;
        }
        self.file = append_to(&self.path)?;
        self.size = self.file.metadata()?.len();
        self.at_line_start = true;
        Ok(())
    }

    fn old_path(&self, n: u32) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(format!(".{n}"));
        name.into()
    }

    /// Returns whether the path still names the file that is open.
    fn has_its_name(&self) -> bool {
        let (Ok(named), Ok(open)) = (fs::metadata(&self.path), self.file.metadata()) else {
            return false;
        };
        named.dev() == open.dev() && named.ino() == open.ino()
    }
}

/// Success if the file is gone: another process may remove old logs at any time.
fn unless_gone(moved: io::Result<()>) -> io::Result<()> {
    match moved {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        moved => moved,
    }
}

/// Opens a file for appending. The open does not wait for the reader of a FIFO; the
/// writes do.
fn append_to(path: &Path) -> io::Result<File> {
    open_at_once(OpenOptions::new().append(true).create(true), path)
}

/// Returns whether the content of a file ends with a newline; false if it cannot be
/// read.
fn ends_a_line(path: &Path) -> bool {
    let last = || -> io::Result<u8> {
        let mut file = File::open(path)?;
        if file.seek(SeekFrom::End(0))? == 0 {
            return Ok(b'\n');
        }
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    last().is_ok_and(|byte| byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path, n: u32) -> String {
        let path = match n {
            0 => path.to_owned(),
            n => format!("{}.{n}", path.display()).into(),
        };
        fs::read_to_string(path).unwrap_or_default()
    }

    fn opened(path: &Path, size: u64, keep: u32) -> LogFile {
        LogFile::open(path, Some(Rotation { size, keep })).unwrap()
    }

    #[test]
    fn new_files_begin_at_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = opened(&path, 10, 2);
        assert_eq!(log.write(b"12345\n12345\n").rotations, 1);
        assert_eq!(
            (read(&path, 1), read(&path, 0)),
            ("12345\n".into(), "12345\n".into())
        );
        // A line ends in the file in which it has begun.
        assert_eq!(log.write(b"abc").rotations, 0);
        assert_eq!(log.write(b"defghi\njk").rotations, 1);
        assert_eq!(
            (read(&path, 1), read(&path, 0)),
            ("12345\nabcdefghi\n".into(), "jk".into())
        );
        assert_eq!(read(&path, 2), "12345\n");
        // The oldest file is removed.
        log.write(b"l\n1234567\n");
        assert_eq!(
            (read(&path, 1), read(&path, 0)),
            ("jkl\n".into(), "1234567\n".into())
        );
        assert_eq!(
            (read(&path, 2), read(&path, 3)),
            ("12345\nabcdefghi\n".into(), String::new())
        );
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = opened(&path, 1000, 9);
        let bytes = vec![b'x'; 300_000];
        for piece in bytes.chunks(7000) {
            assert_eq!(log.write(piece).written, piece.len());
        }
        let sizes: Vec<_> = (0..6).map(|n| read(&path, n).len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), bytes.len());
        assert!(
            sizes.iter().all(|size| *size as u64 <= 1000 + SLACK),
            "{sizes:?}"
        );
    }

    #[test]
    fn a_gap_in_the_names_is_filled_and_no_file_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        for (n, text) in [(0, "new\n"), (1, "one\n"), (3, "three\n")] {
            let name = match n {
                0 => path.clone(),
                n => dir.path().join(format!("log.{n}")),
            };
            fs::write(name, text).unwrap();
        }
        let mut log = opened(&path, 4, 3);
        log.write(b"next\n");
        let texts: Vec<_> = (0..4).map(|n| read(&path, n)).collect();
        assert_eq!(texts, ["next\n", "new\n", "one\n", "three\n"]);
    }

    #[test]
    fn a_log_that_cannot_be_renamed_goes_on_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = opened(&path, 4, 1);
        // A directory that is not empty stands where the old log would go.
        fs::create_dir_all(dir.path().join("log.1/x")).unwrap();
        let wrote = log.write(b"123\n456\n789\n");
        assert!(wrote.rotation_error.is_some() && wrote.write_error.is_none());
        assert_eq!((wrote.written, wrote.rotations), (12, 0));
        assert_eq!(read(&path, 0), "123\n456\n789\n");
    }

    #[test]
    fn a_file_that_was_moved_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = opened(&path, 4, 1);
        log.write(b"123\n");
        fs::rename(&path, dir.path().join("theirs")).unwrap();
        log.write(b"456\n");
        assert_eq!(
            (read(&path, 0), read(&path, 1)),
            ("456\n".into(), String::new())
        );
    }
}
