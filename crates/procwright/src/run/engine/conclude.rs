//! The end of a run: its status, its data, and what is to be said of both.

use std::time::Instant;

use super::run_state::{Run, RunPhase};
use crate::drain::Drain;
use crate::run::collected::{Collected, Failure};
use crate::run::output::{ReachedLimit, Reason, Report, StreamInfo};
use crate::spec::Spec;
use crate::spool::Memory;
use crate::std_stream::PerStream;
use procwright_process::holders::Holders;
use procwright_process::{Exit, Unknown};

impl<M: Memory> Run<'_, M> {
    /// Reaps the program and gives all that came of the run.
    pub(crate) fn conclude(mut self) -> Collected<M> {
        let remaining = self.remaining_holders();
        let running = &mut self.program.running;
        let collected = running.collect();
        let (status, usage) = match running.ended() {
            Some((exit, usage)) if collected => (exit, usage),
            _ => (Exit::Unknown(Unknown::StillRunning), None),
        };
        // One of several waits for the others before it is concluded.
        let over_at = self.over_at.unwrap_or_else(Instant::now);
        let duration = over_at.saturating_duration_since(self.started);
        let stop = match self.phase {
            RunPhase::Stopping(stop) | RunPhase::Over(Some(stop)) => Some(stop),
            RunPhase::Moving { .. } | RunPhase::Over(None) => None,
        };
        let stop_duration = stop.as_ref();
        let stop_duration = stop_duration.map(|stop| over_at.saturating_duration_since(stop.began));
        let stopped = stop.as_ref().map_or("", |stop| stop.reason.name());
        running.trace().end(stopped, status);
        for consumer in &self.consumers {
            consumer.leave();
        }
        self.host.leave_events();
        let cut = stop.as_ref().map(|stop| stop.open).unwrap_or_default();
        let held_after_exit = stop.as_ref().is_some_and(|stop| stop.held_after_exit);
        let (reason, diagnosis, survivors, processes, at_stop) = match stop {
            None => (
                // What the program wrote last may be found to be too much once it has exited.
                match self.streams.over_limit() {
                    true => Reason::OutputLimit,
                    false => Reason::Finished,
                },
                None,
                Vec::new(),
                Vec::new(),
                PerStream::default(),
            ),
            Some(stop) => (
                stop.reason,
                stop.diagnosis,
                stop.machine.survivors(),
                stop.activities,
                stop.holders,
            ),
        };
        let (drains, merged) = self.streams.into_parts();
        let mut infos = PerStream::new(None, None);
        let mut data = PerStream::new(None, None);
        for (stream, (drain, (remaining, at_stop))) in drains.zip(remaining.zip(at_stop)) {
            let Some(drain) = drain else { continue };
            let mut info = stream_info(&drain, remaining, at_stop);
            info.complete = !cut[stream] && !drain.has_failed();
            for consumer in self.consumers.iter().filter(|c| c.streams[stream]) {
                let error = consumer.error.as_ref().map(ToString::to_string);
                let undelivered = consumer.fifo.undelivered()[stream];
                info.note_copy(&consumer.role, error, undelivered);
            }
            info.note_excess(drain.excess());
            if drain.keeps() {
                data[stream] = Some(keep(drain, &mut info, &mut self.failure));
            } else if drain.has_reader()
                && let Some(words) = drain.last_words()
            {
                let mut memory = M::new();
                // The rule of a pipeline goes by them; without memory it does without.
                let _ = memory.push(&words.bytes());
                data[stream] = Some(memory);
            }
            infos[stream] = Some(info);
        }
        Collected {
            report: Report {
                argv: self.spec.argv.clone(),
                pid: running.pid(),
                status,
                reason,
                ok_codes: self.spec.ok_codes.clone(),
                limit: reached(&self.spec, reason),
                duration,
                stop_duration,
                cpu_user: usage.map(|usage| usage.user),
                cpu_system: usage.map(|usage| usage.system),
                max_rss_bytes: running.max_rss(),
                oom_kills: running.oom_kills().cloned(),
                survivors,
                last_words_of: self.spec.last_words_of(),
                stdout_info: infos.stdout,
                stderr_info: infos.stderr,
                processes,
                diagnosis,
                held_after_exit,
            },
            stdout: data.stdout,
            stderr: data.stderr,
            merged,
            failure: self.failure,
        }
    }
}

/// The limit that this reason means.
fn reached(spec: &Spec, reason: Reason) -> Option<ReachedLimit> {
    match reason {
        Reason::Finished | Reason::Cancelled => None,
        Reason::Timeout => spec.timeout.duration().map(ReachedLimit::Time),
        Reason::IdleTimeout => spec.idle_timeout.duration().map(ReachedLimit::Time),
        Reason::OutputLimit => spec.limit.map(|limit| ReachedLimit::Bytes(limit.bytes)),
    }
}

/// Figures of a pipe, and the processes that held it when a stop began or at the end.
fn stream_info<M: Memory>(
    drain: &Drain<M>,
    remaining: Option<Holders>,
    at_stop: Option<Holders>,
) -> StreamInfo {
    // A pipe that is held by nobody who was found is held by a process that cannot be
    // seen from here.
    let is_unseen = remaining.as_ref().is_some_and(|held| held.list.is_empty());
    let mut holders = Holders::nobody();
    for found in [at_stop, remaining].into_iter().flatten() {
        holders.absorb(found);
    }
    StreamInfo {
        bytes: drain.bytes(),
        blocked: drain.blocked(),
        held_by_complete: holders.complete && !is_unseen,
        held_by: holders.list,
        ..StreamInfo::default()
    }
}

/// Takes the kept bytes out of a drain and counts them.
fn keep<M: Memory>(drain: Drain<M>, info: &mut StreamInfo, failure: &mut Option<Failure>) -> M {
    let (kept, ends) = drain.into_kept();
    let kept = kept.unwrap_or_else(|error| {
        failure.get_or_insert(Failure::Io(error));
        M::new()
    });
    info.kept_bytes = kept.as_bytes().len() as u64;
    info.dropped_bytes = info.bytes - info.kept_bytes;
    info.dropped_at = ends.filter(|_| info.dropped_bytes > 0);
    kept
}
