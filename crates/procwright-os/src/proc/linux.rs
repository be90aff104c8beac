//! Linux: `/proc`.
//!
//! A stop reads `/proc/PID/stat` of every process a few times, so that takes three
//! system calls a process, into a buffer on the stack.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::ffi::{CStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Mode, RawDir};
use rustix::io::Errno;

use super::files::{ProcPath, each_number, number, open_dir, read_file, reaped_is_not_found};
pub use super::namespace::check;
use super::namespace::no_proc;
use super::stat_file::{parse_stat, read_stat};
pub use super::syscalls::each_call;
use super::{Conduit, PipeFd, ProcStat, Scan};

pub fn now_ticks() -> u64 {
    // The kernel rounds a start time on CLOCK_BOOTTIME down to ticks of USER_HZ, and so
    // does this; both are shifted alike by a time namespace.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let hz = rustix::param::clock_ticks_per_second();
    now.tv_sec as u64 * hz + now.tv_nsec as u64 * hz / 1_000_000_000
}

pub fn wall_clock_start(start_ticks: u64) -> SystemTime {
    // The two clocks are read to the nanosecond, so that two answers about one process
    // differ by as little; `now_ticks` would add up to a tick.
    let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let since_boot = Duration::try_from(since_boot).unwrap_or_default();
    let hz = rustix::param::clock_ticks_per_second() as u32;
    SystemTime::now() - since_boot + Duration::from_secs(start_ticks) / hz
}

pub fn is_missing() -> bool {
    // The second look is for a change of the root since the first.
    check().is_err() || rustix::fs::access(c"/proc/self", rustix::fs::Access::EXISTS).is_err()
}

pub fn boot_id() -> Option<u128> {
    let mut buffer = [0; 64];
    let text = read_file(c"/proc/sys/kernel/random/boot_id", &mut buffer).ok()?;
    let digits = text
        .iter()
        .filter_map(|&byte| char::from(byte).to_digit(16));
    Some(digits.fold(0, |number, digit| number << 4 | u128::from(digit)))
}

pub fn pid_namespace() -> Option<u64> {
    let seen = rustix::fs::stat("/proc/self/ns/pid").ok()?;
    Some(seen.st_ino)
}

pub fn inherits_orphans() -> bool {
    rustix::process::getpid().is_init()
        || rustix::process::child_subreaper().is_ok_and(|set| set.is_some())
}

pub fn last_pid() -> Option<i32> {
    // Containers of LXC have a /proc/loadavg of lxcfs, which tells of the host's numbers, or of
    // those of some seconds ago. The other file is not in every kernel.
    let last: i32 = [c"/proc/sys/kernel/ns_last_pid", c"/proc/loadavg"]
        .into_iter()
        .find_map(|path| {
            let mut buffer = [0; 128];
            let text = read_file(path, &mut buffer).ok()?;
            number(text.trim_ascii().rsplit(|&b| b == b' ').next()?)
        })?;
    // gVisor always says 0.
    (last > 0).then_some(last)
}

pub fn each_pid(found: &mut dyn FnMut(i32, bool) -> io::Result<Scan>) -> io::Result<()> {
    check()?;
    let dir = open_dir(c"/proc")?;
    let last = last_pid().unwrap_or(i32::MAX);
    'seek: loop {
        // Small, so that little time lies between the kernel's visit of a process and ours.
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut entries = RawDir::new(&dir, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(reaped_is_not_found)?;
            let Some(pid) = number(entry.file_name().to_bytes()) else {
                continue;
            };
            match found(pid, pid > last)? {
                Scan::Next => {}
                Scan::Skip => {
                    // The position of an entry in /proc is its pid plus a constant, and any
                    // position may be sought.
                    let ahead = entry.next_entry_cookie() + 1024;
                    rustix::fs::seek(&dir, rustix::fs::SeekFrom::Start(ahead))?;
                    continue 'seek;
                }
                Scan::Stop => return Ok(()),
            }
        }
        return Ok(());
    }
}

