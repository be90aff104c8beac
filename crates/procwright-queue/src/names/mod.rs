//! Names: how a process finds a queue of which it knows the name alone.
//!
//! A name is a small text file that says which processes have the queue, and under which
//! descriptor each. A queue is opened from there (`/proc/PID/fd/N`); so it lives as long as
//! any process has it, and leaves nothing behind but that file.
//!
//! The text of the file is never believed. A process that opens the queue looks which
//! process has the number now, and whether the descriptor is a queue with the number in the
//! first line; so no harm is done when a process has ended and its number is another's.
//!
//! # Writers
//!
//! A process that is about to receive, or to remove the name,
//!
//! 1. locks byte 0 of the file, without waiting: the process that has that lock is about to
//!    receive;
//! 2. looks whether the file still has its name;
//! 3. writes to the file only if that is empty. If no line of it leads to a queue, it
//!    removes the file and begins with another one.
//!
//! A file is never that of two queues, therefore.
//!
//! A sender
//!
//! 1. appends a line, which takes no lock. Where there are many lines, it writes over the
//!    line of a process that is gone, under the lock of byte 1; if another sender has that
//!    lock, it appends;
//! 2. looks whether the file still has its name.
//!
//! *Not a new file renamed into place*: a process that is killed before the rename leaves
//! that file behind, and a line that a sender writes meanwhile is lost.
//!
//! Layers, lowest first: `entries` and `name`; `name_file`; `held`.

mod entries;
mod held;
mod name;
mod name_file;

pub(crate) use held::HeldName;
pub(crate) use name::QueueName;
pub(crate) use name_file::{FoundQueue, NameFile};

use crate::error::Error;

/// The queue of that name, opened from a process that has it, and the name's file.
///
/// # Errors
/// [`Error::NoQueue`], [`Error::WrongVersion`]; [`Error::Io`] if the
/// directory is not ours alone, or every process that has the queue may not be looked into.
pub(crate) fn find(name: &QueueName) -> Result<(FoundQueue, NameFile), Error> {
    let file = name.file()?;
    match file.find()? {
        Some(found) => Ok((found, file)),
        None => Err(name.no_queue()),
    }
}
