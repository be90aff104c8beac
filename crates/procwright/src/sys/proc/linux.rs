//! Linux: `/proc`.
//!
//! A stop reads `/proc/PID/stat` of every process a few times, so that is three
//! system calls a process, into a buffer on the stack.

use std::ffi::{CStr, OsString};
use std::fmt::Write as _;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::{Call, Conduit, Name, Next, PipeFd, Stat, ThreadCall};
pub(crate) use namespace::check;
use namespace::missing;

#[path = "namespace.rs"]
mod namespace;

pub(crate) fn now_ticks() -> u64 {
    // The kernel rounds a start time on CLOCK_BOOTTIME down to ticks of
    // USER_HZ, and so does this; both are shifted alike by a time namespace.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let hz = rustix::param::clock_ticks_per_second();
    now.tv_sec as u64 * hz + now.tv_nsec as u64 * hz / 1_000_000_000
}

pub(crate) fn at(start_ticks: u64) -> SystemTime {
    // Both clocks are read to the nanosecond, so that two answers about one
    // process differ by as little; `now_ticks` would add up to a tick.
    let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let since_boot = Duration::try_from(since_boot).unwrap_or_default();
    let hz = rustix::param::clock_ticks_per_second() as u32;
    SystemTime::now() - since_boot + Duration::from_secs(start_ticks) / hz
}

pub(crate) fn boot() -> Option<u128> {
    let mut buffer = [0; 64];
    let text = read_file(c"/proc/sys/kernel/random/boot_id", &mut buffer).ok()?;
    let digits = text
        .iter()
        .filter_map(|&byte| char::from(byte).to_digit(16));
    Some(digits.fold(0, |number, digit| number << 4 | u128::from(digit)))
}

pub(crate) fn pid_namespace() -> Option<u64> {
    let seen = rustix::fs::stat("/proc/self/ns/pid").ok()?;
    Some(seen.st_ino)
}

pub(crate) fn inherits_orphans() -> bool {
    rustix::process::getpid().is_init()
        || rustix::process::child_subreaper().is_ok_and(|set| set.is_some())
}

pub(crate) fn each_pid(found: &mut dyn FnMut(i32, bool) -> io::Result<Next>) -> io::Result<()> {
    check()?;
    let dir = open_dir(c"/proc")?;
    // Numbers are given out upwards, and this is the last that was.
    let mut buffer = [0; 128];
    let last = read_file(c"/proc/loadavg", &mut buffer)
        .ok()
        .and_then(|text| number(text.trim_ascii().rsplit(|&b| b == b' ').next()?))
        .unwrap_or(i32::MAX);
    'seek: loop {
        // Small, so that little time lies between the kernel's look at a process
        // and ours.
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut entries = RawDir::new(&dir, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(gone)?;
            let Some(pid) = number(entry.file_name().to_bytes()) else {
                continue;
            };
            match found(pid, pid > last)? {
                Next::On => {}
                Next::Ahead => {
                    // In /proc the position of an entry is its pid plus a
                    // constant, and any position may be sought.
                    let ahead = entry.next_entry_cookie() + 1024;
                    rustix::fs::seek(&dir, rustix::fs::SeekFrom::Start(ahead))?;
                    continue 'seek;
                }
                Next::End => return Ok(()),
            }
        }
        return Ok(());
    }
}

pub(crate) fn stat(pid: i32) -> io::Result<Stat> {
    check()?;
    match read_stat(ProcPath::new(format_args!("/proc/{pid}/stat")).as_c_str()) {
        // Nobody has the number, or nothing is there any more (chroot).
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            rustix::fs::readlink(c"/proc/self", Vec::new()).map_err(|_| missing())?;
            Err(e)
        }
        answer => answer,
    }
}

pub(crate) fn leads(pid: i32) -> io::Result<bool> {
    check()?;
    // Not listed in /proc, threads are found there by number all the same. Of
    // a process's own text the group comes within the first lines.
    let mut buffer = [0; 512];
    let path = ProcPath::new(format_args!("/proc/{pid}/status"));
    let text = read_file(path.as_c_str(), &mut buffer)?;
    let group = text
        .split(|&b| b == b'\n')
        .find_map(|line| number::<i32>(line.strip_prefix(b"Tgid:")?.trim_ascii()));
    Ok(group.is_none_or(|group| group == pid))
}

