//! Platforms with neither files without a name nor a promise of space.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

#[allow(clippy::unnecessary_wraps, reason = "the contract's type")]
pub(super) fn unnamed(_directory: &Path) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}

#[allow(clippy::unnecessary_wraps, reason = "the contract's type")]
pub fn reserve(_file: impl AsFd, _from: u64, _length: u64) -> io::Result<()> {
    Ok(())
}

#[allow(clippy::unnecessary_wraps, reason = "the contract's type")]
pub fn is_in_memory(_directory: &Path) -> io::Result<bool> {
    Ok(false)
}

pub fn is_anonymous_pipe(_fd: impl AsFd) -> bool {
    false
}
