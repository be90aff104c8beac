//! A directory that is this user's alone, and small files in it.
//!
//! Every step is opened from the one before and follows no link, so that no other
//! user can put another directory in the place of one that was checked.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "inotify.rs"]
mod watch;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "no_inotify.rs"]
mod watch;

/// A directory that no other user can enter.
#[derive(Debug)]
pub struct PrivateDir(OwnedFd);

const STEP: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl PrivateDir {
    /// Opens the last of the directories `below`, each inside the one before, the first
    /// inside `base`. `make` creates the missing ones.
    ///
    /// # Errors
    /// `NotFound` without `make`. `PermissionDenied` if one of those below is another
    /// user's, or others may enter it. `NotADirectory` if one is no directory, or a link
    /// to one.
    pub fn open(base: &Path, below: &[&OsStr], make: bool) -> io::Result<PrivateDir> {
        let follow = STEP.difference(OFlags::NOFOLLOW);
        let mut here = openat(CWD, base, follow, Mode::empty())?;
        for step in below {
            let next = match openat(&here, *step, STEP, Mode::empty()) {
                Err(Errno::NOENT) if make => {
                    // Another process may have made the directory first.
                    match rustix::fs::mkdirat(&here, *step, Mode::RWXU) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    openat(&here, *step, STEP, Mode::empty())
                }
                next => next,
            };
            here = match next {
                // O_NOFOLLOW answers ELOOP for a link.
                Err(Errno::LOOP) => return Err(Errno::NOTDIR.into()),
                next => next?,
            };
            let stat = fstat(&here)?;
            let others = Mode::RWXG | Mode::RWXO;
            if stat.st_uid != rustix::process::geteuid().as_raw()
                || Mode::from_raw_mode(stat.st_mode).intersects(others)
            {
                return Err(Errno::ACCESS.into());
            }
        }
        Ok(PrivateDir(here))
    }

    /// Opens a file in the directory for reading and writing; `make` creates an empty
    /// one if there is none.
    ///
    /// # Errors
    /// `NotFound` without `make`. `InvalidInput` if there is something else than a
    /// regular file under that name.
    pub fn file(&self, name: &str, make: bool) -> io::Result<File> {
        let mut how = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Neither a FIFO nor a terminal may block the open or become ours.
        how |= OFlags::NONBLOCK | OFlags::NOCTTY;
        if make {
            how |= OFlags::CREATE;
        }
        let no_file = || io::Error::from(io::ErrorKind::InvalidInput);
        let file = match openat(&self.0, name, how, Mode::RUSR | Mode::WUSR) {
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(no_file()),
            file => file?,
        };
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(no_file());
        }
        Ok(file.into())
    }

    /// True if `name` still leads to `file`.
    ///
    /// # Errors
    /// Those of `fstatat(2)`.
    pub fn names(&self, name: &str, file: &File) -> io::Result<bool> {
        let ours = fstat(file)?;
        match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Ok((there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The names in the directory that are UTF-8.
    ///
    /// # Errors
    /// Those of `getdents(2)`.
    pub fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            names.extend(entry.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// A descriptor that is readable once the directory, or something in it, has changed.
    ///
    /// # Errors
    /// `Unsupported` where there is no inotify, or no /proc.
    pub fn watch(&self) -> io::Result<OwnedFd> {
        watch::watch(&self.0)
    }

    /// Removes a name; a missing one is fine.
    ///
    /// # Errors
    /// Those of `unlinkat(2)`.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for PrivateDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn queues() -> [&'static OsStr; 2] {
        [OsStr::new("ours"), OsStr::new("queues")]
    }

    #[test]
    fn only_what_is_ours_alone_is_entered() {
        let base = tempfile::tempdir().unwrap();
        let open = |make| PrivateDir::open(base.path(), &queues(), make);
        let kind = |opened: io::Result<PrivateDir>| opened.unwrap_err().kind();
        assert_eq!(kind(open(false)), io::ErrorKind::NotFound);
        let folder = open(true).unwrap();
        let ours = base.path().join("ours");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&ours), 0o700);
        assert_eq!(mode(&ours.join("queues")), 0o700);
        assert!(
            !folder
                .names("a", &File::open("/dev/null").unwrap())
                .unwrap()
        );

        std::fs::set_permissions(&ours, PermissionsExt::from_mode(0o710)).unwrap();
        assert_eq!(kind(open(true)), io::ErrorKind::PermissionDenied);
        std::fs::remove_dir_all(&ours).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &ours).unwrap();
        assert_eq!(kind(open(true)), io::ErrorKind::NotADirectory);
        std::fs::remove_file(&ours).unwrap();
        std::fs::write(&ours, b"").unwrap();
        assert_eq!(kind(open(true)), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn a_name_is_that_of_one_file() {
        let base = tempfile::tempdir().unwrap();
        let folder = PrivateDir::open(base.path(), &queues(), true).unwrap();
        let missing = folder.file("a", false).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let first = folder.file("a", true).unwrap();
        assert!(folder.names("a", &first).unwrap());
        folder.remove("a").unwrap();
        folder.remove("a").unwrap();
        assert!(!folder.names("a", &first).unwrap());
        let second = folder.file("a", true).unwrap();
        assert!(!folder.names("a", &first).unwrap());
        assert!(folder.names("a", &second).unwrap());

        let at = base.path().join("ours/queues");
        std::os::unix::fs::symlink("/dev/null", at.join("link")).unwrap();
        std::fs::create_dir(at.join("directory")).unwrap();
        for name in ["link", "directory"] {
            let refused = folder.file(name, true).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
    }
}
