//! Platforms whose pseudo-terminals have not been tried yet.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::Pair;
use crate::unsupported;

pub fn pair() -> io::Result<Pair> {
    Err(unsupported("a pseudo-terminal"))
}

pub fn reopen(_fd: impl AsFd) -> io::Result<OwnedFd> {
    Err(unsupported("opening a terminal anew"))
}

pub fn number(_stat: &rustix::fs::Stat) -> u32 {
    // Terminals are not looked for here.
    0
}