pub(crate) fn exe(pid: i32) -> io::Result<PathBuf> {
    check()?;
    let link = rustix::fs::readlink(
        ProcPath::new(format_args!("/proc/{pid}/exe")).as_c_str(),
        Vec::new(),
    )?;
    Ok(OsString::from_vec(link.into_bytes()).into())
}

pub(crate) fn status_of_zombie(pid: i32) -> Option<i32> {
    check().ok()?;
    let mut buffer = [0; 1024];
    let text = read_file(
        ProcPath::new(format_args!("/proc/{pid}/stat")).as_c_str(),
        &mut buffer,
    )
    .ok()?;
    let stat = parse_stat(text)?;
    // Without threads it is another thing, see `read_stat`.
    if !stat.is_gone() || stat.threads == 0 {
        return None;
    }
    let status = number(text.trim_ascii().rsplit(|&b| b == b' ').next()?)?;
    // Who may not look into the process reads 0, which an exit with code 0 is
    // as well. Its user namespace tells the two apart: it has one to the last,
    // and the link may be read by the same rule, ptrace(2)'s PTRACE_MODE_READ.
    let may_look = || {
        let link = ProcPath::new(format_args!("/proc/{pid}/ns/user"));
        rustix::fs::readlink(link.as_c_str(), Vec::new()).is_ok()
    };
    (status != 0 || may_look()).then_some(status)
}

fn read_stat(path: &CStr) -> io::Result<Stat> {
    let mut buffer = [0; 1024];
    for _ in 0..UNBOUND {
        let text = read_file(path, &mut buffer)?;
        let stat = parse_stat(text).ok_or_else(|| {
            let text = text.escape_ascii();
            let why = format!("cannot read {path:?}: {text}");
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        if stat.threads > 0 {
            return Ok(stat);
        }
    }
    Err(Errno::NOENT.into())
}

/// How often in a row a process may be shown while it loses the thread that is
/// shown, and so without threads. Either it is being reaped and is not there the
/// next time, or another of its threads is in exec(2), which takes the place of
/// the first: shown dead, it lives. That takes longer than a look.
const UNBOUND: usize = 64;

/// Reads `pid (name) state ppid …`. The name can hold anything, `) R 1 (` too,
/// but nothing after it holds a parenthesis.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let open = text.iter().position(|&b| b == b'(')?;
    let close = text.iter().rposition(|&b| b == b')')?;
    let name = text.get(open + 1..close)?;
    let pid = number(text[..open].trim_ascii())?;
    let mut rest = text[close + 1..]
        .split(|b| b.is_ascii_whitespace())
        .filter(|field| !field.is_empty());
    // The first of `rest` is field 3 of proc_pid_stat(5); `skip` counts those
    // between.
    let mut field = |skip: usize| rest.nth(skip);
    let state = match field(0)? {
        [letter] => char::from(*letter),
        _ => return None,
    };
    Some(Stat {
        pid,
        name: Name::new(name),
        state,
        ppid: number(field(0)?)?,
        pgrp: number(field(0)?)?,
        session: number(field(0)?)?,
        // Field 9; PF_KTHREAD of linux/sched.h, where it has been since 2.6.27.
        kernel_thread: number::<u64>(field(2)?)? & 0x0020_0000 != 0,
        // Field 20.
        threads: number(field(10)?)?,
        // Field 22.
        start_ticks: number(field(1)?)?,
    })
}

pub(crate) fn each_pipe(
    pid: i32,
    wanted: &[Conduit],
    found: &mut dyn FnMut(PipeFd),
) -> io::Result<()> {
    check()?;
    let is_terminal = |one: &Conduit| matches!(one, Conduit::Terminal { .. });
    let terminals = wanted.iter().any(is_terminal);
    let dir = open_dir(ProcPath::new(format_args!("/proc/{pid}/fd")).as_c_str())?;
    each_number(dir.as_fd(), &mut |fd, name| {
        // "pipe:[" + 20 digits + "]": whatever is longer is cut and no pipe.
        let mut buffer = [0; 32];
        let len = match rustix::fs::readlinkat_raw(&dir, name, &mut buffer) {
            Ok(len) => len,
            // Closed since the directory was read.
            Err(Errno::NOENT) => return Ok(true),
            Err(e) => return Err(e.into()),
        };
        let link = &buffer[..len];
        if terminals && link.starts_with(b"/dev/") {
            // Of those that show terminals all have one file.
            let read = link.ends_with(b"/ptmx");
            let of = match read {
                true => shown_by(pid, fd, wanted),
                false => terminal(&dir, name).filter(|of| wanted.contains(of)),
            };
            if let Some(of) = of {
                let write = !read;
                found(PipeFd {
                    fd,
                    of,
                    read,
                    write,
                });
            }
            return Ok(true);
        }
        let pipe = pipe_inode(link).map(Conduit::Pipe);
        let Some(of) = pipe.filter(|pipe| wanted.contains(pipe)) else {
            return Ok(true);
        };
        // The link's own mode says what the descriptor was opened for, at a
        // third of the price of fdinfo.
        let mode = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Mode::from_raw_mode(stat.st_mode),
            Err(Errno::NOENT) => return Ok(true),
            Err(e) => return Err(e.into()),
        };
        found(PipeFd {
            fd,
            of,
            read: mode.contains(Mode::RUSR),
            write: mode.contains(Mode::WUSR),
        });
        Ok(true)
    })
}

