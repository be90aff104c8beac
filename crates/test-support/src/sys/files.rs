//! Descriptors and files.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// Sets the soft limit of descriptors.
pub fn set_nofile(soft: u64) {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit));
        limit.rlim_cur = soft;
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &limit));
    }
}

/// The soft limit of descriptors.
pub fn nofile() -> u64 {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit));
        limit.rlim_cur
    }
}

/// A copy that is inherited across exec.
pub fn inheritable(fd: &impl AsRawFd) -> OwnedFd {
    unsafe { OwnedFd::from_raw_fd(check(libc::dup(fd.as_raw_fd()))) }
}

/// A close-on-exec copy at this very number, whatever was open there.
pub fn copy_at(fd: &impl AsRawFd, number: RawFd) -> OwnedFd {
    assert_ne!(fd.as_raw_fd(), number);
    unsafe { OwnedFd::from_raw_fd(check(libc::dup3(fd.as_raw_fd(), number, libc::O_CLOEXEC))) }
}

/// Closed stdin, stdout and stderr; a drop opens them again.
pub struct NoStandard([OwnedFd; 3]);

impl NoStandard {
    /// Closes the three standard descriptors.
    pub fn close() -> NoStandard {
        let saved = [0, 1, 2].map(|fd| unsafe {
            OwnedFd::from_raw_fd(check(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 200)))
        });
        for fd in 0..3 {
            unsafe { libc::close(fd) };
        }
        NoStandard(saved)
    }
}

impl Drop for NoStandard {
    fn drop(&mut self) {
        for (fd, saved) in (0..3).zip(&self.0) {
            unsafe { libc::dup2(saved.as_raw_fd(), fd) };
        }
    }
}

/// Waits until the process of a pidfd has ended, or any descriptor is readable.
pub fn wait_for_end(pidfd: BorrowedFd<'_>) {
    let mut fd = libc::pollfd {
        fd: pidfd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    while unsafe { libc::poll(&mut fd, 1, -1) } < 1 {}
}

/// The size of the pipe behind a descriptor.
pub fn pipe_size(fd: &impl AsRawFd) -> i32 {
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETPIPE_SZ) })
}

/// Raises the soft limit of descriptors to the hard one, and returns it.
pub fn all_files() -> u64 {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit));
        limit.rlim_cur = limit.rlim_max;
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &limit));
        limit.rlim_max
    }
}

/// Sets the soft and the hard limit of descriptors.
pub fn limit_files(n: u64) {
    let limit = libc::rlimit {
        rlim_cur: n,
        rlim_max: n,
    };
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) });
}

/// Whether a descriptor is readable now.
pub fn readable(fd: BorrowedFd<'_>) -> bool {
    let mut fd = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    check(unsafe { libc::poll(&mut fd, 1, 0) }) == 1
}

/// Sets the soft limit on the size of files.
pub fn limit_file_size(bytes: u64) {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit));
        limit.rlim_cur = bytes;
        check(libc::setrlimit(libc::RLIMIT_FSIZE, &limit));
    }
}

/// Puts the file of the descriptor `with` under `number`.
pub fn replace(with: RawFd, number: RawFd) {
    assert_eq!(unsafe { libc::dup2(with, number) }, number);
}

/// Writes to a descriptor by its number.
pub fn tell(fd: i32, bytes: &[u8]) {
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}

/// Reads a byte, or the end, from a descriptor by its number.
pub fn await_order(fd: i32) {
    let mut byte = 0_u8;
    unsafe { libc::read(fd, (&raw mut byte).cast(), 1) };
}

/// Closes a descriptor behind its owner's back: in a fork that goes on without it.
pub fn close(fd: &impl AsRawFd) {
    unsafe { libc::close(fd.as_raw_fd()) };
}

/// Borrows a descriptor by its number, which must stay open until the end.
pub fn borrow(fd: RawFd) -> BorrowedFd<'static> {
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Takes ownership of a descriptor that this process was started with.
pub fn take_over(number: RawFd) -> OwnedFd {
    assert!(
        unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0,
        "{number}"
    );
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Sends bytes and descriptors over a Unix socket, without the library.
pub fn send_with_files(socket: BorrowedFd<'_>, bytes: &[u8], files: &[BorrowedFd<'_>]) {
    let numbers: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
    let size = size_of_val(&numbers[..]) as u32;
    unsafe {
        let mut beside = vec![0_u64; libc::CMSG_SPACE(size) as usize / 8 + 1];
        let mut part = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        if !numbers.is_empty() {
            message.msg_control = beside.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size) as _;
            let head = libc::CMSG_FIRSTHDR(&message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(size) as _;
            let data = libc::CMSG_DATA(head);
            std::ptr::copy_nonoverlapping(numbers.as_ptr().cast(), data, size as usize);
        }
        let sent = libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL);
        assert_eq!(usize::try_from(sent), Ok(bytes.len()));
    }
}

/// Writes to the beginning of a file.
pub fn write_at(file: BorrowedFd<'_>, bytes: &[u8]) {
    let written = unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
    assert_eq!(usize::try_from(written), Ok(bytes.len()));
}

/// The number at the beginning of a file.
pub fn number_at(file: BorrowedFd<'_>) -> u32 {
    let mut bytes = [0; 4];
    let read = unsafe { libc::pread(file.as_raw_fd(), bytes.as_mut_ptr().cast(), 4, 0) };
    assert_eq!(read, 4);
    u32::from_ne_bytes(bytes)
}

/// Makes a hole at the beginning of a file.
pub fn punch(file: BorrowedFd<'_>, bytes: i64) {
    let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    check(unsafe { libc::fallocate(file.as_raw_fd(), how, 0, bytes) });
}
