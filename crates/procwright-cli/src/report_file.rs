//! The file of `--report-to`.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use procwright_os::file::{is_unread_fifo, open_at_once};

use crate::args::ReportArgs;
use crate::exit::Termination;

/// Endings of names that promise what no report is.
const OTHER_FORMS: [&str; 8] = ["xml", "html", "yaml", "yml", "toml", "csv", "tsv", "tap"];

/// A file that a report can be written to. What it contains stays until there is one:
/// a program that did not start has no report, and an old one may be all that there is.
#[derive(Debug)]
pub(crate) struct ReportFile {
    file: File,
    path: PathBuf,
    /// True if the file was made here and has no report yet.
    is_superfluous: bool,
    /// True if the report follows what the program has written.
    is_stdout: bool,
}

impl ReportFile {
    /// True if this names stdout.
    pub(crate) fn is_stdout(path: &Path) -> bool {
        path == Path::new("-")
    }

    /// Opens the file, and makes it if it is not there; `-` is stdout. Does not wait for the
    /// reader of a FIFO.
    ///
    /// # Errors
    /// Those of open(2), in words for a person.
    #[doc(alias = "O_TRUNC")]
    fn open(path: &Path) -> Result<ReportFile, Termination> {
        ReportFile::try_open(path).map_err(|error| {
            let hint = match is_unread_fifo(path, &error) {
                true => "\n  hint: nobody reads this FIFO: start its reader first",
                false => "",
            };
            Termination::trouble(format_args!(
                "cannot write the report to {:?}: {error}{hint}",
                path.display()
            ))
        })
    }

    /// Opens the file that is asked for, if one is.
    ///
    /// # Errors
    /// As [`ReportFile::open`]; and a name that promises another form than there is.
    pub(crate) fn asked(report: &ReportArgs) -> Result<Option<ReportFile>, Termination> {
        let Some(path) = &report.report_to else {
            return Ok(None);
        };
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        let is_other = OTHER_FORMS.contains(&ending.to_ascii_lowercase().as_str());
        if is_other && report.report.is_none() {
            return Err(Termination::trouble(format_args!(
                "a report is JSON or text, and no .{ending}\n  \
                 hint: name a .json and convert that; --report json writes JSON under this name"
            )));
        }
        ReportFile::open(path).map(Some)
    }

    /// Opens the file as [`open`](ReportFile::open) does, and empties it.
    ///
    /// # Errors
    /// Those of open(2) and ftruncate(2), in words for a person.
    pub(crate) fn open_emptied(path: &Path) -> Result<ReportFile, Termination> {
        let file = ReportFile::open(path)?;
        file.empty().map_err(|error| {
            Termination::trouble(format_args!("cannot empty {:?}: {error}", path.display()))
        })?;
        Ok(file)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes away what the file contains.
    fn empty(&self) -> io::Result<()> {
        // A pipe or a device has no length.
        if !self.is_stdout && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        Ok(())
    }

    /// Adds a text.
    ///
    /// # Errors
    /// Those of the write.
    pub(crate) fn append(&mut self, text: &str) -> io::Result<()> {
        self.is_superfluous = false;
        self.file.write_all(text.as_bytes())
    }

    fn try_open(path: &Path) -> io::Result<ReportFile> {
        if ReportFile::is_stdout(path) {
            return Ok(ReportFile {
                file: io::stdout().as_fd().try_clone_to_owned()?.into(),
                path: path.to_owned(),
                is_superfluous: false,
                is_stdout: true,
            });
        }
        let new = File::options().write(true).create_new(true).open(path);
        let (file, is_superfluous) = match new {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut options = File::options();
                // A link may lead to a file that is not there.
                options.write(true).create(true).truncate(false);
                (open_at_once(&mut options, path)?, false)
            }
            Err(error) => return Err(error),
        };
        Ok(ReportFile {
            file,
            path: path.to_owned(),
            is_superfluous,
            is_stdout: false,
        })
    }

    /// Puts a report in the place of what the file contains.
    ///
    /// # Errors
    /// Those of the write.
    pub(crate) fn write(mut self, text: &str) -> io::Result<()> {
        self.empty()?;
        self.append(text)
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        let is_ours = || -> io::Result<bool> {
            let (ours, there) = (self.file.metadata()?, self.path.symlink_metadata()?);
            Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino()))
        };
        if self.is_superfluous && is_ours().unwrap_or(false) {
            // An empty file that stays is a nuisance, and no failure.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
