//! Attempts of a process with a descriptor that it may only read.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// One attempt: an error if the system has refused it.
pub type Attack = (&'static str, fn(RawFd) -> io::Result<()>);

fn refused(result: i64) -> io::Result<()> {
    match result {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Size of the attacked part; pages may be larger.
const PAGE: usize = 4096;

/// The size of a page, which is that of a file of cells.
pub fn page() -> usize {
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Maps the file, and calls `then` with the address.
fn mapped(
    fd: RawFd,
    protection: i32,
    then: impl FnOnce(*mut libc::c_void) -> io::Result<()>,
) -> io::Result<()> {
    unsafe {
        let at = libc::mmap(ptr::null_mut(), PAGE, protection, libc::MAP_SHARED, fd, 0);
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let result = then(at);
        libc::munmap(at, PAGE);
        result
    }
}

/// Opens the file anew, with other rights.
fn opened_anew(
    fd: RawFd,
    flags: i32,
    then: impl FnOnce(RawFd) -> io::Result<()>,
) -> io::Result<()> {
    let path = format!("/proc/self/fd/{fd}\0");
    unsafe {
        let fd = libc::open(path.as_ptr().cast(), flags | libc::O_CLOEXEC);
        refused(fd.into())?;
        then(OwnedFd::from_raw_fd(fd).as_raw_fd())
    }
}

fn write(fd: RawFd) -> io::Result<()> {
    refused(unsafe { libc::write(fd, [0_u8; 64].as_ptr().cast(), 64) } as i64)
}

fn pwrite(fd: RawFd) -> io::Result<()> {
    refused(unsafe { libc::pwrite(fd, [0_u8; 64].as_ptr().cast(), 64, 64) } as i64)
}

fn pwritev(fd: RawFd) -> io::Result<()> {
    let mut zeros = [0_u8; PAGE];
    let part = libc::iovec {
        iov_base: zeros.as_mut_ptr().cast(),
        iov_len: PAGE,
    };
    refused(unsafe { libc::pwritev(fd, &part, 1, 0) } as i64)
}

fn allocate(fd: RawFd, mode: i32, from: i64, length: i64) -> io::Result<()> {
    refused(unsafe { libc::fallocate(fd, mode, from, length) }.into())
}

fn seals(fd: RawFd, seals: i32) -> io::Result<()> {
    refused(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) }.into())
}

fn pour(fd: RawFd, how: impl FnOnce(RawFd, RawFd) -> i64) -> io::Result<()> {
    use std::io::Write;
    let mut file = tempfile::tempfile()?;
    file.write_all(&[0; PAGE])?;
    refused(how(file.as_raw_fd(), fd))
}

/// Attempts that the system has to refuse.
pub const FORBIDDEN: [Attack; 26] = [
    ("ftruncate to nothing", |fd| {
        refused(unsafe { libc::ftruncate(fd, 0) }.into())
    }),
    ("ftruncate by a byte", |fd| {
        refused(unsafe { libc::ftruncate(fd, page() as i64 - 1) }.into())
    }),
    ("ftruncate to more", |fd| {
        refused(unsafe { libc::ftruncate(fd, 2 * page() as i64) }.into())
    }),
    ("fallocate beyond the end", |fd| {
        allocate(fd, 0, 0, 2 * page() as i64)
    }),
    ("a hole", |fd| {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        allocate(fd, mode, 0, PAGE as i64)
    }),
    ("zeros", |fd| {
        allocate(fd, libc::FALLOC_FL_ZERO_RANGE, 0, PAGE as i64)
    }),
    ("a collapse", |fd| {
        allocate(fd, libc::FALLOC_FL_COLLAPSE_RANGE, 0, PAGE as i64)
    }),
    ("write", write),
    ("pwrite", pwrite),
    ("pwritev", pwritev),
    ("sendfile", |fd| {
        pour(fd, |from, to| unsafe {
            libc::sendfile(to, from, &mut 0, 64) as i64
        })
    }),
    ("copy_file_range", |fd| {
        pour(fd, |from, to| unsafe {
            libc::copy_file_range(from, &mut 0, to, &mut 0, 64, 0) as i64
        })
    }),
    ("splice", |fd| {
        use std::io::Write;
        let (from, mut to) = io::pipe()?;
        to.write_all(&[0; 64])?;
        let none = ptr::null_mut();
        refused(unsafe {
            libc::splice(
                from.as_raw_fd(),
                none,
                fd,
                none,
                64,
                libc::SPLICE_F_NONBLOCK,
            )
        } as i64)
    }),
    ("a writable mapping", |fd| {
        mapped(fd, libc::PROT_READ | libc::PROT_WRITE, |_| Ok(()))
    }),
    ("mprotect", |fd| {
        mapped(fd, libc::PROT_READ, |at| {
            refused(unsafe { libc::mprotect(at, PAGE, libc::PROT_WRITE) }.into())
        })
    }),
    ("MADV_REMOVE", |fd| {
        mapped(fd, libc::PROT_READ, |at| {
            refused(unsafe { libc::madvise(at, PAGE, libc::MADV_REMOVE) }.into())
        })
    }),
    ("a read into the mapping", |fd| {
        let (from, to) = io::pipe()?;
        refused(unsafe { libc::write(to.as_raw_fd(), [0_u8; 64].as_ptr().cast(), 64) } as i64)?;
        mapped(fd, libc::PROT_READ, |at| {
            refused(unsafe { libc::read(from.as_raw_fd(), at, 64) } as i64)
        })
    }),
    ("process_vm_writev to oneself", |fd| {
        let mut zeros = [0_u8; 64];
        mapped(fd, libc::PROT_READ, |at| unsafe {
            let part = |iov_base| libc::iovec {
                iov_base,
                iov_len: 64,
            };
            let (from, to) = (part(zeros.as_mut_ptr().cast()), part(at));
            refused(libc::process_vm_writev(libc::getpid(), &from, 1, &to, 1, 0) as i64)
        })
    }),
    ("a futex that would be taken", |fd| {
        mapped(fd, libc::PROT_READ, |at| {
            // A word that no thread has taken.
            let word = at.wrapping_byte_add(PAGE / 2);
            refused(unsafe {
                libc::syscall(libc::SYS_futex, word, libc::FUTEX_LOCK_PI, 0, 0, 0, 0)
            })
        })
    }),
    ("a futex that would be changed", |fd| {
        const SET_1: u32 = 1;
        mapped(fd, libc::PROT_READ, |at| {
            refused(unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    at,
                    libc::FUTEX_WAKE_OP,
                    0,
                    0,
                    at,
                    SET_1 << 12,
                )
            })
        })
    }),
    ("no seals more", |fd| seals(fd, 0)),
    ("a seal against all writing", |fd| {
        seals(fd, libc::F_SEAL_WRITE)
    }),
    ("a file opened anew, truncated", |fd| {
        opened_anew(fd, libc::O_RDWR | libc::O_TRUNC, |_| Ok(()))
    }),
    ("a file opened anew, written to", |fd| {
        opened_anew(fd, libc::O_RDWR, pwrite)
    }),
    ("a file opened anew, appended to", |fd| {
        opened_anew(fd, libc::O_WRONLY | libc::O_APPEND, write)
    }),
    ("a file opened anew, mapped", |fd| {
        opened_anew(fd, libc::O_RDWR, |fd| {
            mapped(fd, libc::PROT_WRITE, |_| Ok(()))
        })
    }),
];

