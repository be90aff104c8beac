//! The end of a run: its status, its data, and what is to be said of both.

use std::path::PathBuf;

use super::Run;
use crate::drain::Drain;
use crate::holders::Holders;
use crate::process::{Exit, Unknown};
use crate::run::output::{Reason, Report, StreamInfo};
use crate::run::tap::Consumer;
use crate::run::{Duty, Outcome, Trouble};
use crate::spool::Memory;

impl<M: Memory> Run<'_, M> {
    pub(crate) fn conclude(mut self) -> Outcome<M> {
        let held = self.still_held();
        let collected = self.running.collect();
        let (status, usage) = match self.running.ended() {
            Some((exit, usage)) if collected => (exit, usage),
            _ => (Exit::Unknown(Unknown::StillRunning), None),
        };
        let duration = self.started.elapsed();
        let trace = self.running.trace();
        let stopped = self.stop.as_ref().map_or("", |stop| stop.reason.name());
        trace.end(stopped, status);
        let cut = self.stop.as_ref().map_or([false; 2], |stop| stop.open);
        for consumer in &self.consumers {
            consumer.leave();
        }
        let (reason, survivors, processes, seen) = match self.stop {
            None => (Reason::Finished, Vec::new(), Vec::new(), [None, None]),
            Some(stop) => (
                stop.reason,
                stop.machine.survivors(),
                stop.processes,
                stop.held,
            ),
        };
        let (drains, merged) = self.inline.into_parts();
        let mut infos = [None, None];
        let mut data = [None, None];
        for (stream, (drain, (held, seen))) in drains
            .into_iter()
            .zip(held.into_iter().zip(seen))
            .enumerate()
        {
            let Some(drain) = drain else { continue };
            // Somebody holds it, but nobody was found: there are processes that
            // cannot be seen from here.
            let unseen = held.as_ref().is_some_and(|held| held.list.is_empty());
            let mut holders = Holders::nobody();
            for found in [seen, held].into_iter().flatten() {
                holders.absorb(found);
            }
            holders.complete &= !unseen;
            let mut info = StreamInfo {
                bytes: drain.bytes(),
                blocked: drain.blocked(),
                complete: !cut[stream] && !drain.has_failed(),
                held_by_complete: holders.complete,
                held_by: holders.list,
                ..StreamInfo::default()
            };
            for consumer in self.consumers.iter().filter(|c| c.streams[stream]) {
                note_consumer(consumer, stream, &mut info);
            }
            if drain.keeps() {
                data[stream] = Some(keep(drain, &mut info, &mut self.trouble));
            }
            infos[stream] = Some(info);
        }
        let [stdout_info, stderr_info] = infos;
        let [stdout, stderr] = data;
        Outcome {
            report: Report {
                argv: self.spec.argv.clone(),
                pid: self.running.pid(),
                status,
                reason,
                duration,
                cpu_user: usage.map(|usage| usage.user),
                cpu_system: usage.map(|usage| usage.system),
                max_rss_bytes: self.running.max_rss(),
                survivors,
                stdout_info,
                stderr_info,
                processes,
            },
            stdout,
            stderr,
            merged,
            trouble: self.trouble,
        }
    }
}

fn note_consumer(consumer: &Consumer, stream: usize, info: &mut StreamInfo) {
    let undelivered = consumer.fifo.undelivered()[stream];
    match &consumer.duty {
        Duty::Keeps(path) => {
            info.kept_at = Some(PathBuf::clone(path));
            info.kept_error = match &consumer.error {
                Some(error) => Some(format!("{error}; {undelivered} bytes are missing")),
                None if undelivered > 0 => {
                    Some(format!("{undelivered} bytes were not written in time"))
                }
                None => None,
            };
        }
        Duty::Required | Duty::Relays | Duty::Optional => info.undelivered_bytes += undelivered,
    }
}

/// Takes the kept bytes out of a drain and counts them.
fn keep<M: Memory>(drain: Drain<M>, info: &mut StreamInfo, trouble: &mut Option<Trouble>) -> M {
    let (kept, ends) = drain.into_kept();
    let kept = kept.unwrap_or_else(|error| {
        trouble.get_or_insert(Trouble::Io(error));
        M::new()
    });
    info.kept_bytes = kept.as_bytes().len() as u64;
    info.dropped_bytes = info.bytes - info.kept_bytes;
    info.dropped_at = ends.filter(|_| info.dropped_bytes > 0);
    kept
}
