//! The system call that a thread sleeps in, from `/proc/PID/task/TID/{syscall,wchan}`.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::maps::{self, Memory};
use super::{files, mutexes, restarted, sets};
use crate::wait::{Children, Wait};

/// What a thread in this state waits for, and its call as the kernel shows it.
pub(super) fn waiting(dir: BorrowedFd<'_>, state: char) -> (Wait, String) {
    match state {
        'S' | 'D' => {}
        'T' => return (Wait::Stopped, String::new()),
        't' => return (Wait::Traced, String::new()),
        'Z' | 'X' | 'x' => return (Wait::Ended, String::new()),
        // An idle thread of the kernel; a frozen one comes back as it was.
        'I' => return (Wait::Other(-1), String::new()),
        _ => return (Wait::Runs, String::new()),
    }
    let mut buffer = [0; 256];
    let Ok(text) = files::read(dir, "syscall", &mut buffer) else {
        return (Wait::Hidden(place(dir)), String::new());
    };
    let line = String::from_utf8_lossy(text.trim_ascii()).into_owned();
    let Some(call) = Line::parse(&line).map(|call| call.restarted(dir)) else {
        let wait = match line.as_str() {
            "running" => Wait::Runs,
            _ => Wait::Other(-1),
        };
        return (wait, line);
    };
    let wait = match (state, call.class()) {
        // Held elsewhere, by a filter of system calls for one, it has no child yet.
        ('D', Class::Clone) if is_vfork(&place(dir)) => Wait::Child(Children::Vfork),
        // A write to a pipe may wait so for the memory that it copies from.
        ('D', _) => Wait::Uninterruptible(place(dir)),
        (_, Class::Open) if place(dir) == "wait_for_partner" => {
            Wait::FifoPartner(sets::path(dir, call.path_pointer()).unwrap_or_default())
        }
        _ => call.wait(dir),
    };
    (wait, line)
}

/// The kernel's name of the place where a thread sleeps; empty or "0" if it does not tell.
fn place(dir: BorrowedFd<'_>) -> String {
    let mut buffer = [0; 128];
    match files::read(dir, "wchan", &mut buffer) {
        Ok(text) => String::from_utf8_lossy(text).into_owned(),
        Err(_) => String::new(),
    }
}

/// True of the place in the kernel where vfork waits for the child: `kernel_clone`, `_do_fork`
/// or `wait_for_vfork_done`, as the compiler has it.
pub(super) fn is_vfork(place: &str) -> bool {
    place.contains("clone") || place.contains("fork")
}

/// `NR 0xARG0 … 0xARG5 0xSP 0xPC`.
struct Line {
    number: i64,
    arguments: [u64; 6],
}

