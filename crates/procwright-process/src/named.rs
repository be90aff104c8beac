//! Finding processes by name.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use super::Process;
use crate::chase::Chase;
use crate::process_handle::ProcessHandle;
use procwright_os::proc::{self, ProcStat, Scan};

/// Longest time for which the scan goes after processes that are forked faster than it
/// looks.
const CHASE_LIMIT: Duration = Duration::from_millis(20);

/// All processes that have exactly this name, by number; this process itself is
/// left out.
///
/// A process has two names: the one that it goes by, which the system cuts to 15
/// bytes and which for a script is the script's, and the base name of its
/// program's file, which only its user and root may see. One of them has to be
/// the same, byte for byte. One that has ended and was not reaped has its name
/// still.
///
/// No snapshot: who is started meanwhile may be missing. Neither are those there
/// that this user may not see.
///
/// ```
/// let mut child = std::process::Command::new("sleep").arg("60").spawn()?;
/// let sleepers = procwright_process::named("sleep")?;
/// assert!(sleepers.iter().any(|process| process.pid() == child.id().cast_signed()));
/// child.kill()?;
/// child.wait()?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If processes cannot be listed: no `/proc`, or no descriptor free.
#[doc(alias = "pidof")]
#[doc(alias = "pgrep")]
#[doc(alias = "process_iter")]
pub fn named(name: impl AsRef<OsStr>) -> io::Result<Vec<Process>> {
    let name = name.as_ref().as_bytes();
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let chase = Chase::for_at_most(CHASE_LIMIT);
    let mut found = Vec::new();
    proc::each_pid(&mut |pid, is_above| {
        if pid != own
            && !chase.leaves_out(pid, is_above)
            && let Some(process) = if_named(pid, name)?
        {
            found.push(process);
        }
        Ok(Scan::Next)
    })?;
    Ok(found)
}

/// The process of this number, if it has this name.
fn if_named(pid: i32, name: &[u8]) -> io::Result<Option<Process>> {
    let Some(seen) = found(proc::stat(pid))? else {
        return Ok(None);
    };
    // The name is read before the process is opened: most have another name, and a
    // read is cheaper.
    if !goes_by(&seen, name) && !is_file(proc::exe(pid), name) {
        return Ok(None);
    }
    // The number can have gone to another process between the read and the open, so
    // both names are read again through the handle, which checks that.
    let Some(watched) = found(ProcessHandle::open(pid))? else {
        return Ok(None);
    };
    let Some(stat) = found(watched.stat())? else {
        return Ok(None);
    };
    let has_it = goes_by(&stat, name) || is_file(watched.exe(), name);
    Ok(has_it.then(|| Process::from(watched)))
}

fn goes_by(stat: &ProcStat, name: &[u8]) -> bool {
    stat.name.as_bytes() == name
}

/// Whether the file of a program has this base name. False if the file may not be
/// seen, and for kernel threads and zombies, which have none.
fn is_file(exe: io::Result<std::path::PathBuf>, name: &[u8]) -> bool {
    let Ok(exe) = exe else {
        return false;
    };
    let base = exe.file_name().unwrap_or_default().as_bytes();
    // A program file that was replaced while it runs keeps its name.
    base == name || base.strip_suffix(b" (deleted)") == Some(name)
}

/// The value; none for a process that is gone or hidden (`hidepid`).
fn found<T>(answer: io::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_hidden(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_hidden(error: &io::Error) -> bool {
    use io::ErrorKind::{NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | PermissionDenied)
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_file_of_a_program_that_was_replaced_is_still_its_name() {
        let is = |path: &str, name: &str| is_file(Ok(PathBuf::from(path)), name.as_bytes());
        assert!(is("/usr/bin/sleep", "sleep"));
        assert!(is("/usr/bin/sleep (deleted)", "sleep"));
        assert!(!is("/usr/bin/sleep", "bin"));
        assert!(!is("/usr/bin/sleepy", "sleep"));
        assert!(!is("/usr/bin/sleep", "slee"));
        assert!(!is_file(
            Err(io::ErrorKind::PermissionDenied.into()),
            b"sleep"
        ));
    }

    #[test]
    fn this_process_and_similar_names_are_not_found() {
        let own = std::env::current_exe().unwrap();
        let own = own.file_name().unwrap();
        let pid = std::process::id().cast_signed();
        let found = named(own).unwrap();
        assert!(found.iter().all(|process| process.pid() != pid));
        assert!(named("no process has this name").unwrap().is_empty());
    }
}
