//! Process descriptors: a name for a process that is never given to another.

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;

/// The state of the process.
///
/// # Errors
/// Those of `poll(2)`; `Unsupported` where there are no process descriptors.
#[doc(alias = "poll")]
pub use imp::exit_state;
/// True if such a descriptor is hung up when its process is reaped (Linux 6.9).
#[doc(alias = "POLLHUP")]
#[doc(alias = "pidfs")]
pub use imp::hangs_up_on_reap;
/// True if all threads of the process have ended. A zombie's have.
///
/// # Errors
/// Those of `poll(2)`; `Unsupported` where there are no process descriptors.
#[doc(alias = "poll")]
pub use imp::has_exited;
/// The inode of a process, which no other process of this boot has or will have; none
/// where the system gives no such number.
#[doc(alias = "pidfs")]
pub use imp::inode;
/// True if a descriptor is one of the last that this process may have. Those are
/// left to the host, and to code that gets on without a pidfd but not without any
/// descriptor: a caller that watches thousands would otherwise break the next
/// `open` of all others.
#[doc(alias = "RLIMIT_NOFILE")]
pub use imp::is_of_the_last;
/// Whether the process was reaped, so that its number is free; none where that cannot be
/// known.
///
/// Where the descriptor does not tell, signal 0 does: a zombie takes it. Where that is not
/// permitted, the number in the descriptor's fdinfo does, which a reap removes.
pub use imp::is_reaped;
/// A descriptor, close-on-exec, of the process called `pid` at this moment. Not one of
/// the last that this process may have: that is [`OpenError::Temporary`].
///
/// # Errors
/// [`OpenError`].
#[doc(alias = "pidfd_open")]
pub use imp::open;
/// A descriptor as of [`open`], also if it is one of the last: to be closed again at
/// once.
///
/// # Errors
/// [`OpenError`].
#[doc(alias = "pidfd_open")]
pub use imp::open_briefly;
/// The pid of the process, none if it was reaped.
///
/// # Errors
/// `EBADF` if it is another kind of descriptor; `Unsupported` if the process has no
/// number here: it is outside our pid namespace.
#[doc(alias = "pidfd_getpid")]
#[doc(alias = "/proc/self/fdinfo")]
pub use imp::pid;
/// Sends a signal to the process.
///
/// # Errors
/// Those of `pidfd_send_signal(2)`.
#[doc(alias = "pidfd_send_signal")]
#[doc(alias = "kill")]
pub use imp::send;
/// Sends a signal to the process group which the process leads or led.
///
/// # Errors
/// Those of `pidfd_send_signal(2)`; `EINVAL` before Linux 6.9.
#[doc(alias = "PIDFD_SIGNAL_PROCESS_GROUP")]
#[doc(alias = "killpg")]
pub use imp::send_group;

/// The state of a process, as its descriptor tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitState {
    /// Some thread of it runs, or may.
    Running,
    /// Every thread of it has ended. It may have been reaped where that cannot be
    /// seen ([`hangs_up_on_reap`]).
    Exited,
    /// The parent has taken its status.
    Reaped,
}

/// The reason why there is no descriptor of a process.
#[derive(Debug)]
pub enum OpenError {
    /// No process has the number.
    Gone,
    /// No descriptor is free this time; the next open may succeed.
    Temporary,
    /// A pidfd can never be had by this process (an old kernel, a seccomp filter), which
    /// is remembered.
    Unavailable,
}
