//! Platforms whose processes we cannot start yet, and so have none to reap. Children
//! that others have started can be looked at (type-checked, not run).
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use super::{RawExit, Usage};
use crate::time::Deadline;

pub fn reap(_pid: i32, _pidfd: BorrowedFd<'_>) -> io::Result<Option<(RawExit, Usage)>> {
    Err(crate::unsupported("waiting through a process descriptor"))
}

pub fn exit_info(_pidfd: BorrowedFd<'_>) -> Option<RawExit> {
    None
}

pub fn peek(_pid: i32, _pidfd: BorrowedFd<'_>) -> io::Result<Option<RawExit>> {
    Err(crate::unsupported("a process descriptor"))
}

pub fn peek_usage(_pid: i32, _pidfd: BorrowedFd<'_>) -> io::Result<Option<(RawExit, Usage)>> {
    Err(crate::unsupported("a process descriptor"))
}

pub fn is_own_zombie(_pidfd: BorrowedFd<'_>) -> bool {
    false
}

pub fn peek_child(pid: i32) -> io::Result<Option<RawExit>> {
    wait_id(pid, libc::WNOHANG)
}

pub fn await_child(pid: i32) -> io::Result<()> {
    loop {
        match wait_id(pid, 0) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer.map(drop),
        }
    }
}

/// The status that a child has ended with, without reaping it.
fn wait_id(pid: i32, flags: i32) -> io::Result<Option<RawExit>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WEXITED | libc::WNOWAIT | flags;
    // SAFETY: the pointer is to writable memory of the right type.
    if unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, info.as_mut_ptr(), flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was zeroed, which is a valid value of this plain C structure,
    // and the system has filled in what it had to say.
    let info = unsafe { info.assume_init() };
    // SAFETY: a zeroed or SIGCHLD siginfo has these members.
    let (found, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok((found != 0).then_some(match info.si_code {
        // The bits that wait(2) tells: more of them come on some systems only.
        libc::CLD_EXITED => RawExit::Code(status & 0xff),
        code => RawExit::Signal {
            number: status,
            core: code == libc::CLD_DUMPED,
        },
    }))
}

pub fn await_reap(_pidfd: BorrowedFd<'_>, _deadline: Deadline) -> io::Result<()> {
    Err(crate::unsupported("a process descriptor"))
}

pub fn status_of_reaped(_pidfd: BorrowedFd<'_>) -> Option<RawExit> {
    None
}

pub fn decode_status(status: i32) -> RawExit {
    match status & 0x7f {
        0 => RawExit::Code(status >> 8 & 0xff),
        number => RawExit::Signal {
            number,
            core: status & 0x80 != 0,
        },
    }
}
