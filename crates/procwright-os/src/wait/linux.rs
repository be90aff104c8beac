//! Linux: `waitid(P_PIDFD)` with its undocumented fifth argument, and
//! `PIDFD_GET_INFO` for the status that another process has taken.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use super::{RawExit, Usage};
use crate::time::Deadline;
use crate::{pidfd, poll};

pub fn reap(pid: i32, pidfd: BorrowedFd<'_>) -> io::Result<Option<(RawExit, Usage)>> {
    match wait_id(libc::P_PIDFD, pidfd.as_raw_fd(), libc::WNOHANG) {
        Ok(told) => Ok(told),
        // Zombies keep their numbers. So this is about the child of the descriptor, unless
        // code of the host that waits for any child reaps it at this very moment.
        Err(refused) => match peek_by_number(pid, pidfd) {
            Some(None) => Ok(None),
            Some(Some(_)) => wait_id(libc::P_PID, pid, libc::WNOHANG),
            None => Err(refused),
        },
    }
}

pub fn peek(pid: i32, pidfd: BorrowedFd<'_>) -> io::Result<Option<RawExit>> {
    Ok(peek_usage(pid, pidfd)?.map(|(exit, _)| exit))
}

pub fn peek_usage(pid: i32, pidfd: BorrowedFd<'_>) -> io::Result<Option<(RawExit, Usage)>> {
    let flags = libc::WNOHANG | libc::WNOWAIT;
    let told = wait_id(libc::P_PIDFD, pidfd.as_raw_fd(), flags);
    told.or_else(|refused| peek_by_number(pid, pidfd).ok_or(refused))
}

pub fn is_own_zombie(pidfd: BorrowedFd<'_>) -> bool {
    let flags = libc::WNOHANG | libc::WNOWAIT;
    matches!(
        wait_id(libc::P_PIDFD, pidfd.as_raw_fd(), flags),
        Ok(Some(_))
    )
}

/// As [`peek_usage`], for where the kernel (before 5.4) or a seccomp filter, with
/// whatever error, refuses a wait by descriptor. None if it is no child of ours, any
/// more or at all, or that is not known.
fn peek_by_number(pid: i32, pidfd: BorrowedFd<'_>) -> Option<Option<(RawExit, Usage)>> {
    // 1. The child that has the number is looked at.
    let told = wait_id(libc::P_PID, pid, libc::WNOHANG | libc::WNOWAIT).ok()?;
    // 2. The child of the descriptor is not reaped, so that the number was its own at 1.
    (pidfd::is_reaped(pidfd) == Some(false)).then_some(told)
}

pub fn peek_child(pid: i32) -> io::Result<Option<RawExit>> {
    let flags = libc::WNOHANG | libc::WNOWAIT;
    Ok(wait_id(libc::P_PID, pid, flags)?.map(|(exit, _)| exit))
}

pub fn await_child(pid: i32) -> io::Result<()> {
    loop {
        match wait_id(libc::P_PID, pid, libc::WNOWAIT) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer.map(drop),
        }
    }
}

fn wait_id(kind: libc::idtype_t, id: i32, flags: i32) -> io::Result<Option<(RawExit, Usage)>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // The C library's waitid leaves out the kernel's fifth argument, the usage of
    // exactly this child; getrusage(RUSAGE_CHILDREN) would mix in others.
    //
    // SAFETY: both pointers are to writable memory of the right type. Of a
    // descriptor among the ids no more is asked than that it is a number.
    let result = unsafe {
        libc::syscall(
            libc::SYS_waitid,
            kind,
            id,
            info.as_mut_ptr(),
            libc::WEXITED | flags,
            usage.as_mut_ptr(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were zeroed, which is a valid value of these plain C
    // structures, and the kernel has filled in what it had to say.
    let (info, usage) = unsafe { (info.assume_init(), usage.assume_init()) };
    // SAFETY: a zeroed or SIGCHLD siginfo has these members.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if pid == 0 {
        return Ok(None);
    }
    let exit = match info.si_code {
        libc::CLD_EXITED => RawExit::Code(status),
        code => RawExit::Signal {
            number: status,
            core: code == libc::CLD_DUMPED,
        },
    };
    let usage = Usage {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        max_rss: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    };
    Ok(Some((exit, usage)))
}

fn duration(time: libc::timeval) -> Duration {
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u32::try_from(time.tv_usec).unwrap_or(0);
    Duration::new(secs, micros * 1000)
}

/// `struct pidfd_info` in its first published size (Linux 6.13,
/// `include/uapi/linux/pidfd.h`).
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroupid: u64,
    ids: [u32; 11],
    exit_code: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
const PIDFD_GET_INFO: u64 = (3 << 30) | ((size_of::<PidfdInfo>() as u64) << 16) | (0xff << 8) | 11;

/// The time that the kernel may take between "ended" and "reaped" when it reaps by
/// itself because the host ignores SIGCHLD. It is microseconds; the limit is
/// for a kernel that never tells.
const REAPED_BY_KERNEL: Duration = Duration::from_millis(200);

pub fn await_reap(pidfd: BorrowedFd<'_>, deadline: Deadline) -> io::Result<()> {
    // The pidfd is hung up then: an event to wait for, not a state to poll.
    poll::wait_one(poll::Fd::new(&pidfd, poll::Flags::empty()), deadline).map(drop)
}

pub fn exit_info(pidfd: BorrowedFd<'_>) -> Option<RawExit> {
    // The exit status appears with the reap.
    let _ = await_reap(pidfd, Deadline::at(Instant::now() + REAPED_BY_KERNEL));
    status_of_reaped(pidfd)
}

pub fn status_of_reaped(pidfd: BorrowedFd<'_>) -> Option<RawExit> {
    let mut info = PidfdInfo {
        mask: PIDFD_INFO_EXIT,
        ..PidfdInfo::default()
    };
    // SAFETY: the request number encodes the size of the structure that the
    // pointer is to; kernels without the request return ENOTTY.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as _, &raw mut info) };
    if result < 0 || info.mask & PIDFD_INFO_EXIT == 0 {
        return None;
    }
    Some(decode_status(info.exit_code))
}

pub fn decode_status(status: i32) -> RawExit {
    if libc::WIFSIGNALED(status) {
        RawExit::Signal {
            number: libc::WTERMSIG(status),
            core: libc::WCOREDUMP(status),
        }
    } else {
        RawExit::Code(libc::WEXITSTATUS(status))
    }
}