/// The terminal that a descriptor is; none where that cannot be seen.
fn terminal(dir: &OwnedFd, name: &CStr) -> Option<Conduit> {
    let stat = rustix::fs::statat(dir, name, AtFlags::empty()).ok()?;
    Some(Conduit::Terminal {
        device: stat.st_dev,
        inode: stat.st_ino,
        number: crate::sys::pty::number(&stat),
    })
}

/// Which of `wanted` a descriptor shows that is the other end of a terminal. The
/// kernel tells its number since 4.14.
fn shown_by(pid: i32, fd: i32, wanted: &[Conduit]) -> Option<Conduit> {
    let mut buffer = [0; 512];
    let path = ProcPath::new(format_args!("/proc/{pid}/fdinfo/{fd}"));
    let text = read_file(path.as_c_str(), &mut buffer).ok()?;
    let mut lines = text.split(|byte| *byte == b'\n');
    let shown = lines.find_map(|line| line.strip_prefix(b"tty-index:"))?;
    let shown: u32 = number(shown.trim_ascii())?;
    let is_it = |of: &&Conduit| matches!(of, Conduit::Terminal { number, .. } if *number == shown);
    wanted.iter().find(is_it).copied()
}

fn pipe_inode(link: &[u8]) -> Option<u64> {
    number(link.strip_prefix(b"pipe:[")?.strip_suffix(b"]")?)
}

