//! Memory and processor time of all processes below this command.

use std::fs;
use std::time::Duration;

use crate::procfs;

/// Threads that are looked at, at most: each takes some 10 µs, during which the run
/// is held up. A tree with more threads has no figures.
const MOST_THREADS: usize = 2000;

/// Memory and processor time at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TreeUsage {
    /// Resident memory. Pages that processes share are counted for each of them.
    pub(super) memory: u64,
    /// Processor time, with that of children that were reaped.
    pub(super) cpu: Duration,
}

impl TreeUsage {
    /// TreeUsage of all descendants of this process, which adopts orphans, if those are
    /// the program's (`all`), and of `root` with its descendants if not. Where the
    /// system does not list children, that of `root` alone. None if there are too
    /// many threads.
    pub(super) fn read(root: i32, all: bool) -> Option<TreeUsage> {
        let mut left = MOST_THREADS;
        let own = all.then(|| children("self", &mut left)).flatten();
        let mut waiting = own.filter(|all| !all.is_empty()).unwrap_or(vec![root]);
        let mut usage = TreeUsage::default();
        while let Some(pid) = waiting.pop() {
            // A process may have ended since it was listed.
            if let Some((memory, cpu)) = read_process(pid) {
                usage.memory += memory;
                usage.cpu += cpu;
            }
            waiting.extend(children(&pid.to_string(), &mut left).unwrap_or_default());
            if left == 0 {
                return None;
            }
        }
        Some(usage)
    }
}

/// Children of a process, from the lists of its threads. Each thread takes one of
/// `left`; None if there are more.
fn children(process: &str, left: &mut usize) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        *left = left.checked_sub(1)?;
        let list = thread.ok()?.path().join("children");
        let list = fs::read_to_string(list).ok()?;
        all.extend(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    Some(all)
}

/// Resident memory and processor time of one process.
fn read_process(pid: i32) -> Option<(u64, Duration)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(
        &stat,
        rustix::param::page_size() as u64,
        rustix::param::clock_ticks_per_second(),
    )
}

/// Resident memory and processor time in `/proc/PID/stat`.
fn parse(stat: &str, page: u64, ticks: u64) -> Option<(u64, Duration)> {
    let fields: Vec<&str> = procfs::fields_after_name(stat)?.collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // User and system time of the process, and those of its reaped children.
    let ticks_used = number(11)? + number(12)? + number(13)? + number(14)?;
    let millis = ticks_used.saturating_mul(1000) / ticks.max(1);
    Some((
        number(21)?.saturating_mul(page),
        Duration::from_millis(millis),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 20 30 20 0 1 0 99 1000 3 5 0";
        assert_eq!(
            parse(stat, 4096, 100),
            Some((3 * 4096, Duration::from_millis(2500)))
        );
        assert_eq!(parse("7 (a) S 1", 4096, 100), None);
    }
}
