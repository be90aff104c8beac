//! Writing, waiting, signals and forks: what the subcommands share.

use std::ffi::c_int;
use std::io;
use std::mem;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, getpid};

/// Standard input.
// SAFETY: nothing in this program owns descriptor 0, and only the subcommands
// whose purpose it is close it, as the last thing that they do with it; where
// it was never open, an operation fails with EBADF.
pub(crate) const STDIN: BorrowedFd<'static> = unsafe { BorrowedFd::borrow_raw(0) };
/// Standard output.
// SAFETY: as for descriptor 0.
pub(crate) const STDOUT: BorrowedFd<'static> = unsafe { BorrowedFd::borrow_raw(1) };
/// Standard error.
// SAFETY: as for descriptor 0.
pub(crate) const STDERR: BorrowedFd<'static> = unsafe { BorrowedFd::borrow_raw(2) };

/// Closes a standard descriptor.
pub(crate) fn close(fd: BorrowedFd<'static>) {
    use std::os::fd::AsRawFd;
    // SAFETY: only the three constants above are passed, which nothing owns.
    unsafe { rustix::io::close(fd.as_raw_fd()) }
}

/// Writes a message to stderr, if there is one.
pub(crate) fn complain(message: &str) {
    // Without a stderr the message is lost.
    let _ = write_all(STDERR, format!("test-child: {message}\n").as_bytes());
}

/// Writes all of `data`, also where the descriptor was left non-blocking.
pub(crate) fn write_all(fd: BorrowedFd<'_>, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        match rustix::io::write(fd, data) {
            Ok(count) => data = &data[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_writable(fd)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Blocks until a write to `fd` would not.
pub(crate) fn wait_writable(fd: BorrowedFd<'_>) -> io::Result<()> {
    match rustix::event::poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads once; 0 is the end.
pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(fd, &mut *buffer) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
                match rustix::event::poll(&mut fds, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            result => return Ok(result?),
        }
    }
}

/// Blocks for `duration`.
pub(crate) fn sleep(duration: Duration) {
    let end = Instant::now() + duration;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let timeout = Timespec {
            tv_sec: left.as_secs() as _,
            tv_nsec: left.subsec_nanos() as _,
        };
        // Ends by the timeout or by EINTR; the clock decides which it was.
        let _ = rustix::event::poll(&mut [], Some(&timeout));
    }
}

/// Blocks until a signal kills this process.
pub(crate) fn pause_forever() -> ! {
    loop {
        rustix::event::pause();
    }
}

/// The time after which a waiting process dies whatever happens, so that a test that
/// failed leaves nothing behind.
#[derive(Clone, Copy)]
pub(crate) struct Limit(Option<u32>);

impl Limit {
    pub(crate) const DEFAULT: Self = Self(Some(120));
    pub(crate) const NONE: Self = Self(None);

    pub(crate) const fn seconds(seconds: u32) -> Self {
        Self(Some(seconds))
    }

    /// Arms the limit for this process: SIGALRM at its end, and SIGKILL a
    /// second later for a process that is stopped, or that was started with
    /// SIGALRM blocked or ignored. A fork inherits neither.
    pub(crate) fn arm(self) {
        let Some(seconds) = self.0 else { return };
        // SAFETY: alarm only sets this process's timer.
        unsafe { libc::alarm(seconds) };
        // SAFETY: both are plain C structures for which all zeros are valid.
        let (mut event, mut time): (libc::sigevent, libc::itimerspec) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGKILL;
        time.it_value.tv_sec = libc::time_t::from(seconds) + 1;
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: the pointers are to live locals of the right types; the
        // timer is used only if its creation succeeded.
        let armed = unsafe {
            libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) == 0
                && libc::timer_settime(timer, 0, &time, ptr::null_mut()) == 0
        };
        if !armed {
            complain("no SIGKILL timer, only an alarm");
        }
    }
}

