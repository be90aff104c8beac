//! Linux: `pidfd_open(2)` (5.3), `pidfd_send_signal(2)` (5.1).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, getrlimit};

use super::{Life, Refused};
use crate::sys::trial;

/// Set by the first answer that says "never". Relaxed: it guards no other
/// memory, and a thread that misses it merely asks once more.
static DENIED: AtomicBool = AtomicBool::new(false);

/// Which of the calls this process survives.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    open: bool,
    send: bool,
}

/// Tried once: filters are never taken off. One that is put on later may kill.
fn allowed() -> Allowed {
    static ALLOWED: OnceLock<Allowed> = OnceLock::new();
    *ALLOWED.get_or_init(|| {
        if !trial::is_filtered() {
            return Allowed {
                open: true,
                send: true,
            };
        }
        let open = survives(false);
        Allowed {
            open,
            send: open && survives(true),
        }
    })
}

fn survives(send: bool) -> bool {
    // SAFETY: raw calls, and the one pointer is null, which the call allows.
    unsafe {
        trial::survives(|| {
            let own = libc::syscall(libc::SYS_getpid);
            let fd = libc::syscall(libc::SYS_pidfd_open, own, 0);
            if send {
                libc::syscall(libc::SYS_pidfd_send_signal, fd, 0, 0, 0);
            }
        })
    }
}

pub(crate) fn open(pid: i32) -> Result<OwnedFd, Refused> {
    if DENIED.load(Ordering::Relaxed) || !allowed().open {
        return Err(Refused::Never);
    }
    let Some(pid) = Pid::from_raw(pid) else {
        return Err(Refused::Gone);
    };
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) if is_of_the_last(&fd) => Err(Refused::Now),
        Ok(fd) => Ok(fd),
        // The call itself has no permission check, so EPERM (and EACCES) can
        // only come from a seccomp filter, and filters are never taken off.
        Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
            DENIED.store(true, Ordering::Relaxed);
            Err(Refused::Never)
        }
        // EINVAL is an old kernel's "not the leader of a thread group", which
        // it also says of a process that is just being reaped.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Err(Refused::Gone),
        Err(_) => Err(Refused::Now),
    }
}

/// Whether a descriptor is one of the last that this process may have. Those
/// are left to the host, and to what gets on without a pidfd but not without
/// any descriptor: who watches thousands would otherwise break the next `open`
/// of everybody else.
fn is_of_the_last(fd: &OwnedFd) -> bool {
    /// The limit when it was last asked for. Relaxed: it stands for itself.
    static LIMIT: AtomicU64 = AtomicU64::new(0);
    let number = fd.as_raw_fd() as u64;
    let is_last = |limit: u64| number + (limit / 8).min(64) >= limit;
    // Asked for near the limit, and now and then before: somebody may have
    // lowered it. The call would be a tenth of the price of an open.
    if !number.is_multiple_of(32) && !is_last(LIMIT.load(Ordering::Relaxed)) {
        return false;
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    LIMIT.store(limit, Ordering::Relaxed);
    is_last(limit)
}

pub(crate) fn send(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    send_with_flags(pidfd, signal, 0)
}

pub(crate) fn send_group(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // PIDFD_SIGNAL_PROCESS_GROUP, 6.9. It goes by the kernel's own object and
    // not by the number, so it cannot hit a stranger's group even after the
    // leader was reaped, which kill(-pgid) can.
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

pub(crate) fn has_exited(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    life(pidfd).map(|life| life != Life::Runs)
}

pub(crate) fn life(pidfd: BorrowedFd<'_>) -> io::Result<Life> {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    loop {
        match poll(&mut fds, Some(&now)) {
            Ok(0) => return Ok(Life::Runs),
            Ok(_) if fds[0].revents().contains(PollFlags::HUP) => return Ok(Life::Reaped),
            Ok(_) => return Ok(Life::Ended),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

pub(crate) fn number(pidfd: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    // The one place that tells on every kernel; -1 after the reap, 0 for a
    // process outside the pid namespace of /proc, and no such line for other
    // kinds.
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
        Some(pid) => crate::sys::proc::check().map(|()| Some(pid)),
    }
}

/// `PID_FS_MAGIC` of `linux/magic.h`, "PIDF".
const PID_FS_MAGIC: u64 = 0x5049_4446;

pub(crate) fn tells_of_reaps(pidfd: BorrowedFd<'_>) -> bool {
    // pidfs and the hang-up at a reap both came with 6.9, and the one can be
    // seen without a process to try it on.
    // All pidfds of a boot are alike, so one answer does.
    static TELLS: OnceLock<bool> = OnceLock::new();
    if let Some(tells) = TELLS.get() {
        return *tells;
    }
    match rustix::fs::fstatfs(pidfd) {
        Ok(fs) => *TELLS.get_or_init(|| fs.f_type as u64 == PID_FS_MAGIC),
        Err(_) => false,
    }
}

pub(crate) fn inode(pidfd: BorrowedFd<'_>) -> Option<u64> {
    // Before 6.9 every pidfd shares the one inode of anonymous files, which
    // would make all processes equal.
    if !tells_of_reaps(pidfd) {
        return None;
    }
    // On 32-bit systems the inode is cut to 32 bits and so may come again.
    if cfg!(target_pointer_width = "64") {
        rustix::fs::fstat(pidfd).ok().map(|stat| stat.st_ino)
    } else {
        None
    }
}
