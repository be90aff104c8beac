//! System calls of the tests themselves, a file a subject; callers say `sys::name`.
#![allow(clippy::undocumented_unsafe_blocks)] // plain calls, pointers to locals only
#![allow(unused_imports)] // each test file uses a part of it

pub(crate) mod attacks;
mod ends;
mod files;
mod filters;
mod forks;
pub(crate) mod held;
mod limits;
mod namespaces;
mod signals;
pub(crate) mod steps;
mod who;
mod words;

pub(crate) use ends::*;
pub(crate) use files::*;
pub(crate) use filters::*;
pub(crate) use forks::*;
pub(crate) use limits::*;
pub(crate) use namespaces::*;
pub(crate) use signals::*;
pub(crate) use who::*;
pub(crate) use words::*;

fn check(result: i32) -> i32 {
    assert!(result >= 0, "{}", std::io::Error::last_os_error());
    result
}

/// How often this thread has gone to sleep of its own will.
pub(crate) fn sleeps() -> i64 {
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        check(libc::getrusage(libc::RUSAGE_THREAD, &mut usage));
        usage.ru_nvcsw
    }
}

/// Whether this is the number of one of the system calls that wait.
pub(crate) fn is_waiting_call(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    let old = [libc::SYS_poll, libc::SYS_epoll_wait];
    #[cfg(not(target_arch = "x86_64"))]
    let old = [];
    [libc::SYS_ppoll, libc::SYS_epoll_pwait].contains(&number) || old.contains(&number)
}

/// Sets a variable of this process's environment, before it has other threads
/// that could look.
pub(crate) fn set_variable(name: &str, value: &std::path::Path) {
    unsafe { std::env::set_var(name, value) };
}
