//! The system calls that threads are in, from `/proc/PID/task/TID/{syscall,wchan}`.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::AsFd;

use super::files::{ProcPath, each_number, number, open_dir, read_file};
use super::namespace::check;
use super::stat_file::read_stat;
use super::{Call, ThreadCall};

pub fn each_call(pid: i32, found: &mut dyn FnMut(ThreadCall) -> bool) -> io::Result<()> {
    check()?;
    let dir = open_dir(ProcPath::new(format_args!("/proc/{pid}/task")).as_c_str())?;
    each_number(dir.as_fd(), &mut |tid, _| {
        let path = |file: &str| ProcPath::new(format_args!("/proc/{pid}/task/{tid}/{file}"));
        let state = match read_stat(path("stat").as_c_str()) {
            Ok(stat) => stat.state,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(e) => return Err(e),
        };
        let mut buffer = [0; 256];
        // `syscall` asks for the right to attach, `wchan` only for the right to look; a
        // foreign user's reads "0".
        let call = match read_file(path("syscall").as_c_str(), &mut buffer) {
            Ok(text) => parse_syscall(text),
            Err(_) => match read_file(path("wchan").as_c_str(), &mut buffer) {
                Ok(b"" | b"0") | Err(_) => Call::Unknown,
                Ok(text) => Call::Channel(String::from_utf8_lossy(text.trim_ascii()).into_owned()),
            },
        };
        Ok(found(ThreadCall { tid, state, call }))
    })
}

/// Reads `running`, `-1 SP PC` (blocked, but in no call) or
/// `NR 0xARG0 … 0xARG5 SP PC`.
pub(super) fn parse_syscall(text: &[u8]) -> Call {
    let mut fields = text.trim_ascii().split(|&b| b == b' ');
    let Some(nr) = fields.next().and_then(number::<i64>) else {
        return if text.starts_with(b"running") {
            Call::Running
        } else {
            Call::Unknown
        };
    };
    let mut argument = |skip: usize| -> Option<i32> {
        let hex = fields.nth(skip)?.strip_prefix(b"0x")?;
        let value = u64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?;
        // An int argument: the upper half of the register means nothing.
        Some(value as u32 as i32)
    };
    // A first argument that cannot be read leaves the number, which is enough.
    let call = match call_class(nr) {
        CallClass::ReadFirst => argument(0).map(Call::Read),
        CallClass::WriteFirst => argument(0).map(Call::Write),
        CallClass::Poll => Some(Call::Poll),
        CallClass::WaitChild => Some(Call::WaitChild),
        CallClass::Futex => Some(Call::Futex),
        CallClass::Sleep => Some(Call::Sleep),
        CallClass::Other => None,
    };
    call.unwrap_or(Call::Other(nr))
}

/// A call's number, a `c_long` of whatever size, as `i64`.
#[allow(clippy::unnecessary_cast)]
const fn number_of(nr: libc::c_long) -> i64 {
    nr as i64
}

enum CallClass {
    ReadFirst,
    WriteFirst,
    Poll,
    WaitChild,
    Futex,
    Sleep,
    Other,
}

/// Sorts a call by its number in our own architecture. A 32-bit program under a
/// 64-bit kernel has other numbers, which come out as [`Call::Other`] or, rarely, as
/// a wrong class. Callers use it in messages only.
fn call_class(nr: i64) -> CallClass {
    // splice, tee and sendfile wait at either of their ends, which cannot be seen from
    // outside; they stay `Other`.
    const READ: &[i64] = &[
        number_of(libc::SYS_read),
        number_of(libc::SYS_readv),
        number_of(libc::SYS_preadv2),
    ];
    const WRITE: &[i64] = &[
        number_of(libc::SYS_write),
        number_of(libc::SYS_writev),
        number_of(libc::SYS_pwritev2),
        number_of(libc::SYS_vmsplice),
    ];
    const POLL: &[i64] = &[
        #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
        {
            number_of(libc::SYS_poll)
        },
        #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
        {
            number_of(libc::SYS_select)
        },
        #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
        {
            number_of(libc::SYS_epoll_wait)
        },
        number_of(libc::SYS_ppoll),
        number_of(libc::SYS_pselect6),
        number_of(libc::SYS_epoll_pwait),
        number_of(libc::SYS_epoll_pwait2),
    ];
    const WAIT: &[i64] = &[number_of(libc::SYS_wait4), number_of(libc::SYS_waitid)];
    const SLEEP: &[i64] = &[
        number_of(libc::SYS_nanosleep),
        number_of(libc::SYS_clock_nanosleep),
        number_of(libc::SYS_rt_sigtimedwait),
    ];
    match nr {
        _ if READ.contains(&nr) => CallClass::ReadFirst,
        _ if WRITE.contains(&nr) => CallClass::WriteFirst,
        _ if POLL.contains(&nr) => CallClass::Poll,
        _ if WAIT.contains(&nr) => CallClass::WaitChild,
        _ if SLEEP.contains(&nr) => CallClass::Sleep,
        _ if nr == number_of(libc::SYS_futex) => CallClass::Futex,
        _ => CallClass::Other,
    }
}
