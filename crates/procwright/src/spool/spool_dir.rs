//! The directory in which the files are made.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use procwright_os::Invalid;
use procwright_os::file;

/// The variable that keeps everything in memory if it is `0`.
const SWITCH: &str = "PROCWRIGHT_SPOOL";
/// The variable that names the directory.
const DIRECTORY: &str = "PROCWRIGHT_SPOOL_DIR";

/// The most that a queue keeps on disk unless its policy says how much.
const MOST: u64 = 1 << 30;

/// The directory for files; none if everything is to stay in memory, because
/// the environment says so or because there is no directory but in memory.
///
/// # Errors
/// A directory that was asked for and cannot be used. That is found before anything
/// starts, and not when the memory is full.
pub(crate) fn directory() -> Result<Option<PathBuf>, Invalid> {
    choose(|name| env::var_os(name).filter(|value| !value.is_empty()))
}

fn choose(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<PathBuf>, Invalid> {
    if variable(SWITCH).is_some_and(|value| value == "0") {
        return Ok(None);
    }
    if let Some(asked) = variable(DIRECTORY) {
        let asked = PathBuf::from(asked);
        // A file system in memory is fine if it was named: it is wanted then.
        return match file::check_writable(&asked) {
            Ok(()) => Ok(Some(asked)),
            Err(error) => Err(Invalid::new(
                DIRECTORY,
                format!("is {:?}, which cannot be used ({error})", asked.display()),
                format!("name a directory that can be written, or set {SWITCH}=0 to use none"),
            )),
        };
    }
    let usual = ["/var/tmp".into()]
        .into_iter()
        .chain(variable("TMPDIR"))
        .chain(["/tmp".into()]);
    // /tmp is often a file system in memory: moving bytes there would free
    // nothing.
    let is_disk = |directory: &Path| {
        file::check_writable(directory).is_ok()
            && file::is_in_memory(directory).is_ok_and(|in_memory| !in_memory)
    };
    Ok(usual
        .map(PathBuf::from)
        .find(|directory| is_disk(directory)))
}

/// The limit where the policy names none: a program that writes for ever must not
/// fill a disk that others need.
pub(super) fn default_limit(directory: &Path) -> u64 {
    file::free_space(directory).map_or(MOST, |free| MOST.min(free / 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(pairs: &[(&str, &str)]) -> Result<Option<PathBuf>, Invalid> {
        choose(|name| {
            let pair = pairs.iter().find(|pair| pair.0 == name)?;
            Some(pair.1.into())
        })
    }

    #[test]
    fn a_directory_that_was_asked_for_is_taken_or_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        assert_eq!(
            chosen(&[(DIRECTORY, path)]).unwrap().unwrap(),
            directory.path()
        );
        let error = chosen(&[(DIRECTORY, "/no/such")]).unwrap_err();
        assert_eq!(error.what(), DIRECTORY);
        assert!(error.to_string().contains("/no/such"), "{error}");
        assert!(error.to_string().contains("No such file"), "{error}");
    }

    #[test]
    fn memory_only_goes_before_everything() {
        assert_eq!(chosen(&[(SWITCH, "0"), (DIRECTORY, "/no/such")]), Ok(None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_is_no_disk_unless_it_was_asked_for() {
        if file::check_writable(Path::new("/dev/shm")).is_err() {
            return;
        }
        let usual = chosen(&[("TMPDIR", "/dev/shm")]).unwrap();
        assert_ne!(usual, Some("/dev/shm".into()));
        let asked = chosen(&[(DIRECTORY, "/dev/shm")]).unwrap();
        assert_eq!(asked, Some("/dev/shm".into()));
    }

    #[test]
    fn the_default_limit_is_no_more_than_a_tenth() {
        let directory = tempfile::tempdir().unwrap();
        let free = file::free_space(directory.path()).unwrap();
        let limit = default_limit(directory.path());
        assert!(limit <= MOST && limit <= free);
    }
}
