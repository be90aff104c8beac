//! The threads of this process, and how often they have slept.

use std::collections::BTreeMap;
use std::fs;

/// Of each thread but the first: how often it has gone to sleep, which is how
/// often something woke it.
#[derive(Clone, Debug, Default)]
pub struct Tasks(BTreeMap<u32, u64>);

impl Tasks {
    /// As it is now.
    ///
    /// # Panics
    /// Without `/proc`.
    pub fn now() -> Tasks {
        let own = std::process::id();
        let tasks = fs::read_dir("/proc/self/task").expect("/proc");
        let ids = tasks
            .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
            .filter(|id| *id != own);
        Tasks(ids.filter_map(|id| Some((id, sleeps(id)?))).collect())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// How often all of them have woken since `before`. One that has ended
    /// meanwhile is not among them.
    pub fn wakes_since(&self, before: &Tasks) -> u64 {
        let wakes = |(id, now): (&u32, &u64)| now - before.0.get(id).unwrap_or(&0);
        self.0.iter().map(wakes).sum()
    }
}

fn sleeps(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/self/task/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line?.trim().parse().ok()
}

/// The line of JSON of a case with many children: seconds for starting all, and
/// until all was here; the threads before the start, then, and after a rest.
pub fn flow(bytes: u64, [spawn, all]: [f64; 2], [before, flowed, rested]: [Tasks; 3]) -> String {
    let wakes = flowed.wakes_since(&before);
    format!(
        r#"{{"spawn_s": {spawn:.6}, "seconds": {all:.6}, "bytes": {bytes}, "threads": {}, "wakes_per_mb": {:.3}, "idle_wakes": {}}}"#,
        flowed.count(),
        wakes as f64 / (bytes as f64 / 1e6),
        rested.wakes_since(&flowed)
    )
}
