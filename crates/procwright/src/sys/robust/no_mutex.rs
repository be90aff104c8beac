//! Where the C library's locks are not what we know.

use std::convert::Infallible;
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;

use super::Facts;
use crate::sys::unsupported;

#[derive(Debug)]
pub(crate) struct ThreadWord(Infallible, PhantomData<*const ()>);

impl ThreadWord {
    pub(crate) fn hold(_: &Facts) -> io::Result<Option<ThreadWord>> {
        Err(unsupported("a liveness token of a thread"))
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    pub(crate) fn cell(&self) -> usize {
        match self.0 {}
    }
}

#[derive(Debug)]
pub(crate) struct PlacedWord(Infallible);

impl PlacedWord {
    pub(crate) fn hold(_: BorrowedFd<'_>, _: u64) -> io::Result<Option<PlacedWord>> {
        Err(unsupported("a word that a thread holds"))
    }

    pub(crate) fn place(&self) -> u32 {
        match self.0 {}
    }

    pub(crate) fn value(&self) -> u32 {
        match self.0 {}
    }

    pub(crate) fn has_died(&self) -> bool {
        match self.0 {}
    }
}
