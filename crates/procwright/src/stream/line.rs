//! The line to a child's terminal, whose two directions end together.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::handle::Handle;
use crate::sys::fork::Kept;
use crate::terminal::{self, Size};

/// What its reader, its writer and its child have in common.
///
/// A terminal is hung up when the last descriptor of the end that shows it is
/// closed. Whoever closes the reader of a pipe wants the program to learn of it;
/// so the writer's copy goes then as well.
#[derive(Debug)]
pub(crate) struct Line {
    /// Of the one that reads. Gone with that.
    master: Weak<Kept>,
    writers: Mutex<Writers>,
}

#[derive(Debug, Default)]
struct Writers {
    handles: Vec<Weak<Handle>>,
    hung_up: bool,
}

impl Line {
    pub(crate) fn new(master: Weak<Kept>) -> Line {
        Line {
            master,
            writers: Mutex::default(),
        }
    }

    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This one writes to it as well.
    pub(super) fn add(&self, handle: &Arc<Handle>) {
        let mut writers = self.writers();
        writers.handles.push(Arc::downgrade(handle));
        let hung_up = writers.hung_up;
        drop(writers);
        if hung_up {
            handle.close();
        }
    }

    pub(super) fn hang_up(&self) {
        let mut writers = self.writers();
        writers.hung_up = true;
        let handles = std::mem::take(&mut writers.handles);
        drop(writers);
        for handle in handles.iter().filter_map(Weak::upgrade) {
            handle.close();
        }
    }

    /// Says how large it is.
    pub(crate) fn resize(&self, size: Size) -> io::Result<()> {
        match self.master.upgrade() {
            Some(master) => terminal::set_size(master.get()?, size),
            None => Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "nobody has the terminal any more",
            )),
        }
    }
}
