//! Who has slept since an earlier look, told by what the scheduler counts: one small file in the
//! place of all others of a process.

use std::os::fd::{AsFd, OwnedFd};

use super::{calls, files};
use crate::wait::Wait;
use crate::world::{Process, Ran, Thread};

/// Longest text of a file `schedstat`: three numbers.
const LONGEST: usize = 80;

/// What a thread has run so far, by its file `schedstat`; none where the system does not count.
pub(super) fn ran(at: impl AsFd, name: &str) -> Option<Ran> {
    let mut buffer = [0; LONGEST];
    let text = files::read(at, name, &mut buffer).ok()?;
    parse(text)
}

/// `NANOSECONDS_RUN NANOSECONDS_WAITED TIMES_RUN`, all of them 0 where the system does not count.
fn parse(text: &[u8]) -> Option<Ran> {
    let mut numbers = text.trim_ascii().split(|byte| *byte == b' ');
    let mut next = || files::number::<u64>(numbers.next()?);
    let ran = Ran {
        nanoseconds: next()?,
        waited: next()?,
        times: next()?,
    };
    (ran.nanoseconds != 0 && ran.times != 0).then_some(ran)
}

/// The process as an earlier look has seen it, if none of its threads has run since. Its kin is
/// left to be asked for.
///
/// Who sleeps opens and closes no descriptor, starts no thread, and is in the call that it was in.
/// What a thread has run is counted to the nanosecond, and so tells it from any that has its number
/// by now. One that was woken and has no processor yet counts as asleep. None of who is frozen, or
/// in a wait that no signal ends: the freezer of version 1 stops a sleeper and thaws it while it
/// does not run.
pub(super) fn unchanged(proc: &OwnedFd, before: &Process) -> Option<Process> {
    let mut threads = before.threads.iter();
    let has_slept = !before.threads.is_empty()
        && before.frozen.is_none()
        && threads.all(|one| sleeps_on(proc, before, one));
    if !has_slept {
        return None;
    }
    let mut process = before.clone();
    // Others may change a set of descriptors meanwhile.
    for thread in &mut process.threads {
        if thread.wait.is_set() {
            let task = files::open_dir(proc, &task(before.pid, thread.tid)).ok()?;
            (thread.wait, thread.call) = calls::waiting(task.as_fd(), thread.state);
            if !thread.wait.is_set() {
                return None;
            }
        }
    }
    Some(process)
}

fn sleeps_on(proc: &OwnedFd, process: &Process, before: &Thread) -> bool {
    let slept = !matches!(before.state, 'R' | 'D') && before.wait != Wait::Runs;
    slept
        && before.ran.is_some()
        && ran(
            proc,
            &format!("{}/schedstat", task(process.pid, before.tid)),
        ) == before.ran
}

fn task(pid: i32, tid: i32) -> String {
    format!("{pid}/task/{tid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_has_run() {
        let ran = Ran {
            nanoseconds: 1_234_567,
            waited: 0,
            times: 3,
        };
        assert_eq!(parse(b"1234567 0 3\n"), Some(ran));
        for text in ["0 0 0\n", "5 0 0\n", "0 5 5\n", "5 5\n", "", "5 x 1\n"] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