pub fn stat(pid: i32) -> io::Result<ProcStat> {
    check()?;
    match read_stat(ProcPath::new(format_args!("/proc/{pid}/stat")).as_c_str()) {
        // No process has the number, or there is no /proc any more (chroot).
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            rustix::fs::readlink(c"/proc/self", Vec::new()).map_err(|_| no_proc())?;
            Err(e)
        }
        answer => answer,
    }
}

pub fn is_process(pid: i32) -> io::Result<bool> {
    check()?;
    // Threads are not listed in /proc, but found there by number. Of a process's own
    // text the group comes within the first lines.
    let mut buffer = [0; 512];
    let path = ProcPath::new(format_args!("/proc/{pid}/status"));
    let text = read_file(path.as_c_str(), &mut buffer)?;
    let group = text
        .split(|&b| b == b'\n')
        .find_map(|line| number::<i32>(line.strip_prefix(b"Tgid:")?.trim_ascii()));
    Ok(group.is_none_or(|group| group == pid))
}

pub fn exe(pid: i32) -> io::Result<PathBuf> {
    check()?;
    let link = rustix::fs::readlink(
        ProcPath::new(format_args!("/proc/{pid}/exe")).as_c_str(),
        Vec::new(),
    )?;
    Ok(OsString::from_vec(link.into_bytes()).into())
}

pub fn status_of_zombie(pid: i32) -> Option<i32> {
    check().ok()?;
    let mut buffer = [0; 1024];
    let text = read_file(
        ProcPath::new(format_args!("/proc/{pid}/stat")).as_c_str(),
        &mut buffer,
    )
    .ok()?;
    let stat = parse_stat(text)?;
    // A process without threads is another case, see `read_stat`.
    if !stat.is_gone() || stat.threads == 0 {
        return None;
    }
    let status = number(text.trim_ascii().rsplit(|&b| b == b' ').next()?)?;
    // A reader who may not look into the process reads 0, which an exit with code 0 is
    // as well. The user namespace tells the two apart: a process has one to the last,
    // and the link may be read by the same rule, ptrace(2)'s PTRACE_MODE_READ.
    let may_look = || {
        let link = ProcPath::new(format_args!("/proc/{pid}/ns/user"));
        rustix::fs::readlink(link.as_c_str(), Vec::new()).is_ok()
    };
    (status != 0 || may_look()).then_some(status)
}

pub fn each_pipe(pid: i32, wanted: &[Conduit], found: &mut dyn FnMut(PipeFd)) -> io::Result<()> {
    check()?;
    let is_terminal = |one: &Conduit| matches!(one, Conduit::Terminal { .. });
    let terminals = wanted.iter().any(is_terminal);
    let dir = open_dir(ProcPath::new(format_args!("/proc/{pid}/fd")).as_c_str())?;
    each_number(dir.as_fd(), &mut |fd, name| {
        // "pipe:[" + 20 digits + "]": a longer link is cut and no pipe.
        let mut buffer = [0; 32];
        let len = match rustix::fs::readlinkat_raw(&dir, name, &mut buffer) {
            Ok(len) => len,
            // Closed since the directory was read.
            Err(Errno::NOENT) => return Ok(true),
            Err(e) => return Err(e.into()),
        };
        let link = &buffer[..len];
        if terminals && link.starts_with(b"/dev/") {
            // Masters of all terminals have one file.
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
        // The link's own mode says what the descriptor was opened for, at a third of
        // the price of fdinfo.
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

/// The terminal that a descriptor refers to; `None` where that cannot be seen.
fn terminal(dir: &OwnedFd, name: &CStr) -> Option<Conduit> {
    let stat = rustix::fs::statat(dir, name, AtFlags::empty()).ok()?;
    Some(Conduit::Terminal {
        device: stat.st_dev,
        inode: stat.st_ino,
        number: crate::pty::number(&stat),
    })
}

/// The terminal in `wanted` that a master descriptor shows. The kernel tells its
/// number since 4.14.
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

pub fn threads_stopped(pid: i32) -> io::Result<bool> {
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

#[cfg(test)]
#[path = "linux_tests.rs"]
mod tests;
