//! The children of a thread, as the system lists them (`CONFIG_PROC_CHILDREN`).

use std::io;
use std::os::fd::AsFd;

use super::files;

/// Readings of a list that two in a row have to agree in.
const READINGS: usize = 8;

/// True if the system has such lists.
pub(super) fn are_listed() -> bool {
    files::open_file(rustix::fs::CWD, "/proc/thread-self/children").is_ok()
}

/// The children that a thread has started; `dir` is that of its process. `ResourceBusy` where no
/// two of some readings agree.
///
/// A list is made as it is read, so that one reading may hide a child: 1. the reader is told of A;
/// 2. A is reaped; 3. of those that are left the system passes over as many as it has told of, and
/// so over one that it has not. Two readings in a row that agree have hidden none of those who were
/// there when the first began: each reading that hides one has told of another who is gone
/// behind it. The first cannot have done so, since the second tells of all of them again; and whom
/// only the second could have hidden, the first would have told of.
pub(super) fn of_thread(dir: impl AsFd, tid: i32) -> io::Result<Vec<i32>> {
    let mut last = some_of_thread(&dir, tid)?;
    for _ in 1..READINGS {
        let next = some_of_thread(&dir, tid)?;
        if next == last {
            return Ok(next);
        }
        last = next;
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// The children that one reading of the list tells of, which may hide some.
pub(super) fn some_of_thread(dir: impl AsFd, tid: i32) -> io::Result<Vec<i32>> {
    let file = files::open_file(dir, &format!("task/{tid}/children"))?;
    let text = io::read_to_string(std::fs::File::from(file))?;
    let numbers = text.split_whitespace();
    Ok(numbers.filter_map(|one| one.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_children_of_this_thread() {
        if !are_listed() {
            return;
        }
        let mut cat = Command::new(test_children::path())
            .arg("cat")
            .stdin(Stdio::piped())
            .spawn()
            .expect("a test child");
        let dir = files::open_dir(rustix::fs::CWD, "/proc/self").expect("this process");
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let listed = of_thread(&dir, tid).expect("its list");
        assert!(listed.contains(&cat.id().cast_signed()), "{listed:?}");
        drop(cat.stdin.take());
        cat.wait().expect("its end");
        let listed = of_thread(&dir, tid).expect("its list");
        assert!(!listed.contains(&cat.id().cast_signed()), "{listed:?}");
    }
}
