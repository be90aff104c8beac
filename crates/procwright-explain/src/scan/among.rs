//! Work on many processes, shared among threads.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use procwright_os::thread::{has_several_processors, spawn_quiet};

/// Processes from which on several threads look, and how many.
pub(super) const MANY: usize = 256;
const THREADS: usize = 4;

/// Processes that a thread takes at once: one that has thousands of descriptors takes as long
/// as hundreds of others, so that shares of one size would be unequal.
const AT_ONCE: usize = 16;

/// Calls `each` with the folder `/proc` for each of these processes, on the calling thread and,
/// where they are many, on others. Returns what each thread has gathered, by its number.
pub(super) fn gather<T: Default + Send + 'static>(
    proc: &Arc<OwnedFd>,
    pids: &[i32],
    each: fn(&OwnedFd, i32, &mut T),
) -> Vec<(i32, T)> {
    let work = Arc::new(Work {
        proc: Arc::clone(proc),
        pids: pids.to_vec(),
        next: AtomicUsize::new(0),
        each,
    });
    let helpers = match pids.len() >= MANY && has_several_processors() {
        true => THREADS - 1,
        false => 0,
    };
    // Where a thread is refused, the others do its part.
    let begun: Vec<JoinHandle<(i32, T)>> = (0..helpers)
        .map_while(|_| {
            let work = Arc::clone(&work);
            spawn_quiet("procwright-look", move || work.take_part()).ok()
        })
        .collect();
    let mut parts = vec![work.take_part()];
    for helper in begun {
        match helper.join() {
            Ok(part) => parts.push(part),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    parts
}

struct Work<T> {
    proc: Arc<OwnedFd>,
    pids: Vec<i32>,
    /// Index of the first that nobody has taken.
    next: AtomicUsize,
    each: fn(&OwnedFd, i32, &mut T),
}

impl<T: Default> Work<T> {
    fn take_part(&self) -> (i32, T) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let mut part = T::default();
        loop {
            let begin = self.next.fetch_add(AT_ONCE, Ordering::Relaxed);
            let Some(rest) = self.pids.get(begin..).filter(|rest| !rest.is_empty()) else {
                return (thread, part);
            };
            for &pid in rest.iter().take(AT_ONCE) {
                (self.each)(&self.proc, pid, &mut part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::files;

    #[test]
    fn each_is_taken_once() {
        let proc = Arc::new(files::open_dir(rustix::fs::CWD, "/proc").unwrap());
        for count in [0, 1, AT_ONCE, MANY - 1, MANY, 10 * MANY + 1] {
            let pids: Vec<i32> = (1..).take(count).collect();
            let parts = gather(&proc, &pids, |_, pid, part: &mut Vec<i32>| part.push(pid));
            let mut taken: Vec<i32> = parts.into_iter().flat_map(|(_, part)| part).collect();
            taken.sort_unstable();
            assert_eq!(taken, pids);
        }
    }
}
