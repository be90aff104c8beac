//! Files that get all of what is read.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::consumer::{ConsumerRole, NewConsumer};
use super::tap::{Piece, Tap};
use crate::error::{BoxError, SpawnError, Step, UNREAD_FIFO};
use crate::spec::Spec;
use crate::std_stream::PerStream;
use procwright_os::file;

/// The files of `keep_full`.
///
/// # Errors
/// A file that cannot be made.
pub(crate) fn full_files(spec: &Spec) -> Result<PerStream<Option<NewConsumer>>, SpawnError> {
    let mut files = PerStream::default();
    let Some(path) = &spec.keep_full else {
        return Ok(files);
    };
    let mut beside = path.clone().into_os_string();
    beside.push(".stderr");
    let paths = PerStream::new(path.clone(), PathBuf::from(beside));
    for (stream, (path, is_captured)) in paths.zip(spec.captures()) {
        if is_captured {
            let tap = open(&path, "it is to keep all of the output")?;
            let role = ConsumerRole::FullFile(path);
            files[stream] = Some(NewConsumer::with_tap(tap, role));
        }
    }
    Ok(files)
}

/// The consumer that copies to the file of this path.
///
/// # Errors
/// When that cannot be made.
pub(crate) fn tee_file(path: &Path) -> Result<NewConsumer, SpawnError> {
    let tap = open(path, "it is to get a copy of the output")?;
    Ok(NewConsumer::with_tap(tap, ConsumerRole::Required))
}

fn open(path: &Path, purpose: &str) -> Result<FullFile, SpawnError> {
    FullFile::open(path).map_err(|error| {
        let hint = match file::is_unread_fifo(path, &error) {
            true => UNREAD_FIFO.to_owned(),
            false => format!("{purpose}: name a file that can be written"),
        };
        SpawnError::new(Step::Open, path.to_string_lossy(), error).with_hint(hint)
    })
}

/// A file that gets all of one stream, or of both as they come.
pub(crate) struct FullFile {
    file: File,
    /// True if what was in the file before has been taken away.
    is_ours: bool,
}

impl FullFile {
    /// Opens the file, and makes it if it is not there. What it contains stays until the
    /// stream has something for it, or ends: a program that did not start has written
    /// nothing that could take its place.
    #[doc(alias = "O_TRUNC")]
    pub(super) fn open(path: &Path) -> io::Result<FullFile> {
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        Ok(FullFile {
            file: file::open_at_once(&mut options, path)?,
            is_ours: false,
        })
    }

    fn file(&mut self) -> io::Result<&mut File> {
        // A pipe or a device has no length.
        if !self.is_ours && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.is_ours = true;
        Ok(&mut self.file)
    }
}

impl Tap for FullFile {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        Ok(self.file()?.write_all(piece.bytes)?)
    }

    fn end(&mut self) -> Result<(), BoxError> {
        self.file()?;
        Ok(())
    }
}
