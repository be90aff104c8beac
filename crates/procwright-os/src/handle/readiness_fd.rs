//! The readiness of a handle, as a descriptor for event loops.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::fork;
use crate::ready::{Interest, ReadySet};
use crate::sync::{Ordering, fence};
use crate::wake::Wake;

use super::Handle;

/// A descriptor that is readable while the handle's is ready, and for ever once the
/// handle is closed. It keeps neither open: a registration is no reference.
#[derive(Debug)]
pub struct ReadinessFd {
    set: ReadySet,
    /// Wake-up of the handle, kept so that it stays in the set after the handle.
    _wake: Arc<Wake>,
}

const DESCRIPTOR: u64 = 0;
const CLOSE: u64 = 1;

impl Handle {
    /// The readiness, made when first asked for: it takes two descriptors. A handle has
    /// one direction, so `on` is always the same.
    ///
    /// # Errors
    /// When no descriptor is left; in a fork.
    pub fn readiness(&self, on: Interest) -> io::Result<Arc<ReadinessFd>> {
        if self.is_forked() {
            return Err(fork::used_in_fork());
        }
        if let Some(ready) = self.ready.get() {
            return Ok(Arc::clone(ready));
        }
        let set = ReadySet::new()?;
        let wake = self.wake()?;
        set.add(wake.as_fd(), CLOSE, Interest::Read)?;
        // Entered or closed: the set never meets another file of that number.
        if let Some(inside) = self.fd.enter() {
            set.add(inside.get()?, DESCRIPTOR, on)?;
        }
        let _wake = Arc::clone(wake);
        let ready = self
            .ready
            .get_or_init(|| Arc::new(ReadinessFd { set, _wake }));
        // The fence of `Handle::sleep`: a close sees the wake-up, or is seen here.
        fence(Ordering::SeqCst);
        if self.fd.is_closed() {
            wake.ring();
        }
        Ok(Arc::clone(ready))
    }
}

impl AsFd for ReadinessFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
