//! Descriptors that come as numbers.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Takes this process's standard input and output, close-on-exec. The numbers 0 and
/// 1 mean `/dev/null` from then on.
///
/// # Errors
/// Those of duplicating, and of opening `/dev/null`.
pub fn take_standard() -> io::Result<(OwnedFd, OwnedFd)> {
    let (input, output) = (duplicate(0)?, duplicate(1)?);
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok((input, output))
}

/// Duplicates, close-on-exec, the descriptor that has this number now.
///
/// # Errors
/// `EBADF` if there is none; `EMFILE`.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: duplicating reads the descriptor table only; a number that is no
    // descriptor is answered by EBADF.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made this descriptor, so no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Makes `place`, a descriptor that was had for this, another one of `with`: what cannot be
/// refused for want of descriptors. It is close-on-exec.
///
/// # Errors
/// Those of `dup3(2)`.
#[doc(alias = "dup2")]
#[doc(alias = "dup3")]
pub fn replace(mut place: OwnedFd, with: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    rustix::io::dup3(with, &mut place, rustix::io::DupFlags::CLOEXEC)?;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        rustix::io::dup2(with, &mut place)?;
        rustix::io::fcntl_setfd(&place, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(place)
}

/// Takes over the descriptor of this number, close-on-exec from now on.
///
/// The number was put there for the caller alone when this program was started, and
/// no other code knows it: the caller has made sure of that by what it refers to.
///
/// # Errors
/// `EBADF` if there is no such descriptor.
pub fn take_inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: as said above.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}

/// The limit that every descriptor number of this process lies below
/// (`RLIMIT_NOFILE`).
pub fn number_limit() -> RawFd {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit
        .and_then(|limit| limit.try_into().ok())
        .unwrap_or(RawFd::MAX)
}
