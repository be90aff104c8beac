//! Platforms where the C library's locks are not known.
#![allow(missing_docs, reason = "documented where the kernel has it")]

use std::convert::Infallible;
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;

use super::Facts;
use crate::unsupported;

/// A word that cannot be held here.
#[derive(Debug)]
pub struct ThreadWord(Infallible, PhantomData<*const ()>);

impl ThreadWord {
    pub fn hold(_: &Facts) -> io::Result<Option<ThreadWord>> {
        Err(unsupported("a liveness token of a thread"))
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    pub fn cell(&self) -> usize {
        match self.0 {}
    }
}

/// A word that cannot be held here.
#[derive(Debug)]
pub struct PlacedWord(Infallible);

impl PlacedWord {
    pub fn hold(_: BorrowedFd<'_>, _: u64) -> io::Result<Option<PlacedWord>> {
        Err(unsupported("a word that a thread holds"))
    }

    pub fn place(&self) -> u32 {
        match self.0 {}
    }

    pub fn value(&self) -> u32 {
        match self.0 {}
    }

    pub fn has_died(&self) -> bool {
        match self.0 {}
    }
}
