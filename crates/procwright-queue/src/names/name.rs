//! A name, and the directory where its file is.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::error::Error;
use procwright_os::private_dir::PrivateDir;

/// A valid name, and the path of its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueName {
    text: String,
    base: PathBuf,
    below: Vec<PathBuf>,
}

const MAX_LENGTH: usize = 64;

/// Variable with the directory of the names.
const DIRECTORY_VARIABLE: &str = "PROCWRIGHT_QUEUE_DIR";

impl QueueName {
    pub(crate) fn new(text: &str) -> Result<QueueName, Error> {
        let may_be = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if !(1..=MAX_LENGTH).contains(&text.len())
            || text.starts_with('.')
            || !text.bytes().all(may_be)
        {
            return Err(Error::BadName(text.into()));
        }
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let (base, below) = match (set(DIRECTORY_VARIABLE), set("XDG_RUNTIME_DIR")) {
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
        Ok(QueueName {
            text: text.into(),
            base,
            below,
        })
    }

    /// The directory of all names.
    pub(crate) fn common_directory(make: bool) -> Result<PrivateDir, Error> {
        // It is the same for every name.
        QueueName::new("a")?.folder(make)
    }

    /// The names of all files in the directory.
    pub(crate) fn all() -> Result<Vec<String>, Error> {
        let folder = match QueueName::common_directory(false) {
            Err(Error::NoQueue { .. }) => return Ok(Vec::new()),
            folder => folder?,
        };
        let mut names = folder.list()?;
        names.retain(|name| QueueName::new(name).is_ok());
        names.sort_unstable();
        Ok(names)
    }

    /// A descriptor that is readable once a file in the directory of the names was made,
    /// written to or removed. The directory is made if it does not exist.
    pub(crate) fn watch(&self) -> Result<OwnedFd, Error> {
        Ok(self.folder(true)?.watch()?)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The directory of the names.
    pub(crate) fn directory(&self) -> PathBuf {
        let below = self.below.iter();
        below.fold(self.base.clone(), |at, step| at.join(step))
    }

    /// The error that says that there is no queue of this name.
    pub(crate) fn no_queue(&self) -> Error {
        Error::NoQueue {
            name: self.text.clone(),
            directory: self.directory(),
        }
    }

    pub(super) fn folder(&self, make: bool) -> Result<PrivateDir, Error> {
        let below: Vec<&OsStr> = self.below.iter().map(|step| step.as_os_str()).collect();
        PrivateDir::open(&self.base, &below, make).map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::NotFound if !make => return self.no_queue(),
                io::ErrorKind::PermissionDenied => {
                    "it, or what it lies in, is another user's or others may enter it".into()
                }
                io::ErrorKind::NotADirectory => {
                    "it, or what it lies in, is a link or no directory".into()
                }
                _ => error.to_string(),
            };
            let what = format!(
                "the directory of the names of queues, {}, cannot be used: {why}; {DIRECTORY_VARIABLE} \
                 names another",
                self.directory().display()
            );
            Error::Io(io::Error::new(error.kind(), what))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_are_refused() {
        let long = "a".repeat(65);
        for name in ["", ".", "..", ".a", "a/b", "a b", "\u{e4}", "a\0", &long] {
            assert!(
                matches!(QueueName::new(name), Err(Error::BadName(_))),
                "{name:?}"
            );
        }
        for name in ["a", "A.b_c-9", "-", &long[1..]] {
            assert_eq!(QueueName::new(name).unwrap().text(), name);
        }
    }
}