pub(crate) fn threads_stopped(pid: i32) -> io::Result<bool> {
    check()?;
    let mut all = true;
    let dir = open_dir(ProcPath::new(format_args!("/proc/{pid}/task")).as_c_str())?;
    each_number(dir.as_fd(), &mut |tid, _| {
        match read_stat(ProcPath::new(format_args!("/proc/{pid}/task/{tid}/stat")).as_c_str()) {
            Ok(stat) => all = stat.is_stopped() || matches!(stat.state, 'Z' | 'X' | 'x'),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        Ok(all)
    })?;
    Ok(all)
}

pub(crate) fn each_call(pid: i32, found: &mut dyn FnMut(ThreadCall) -> bool) -> io::Result<()> {
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
        // `syscall` asks for the right to attach, `wchan` only for the right to
        // look; a foreign user's reads "0".
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
fn parse_syscall(text: &[u8]) -> Call {
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
        // An int argument: what is in the upper half of the register is
        // anyone's.
        Some(value as u32 as i32)
    };
    // A first argument that cannot be read leaves the number, which is enough.
    let call = match kind(nr) {
        Kind::ReadFirst => argument(0).map(Call::Read),
        Kind::WriteFirst => argument(0).map(Call::Write),
        Kind::Poll => Some(Call::Poll),
        Kind::WaitChild => Some(Call::WaitChild),
        Kind::Futex => Some(Call::Futex),
        Kind::Sleep => Some(Call::Sleep),
        Kind::Other => None,
    };
    call.unwrap_or(Call::Other(nr))
}

/// A `c_long`, whatever size it has here.
#[allow(clippy::unnecessary_cast)]
const fn number_of(nr: libc::c_long) -> i64 {
    nr as i64
}

enum Kind {
    ReadFirst,
    WriteFirst,
    Poll,
    WaitChild,
    Futex,
    Sleep,
    Other,
}

/// The numbers are those of our own architecture: a 32-bit program under a
/// 64-bit kernel has others, which come out as [`Call::Other`] or, rarely, as a
/// wrong kind. Callers use it in messages only.
fn kind(nr: i64) -> Kind {
    // splice, tee and sendfile wait at either of their ends, and which cannot
    // be seen from outside; they stay `Other`.
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
        _ if READ.contains(&nr) => Kind::ReadFirst,
        _ if WRITE.contains(&nr) => Kind::WriteFirst,
        _ if POLL.contains(&nr) => Kind::Poll,
        _ if WAIT.contains(&nr) => Kind::WaitChild,
        _ if SLEEP.contains(&nr) => Kind::Sleep,
        _ if nr == number_of(libc::SYS_futex) => Kind::Futex,
        _ => Kind::Other,
    }
}

fn open_dir(path: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(gone)
}

fn open_file(path: &CStr) -> io::Result<OwnedFd> {
    rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(gone)
}

fn read_file<'b>(path: &CStr, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let fd = open_file(path)?;
    loop {
        // One read: these files are made whole at the first.
        match rustix::io::read(&fd, &mut *buffer) {
            Ok(len) => return Ok(&buffer[..len]),
            Err(Errno::INTR) => {}
            Err(e) => return Err(gone(e)),
        }
    }
}

/// A process reaped between the open and the read is "no such process" (ESRCH),
/// one reaped before is "no such file".
fn gone(error: Errno) -> io::Error {
    match error {
        Errno::SRCH => Errno::NOENT.into(),
        e => e.into(),
    }
}

/// Calls `each` for every entry whose name is a number until it returns false.
fn each_number(
    dir: BorrowedFd<'_>,
    each: &mut dyn FnMut(i32, &CStr) -> io::Result<bool>,
) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(gone)?;
        let name = entry.file_name();
        let Some(n) = number(name.to_bytes()) else {
            continue;
        };
        if !each(n, name)? {
            break;
        }
    }
    Ok(())
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A path on the stack.
struct ProcPath {
    bytes: [u8; 64],
    len: usize,
}

