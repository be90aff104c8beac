//! The threads of this process, and how often they have slept.

use std::collections::BTreeMap;
use std::fs;

use nix::sys::resource::{UsageWho, getrusage};

/// Of each thread: how often it has gone to sleep, which is how often something
/// woke it. The first one apart, which is the caller's.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    main: u64,
    others: BTreeMap<u32, u64>,
    cpu_ms: f64,
}

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
        let usage = getrusage(UsageWho::RUSAGE_SELF).expect("getrusage");
        let ms = |time: nix::sys::time::TimeVal| {
            time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3
        };
        Tasks {
            main: sleeps(own).unwrap_or(0),
            others: ids.filter_map(|id| Some((id, sleeps(id)?))).collect(),
            cpu_ms: ms(usage.user_time()) + ms(usage.system_time()),
        }
    }

    /// How many there are besides the first.
    pub fn count(&self) -> usize {
        self.others.len()
    }

    /// How often the others have woken since `before`. One that has ended
    /// meanwhile is not among them.
    pub fn wakes_since(&self, before: &Tasks) -> u64 {
        let wakes = |(id, now): (&u32, &u64)| now - before.others.get(id).unwrap_or(&0);
        self.others.iter().map(wakes).sum()
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
    let mb = bytes as f64 / 1e6;
    format!(
        r#"{{"spawn_s": {spawn:.6}, "seconds": {all:.6}, "bytes": {bytes}, "threads": {}, "wakes_per_mb": {:.3}, "main_wakes_per_mb": {:.3}, "cpu_ms_per_mb": {:.3}, "idle_wakes": {}}}"#,
        flowed.count(),
        flowed.wakes_since(&before) as f64 / mb,
        (flowed.main - before.main) as f64 / mb,
        (flowed.cpu_ms - before.cpu_ms) / mb,
        rested.wakes_since(&flowed)
    )
}
