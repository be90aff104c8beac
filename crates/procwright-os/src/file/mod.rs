//! Files without a name, and what a file system is.
//!
//! Contract of the platform files: `unnamed(directory)` is a new file, open for
//! reading and writing, readable by no other user, close-on-exec, that no path leads
//! to; `None` where the platform or the file system has no such files. The others
//! are documented here.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{Access, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

/// True if `fd` is an end of a pipe that has no name to open it by. False where that
/// cannot be known.
pub use imp::is_anonymous_pipe;
/// Tells whether files in a directory take memory (tmpfs, ramfs).
///
/// # Errors
/// Those of `statfs(2)`.
#[doc(alias = "statfs")]
pub use imp::is_in_memory;
/// Makes sure that these bytes can be written later. Succeeds where no promise can
/// be had: then the write fails.
///
/// # Errors
/// `ENOSPC` and the like.
#[doc(alias = "fallocate")]
pub use imp::reserve;

/// Opens a temporary file that no other process can open, and that is gone when it is
/// closed.
///
/// # Errors
/// Those of opening the file.
pub fn temporary(directory: &Path) -> io::Result<OwnedFd> {
    match imp::unnamed(directory)? {
        Some(file) => Ok(file),
        None => named_and_unlinked(directory),
    }
}

/// The way of `mkstemp`, for file systems without `O_TMPFILE`.
fn named_and_unlinked(directory: &Path) -> io::Result<OwnedFd> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    loop {
        // A name that is taken is tried anew, so a name need not be hard to guess: O_EXCL
        // never opens a file that another has put there.
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let nanos = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.subsec_nanos());
        let name = format!(".procwright-{}-{serial}-{nanos:08x}", std::process::id());
        let path = directory.join(name);
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match opened {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file.into());
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

/// Opens a file with `options`, which are for writing, and waits for nobody: a FIFO that
/// nobody reads is an error, where a plain open waits for its reader without end. The writes
/// wait, as ever.
///
/// # Errors
/// Those of open(2). See [`is_unread_fifo`].
#[doc(alias = "O_NONBLOCK")]
pub fn open_at_once(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = options.custom_flags(flags).open(path)?;
    let flags = fcntl_getfl(&file)? - OFlags::NONBLOCK;
    fcntl_setfl(&file, flags)?;
    Ok(file)
}

/// Whether an error of [`open_at_once`] says that nobody reads the FIFO.
pub fn is_unread_fifo(path: &Path, error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
        && std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}

/// Checks that files can be made in `directory`.
///
/// # Errors
/// The reason why they cannot.
pub fn check_writable(directory: &Path) -> io::Result<()> {
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(rustix::fs::access(
        directory,
        Access::WRITE_OK | Access::EXEC_OK,
    )?)
}

/// The bytes that this user can still store in `directory`.
///
/// # Errors
/// Those of `statvfs(2)`.
pub fn free_space(directory: &Path) -> io::Result<u64> {
    let answer = rustix::fs::statvfs(directory)?;
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_files_leave_no_name() {
        let directory = tempfile::tempdir().unwrap();
        for file in [
            temporary(directory.path()).unwrap(),
            named_and_unlinked(directory.path()).unwrap(),
        ] {
            reserve(&file, 0, 4096).unwrap();
            rustix::io::pwrite(&file, b"kept", 100).unwrap();
            let mut back = [0; 4];
            rustix::io::pread(&file, &mut back, 100).unwrap();
            assert_eq!(&back, b"kept");
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_fifo_is_opened_at_once_and_written_as_ever() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        let open = || open_at_once(OpenOptions::new().write(true), &path);
        let error = open().unwrap_err();
        assert!(is_unread_fifo(&path, &error), "{error}");
        let _reader = OpenOptions::new().read(true).write(true).open(&path);
        let flags = fcntl_getfl(open().unwrap()).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK));
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_told() {
        let directory = tempfile::tempdir().unwrap();
        check_writable(directory.path()).unwrap();
        let missing = check_writable(&directory.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = check_writable(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        assert!(free_space(directory.path()).unwrap() > 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_and_pipes_are_recognised() {
        assert!(!is_in_memory(Path::new("/proc")).unwrap());
        if Path::new("/dev/shm").is_dir() {
            assert!(is_in_memory(Path::new("/dev/shm")).unwrap());
        }
        let (read, write) = crate::pipe::pipe().unwrap();
        assert!(is_anonymous_pipe(&read) && is_anonymous_pipe(&write));
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_anonymous_pipe(temporary(directory.path()).unwrap()));
    }
}
