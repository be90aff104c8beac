//! Linux: devpts.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};

use super::Pair;

pub fn pair() -> io::Result<Pair> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    // grantpt(3) has nothing to do: devpts makes the slave the caller's own.
    unlockpt(&master)?;
    // The master and not its name leads to the slave: the name can mean another terminal
    // where a container has a devpts of its own. Since Linux 4.13.
    let slave = match ioctl_tiocgptpeer(&master, flags) {
        Err(Errno::INVAL | Errno::NOTTY | Errno::NOSYS) => {
            let name = ptsname(&master, Vec::new())?;
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            rustix::fs::open(name, flags, Mode::empty())?
        }
        slave => slave?,
    };
    Ok(Pair { master, slave })
}

pub fn reopen(fd: impl AsFd) -> io::Result<OwnedFd> {
    let fd = fd.as_fd();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let by_number = rustix::fs::open(path, flags, Mode::empty());
    let opened = by_number.or_else(|error| {
        // The terminal is another user's after `su`. A process that it controls may open it
        // all the same, by a name that is everybody's.
        match crate::job_control::is_controlling(fd) {
            true => rustix::fs::open("/dev/tty", flags, Mode::empty()),
            false => Err(error),
        }
    });
    Ok(opened?)
}

pub fn number(stat: &rustix::fs::Stat) -> u32 {
    rustix::fs::minor(stat.st_rdev)
}
