//! macOS and the BSDs: the system calls of a kqueue. Type-checked and no more on
//! machines without one; the decisions are in [`kqueue`](super::kqueue).

use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use rustix::io::FdFlags;

use super::BATCH;
use super::kqueue::{Change, KernelEvent, Kqueue, KqueueCalls};

/// A kqueue.
#[doc(alias = "kevent")]
pub type ReadySet = Kqueue<KqueueFd>;

impl Kqueue<KqueueFd> {
    /// An empty set.
    ///
    /// # Errors
    /// Those of `kqueue(2)`.
    pub fn new() -> io::Result<Kqueue<KqueueFd>> {
        let fd = rustix::event::kqueue::kqueue()?;
        // No fork can carry it away before this, since none inherits a kqueue.
        rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
        Ok(Kqueue::on(KqueueFd {
            fd: ManuallyDrop::new(fd),
            process: std::process::id(),
        }))
    }
}

/// The descriptor of a kqueue, and the process that may use it.
#[derive(Debug)]
pub struct KqueueFd {
    fd: ManuallyDrop<OwnedFd>,
    process: u32,
}

impl Drop for KqueueFd {
    fn drop(&mut self) {
        // A fork gets no kqueue, so the number is free there or already that of another
        // file, which is not ours to close.
        if self.process == std::process::id() {
            // SAFETY: this runs once and nothing uses `fd` afterwards.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

impl AsFd for KqueueFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Event by which a queue is made readable by hand.
const RING: usize = 0;

/// Note that is asked for besides the end, so that the status comes with it.
#[cfg(target_vendor = "apple")]
const STATUS: u32 = libc::NOTE_EXITSTATUS;
#[cfg(not(target_vendor = "apple"))]
const STATUS: u32 = 0;

/// Note that is set where the status has come. FreeBSD always sends it: it is set
/// before the process is shown as exiting, so it is right also for one that is
/// registered on its way out. The other systems' numbers are either not documented to
/// be a status or were not always sent, so they count as unknown.
#[cfg(target_vendor = "apple")]
const HAS_STATUS: u32 = libc::NOTE_EXITSTATUS;
#[cfg(target_os = "freebsd")]
const HAS_STATUS: u32 = libc::NOTE_EXIT;
#[cfg(not(any(target_vendor = "apple", target_os = "freebsd")))]
const HAS_STATUS: u32 = 0;

// rustix has no such event: its events carry no flags of the user filter on NetBSD
// and OpenBSD, and its wrapper is as unsafe as this. The casts are between integer
// types whose widths differ from one system to the next.
fn event(ident: usize, filter: i64, flags: u32, notes: u32) -> libc::kevent {
    // SAFETY: zeroed is a valid value of this plain C structure.
    let mut event: libc::kevent = unsafe { MaybeUninit::zeroed().assume_init() };
    event.ident = ident as _;
    event.filter = filter as _;
    event.flags = flags as _;
    event.fflags = notes;
    event
}

impl KqueueFd {
    fn apply(&self, change: libc::kevent) -> io::Result<()> {
        // SAFETY: one change to read, no event to write. Descriptors among the
        // changes are numbers to the kernel, which drops what it knows of one
        // that is closed.
        let result = unsafe {
            libc::kevent(
                self.fd.as_raw_fd(),
                &raw const change,
                1,
                ptr::null_mut(),
                0,
                ptr::null(),
            )
        };
        if result < 0 {
            let error = io::Error::last_os_error();
            // Interrupted comes after the change is made.
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(())
    }
}

impl KqueueCalls for KqueueFd {
    fn change(&self, change: Change) -> io::Result<()> {
        const ADD: u32 = libc::EV_ADD as u32;
        const CLEAR: u32 = libc::EV_CLEAR as u32;
        const DELETE: u32 = libc::EV_DELETE as u32;
        const READ: i64 = libc::EVFILT_READ as i64;
        const WRITE: i64 = libc::EVFILT_WRITE as i64;
        const PROC: i64 = libc::EVFILT_PROC as i64;
        const USER: i64 = libc::EVFILT_USER as i64;
        self.apply(match change {
            Change::Add(fd) => event(fd as usize, READ, ADD, 0),
            Change::AddEdge(fd) => event(fd as usize, READ, ADD | CLEAR, 0),
            Change::Remove(fd) => event(fd as usize, READ, DELETE, 0),
            Change::AddWrite(fd) => event(fd as usize, WRITE, ADD, 0),
            Change::RemoveWrite(fd) => event(fd as usize, WRITE, DELETE, 0),
            Change::AddProcess { pid, status } => {
                let notes = libc::NOTE_EXIT | if status { STATUS } else { 0 };
                event(pid as usize, PROC, ADD, notes)
            }
            Change::RemoveProcess(pid) => event(pid as usize, PROC, DELETE, 0),
            Change::Ring => {
                // Two steps: FreeBSD forgets the trigger that comes with the registration.
                // NetBSD has the filter since 10, OpenBSD since 7.8.
                self.apply(event(RING, USER, ADD | CLEAR, 0))?;
                event(RING, USER, 0, libc::NOTE_TRIGGER)
            }
        })
    }

    fn wait(
        &self,
        max: usize,
        timeout: Option<Duration>,
        tell: &mut dyn FnMut(KernelEvent),
    ) -> io::Result<()> {
        let timeout = timeout.map(|timeout| {
            // SAFETY: zeroed is a valid value of this plain C structure, which
            // has padding on some systems.
            let mut time: libc::timespec = unsafe { MaybeUninit::zeroed().assume_init() };
            time.tv_sec = timeout.as_secs() as _;
            time.tv_nsec = timeout.subsec_nanos() as _;
            time
        });
        let mut events = [const { MaybeUninit::<libc::kevent>::uninit() }; BATCH];
        // SAFETY: `events` has room for as many as are asked for; the timeout is
        // null or a valid one.
        let result = unsafe {
            libc::kevent(
                self.fd.as_raw_fd(),
                ptr::null(),
                0,
                events.as_mut_ptr().cast(),
                max.min(BATCH) as _,
                timeout.as_ref().map_or(ptr::null(), ptr::from_ref),
            )
        };
        let Ok(n) = usize::try_from(result) else {
            return Err(io::Error::last_os_error());
        };
        for event in &events[..n] {
            // SAFETY: the kernel has written the first `n`.
            tell(kernel_event(unsafe { event.assume_init_ref() }));
        }
        Ok(())
    }
}

fn kernel_event(event: &libc::kevent) -> KernelEvent {
    let flags = event.flags as u32;
    let failed = flags & libc::EV_ERROR as u32 != 0;
    if event.filter == libc::EVFILT_READ || event.filter == libc::EVFILT_WRITE {
        return KernelEvent::Fd {
            fd: event.ident as _,
            // A reader of a descriptor that failed is told how.
            hung_up: failed || flags & libc::EV_EOF as u32 != 0,
        };
    }
    if event.filter != libc::EVFILT_PROC {
        return KernelEvent::Ring;
    }
    let pid = event.ident as _;
    if failed {
        let errno = event.data as _;
        return KernelEvent::Lost { pid, errno };
    }
    // The other bits are an exit code's that wait(2) does not tell either.
    let has_status = event.fflags & HAS_STATUS != 0;
    KernelEvent::Ended {
        pid,
        status: has_status.then_some(event.data as i32 & 0xffff),
    }
}
