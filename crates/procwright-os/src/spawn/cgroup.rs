//! The cgroup that a program starts in.

use std::io;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open, openat};

/// A cgroup to start a program in.
#[derive(Debug)]
pub struct Cgroup {
    /// Its directory, if it is one of version 2, in which a process can be made.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) directory: Option<OwnedFd>,
    /// Its file `cgroup.procs`, open for writing.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) procs: OwnedFd,
}

impl Cgroup {
    /// Opens the cgroup with the directory `path`, of either version.
    ///
    /// # Errors
    /// The system's; one without a number for a directory that is no cgroup, and for a
    /// cgroup that is frozen: a start there would wait until it is thawed.
    pub fn open(path: &Path) -> io::Result<Cgroup> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(path, flags | OFlags::RDONLY, Mode::empty())?;
        let version =
            version(&directory)?.ok_or_else(|| io::Error::other("this directory is no cgroup"))?;
        if is_frozen(&directory) {
            return Err(io::Error::other("the cgroup is frozen"));
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let procs = openat(&directory, c"cgroup.procs", flags, Mode::empty())?;
        Ok(Cgroup {
            directory: (version == 2).then_some(directory),
            procs,
        })
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Cgroup {
    /// The file by which a process joins.
    pub(super) fn procs(&self) -> std::os::fd::RawFd {
        self.procs.as_raw_fd()
    }
}

/// The version of the cgroup with this directory; none for a directory elsewhere, where a
/// file of the right name would take what is written and mean nothing by it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn version(directory: &OwnedFd) -> io::Result<Option<u8>> {
    const CGROUP: u64 = 0x0027_e0eb;
    const CGROUP2: u64 = 0x6367_7270;
    // Its width differs between architectures.
    #[allow(clippy::unnecessary_cast, reason = "not everywhere")]
    let kind = rustix::fs::fstatfs(directory)?.f_type as u64;
    Ok(match kind {
        CGROUP => Some(1),
        CGROUP2 => Some(2),
        _ => None,
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn version(_directory: &OwnedFd) -> io::Result<Option<u8>> {
    Err(crate::unsupported("a cgroup"))
}

/// True if the cgroup is known to be frozen, itself or by one above it.
fn is_frozen(directory: &OwnedFd) -> bool {
    let says = |file: &std::ffi::CStr, words: &[u8]| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(file) = openat(directory, file, flags, Mode::empty()) else {
            return false;
        };
        let mut text = [0; 256];
        let length = rustix::io::read(&file, &mut text).unwrap_or(0);
        let lines = text.get(..length).unwrap_or(&[]).split(|&b| b == b'\n');
        lines.into_iter().any(|line| line == words)
    };
    says(c"cgroup.events", b"frozen 1")
        || says(c"freezer.state", b"FROZEN")
        || says(c"freezer.state", b"FREEZING")
}
