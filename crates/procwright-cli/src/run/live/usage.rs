//! Memory and processor time of all that runs below this command.

use std::fs;
use std::time::Duration;

/// Whoever has more threads than these is told nothing rather than being held up
/// by us: each takes some 10 µs.
const MOST: usize = 2000;

/// At this moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Resident memory. What processes share is counted for each of them.
    pub(super) memory: u64,
    /// Processor time, with that of children that were waited for.
    pub(super) cpu: Duration,
}

impl Usage {
    /// Of all our descendants: orphans come to us. Where the system does not list
    /// children, of `root` alone. None if nothing can be known.
    pub(super) fn below(root: i32) -> Option<Usage> {
        let mut left = MOST;
        let mut waiting = match children("self", &mut left) {
            Some(children) if !children.is_empty() => children,
            _ => vec![root],
        };
        let mut usage = Usage::default();
        while let Some(pid) = waiting.pop() {
            // It may have ended since.
            if let Some((memory, cpu)) = of(pid) {
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

/// The children of all threads of a process, of so many as are `left`.
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

fn of(pid: i32) -> Option<(u64, Duration)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(
        &stat,
        rustix::param::page_size() as u64,
        rustix::param::clock_ticks_per_second(),
    )
}

/// The fields of `/proc/PID/stat` in question, behind the name.
fn parse(stat: &str, page: u64, ticks: u64) -> Option<(u64, Duration)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Its own user and system time, and those of the children; a negative one is
    // none that the kernel shows.
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
