//! Signals: actions, masks, sending.

use std::sync::atomic::{AtomicU64, Ordering};

use super::check;

/// Ends this process by SIGALRM after this time.
pub fn alarm(seconds: u32) {
    unsafe { libc::alarm(seconds) };
}

/// Ignores a signal.
pub fn ignore(signal: i32) {
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Gives a signal its default action.
pub fn default(signal: i32) {
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

extern "C" fn nothing(_: i32) {}

/// Handles a signal by a handler that does nothing.
pub fn handle(signal: i32) {
    let handler: extern "C" fn(i32) = nothing;
    unsafe { libc::signal(signal, handler as libc::sighandler_t) };
}

/// Gives every signal its default action.
pub fn default_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        if ![32, 33, libc::SIGKILL, libc::SIGSTOP].contains(&signal) {
            default(signal);
        }
    }
}

/// Blocks or unblocks a signal in this thread.
pub fn mask(signal: i32, block: bool) {
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        let how = if block {
            libc::SIG_BLOCK
        } else {
            libc::SIG_UNBLOCK
        };
        libc::pthread_sigmask(how, &set, std::ptr::null_mut());
    }
}

/// Sends a signal; false if that failed.
pub fn kill(pid: i32, signal: i32) -> bool {
    unsafe { libc::kill(pid, signal) == 0 }
}

/// The number of this thread, for [`signal_thread`].
pub fn thread_id() -> i32 {
    unsafe { libc::gettid() }
}

/// Sends a signal to a thread of this process.
pub fn signal_thread(thread: i32, signal: i32) {
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: i32) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Handles a signal by counting it; system calls that it interrupts are not restarted.
pub fn count_signal(signal: i32) {
    let handler: extern "C" fn(i32) = count;
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        check(libc::sigaction(signal, &action, std::ptr::null_mut()));
    }
}

/// The number of signals counted.
pub fn counted() -> u64 {
    HANDLED.load(Ordering::Relaxed)
}

/// Sends a signal to this thread every so many microseconds, until it is dropped. A
/// signal to the process would go to any thread, mostly the first.
pub struct Pester(libc::timer_t);

impl Pester {
    /// Starts the timer for the calling thread.
    pub fn this_thread(signal: i32, micros: i64) -> Pester {
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: micros * 1000,
        };
        let time = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = thread_id();
            let mut timer = std::ptr::null_mut();
            check(libc::timer_create(
                libc::CLOCK_MONOTONIC,
                &mut event,
                &mut timer,
            ));
            check(libc::timer_settime(timer, 0, &time, std::ptr::null_mut()));
            Pester(timer)
        }
    }
}

impl Drop for Pester {
    fn drop(&mut self) {
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Whether a blocked signal is pending for this thread or process.
pub fn is_pending(signal: i32) -> bool {
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigpending(&mut set);
        libc::sigismember(&set, signal) == 1
    }
}
