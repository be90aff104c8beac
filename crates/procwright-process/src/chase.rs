//! A look at all processes while others are started: how long it goes after those.

use std::time::{Duration, Instant};

use procwright_os::proc::{self, ProcStat};

/// Whether a process was started since a pass began at `begun`, in ticks since boot; of one that is
/// gone already it may be. `is_above` says whether its number is above the last one that was given
/// then, as [`proc::each_pid`] tells it: that of an old process may be, too, from before the numbers
/// went around.
pub(crate) fn is_newborn(is_above: bool, stat: Option<ProcStat>, begun: u64) -> bool {
    is_above && stat.is_none_or(|stat| stat.start_ticks >= begun)
}

/// A pass over all processes that leaves out those that were started since it began, once it
/// has gone after them for as long as it may: where others fork faster than it looks, it
/// would never end.
#[derive(Debug)]
pub(crate) struct Chase {
    begun: Instant,
    /// The begin, on the clock of the starts of processes.
    ticks: u64,
    limit: Duration,
}

impl Chase {
    /// A pass that begins now.
    pub(crate) fn for_at_most(limit: Duration) -> Chase {
        Chase {
            begun: Instant::now(),
            ticks: proc::now_ticks(),
            limit,
        }
    }

    /// Whether to leave out this process, whose number `is_above`, as of [`is_newborn`]: who is old
    /// is always looked at. One that is gone is none to leave out, nor costs time.
    pub(crate) fn leaves_out(&self, pid: i32, is_above: bool) -> bool {
        is_above
            && self.begun.elapsed() > self.limit
            && proc::stat(pid).is_ok_and(|stat| is_newborn(is_above, Some(stat), self.ticks))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn who_is_old_is_never_left_out() {
        let mut old = Command::new("sleep").arg("60").spawn().unwrap();
        let born = proc::now_ticks();
        test_support::eventually(|| proc::now_ticks() > born);
        let chase = Chase::for_at_most(Duration::ZERO);
        let patient = Chase::for_at_most(Duration::MAX);
        let mut new = Command::new("sleep").arg("60").spawn().unwrap();
        let [old_pid, new_pid] = [old.id(), new.id()].map(|id| id.cast_signed());
        assert!(!chase.leaves_out(old_pid, true));
        assert!(chase.leaves_out(new_pid, true));
        assert!(!chase.leaves_out(new_pid, false));
        assert!(!patient.leaves_out(new_pid, true));
        for child in [&mut old, &mut new] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(!chase.leaves_out(new_pid, true), "it is gone");
    }
}
