//! The descriptors of a process, by `readlink` and `stat` of the links in `/proc/PID/fd`:
//! neither opens what they refer to, and a `stat` asks no server.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, StatxFlags};
use rustix::io::Errno;

use super::files;
use crate::world::{Fd, Object};

/// The first number of the terminals that programs make, and how many a number has.
const PTY_MAJOR: u32 = 136;

/// Reads the descriptors from a folder `fd` of a process or a thread. One of a pipe is as both
/// ends until [`tell_ends`] has asked.
pub(super) fn read(at: impl AsFd, name: &str) -> io::Result<Vec<Fd>> {
    read_with(at, name, file)
}

/// As [`read`], but does not ask what it is that has a path: one call less for each.
pub(super) fn read_links(at: impl AsFd, name: &str) -> io::Result<Vec<Fd>> {
    read_with(at, name, |_, _| Ok(Object::Path))
}

/// Asks of those of these descriptors that have a path what they are. One that was closed since is
/// left out.
pub(super) fn tell_paths(at: impl AsFd, name: &str, fds: &mut Vec<Fd>) -> io::Result<()> {
    let folder = files::open_dir(at, name)?;
    let mut failed = Ok(());
    fds.retain_mut(|fd| {
        if fd.of != Object::Path {
            return true;
        }
        let name = CString::new(fd.number.to_string()).expect("digits");
        match object(folder.as_fd(), &name, fd.number, file) {
            Ok(of) => fd.of = of,
            Err(Errno::NOENT) => return false,
            Err(error) => failed = Err(error.into()),
        }
        true
    });
    failed
}

/// Tells what a path leads to.
type Ask = fn(BorrowedFd<'_>, &CStr) -> rustix::io::Result<Object>;

fn read_with(at: impl AsFd, name: &str, ask: Ask) -> io::Result<Vec<Fd>> {
    let folder = files::open_dir(at, name)?;
    let mut fds = Vec::new();
    let listed = files::names(&folder, &mut |name| {
        let Some(number) = files::number(name.to_bytes()) else {
            return Ok(());
        };
        match object(folder.as_fd(), name, number, ask) {
            Ok(of) => fds.push(Fd {
                number,
                of,
                read: true,
                write: true,
            }),
            // Closed since the folder was read.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    });
    match listed {
        // It has ended meanwhile, and with it its descriptors.
        Err(error) if files::is_gone(&error) => Ok(fds),
        listed => listed.map(|()| fds),
    }
}

/// Asks of those of these descriptors that are `wanted` which end of its pipe each is. One whose
/// number is another's by now stays as both.
pub(super) fn tell_ends(
    dir: BorrowedFd<'_>,
    fds: &mut [Fd],
    wanted: &dyn Fn(&Fd) -> bool,
) -> io::Result<()> {
    let folder = files::open_dir(dir, "fd")?;
    for fd in fds.iter_mut().filter(|fd| wanted(fd)) {
        let name = CString::new(fd.number.to_string())?;
        // The link's own mode says what the descriptor was opened for, at a third of the
        // price of fdinfo.
        let link = rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW);
        let of = object(folder.as_fd(), &name, fd.number, file);
        if let (Ok(link), true) = (link, of == Ok(fd.of)) {
            let mode = Mode::from_raw_mode(link.st_mode);
            fd.read = mode.contains(Mode::RUSR);
            fd.write = mode.contains(Mode::WUSR);
        }
    }
    Ok(())
}

/// The object that a descriptor refers to, by `ask` if it has a path.
fn object(
    folder: BorrowedFd<'_>,
    name: &CStr,
    number: i32,
    ask: Ask,
) -> rustix::io::Result<Object> {
    // A longer link is cut, and a path.
    let mut buffer = [0; 64];
    let length = rustix::fs::readlinkat_raw(folder, name, &mut buffer)?;
    let link = &buffer[..length];
    let inode = |kind: &[u8]| -> Option<u64> {
        files::number(link.strip_prefix(kind)?.strip_suffix(b"]")?)
    };
    Ok(if let Some(pipe) = inode(b"pipe:[") {
        Object::Pipe(pipe)
    } else if let Some(socket) = inode(b"socket:[") {
        Object::Socket(socket)
    } else if link == b"anon_inode:[pidfd]" || link.starts_with(b"pidfd:[") {
        Object::Process(fdinfo(folder, number, "Pid:").unwrap_or(-1))
    } else if link.starts_with(b"anon_inode:") {
        match link.strip_prefix(b"anon_inode:").unwrap_or(link) {
            b"[eventpoll]" => Object::Epoll,
            b"[eventfd]" => Object::Eventfd(fdinfo(folder, number, "eventfd-id:")),
            b"[timerfd]" => Object::Timer,
            b"[signalfd]" => Object::Signals,
            b"[io_uring]" => Object::Ring,
            _ => Object::Other,
        }
    } else if link == b"/dev/tty" {
        Object::OwnTerminal
    } else if link.ends_with(b"/ptmx") {
        match fdinfo::<u32>(folder, number, "tty-index:") {
            Some(index) => Object::TerminalMaster(terminal_of(index)),
            None => Object::Other,
        }
    } else if link.starts_with(b"/") {
        ask(folder, name)?
    } else {
        Object::Other
    })
}

/// The object that a path leads to.
fn file(folder: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<Object> {
    let wanted = StatxFlags::TYPE | StatxFlags::INO;
    // What is known is enough: a server that does not answer would hold the look up.
    let stat = rustix::fs::statx(folder, name, AtFlags::STATX_DONT_SYNC, wanted)?;
    let device = device(stat.stx_dev_major, stat.stx_dev_minor);
    Ok(match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::Fifo => Object::Fifo {
            device,
            inode: stat.stx_ino,
        },
        FileType::RegularFile => Object::File {
            device,
            inode: stat.stx_ino,
        },
        FileType::CharacterDevice => {
            let (major, minor) = (stat.stx_rdev_major, stat.stx_rdev_minor);
            match major {
                // Consoles and serial lines, and those of programs; 5:1 is /dev/console.
                4 | 136..=143 => Object::Terminal(encoded(major, minor)),
                _ => Object::Other,
            }
        }
        _ => Object::Other,
    })
}

/// A device number as one value.
pub(super) fn device(major: u32, minor: u32) -> u64 {
    u64::from(major) << 32 | u64::from(minor)
}

/// A device number in the form of `tty_nr` in `stat`: minor in bits 0 to 7 and 20 to 31,
/// major in bits 8 to 19.
fn encoded(major: u32, minor: u32) -> u64 {
    u64::from(minor & 0xff | major << 8 | (minor & !0xff) << 12)
}

/// The device number of the terminal with this index, in the form of [`encoded`].
fn terminal_of(index: u32) -> u64 {
    encoded(PTY_MAJOR + (index >> 8), index & 0xff)
}

/// A field of what the kernel says of a descriptor, in the folder beside that of the links.
fn fdinfo<T: std::str::FromStr>(folder: BorrowedFd<'_>, number: i32, field: &str) -> Option<T> {
    let mut buffer = [0; 512];
    let text = files::read(folder, &format!("../fdinfo/{number}"), &mut buffer).ok()?;
    files::number(files::field(text, field)?)
}
