//! Threads of our own.

mod bare;
mod processors;

pub use bare::spawn_bare;
pub use processors::{has_several_processors, processors};

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::signal::mask::BlockedMask;

/// Starts a thread with all signals blocked: a signal for this process is meant
/// for the host's threads, whose waits it is to interrupt. Not for threads that
/// run code of the host, since what that starts inherits the mask.
///
/// # Errors
/// When no thread can be made.
#[doc(alias = "pthread_sigmask")]
pub fn spawn_quiet<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    spawn_with_signals_blocked(Builder::new().name(name.into()), work)
}

/// Starts a thread as [`spawn_quiet`] does, which may borrow what outlives `scope`.
///
/// # Errors
/// When no thread can be made.
pub fn spawn_quiet_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    // Inherited, as below.
    let _blocked = BlockedMask::all();
    Builder::new().name(name.into()).spawn_scoped(scope, work)
}

/// Blocks all signals for the calling thread from here on, as [`spawn_quiet`] does from its first
/// instruction on: for a thread that has made others which run code of the host.
pub fn make_quiet() {
    std::mem::forget(BlockedMask::all());
}

/// Starts a thread as [`spawn_quiet`] does, with a small stack: for a thread that does
/// next to nothing and may have thousands like it.
///
/// # Errors
/// When no thread can be made.
pub fn spawn_small(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    spawn_with_signals_blocked(Builder::new().name(name.into()).stack_size(SMALL), work)
}

/// Stack size: enough for the message of a panic.
const SMALL: usize = 128 * 1024;

fn spawn_with_signals_blocked<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // A thread inherits the mask of the one that makes it, so the signals are blocked
    // from its first instruction on.
    let _blocked = BlockedMask::all();
    builder.spawn(work)
}

/// True if the calling thread is the one that the process was started with: its
/// number is the process's.
#[doc(alias = "gettid")]
pub fn is_main() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return rustix::thread::gettid() == rustix::process::getpid();
    // Other platforms do not ask.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    true
}

/// The time that the calling thread has been ready to run without a processor, since
/// it was started; `None` where the system does not tell.
#[doc(alias = "/proc/thread-self/schedstat")]
pub fn run_queue_delay() -> Option<std::time::Duration> {
    // Fields: run time, waiting time and the number of slices.
    let text = match cfg!(any(target_os = "linux", target_os = "android")) {
        true => std::fs::read_to_string("/proc/thread-self/schedstat").ok()?,
        false => return None,
    };
    let nanos = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(std::time::Duration::from_nanos(nanos))
}