/// Forks, and arms `limit` in the child, where the result is `None`.
///
/// Must be called before this process has started any thread.
pub(crate) fn fork(limit: Limit) -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread (`flood` alone starts another, and
    // it never forks), so the child's memory is consistent.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            limit.arm();
            Ok(None)
        }
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Forks a child that runs `body` and then exits, with status 1 if it failed.
pub(crate) fn spawn(
    limit: Limit,
    body: impl FnOnce() -> Result<u8, crate::Failure>,
) -> io::Result<Pid> {
    if let Some(pid) = fork(limit)? {
        return Ok(pid);
    }
    leave(match body() {
        Ok(code) => code,
        Err(crate::Failure::Usage(message) | crate::Failure::Failed(message)) => {
            complain(&format!("forked child: {message}"));
            1
        }
    })
}

/// Ends this process at once.
pub(crate) fn leave(code: u8) -> ! {
    // SAFETY: _exit takes any status and never returns.
    unsafe { libc::_exit(c_int::from(code)) }
}

/// Ignores the signal.
pub(crate) fn ignore(signal: c_int) -> io::Result<()> {
    disposition(signal, libc::SIG_IGN)
}

/// Gives the signal its default action again.
pub(crate) fn restore(signal: c_int) -> io::Result<()> {
    disposition(signal, libc::SIG_DFL)
}

fn disposition(signal: c_int, action: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: SIG_IGN and SIG_DFL are the only actions passed: no handler runs.
    if unsafe { libc::signal(signal, action) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Blocks or unblocks the signal.
pub(crate) fn mask(how: c_int, signal: c_int) -> io::Result<()> {
    let set = set_of(signal);
    // SAFETY: `set` is initialised, and no old mask is asked for.
    if unsafe { libc::sigprocmask(how, &set, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Blocks until the signal, which must be blocked, is pending, and takes it.
pub(crate) fn wait_for_signal(signal: c_int) -> io::Result<()> {
    let set = set_of(signal);
    let mut taken = 0;
    // SAFETY: both pointers are to live, initialised locals.
    match unsafe { libc::sigwait(&set, &mut taken) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn set_of(signal: c_int) -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, and sigemptyset initialises it anyway.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        set
    }
}

/// Sends this process the signal.
pub(crate) fn raise(signal: c_int) -> io::Result<()> {
    // SAFETY: a signal to oneself touches no memory of this program's.
    if unsafe { libc::kill(libc::getpid(), signal) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Becomes the user `uid` (and the group of the same number) for good.
pub(crate) fn become_user(uid: u32) -> io::Result<()> {
    // SAFETY: an empty list of groups needs no memory; the others take numbers.
    let done = unsafe {
        libc::setgroups(0, ptr::null()) == 0
            && libc::setresgid(uid, uid, uid) == 0
            && libc::setresuid(uid, uid, uid) == 0
    };
    if !done {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A pipe by which forked processes tell the first one that they are set up.
pub(crate) struct Rendezvous {
    ends: Option<(OwnedFd, OwnedFd)>,
}

impl Rendezvous {
    pub(crate) fn new() -> io::Result<Self> {
        let ends = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self { ends: Some(ends) })
    }

    /// Reports, in a forked process, that it is set up, and closes the process's ends.
    pub(crate) fn report(&mut self) -> io::Result<()> {
        if let Some((_, writer)) = self.ends.take() {
            // At most PIPE_BUF bytes, so reports never mix.
            let pid = getpid().as_raw_pid().to_ne_bytes();
            write_all(std::os::fd::AsFd::as_fd(&writer), &pid)?;
        }
        Ok(())
    }

    /// Closes the ends of a forked process that has nothing to report.
    pub(crate) fn leave(&mut self) {
        self.ends = None;
    }

    /// Blocks, in the first process, until `count` others have reported.
    pub(crate) fn collect(self, count: usize) -> io::Result<Vec<Pid>> {
        let Some((reader, writer)) = self.ends else {
            return Ok(Vec::new());
        };
        drop(writer);
        let mut bytes = vec![0; count * 4];
        let mut filled = 0;
        while filled < bytes.len() {
            match read(std::os::fd::AsFd::as_fd(&reader), &mut bytes[filled..])? {
                0 => {
                    return Err(io::Error::other(
                        "a forked process died before it was set up",
                    ));
                }
                read => filled += read,
            }
        }
        Ok(bytes
            .chunks_exact(4)
            .filter_map(|raw| Pid::from_raw(i32::from_ne_bytes([raw[0], raw[1], raw[2], raw[3]])))
            .collect())
    }
}
