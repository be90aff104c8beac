//! System calls of the tests themselves, one file per subject; callers write
//! `sys::name`.
#![allow(clippy::undocumented_unsafe_blocks)] // plain calls, pointers to locals only

pub mod attacks;
mod ends;
mod files;
mod filters;
mod forks;
pub mod held;
mod limits;
mod namespaces;
pub mod refusals;
mod sandbox;
mod signals;
pub mod steps;
mod who;
mod words;

pub use ends::*;
pub use files::*;
pub use filters::*;
pub use forks::*;
pub use limits::*;
pub use namespaces::*;
pub use sandbox::*;
pub use signals::*;
pub use who::*;
pub use words::*;

fn check(result: i32) -> i32 {
    assert!(result >= 0, "{}", std::io::Error::last_os_error());
    result
}

/// How often this thread has gone to sleep of its own will.
pub fn sleeps() -> i64 {
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        check(libc::getrusage(libc::RUSAGE_THREAD, &mut usage));
        usage.ru_nvcsw
    }
}

/// Whether this is the number of a system call that waits for descriptors.
pub fn is_waiting_call(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    let old = [libc::SYS_poll, libc::SYS_epoll_wait];
    #[cfg(not(target_arch = "x86_64"))]
    let old = [];
    [libc::SYS_ppoll, libc::SYS_epoll_pwait].contains(&number) || old.contains(&number)
}

/// Sets a variable of this process's environment, before it has other threads that
/// could read it.
pub fn set_variable(name: &str, value: &std::path::Path) {
    unsafe { std::env::set_var(name, value) };
}