impl Line {
    fn parse(line: &str) -> Option<Line> {
        let mut fields = line.split(' ');
        let number = fields.next()?.parse().ok()?;
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = files::hex(fields.next()?.as_bytes())?;
        }
        let stack = files::hex(fields.next()?.as_bytes())?;
        // A 32-bit program has other numbers for its calls, and its stack below 4 GiB.
        let narrow = cfg!(target_pointer_width = "64") && stack >> 32 == 0;
        let number = if narrow { -1 } else { number };
        Some(Line { number, arguments })
    }

    /// The call that was interrupted and goes on by this one, if its place in the kernel tells:
    /// it has the same arguments.
    fn restarted(self, dir: BorrowedFd<'_>) -> Line {
        let number = match self.class() {
            Class::Restart => restarted::call_at(&place(dir)).map_or(self.number, number_of),
            _ => self.number,
        };
        Line { number, ..self }
    }

    /// An argument of type int: the upper half of the register means nothing.
    fn int(&self, index: usize) -> i32 {
        self.arguments[index] as u32 as i32
    }

    fn path_pointer(&self) -> u64 {
        // open(path, …), openat(dir, path, …).
        match () {
            #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
            () if self.number == number_of(libc::SYS_open) => self.arguments[0],
            () => self.arguments[1],
        }
    }

    fn wait(&self, dir: BorrowedFd<'_>) -> Wait {
        let argument = |index: usize| self.arguments[index];
        let set = |set: Option<(Vec<i32>, Vec<i32>)>, finite| match set {
            Some((read, write)) => Wait::Set {
                read,
                write,
                finite,
            },
            None => Wait::HiddenSet { finite },
        };
        match self.class() {
            Class::Read => Wait::Read(self.int(0)),
            Class::Write => Wait::Write(self.int(0)),
            Class::Splice => set(Some((vec![self.int(0)], vec![self.int(2)])), false),
            Class::Tee => set(Some((vec![self.int(0)], vec![self.int(1)])), false),
            Class::Sendfile => set(Some((vec![self.int(1)], vec![self.int(0)])), false),
            Class::Poll => set(sets::poll(dir, argument(0), argument(1)), self.int(2) >= 0),
            Class::Ppoll => set(sets::poll(dir, argument(0), argument(1)), argument(2) != 0),
            Class::Select => {
                let pointers = [argument(1), argument(2), argument(3)];
                set(sets::select(dir, self.int(0), pointers), argument(4) != 0)
            }
            Class::Epoll => set(sets::epoll(dir, self.int(0)), self.int(3) >= 0),
            Class::Epoll2 => set(sets::epoll(dir, self.int(0)), argument(3) != 0),
            Class::Wait4 => Wait::Child(match self.int(0) {
                -1 => Children::Any,
                0 => Children::Group(0),
                pid if pid < 0 => Children::Group(-pid),
                pid => Children::One(pid),
            }),
            Class::Waitid => match self.int(0) {
                0 => Wait::Child(Children::Any),
                1 => Wait::Child(Children::One(self.int(1))),
                2 => Wait::Child(Children::Group(self.int(1))),
                // P_PIDFD
                3 => Wait::Read(self.int(1)),
                _ => Wait::Other(self.number),
            },
            Class::Flock => Wait::FileLock(self.int(0)),
            Class::Fcntl => match self.int(1) {
                libc::F_SETLKW | F_OFD_SETLKW => Wait::FileLock(self.int(0)),
                _ => Wait::Other(self.number),
            },
            Class::Futex => {
                const COMMAND: i32 = 0x7f;
                const PRIVATE: i32 = 0x80;
                let operation = self.int(1);
                // WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2.
                match operation & COMMAND {
                    0 | 6 | 9 | 11 | 13 if argument(3) != 0 => Wait::Time,
                    command @ (0 | 6 | 9 | 11 | 13) => {
                        self.futex(dir, command, operation & PRIVATE != 0)
                    }
                    _ => Wait::Other(self.number),
                }
            }
            Class::Sleep => Wait::Time,
            Class::Sigwait if argument(2) != 0 => Wait::Time,
            Class::Sigwait | Class::Signal => Wait::Signal,
            Class::Accept => Wait::Accept(self.int(0)),
            Class::Connect => Wait::Connect(self.int(0)),
            Class::Restart => Wait::Restarted,
            Class::Clone | Class::Open | Class::Other => Wait::Other(self.number),
        }
    }

    /// The time limit of a wait for a set of descriptors; `None` without one, or if it cannot be
    /// read.
    fn limit(&self, dir: BorrowedFd<'_>) -> Option<Duration> {
        let milliseconds = |index| {
            u64::try_from(self.int(index))
                .ok()
                .map(Duration::from_millis)
        };
        let timespec = |index: usize| match self.arguments[index] {
            0 => None,
            at => sets::timespec(dir, at),
        };
        match self.class() {
            Class::Poll => milliseconds(2),
            Class::Epoll => milliseconds(3),
            Class::Ppoll => timespec(2),
            Class::Epoll2 => timespec(3),
            Class::Select => self.select_limit(timespec(4)?),
            _ => None,
        }
    }

    /// That of `pselect`, or of `select`, which counts microseconds where that counts nanoseconds.
    fn select_limit(&self, read: Duration) -> Option<Duration> {
        match self.number == number_of(libc::SYS_pselect6) {
            true => Some(read),
            false => Some(Duration::new(
                read.as_secs(),
                read.subsec_nanos().checked_mul(1000)?,
            )),
        }
    }

    /// A wait without a limit at a word in memory.
    fn futex(&self, dir: BorrowedFd<'_>, command: i32, private: bool) -> Wait {
        let at = self.arguments[0];
        let memory = match private {
            true => Memory::Private,
            false => maps::memory(dir, at),
        };
        let mutex = match memory {
            Memory::Shared(place) => {
                mutexes::mutex(dir, at, command, self.arguments[2] as u32, place)
            }
            Memory::Private | Memory::Unknown => None,
        };
        let private = memory == Memory::Private;
        Wait::Futex { private, mutex }
    }

    fn class(&self) -> Class {
        class(self.number)
    }
}

