//! Linux: `pidfd_open(2)` (5.3), `pidfd_send_signal(2)` (5.1).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use std::mem::MaybeUninit;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

use super::Refused;

/// Set by the first answer that says "never". Relaxed: it guards no other
/// memory, and a thread that misses it merely asks once more.
static DENIED: AtomicBool = AtomicBool::new(false);

pub(crate) fn open(pid: i32) -> Result<OwnedFd, Refused> {
    if DENIED.load(Ordering::Relaxed) {
        return Err(Refused::Never);
    }
    let Some(pid) = Pid::from_raw(pid) else {
        return Err(Refused::Gone);
    };
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
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
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    loop {
        match poll(&mut fds, Some(&now)) {
            Ok(n) => return Ok(n > 0),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// `PID_FS_MAGIC` of `linux/magic.h`, "PIDF".
const PID_FS_MAGIC: u64 = 0x5049_4446;

pub(crate) fn inode(pidfd: BorrowedFd<'_>) -> Option<u64> {
    // Before 6.9 every pidfd shares the one inode of anonymous files, which
    // would make all processes equal. The file system's number tells; it is
    // asked each time because it costs 0.2 µs, once a watched process.
    let fs = rustix::fs::fstatfs(pidfd).ok()?;
    if fs.f_type as u64 != PID_FS_MAGIC {
        return None;
    }
    // On 32-bit systems the inode is cut to 32 bits and so may come again.
    if cfg!(target_pointer_width = "64") {
        rustix::fs::fstat(pidfd).ok().map(|stat| stat.st_ino)
    } else {
        None
    }
}

/// An epoll instance over pidfds.
#[derive(Debug)]
pub(crate) struct EndSet(OwnedFd);

impl EndSet {
    pub(crate) fn new() -> io::Result<EndSet> {
        Ok(EndSet(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    pub(crate) fn add(&self, pidfd: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key);
        Ok(epoll::add(&self.0, pidfd, data, epoll::EventFlags::IN)?)
    }

    pub(crate) fn remove(&self, pidfd: BorrowedFd<'_>) {
        // It fails only for one that was not added.
        let _ = epoll::delete(&self.0, pidfd);
    }

    pub(crate) fn ended(&self, keys: &mut Vec<u64>) {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); 64];
        // One batch: those left over keep the set readable.
        let Ok((events, _)) = epoll::wait(&self.0, &mut events, Some(&now)) else {
            return;
        };
        keys.extend(events.iter().map(|event| {
            // Copied out, for the struct is packed.
            let data = event.data;
            data.u64()
        }));
    }
}

impl AsFd for EndSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
