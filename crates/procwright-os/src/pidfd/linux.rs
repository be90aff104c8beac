//! Linux: `pidfd_open(2)` (5.3), `pidfd_send_signal(2)` (5.1).
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, getrlimit};

use super::{ExitState, OpenError};
use crate::fork::{OnceBool, OnceBox};
use crate::seccomp;

/// Set by the first answer that says "never". Relaxed: it guards no other
/// memory, and a thread that misses it merely asks once more.
static DENIED: AtomicBool = AtomicBool::new(false);

/// The calls that do in this process what they are for.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    open: bool,
    send: bool,
}

/// Tries the calls once: filters are never taken off. One that is put on later may
/// kill. While they cannot be tried they are not made.
fn allowed() -> Allowed {
    static ALLOWED: OnceBox<Allowed> = OnceBox::new();
    let known = ALLOWED.get().copied().or_else(|| {
        let allowed = try_calls()?;
        Some(*ALLOWED.get_or_insert(allowed))
    });
    known.unwrap_or(Allowed {
        open: false,
        send: false,
    })
}

fn try_calls() -> Option<Allowed> {
    let is_free = !seccomp::is_filtered();
    let open = is_free || works(false)?;
    Some(Allowed {
        open,
        send: is_free || (open && works(true)?),
    })
}

/// Tries the calls on a process that is certainly there. A filter may answer with any
/// error: EINVAL of an open means a process that is gone, where the kernel says it.
fn works(send: bool) -> Option<bool> {
    // SAFETY: raw calls, and the one pointer is null, which the call allows.
    unsafe {
        seccomp::succeeds(|| {
            let own = libc::syscall(libc::SYS_getpid);
            let fd = libc::syscall(libc::SYS_pidfd_open, own, 0);
            if fd < 0 {
                return is_short_of(&io::Error::last_os_error());
            }
            !send || libc::syscall(libc::SYS_pidfd_send_signal, fd, 0, 0, 0) == 0
        })
    }
}

/// Whether a descriptor could not be had for want of one, or of memory.
fn is_short_of(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(
        errno,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NODEV)
    )
}

pub fn open(pid: i32) -> Result<OwnedFd, OpenError> {
    let fd = open_briefly(pid)?;
    match is_of_the_last(fd.as_fd()) {
        true => Err(OpenError::Temporary),
        false => Ok(fd),
    }
}

pub fn open_briefly(pid: i32) -> Result<OwnedFd, OpenError> {
    if DENIED.load(Ordering::Relaxed) || !allowed().open {
        return Err(OpenError::Unavailable);
    }
    let Some(pid) = Pid::from_raw(pid) else {
        return Err(OpenError::Gone);
    };
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Ok(fd),
        // The call itself has no permission check, so EPERM (and EACCES) can only come
        // from a seccomp filter, and filters are never taken off.
        Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
            DENIED.store(true, Ordering::Relaxed);
            Err(OpenError::Unavailable)
        }
        // EINVAL is an old kernel's "not the leader of a thread group", which it also
        // says of a process that is just being reaped.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Err(OpenError::Gone),
        Err(_) => Err(OpenError::Temporary),
    }
}

pub fn is_of_the_last(fd: BorrowedFd<'_>) -> bool {
    /// The limit when it was last asked for. Relaxed: it stands for itself.
    static LIMIT: AtomicU64 = AtomicU64::new(0);
    let number = fd.as_raw_fd() as u64;
    let is_last = |limit: u64| number + (limit / 8).min(64) >= limit;
    // Asked for near the limit, and now and then before: the limit may have been
    // lowered. The call would be a tenth of the price of an open.
    if !number.is_multiple_of(32) && !is_last(LIMIT.load(Ordering::Relaxed)) {
        return false;
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    LIMIT.store(limit, Ordering::Relaxed);
    is_last(limit)
}

pub fn send(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    send_with_flags(pidfd, signal, 0)
}

pub fn send_group(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // PIDFD_SIGNAL_PROCESS_GROUP, 6.9. The kernel goes by its own object and not by the
    // number, so the signal cannot hit a stranger's group even after the leader was
    // reaped, which kill(-pgid) can.
    send_with_flags(pidfd, signal, 1 << 2)
}

fn send_with_flags(pidfd: BorrowedFd<'_>, signal: i32, flags: u32) -> io::Result<()> {
    if !allowed().send {
        return Err(Errno::NOSYS.into());
    }
    // rustix takes neither flags nor real-time signals here.
    // SAFETY: the siginfo pointer is null, which the call allows; no other
    // memory is handed over.
    let code = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            flags,
        )
    };
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

pub fn has_exited(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    exit_state(pidfd).map(|life| life != ExitState::Running)
}

pub fn exit_state(pidfd: BorrowedFd<'_>) -> io::Result<ExitState> {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    loop {
        match poll(&mut fds, Some(&now)) {
            Ok(0) => return Ok(ExitState::Running),
            Ok(_) if fds[0].revents().contains(PollFlags::HUP) => return Ok(ExitState::Reaped),
            Ok(_) => return Ok(ExitState::Exited),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

pub fn is_reaped(pidfd: BorrowedFd<'_>) -> Option<bool> {
    match exit_state(pidfd) {
        Ok(ExitState::Running) | Err(_) => Some(false),
        Ok(ExitState::Reaped) => Some(true),
        Ok(ExitState::Exited) if hangs_up_on_reap(pidfd) => Some(false),
        // A zombie takes signal 0.
        Ok(ExitState::Exited) => match send(pidfd, 0) {
            Ok(()) => Some(false),
            Err(e) if Errno::from_io_error(&e) == Some(Errno::SRCH) => Some(true),
            Err(_) => pid(pidfd).ok().map(|number| number.is_none()),
        },
    }
}

pub fn pid(pidfd: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    // fdinfo is the one place that tells on every kernel: -1 after the reap, 0 for a
    // process outside the pid namespace of /proc, and no such line for other kinds.
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    let pid = text
        .lines()
        .find_map(|line| line.strip_prefix("Pid:")?.trim().parse::<i32>().ok());
    match pid {
        None => Err(Errno::BADF.into()),
        Some(-1) => Ok(None),
        Some(0) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "it has no number in this pid namespace",
        )),
        Some(pid) => crate::proc::check().map(|()| Some(pid)),
    }
}

/// `PID_FS_MAGIC` of `linux/magic.h`, "PIDF".
const PID_FS_MAGIC: u64 = 0x5049_4446;

pub fn hangs_up_on_reap(pidfd: BorrowedFd<'_>) -> bool {
    // pidfs and the hang-up at a reap both came with 6.9, and pidfs can be seen without
    // a process to try it on. All pidfds of a boot are alike, so one answer does.
    static TELLS: OnceBool = OnceBool::new();
    let tells = || rustix::fs::fstatfs(pidfd).map(|fs| fs.f_type as u64 == PID_FS_MAGIC);
    TELLS.get_or_try_init(tells).unwrap_or(false)
}

pub fn inode(pidfd: BorrowedFd<'_>) -> Option<u64> {
    // Every pidfd before 6.9 shares the one inode of anonymous files, which would make
    // all processes equal.
    if !hangs_up_on_reap(pidfd) {
        return None;
    }
    // The inode is cut to 32 bits on 32-bit systems and so may come again.
    if cfg!(target_pointer_width = "64") {
        rustix::fs::fstat(pidfd).ok().map(|stat| stat.st_ino)
    } else {
        None
    }
}
