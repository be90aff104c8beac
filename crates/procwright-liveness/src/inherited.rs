//! A variable and descriptors by which a started program finds the process that has
//! started it.
//!
//! The variable says, with a space between: what this process is to the program; if there are
//! descriptors, the number and the inode of each, and what belongs to them; and the
//! number of the program's own process, which it writes itself before its exec. By
//! the last a program knows that the variable is meant for it and not for the one that
//! it was started by, which inherits environment and descriptors as well. Its parent's
//! number alone would not tell: that is another as soon as the parent has ended, which
//! may be what it wants to know.
//!
//! Between the exec and the first call numbers may have been closed, and be
//! anybody's. The inode tells: that of a socket or a file in memory is nobody else's.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use procwright_os::fd;
use procwright_os::fork::PerProcess;
use procwright_os::sync::Mutex;

/// The inheritance of one program. The descriptors are this process's until it has them.
#[derive(Debug)]
pub struct Inheritance {
    pub variable: &'static str,
    /// What this process is to the program: one word.
    pub who: String,
    pub files: Vec<OwnedFd>,
    /// The word that belongs to the files.
    pub ticket: String,
    /// Whether it is of no use without the files.
    pub needs_files: bool,
}

impl Inheritance {
    /// The text of the variable, up to the number of the program's process, if the files
    /// have these numbers there.
    pub fn text(&self, numbers: &[RawFd]) -> io::Result<String> {
        let mut text = self.who.clone();
        for (file, number) in self.files.iter().zip(numbers) {
            text += &format!(" {number}:{}", inode(file.as_fd())?);
        }
        if !self.files.is_empty() {
            text += &format!(" {}", self.ticket);
        }
        Ok(text)
    }
}

fn inode(file: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(rustix::fs::fstat(file)?.st_ino)
}

/// The inheritance of this program, as its variable tells.
#[derive(Debug)]
pub struct Told {
    variable: &'static str,
    pub who: String,
    files: Vec<(RawFd, u64)>,
    pub ticket: String,
}

/// The variables whose files were taken. A fork starts anew.
static TAKEN: PerProcess<Mutex<Vec<&'static str>>> = PerProcess::new();

impl Told {
    /// # Errors
    /// What is wrong, if nothing was told to this process.
    pub fn of(variable: &'static str) -> Result<Told, String> {
        let Some(text) = std::env::var_os(variable) else {
            return Err(format!("there is no variable {variable}"));
        };
        let Some((told, child)) = Told::read(variable, &text) else {
            return Err(format!("{variable} is {text:?}, which says nothing"));
        };
        let own = std::process::id();
        if child != own {
            return Err(format!(
                "{variable} was told to process {child}, and this is process {own}, which was \
                 started by it or by one of its descendants"
            ));
        }
        Ok(told)
    }

    fn read(variable: &'static str, text: &OsStr) -> Option<(Told, u32)> {
        let words: Vec<_> = text.to_str()?.split(' ').collect();
        let (who, rest) = words.split_first()?;
        let (child, rest) = rest.split_last()?;
        let (ticket, files) = rest.split_last().unwrap_or((&"", &[]));
        let file = |word: &&str| {
            let (number, inode) = word.split_once(':')?;
            Some((number.parse().ok()?, inode.parse().ok()?))
        };
        let told = Told {
            variable,
            who: (*who).to_owned(),
            files: files.iter().map(file).collect::<Option<_>>()?,
            ticket: (*ticket).to_owned(),
        };
        Some((told, child.parse().ok()?))
    }

    /// The files, close-on-exec from now on; once.
    ///
    /// # Errors
    /// What is wrong, if they are not there any more.
    pub fn take<const FILES: usize>(&self) -> Result<[OwnedFd; FILES], String> {
        let variable = self.variable;
        if self.files.len() != FILES {
            let count = self.files.len();
            return Err(format!(
                "{variable} tells of {count} descriptors, not of {FILES}"
            ));
        }
        let mut taken = TAKEN.get().lock();
        if taken.contains(&variable) {
            return Err(format!("what {variable} tells of was taken before"));
        }
        for (number, told) in &self.files {
            // A duplicate is looked at: another thread may close the descriptor meanwhile.
            let is = fd::duplicate(*number).and_then(|file| inode(file.as_fd()));
            if !is.is_ok_and(|is| is == *told) {
                return Err(format!("descriptor {number} was closed since the start"));
            }
        }
        taken.push(variable);
        let mut files = Vec::with_capacity(FILES);
        for (number, _) in &self.files {
            files.push(fd::take_inherited(*number).map_err(|error| error.to_string())?);
        }
        files
            .try_into()
            .map_err(|_| "the descriptors are gone".to_owned())
    }
}