/// The time limit of the wait of a thread, by its call as [`waiting`] has shown it.
pub(super) fn limit(dir: BorrowedFd<'_>, call: &str) -> Option<Duration> {
    Line::parse(call)?.restarted(dir).limit(dir)
}

/// `F_OFD_SETLKW`, which not every libc crate's target has.
const F_OFD_SETLKW: i32 = 38;

#[derive(Clone, Copy)]
enum Class {
    Read,
    Write,
    Splice,
    Tee,
    Sendfile,
    Poll,
    Ppoll,
    Select,
    Epoll,
    Epoll2,
    Wait4,
    Waitid,
    Flock,
    Fcntl,
    Futex,
    Sleep,
    Sigwait,
    Signal,
    Accept,
    Connect,
    Clone,
    Open,
    Restart,
    Other,
}

/// A call's number, a `c_long` of whatever size, as `i64`.
#[allow(clippy::unnecessary_cast, reason = "not the same everywhere")]
const fn number_of(number: libc::c_long) -> i64 {
    number as i64
}

/// The calls that are known, in the numbers of this architecture.
const CALLS: &[(libc::c_long, Class)] = &[
    (libc::SYS_read, Class::Read),
    (libc::SYS_readv, Class::Read),
    (libc::SYS_preadv2, Class::Read),
    (libc::SYS_recvfrom, Class::Read),
    (libc::SYS_recvmsg, Class::Read),
    (libc::SYS_write, Class::Write),
    (libc::SYS_writev, Class::Write),
    (libc::SYS_pwritev2, Class::Write),
    (libc::SYS_vmsplice, Class::Write),
    (libc::SYS_sendto, Class::Write),
    (libc::SYS_sendmsg, Class::Write),
    (libc::SYS_splice, Class::Splice),
    (libc::SYS_tee, Class::Tee),
    (libc::SYS_sendfile, Class::Sendfile),
    (libc::SYS_ppoll, Class::Ppoll),
    (libc::SYS_pselect6, Class::Select),
    (libc::SYS_epoll_pwait, Class::Epoll),
    (libc::SYS_epoll_pwait2, Class::Epoll2),
    (libc::SYS_wait4, Class::Wait4),
    (libc::SYS_waitid, Class::Waitid),
    (libc::SYS_flock, Class::Flock),
    (libc::SYS_fcntl, Class::Fcntl),
    (libc::SYS_futex, Class::Futex),
    (libc::SYS_nanosleep, Class::Sleep),
    (libc::SYS_clock_nanosleep, Class::Sleep),
    (libc::SYS_rt_sigtimedwait, Class::Sigwait),
    (libc::SYS_rt_sigsuspend, Class::Signal),
    (libc::SYS_accept, Class::Accept),
    (libc::SYS_accept4, Class::Accept),
    (libc::SYS_connect, Class::Connect),
    (libc::SYS_clone, Class::Clone),
    (libc::SYS_clone3, Class::Clone),
    (libc::SYS_openat, Class::Open),
    (libc::SYS_restart_syscall, Class::Restart),
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    (libc::SYS_open, Class::Open),
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    (libc::SYS_vfork, Class::Clone),
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    (libc::SYS_pause, Class::Signal),
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    (libc::SYS_poll, Class::Poll),
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    (libc::SYS_select, Class::Select),
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    (libc::SYS_epoll_wait, Class::Epoll),
];

fn class(number: i64) -> Class {
    let mut known = CALLS.iter();
    let found = known.find(|(one, _)| number_of(*one) == number);
    found.map_or(Class::Other, |(_, class)| *class)
}