/// Attempts that are allowed, and must do no harm.
pub const HARMLESS: [Attack; 10] = [
    ("a private mapping, written to", |fd| unsafe {
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(ptr::null_mut(), PAGE, writable, libc::MAP_PRIVATE, fd, 0);
        at.cast::<[u8; PAGE]>().write([0xff; PAGE]);
        refused(libc::munmap(at, PAGE).into())
    }),
    ("a lock of the process", |fd| lock(fd, libc::F_SETLK)),
    ("a lock of the file", |fd| lock(fd, libc::F_OFD_SETLK)),
    ("flock", |fd| {
        refused(unsafe { libc::flock(fd, libc::LOCK_EX | libc::LOCK_NB) }.into())
    }),
    ("a mapping that is longer than the file", |fd| {
        mapped(fd, libc::PROT_READ, |at| unsafe {
            let longer = libc::mremap(at, PAGE, 2 * PAGE, libc::MREMAP_MAYMOVE);
            libc::munmap(longer, 2 * PAGE);
            Ok(())
        })
    }),
    ("pages given back", |fd| {
        mapped(fd, libc::PROT_READ, |at| {
            refused(unsafe { libc::madvise(at, PAGE, libc::MADV_DONTNEED) }.into())
        })
    }),
    ("fewer rights", |fd| {
        refused(unsafe { libc::fchmod(fd, 0) }.into())
    }),
    ("other flags", |fd| {
        refused(unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_APPEND | libc::O_NONBLOCK) }.into())
    }),
    ("another position", |fd| {
        refused(unsafe { libc::lseek(fd, 1000, libc::SEEK_SET) })
    }),
    ("wake-ups for nothing", |fd| {
        mapped(fd, libc::PROT_READ, |at| {
            (0..PAGE / 4).try_for_each(|i| wake(at.wrapping_byte_add(4 * i).cast()))
        })
    }),
];

fn lock(fd: RawFd, command: i32) -> io::Result<()> {
    unsafe {
        let mut lock: libc::flock = zeroed();
        lock.l_type = libc::F_WRLCK as i16;
        refused(libc::fcntl(fd, command, &lock).into())
    }
}

fn wake(word: *const u32) -> io::Result<()> {
    refused(unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) })
}

/// Whether the system has memory files of huge pages.
pub fn has_huge_files() -> bool {
    let flags = libc::MFD_CLOEXEC | libc::MFD_HUGETLB;
    let fd = unsafe { libc::memfd_create(c"huge".as_ptr(), flags) };
    (fd >= 0)
        .then(|| unsafe { OwnedFd::from_raw_fd(fd) })
        .is_some()
}

/// A memory file of `bytes` bytes with this content at its beginning, and these seals.
pub fn forged(content: &[u32], bytes: usize, flags: u32, seals: i32) -> OwnedFd {
    unsafe {
        let flags = flags | libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        let fd = super::check(libc::memfd_create(c"forged".as_ptr(), flags));
        let file = OwnedFd::from_raw_fd(fd);
        super::check(libc::ftruncate(fd, bytes as i64));
        if !content.is_empty() {
            let written = libc::pwrite(fd, content.as_ptr().cast(), size_of_val(content), 0);
            assert_eq!(written, size_of_val(content) as isize);
        }
        super::check(libc::fcntl(fd, libc::F_ADD_SEALS, seals));
        file
    }
}

/// Makes the kernel name the sender with each message (`SO_PASSCRED`).
pub fn ask_who_sends(socket: &impl AsRawFd) {
    let on = 1;
    super::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PASSCRED,
            (&raw const on).cast(),
            size_of_val(&on) as u32,
        )
    });
}

/// Both ends of a connection that keeps message boundaries.
pub fn message_pair() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        super::check(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()));
        ends.map(|end| OwnedFd::from_raw_fd(end)).into()
    }
}

/// Adds seals to a file in memory.
pub fn add_seals(file: &impl AsRawFd, new: i32) -> io::Result<()> {
    seals(file.as_raw_fd(), new)
}