impl ProcPath {
    fn new(path: std::fmt::Arguments<'_>) -> ProcPath {
        let mut buffer = ProcPath {
            bytes: [0; 64],
            len: 0,
        };
        // Cannot fail: the longest, with two pids of ten digits, has 41 bytes.
        let written = buffer.write_fmt(path);
        debug_assert!(written.is_ok());
        buffer
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl std::fmt::Write for ProcPath {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let end = self.len + s.len();
        // The last byte stays 0.
        if end >= self.bytes.len() {
            return Err(std::fmt::Error);
        }
        self.bytes[self.len..end].copy_from_slice(s.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &[u8] = b" S 7 8 9 34816 8 4194304 1 2 3 4 5 6 7 8 20 0 3 0 4711 1 2 3\n";

    fn stat_of(name: &[u8]) -> Stat {
        let text = [b"42 (", name, b")", TAIL].concat();
        parse_stat(&text).unwrap()
    }

    #[test]
    fn names_hold_anything() {
        for name in [
            &b"sh"[..],
            b"",
            b" ",
            b")",
            b"(",
            b") R 1 (",
            b"a\nb",
            b"\xff\xfe)",
            b"a b) S 1 2",
        ] {
            let stat = stat_of(name);
            assert_eq!(stat.name.as_bytes(), name);
            assert_eq!((stat.pid, stat.state, stat.ppid), (42, 'S', 7));
            assert_eq!((stat.pgrp, stat.session), (8, 9));
            assert_eq!((stat.threads, stat.start_ticks), (3, 4711));
            assert!(!stat.kernel_thread);
        }
        assert_eq!(stat_of(b"a\n\x1b[m").name.to_string(), "a\\n\\u{1b}[m");
        assert_eq!(stat_of(&[b'x'; 60]).name.as_bytes().len(), Name::MAX);
    }

    #[test]
    fn cut_or_odd_text_is_no_process() {
        let text = [&b"42 (sh)"[..], TAIL].concat();
        for len in 0..text.len() - 8 {
            // Any prefix is refused or, once past the start time, whole.
            if let Some(stat) = parse_stat(&text[..len]) {
                assert!(len >= text.len() - 11, "{len}");
                assert!(
                    4711u64
                        .to_string()
                        .starts_with(&stat.start_ticks.to_string())
                );
            }
        }
        assert_eq!(parse_stat(b") 1 ("), None);
        assert_eq!(parse_stat(b"x (a) S 1 2 3"), None);
    }

    #[test]
    fn calls() {
        let nr = libc::SYS_write;
        let text = format!("{nr} 0xffffffff00000001 0x7f 0x10 0x0 0x0 0x0 0x7ffc 0x7f0d\n");
        assert_eq!(parse_syscall(text.as_bytes()), Call::Write(1));
        let text = format!("{} 0x3 0x0\n", libc::SYS_read);
        assert_eq!(parse_syscall(text.as_bytes()), Call::Read(3));
        assert_eq!(parse_syscall(b"running\n"), Call::Running);
        assert_eq!(parse_syscall(b"-1 0x7ffc 0x7f0d\n"), Call::Other(-1));
        assert_eq!(parse_syscall(b""), Call::Unknown);
    }

    #[test]
    fn pipes_by_link() {
        assert_eq!(pipe_inode(b"pipe:[27438]"), Some(27438));
        for link in [&b"pipe:[]"[..], b"pipe:[1", b"socket:[1]", b"/tmp/pipe:[1]"] {
            assert_eq!(pipe_inode(link), None);
        }
    }

    #[test]
    fn ourselves() {
        let pid = std::process::id() as i32;
        let me = stat(pid).unwrap();
        assert_eq!(me.pid, pid);
        assert_eq!(me.ppid, std::os::unix::process::parent_id() as i32);
        assert!(!me.is_gone() && !me.kernel_thread && me.threads >= 1);
        assert!(me.start_ticks <= now_ticks());
        let mut all = Vec::new();
        each_pid(&mut |pid, _| {
            all.push(pid);
            Ok(Next::On)
        })
        .unwrap();
        assert!(all.contains(&pid));
        all.clear();
        each_pid(&mut |pid, _| {
            all.push(pid);
            Ok(Next::End)
        })
        .unwrap();
        assert_eq!(all, [1]);
        // A thousand numbers ahead of 1 are not 1.
        all.clear();
        each_pid(&mut |pid, _| {
            all.push(pid);
            Ok(Next::Ahead)
        })
        .unwrap();
        assert!(all.windows(2).all(|w| w[1] - w[0] > 1000), "{all:?}");
        assert_eq!(stat(i32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!threads_stopped(pid).unwrap());
    }

    #[test]
    fn our_own_pipe_with_its_modes() {
        let (reader, writer) = std::io::pipe().unwrap();
        use std::os::fd::AsRawFd as _;
        let of = Conduit::Pipe(rustix::fs::fstat(&reader).unwrap().st_ino);
        let mut found = Vec::new();
        each_pipe(std::process::id() as i32, &[of], &mut |fd| found.push(fd)).unwrap();
        found.sort_by_key(|fd| fd.write);
        let end = |fd: i32, write: bool| PipeFd {
            fd,
            of,
            read: !write,
            write,
        };
        assert_eq!(
            found,
            [
                end(reader.as_raw_fd(), false),
                end(writer.as_raw_fd(), true)
            ]
        );
    }
}
