//! Work on many processes, shared among threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use procwright_os::thread::{processors, spawn_quiet_scoped};

/// Processes from which on several threads look.
pub(super) const MANY: usize = 256;

/// Threads that look at most: more get in each other's way within the kernel.
const MOST_THREADS: usize = 4;

/// Processes that a thread takes at once: one that has thousands of descriptors takes as long
/// as hundreds of others, so that shares of one size would be unequal.
const AT_ONCE: usize = 16;

/// Calls `each` for each of these processes, on the calling thread and, where they are many, on
/// others. Returns what each thread has gathered, by its number.
pub(super) fn gather<T: Default + Send>(
    pids: &[i32],
    each: impl Fn(i32, &mut T) + Sync,
) -> Vec<(i32, T)> {
    // Index of the first that nobody has taken.
    let next = AtomicUsize::new(0);
    let take_part = || {
        let mut part = T::default();
        loop {
            let begin = next.fetch_add(AT_ONCE, Ordering::Relaxed);
            let Some(rest) = pids.get(begin..).filter(|rest| !rest.is_empty()) else {
                return (rustix::thread::gettid().as_raw_nonzero().get(), part);
            };
            for &pid in rest.iter().take(AT_ONCE) {
                each(pid, &mut part);
            }
        }
    };
    let helpers = match pids.len() >= MANY {
        true => processors().min(MOST_THREADS) - 1,
        false => 0,
    };
    std::thread::scope(|scope| {
        // Where a thread is refused, the others do its part.
        let begun: Vec<_> = (0..helpers)
            .map_while(|_| spawn_quiet_scoped(scope, "procwright-look", take_part).ok())
            .collect();
        let mut parts = vec![take_part()];
        for helper in begun {
            match helper.join() {
                Ok(part) => parts.push(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        parts
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_once() {
        for count in [0, 1, AT_ONCE, MANY - 1, MANY, 10 * MANY + 1] {
            let pids: Vec<i32> = (1..).take(count).collect();
            let parts = gather(&pids, |pid, part: &mut Vec<i32>| part.push(pid));
            let mut taken: Vec<i32> = parts.into_iter().flat_map(|(_, part)| part).collect();
            taken.sort_unstable();
            assert_eq!(taken, pids);
        }
    }
}
