//! What handlers of signals, and timers, could do.

use super::builder::{At, Builder};
use super::node::{Doubt, Free, Node, Why};
use crate::world::{Process, SIGCHLD};

pub(super) const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS, which come from what a program itself does, and
/// those that the C library has for itself (glibc: 32 and 33; a program's SIGRTMIN is 34).
const FAULTS: u64 =
    bit(4) | bit(5) | bit(6) | bit(7) | bit(8) | bit(11) | bit(31) | bit(32) | bit(33);

/// Signals that nobody sends unless a person, an end or a job's state makes him: HUP, INT,
/// QUIT, PIPE, TERM, CHLD, CONT, TSTP, TTIN, TTOU, URG, XCPU, XFSZ, WINCH. A handler of
/// another, of ALRM or USR1, may be there to be called by itself.
const QUIET_SIGNALS: u64 = FAULTS
    | bit(1)
    | bit(2)
    | bit(3)
    | bit(13)
    | bit(15)
    | bit(17)
    | bit(18)
    | bit(20)
    | bit(21)
    | bit(22)
    | bit(23)
    | bit(24)
    | bit(25)
    | bit(28);

impl Builder<'_> {
    /// What handlers of signals, and timers, could do.
    pub(super) fn add_signals(&self, node: &mut Node, process: &Process) {
        match process.timers {
            Some(true) => node.add_free(Free::Timer),
            Some(false) => {}
            None => node.add_doubt(Doubt::Timers),
        }
        if process.elsewhere {
            node.add_doubt(Doubt::Elsewhere);
        }
        if process.has_ring() {
            node.add_doubt(Doubt::Ring);
        }
        if process.caught & !QUIET_SIGNALS != 0 {
            node.add_doubt(Doubt::Handler);
        }
        let feeds_itself = node.edges.iter().any(|edge| {
            let conduit = matches!(edge.why, Why::Reads { .. } | Why::Writes { .. });
            conduit && edge.to == process.pid
        });
        // A pipe to oneself is how a handler tells the loop of a signal, of SIGINT too.
        if feeds_itself && process.caught & !FAULTS != 0 {
            node.add_doubt(Doubt::Handler);
        }
        if process.catches(SIGCHLD) {
            let children = self.children.get(&process.pid).into_iter().flatten();
            // One that has ended has sent its signal.
            for child in children.filter(|child| !child.gone) {
                let mut at = At {
                    node,
                    process,
                    tid: process.pid,
                };
                at.edge(child.pid, Why::ChildSignal);
            }
        }
    }
}
