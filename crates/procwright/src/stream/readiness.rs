//! Streams in event loops.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::Closed;
use crate::handle::Handle;
use crate::spool::elastic;

/// Tells by a descriptor that a stream can be read or written.
#[derive(Clone, Debug)]
pub struct Readiness(Of);

#[derive(Clone, Debug)]
enum Of {
    Pipe(Arc<OwnedFd>),
    Queue(elastic::Readiness),
}

impl Readiness {
    pub(super) fn of_handle(handle: &Handle) -> io::Result<Readiness> {
        let inside = handle.enter().ok_or_else(|| io::Error::other(Closed))?;
        let fd = inside.get()?.try_clone_to_owned()?;
        Ok(Readiness(Of::Pipe(Arc::new(fd))))
    }

    pub(super) fn of_queue(readiness: elastic::Readiness) -> Readiness {
        Readiness(Of::Queue(readiness))
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Of::Pipe(fd) => fd.as_fd(),
            Of::Queue(readiness) => readiness.as_fd(),
        }
    }
}
