//! Ending a run or a wait from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use procwright_os::wake::Wake;

/// Ends runs and waits from another thread.
///
/// Cheap to clone; all clones are one. Once cancelled it stays so: a run that
/// starts later with the same handle is stopped at once.
///
/// ```
/// use procwright_process::Cancel;
/// use procwright_process::wait::{Event, WaitSet, Want};
///
/// let cancel = Cancel::new()?;
/// let mut set = WaitSet::new()?;
/// set.add(cancel.clone(), Event::Exited)?;
/// let elsewhere = std::thread::spawn(move || cancel.cancel());
/// assert_eq!(set.wait(Want::Any, None)?.ended.len(), 1);
/// # elsewhere.join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cancel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    cancelled: AtomicBool,
    wake: Wake,
    process: u32,
}

impl Cancel {
    /// A handle that nobody has used yet. Takes one descriptor.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new() -> io::Result<Cancel> {
        Ok(Cancel(Arc::new(Shared {
            cancelled: AtomicBool::new(false),
            wake: Wake::new()?,
            process: std::process::id(),
        })))
    }

    /// Stops every run that has this handle, by its own [`Stop`]. Returns at
    /// once; the runs return when their processes are gone.
    ///
    /// [`Stop`]: crate::Stop
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        // Never silenced: any number of runs may watch it. Not rung in a fork,
        // which shares the descriptor with its parent but not the flag: the
        // parent's runs would wake for ever and find nothing.
        if self.0.process == std::process::id() {
            self.0.wake.ring();
        }
    }

    /// Whether [`Cancel::cancel`] has been called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}
