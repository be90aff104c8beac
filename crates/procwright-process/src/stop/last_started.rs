//! Which came first: the start of a process, or a signal to its parent.

use crate::proc_id::ProcId;
use procwright_os::proc;

/// Largest distance of two numbers that are taken for those of processes which were started
/// one after the other. Beyond it the numbers have begun again in between.
const FAR: i32 = 1 << 14;

/// The process that was started last, at a moment.
///
/// A start time alone does not tell what a program did at once when it got a signal, since
/// it is rounded to a tick of 10 ms. Within a tick the numbers tell: the kernel gives them
/// out in order, and begins again after the greatest.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastStarted {
    ticks: u64,
    /// None where the system does not tell.
    pid: Option<i32>,
}

impl LastStarted {
    /// Before all processes.
    pub(super) const NONE: LastStarted = LastStarted {
        ticks: 0,
        pid: None,
    };

    /// The process that was started last before this call.
    pub(super) fn now() -> LastStarted {
        LastStarted {
            ticks: proc::now_ticks(),
            pid: proc::last_pid(),
        }
    }

    /// Whether `id` was started later. False where nobody can say.
    pub(super) fn precedes(self, id: ProcId) -> bool {
        let is_next = |last: i32| match id.pid() - last {
            0 => false,
            further @ 1.. => further < FAR,
            back => back < -FAR,
        };
        id.start_ticks() > self.ticks
            || (id.start_ticks() == self.ticks && self.pid.is_some_and(is_next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_a_tick_the_numbers_tell() {
        let last = |pid| LastStarted { ticks: 70, pid };
        let id = |ticks, pid| ProcId::noted(pid, ticks, None);
        for (mark, one, expected) in [
            (last(Some(500)), id(71, 2), true),
            (last(Some(500)), id(69, 501), false),
            (last(Some(500)), id(70, 501), true),
            (last(Some(500)), id(70, 500), false),
            (last(Some(500)), id(70, 499), false),
            // The numbers have begun again, after the mark and before it.
            (last(Some(32_767)), id(70, 301), true),
            (last(Some(301)), id(70, 32_767), false),
            (last(None), id(70, 501), false),
            (last(None), id(71, 501), true),
            (LastStarted::NONE, id(1, 1), true),
            // Nobody has read its start.
            (LastStarted::NONE, id(0, 501), false),
        ] {
            assert_eq!(mark.precedes(one), expected, "{mark:?} {one:?}");
        }
    }

    #[test]
    fn a_process_of_now_is_later() {
        let mark = LastStarted::now();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let id = ProcId::of(child.id().cast_signed()).unwrap();
        assert!(mark.precedes(id), "{mark:?} {id:?}");
        assert!(!LastStarted::now().precedes(id), "{id:?}");
        child.wait().unwrap();
    }
}
