//! The stop of a run.

use std::time::{Duration, Instant};

use super::host::DemandedEnd;
use super::run_state::{Run, RunPhase, RunStop};
use crate::child::Before;
use crate::run::output::Reason;
use crate::spec::Until;
use crate::spool::Memory;
use procwright_explain::Diagnosis;
use procwright_os::time::{Deadline, Timeout};
use procwright_process::holders::RunPipe;
use procwright_process::{Signal, StopTarget, Stopping};

/// How long callbacks and copies may go on with what they have once the grace of a
/// stop is over: the program may have written up to its last moment. Enough to write
/// it to a disk, and within the two seconds that a run may take beyond the grace.
const PATIENCE: Duration = Duration::from_millis(500);

impl<M: Memory> Run<'_, M> {
    /// Begins the stop.
    pub(super) fn begin_stop(&mut self, reason: Reason, now: Instant) {
        let diagnosis = self.diagnosis(reason);
        self.prepare_stop(reason, diagnosis, Vec::new(), now);
        self.send_first_signal();
    }

    /// Finds whom the stop is for, and notes what they are doing. Sends nothing. It is for
    /// those as well that hold one of `others`, pipes of other runs or of buffers.
    pub(super) fn prepare_stop(
        &mut self,
        reason: Reason,
        diagnosis: Option<Box<Diagnosis>>,
        others: Vec<RunPipe>,
        now: Instant,
    ) {
        let stop = self.spec.stop;
        // Nothing is told any more.
        self.host.end_events();
        let trace = self.program.running.trace();
        trace.say(|| format!("stop, {}: {stop}", reason.name()));
        let open = self.open_pipes();
        let identity = self.program.identity();
        let target = StopTarget {
            root: identity,
            pipes: open.iter().cloned().chain(others).collect(),
            session: self.program.running.session(),
            orphans: self.host.orphans.clone(),
        };
        let root = || Some(self.program.running.handle(identity));
        let machine = Stopping::prepare(stop, target.clone(), root());
        let before = Before::first_signal_of(&machine, target, root(), &open);
        let streams = self.streams.open_streams();
        let is_held = self.program.has_exited() && (streams.stdout || streams.stderr);
        self.phase = RunPhase::Stopping(Box::new(RunStop {
            reason,
            began: now,
            machine,
            patience: Deadline::NEVER,
            hurried: false,
            diagnosis,
            activities: before.activities,
            holders: before.holders,
            held_after_exit: is_held && self.spec.until != Until::Exit,
            open: streams,
            traced_kill: false,
        }));
    }

    /// Sends the first signal of a stop that is prepared. The grace is counted from here on:
    /// on a busy machine the preparation of many takes longer than a short one.
    pub(super) fn send_first_signal(&mut self) {
        let policy = self.spec.stop;
        let grace = match policy.signal() {
            Signal::KILL => Duration::ZERO,
            _ => policy.grace(),
        };
        if let RunPhase::Stopping(stop) = &mut self.phase {
            let now = Instant::now();
            stop.patience = Timeout::after(grace.saturating_add(PATIENCE)).starting(now);
            stop.machine.start(now);
        }
    }

    /// Takes the next step of the stop, if one is under way.
    pub(super) fn step_stop(&mut self, now: Instant) {
        let RunPhase::Stopping(stop) = &mut self.phase else {
            return;
        };
        if self.host.demanded == DemandedEnd::Kill {
            stop.machine.kill_now(now);
            stop.hurry(now + PATIENCE);
        }
        stop.machine.step(now);
        if !stop.traced_kill && stop.machine.kills() {
            stop.traced_kill = true;
            let trace = self.program.running.trace();
            trace.say(|| "kill: SIGKILL to all that are left");
        }
        if stop.machine.finished() {
            self.after_stop(now);
        }
    }

    /// Ends what is left, now that all that was to be stopped is gone, or given up.
    fn after_stop(&mut self, now: Instant) {
        if !self.program.has_exited() && self.program.running.has_exited() {
            self.exited(now);
        }
        if !self.streams.all_ended() {
            self.finish_streams();
        }
        if let RunPhase::Stopping(stop) = &self.phase
            && stop.patience.reached(now)
            && !self.streams.all_ended()
        {
            // A reader that makes no room holds up no stop.
            self.streams.abandon();
        }
    }
}
