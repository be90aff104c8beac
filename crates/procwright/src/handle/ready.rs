//! Whether an operation would wait, as a descriptor for event loops.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::sync::{Ordering, fence};
use crate::sys::fork;
use crate::sys::ready::{On, ReadySet};
use crate::sys::wake::Wake;

use super::Handle;

/// Readable while the handle's descriptor is ready, and for ever once the handle
/// is closed. It keeps neither open: a registration is no reference.
#[derive(Debug)]
pub(crate) struct Ready {
    set: ReadySet,
    /// Kept, or what was rung would leave the set with the handle.
    _wake: Arc<Wake>,
}

const DESCRIPTOR: u64 = 0;
const CLOSE: u64 = 1;

impl Handle {
    /// Made when it is first asked for: it takes two descriptors. Always for the
    /// same direction, as a handle has only one.
    ///
    /// # Errors
    /// When no descriptor is left; in a fork.
    pub(crate) fn readiness(&self, on: On) -> io::Result<Arc<Ready>> {
        if self.is_forked() {
            return Err(fork::not_ours());
        }
        if let Some(ready) = self.ready.get() {
            return Ok(Arc::clone(ready));
        }
        let set = ReadySet::new()?;
        let wake = self.wake()?;
        set.add(wake.as_fd(), CLOSE, On::Read)?;
        // In or closed: the set never meets another file of that number.
        if let Some(inside) = self.gate.enter() {
            set.add(inside.get()?, DESCRIPTOR, on)?;
        }
        let _wake = Arc::clone(wake);
        let ready = self.ready.get_or_init(|| Arc::new(Ready { set, _wake }));
        // As in `sleep`: a close sees the wake-up, or is seen here.
        fence(Ordering::SeqCst);
        if self.gate.is_closed() {
            wake.ring();
        }
        Ok(Arc::clone(ready))
    }
}

impl AsFd for Ready {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
