//! The master of a child's terminal, whose two directions end together.

use std::io;
use std::sync::{Arc, Weak};

use crate::drain::TerminalInput;
use crate::terminal::{self, Size};
use procwright_os::fork::CloseOnFork;
use procwright_os::handle::Handle;
use procwright_os::sync::{Mutex, MutexGuard};

/// The part of a terminal that its reader, its writers and its child share.
///
/// The kernel hangs a terminal up when the last descriptor of its master is closed.
/// The close of a reader has to tell the program, as that of a pipe does; so it closes
/// the writers' copies as well.
#[derive(Debug)]
pub(crate) struct PtyMaster {
    /// The reader's descriptor, gone with the reader.
    master: Weak<CloseOnFork>,
    writers: Mutex<PtyWriters>,
}

#[derive(Debug, Default)]
struct PtyWriters {
    handles: Vec<Weak<Handle>>,
    hung_up: bool,
}

impl PtyMaster {
    pub(crate) fn new(master: Weak<CloseOnFork>) -> PtyMaster {
        PtyMaster {
            master,
            writers: Mutex::default(),
        }
    }

    /// The reader's descriptor of the master.
    pub(crate) fn reader(&self) -> &Weak<CloseOnFork> {
        &self.master
    }

    fn writers(&self) -> MutexGuard<'_, PtyWriters> {
        self.writers.lock()
    }

    /// Adds a descriptor that is written to, and closes it if the reader is closed.
    pub(super) fn add_writer(&self, handle: &Arc<Handle>) {
        let mut writers = self.writers();
        writers.handles.push(Arc::downgrade(handle));
        let hung_up = writers.hung_up;
        drop(writers);
        if hung_up {
            handle.close();
        }
    }

    /// Closes all descriptors that are written to, now and from now on.
    pub(super) fn hang_up(&self) {
        let mut writers = self.writers();
        writers.hung_up = true;
        let handles = std::mem::take(&mut writers.handles);
        drop(writers);
        for handle in handles.iter().filter_map(Weak::upgrade) {
            handle.close();
        }
    }

    /// Sets the size that the program sees.
    pub(crate) fn resize(&self, size: Size) -> io::Result<()> {
        let master = self.open()?;
        terminal::set_size(master.get()?, size)
    }

    /// Types the key that means the end of the input.
    pub(crate) fn type_end(&self) -> io::Result<()> {
        let master = self.open()?;
        let mut keys = TerminalInput::default();
        keys.end(master.get()?)?;
        keys.write(master.get()?)
    }

    fn open(&self) -> io::Result<Arc<CloseOnFork>> {
        self.master.upgrade().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotConnected,
                "nobody has the terminal any more",
            )
        })
    }
}
