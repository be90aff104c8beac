//! Threads of our own.

mod bare;
mod processors;

pub(crate) use bare::spawn_bare;
pub(crate) use processors::has_several_processors;

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread::{Builder, JoinHandle};

/// Starts a thread with all signals blocked: a signal for this process is meant
/// for the host's threads, whose waits it is to interrupt. Not for threads that
/// run code of the host, since what that starts inherits the mask.
///
/// # Errors
/// When no thread can be made.
pub(crate) fn spawn_quiet<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    quiet(Builder::new().name(name.into()), work)
}

/// The same with a small stack, for a thread that does next to nothing and may
/// have thousands like it.
///
/// # Errors
/// When no thread can be made.
pub(crate) fn spawn_small(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    quiet(Builder::new().name(name.into()).stack_size(SMALL), work)
}

/// Enough for a panic to be told of.
const SMALL: usize = 128 * 1024;

fn quiet<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    deaf(|| builder.spawn(work))
}

/// Makes a thread with all signals blocked.
fn deaf<T>(make: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // A thread inherits the mask of the one that makes it, so it is blocked
    // from its first instruction on.
    //
    // SAFETY: sigfillset initialises `all`, pthread_sigmask initialises
    // `before`; both are ours.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let thread = make();
    // SAFETY: `before` was initialised above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    thread
}

/// Whether the calling thread is the one that the process was started with: its
/// number is the process's.
pub(crate) fn is_main() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return rustix::thread::gettid() == rustix::process::getpid();
    // Asked for nothing there.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    true
}

/// For how long the calling thread has been ready to run and had no processor,
/// since it was started; none where the system does not tell.
pub(crate) fn queued() -> Option<std::time::Duration> {
    // Run time, waiting time and the number of slices.
    let text = match cfg!(any(target_os = "linux", target_os = "android")) {
        true => std::fs::read_to_string("/proc/thread-self/schedstat").ok()?,
        false => return None,
    };
    let nanos = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(std::time::Duration::from_nanos(nanos))
}
