//! What a program that we start gets to find us by: a variable and descriptors.
//!
//! The variable says, with a space between: who we are to the program; if there are
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
use std::sync::{Mutex, PoisonError};

use crate::sys::fd;
use crate::sys::fork::PerProcess;

/// For one program. The descriptors are ours until it has them.
#[derive(Debug)]
pub(crate) struct Heirloom {
    pub(crate) variable: &'static str,
    /// Who we are to it: one word.
    pub(crate) who: String,
    pub(crate) files: Vec<OwnedFd>,
    /// What belongs to the files: one word.
    pub(crate) ticket: String,
    /// Whether it is of use without the files.
    pub(crate) needs_files: bool,
}

impl Heirloom {
    /// What the variable says, up to the number of the program's process, if the
    /// files have these numbers there.
    pub(crate) fn text(&self, numbers: &[RawFd]) -> io::Result<String> {
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

/// What this program was told.
#[derive(Debug)]
pub(crate) struct Told {
    variable: &'static str,
    pub(crate) who: String,
    files: Vec<(RawFd, u64)>,
    pub(crate) ticket: String,
}

/// The variables whose files were taken. A fork is told nothing at all.
static TAKEN: PerProcess<Mutex<Vec<&'static str>>> = PerProcess::new();

impl Told {
    /// # Errors
    /// What is wrong, if nothing was told to this process.
    pub(crate) fn of(variable: &'static str) -> Result<Told, String> {
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
    pub(crate) fn take<const FILES: usize>(&self) -> Result<[OwnedFd; FILES], String> {
        let variable = self.variable;
        if self.files.len() != FILES {
            let count = self.files.len();
            return Err(format!(
                "{variable} tells of {count} descriptors, not of {FILES}"
            ));
        }
        let mut taken = TAKEN.get().lock().unwrap_or_else(PoisonError::into_inner);
        if taken.contains(&variable) {
            return Err(format!("what {variable} tells of was taken before"));
        }
        for (number, told) in &self.files {
            // By a duplicate: it may be closed at this very moment.
            let is = fd::duplicate(*number).and_then(|file| inode(file.as_fd()));
            if !is.is_ok_and(|is| is == *told) {
                return Err(format!("descriptor {number} was closed since the start"));
            }
        }
        taken.push(variable);
        let mut files = Vec::with_capacity(FILES);
        for (number, _) in &self.files {
            files.push(fd::take(*number).map_err(|error| error.to_string())?);
        }
        files
            .try_into()
            .map_err(|_| "the descriptors are gone".to_owned())
    }
}
