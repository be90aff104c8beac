//! The processes of a run: which of them hold its pipes, and what they are doing.

use std::time::{Duration, Instant};

use super::run_state::{Run, RunPhase};
use crate::child::{stream_of, writers_of};
use crate::drain::Drain;
use crate::run::event::Event;
use crate::spool::Memory;
use crate::std_stream::PerStream;
use procwright_os::poll::{self, Flags};
use procwright_os::time::{Deadline, Timeout};
use procwright_process::holders::{Holders, RunPipe};

/// How long after the program's exit the caller is told who still holds its pipes:
/// long enough that no ordinary run says anything, short enough that a person at a
/// terminal has not yet begun to wonder.
const HELD_AFTER: Duration = Duration::from_secs(1);

impl<M: Memory> Run<'_, M> {
    /// The pipes whose other ends may still be held.
    pub(super) fn open_pipes(&self) -> Vec<RunPipe> {
        let open = self.streams.open_streams();
        let is_open = |pipe: &&RunPipe| stream_of(pipe).is_none_or(|stream| open[stream]);
        let pipes = self.program.pipes.iter();
        pipes.filter(is_open).cloned().collect()
    }

    /// The holders of the writing ends of the output pipes among `pipes`.
    pub(super) fn holders(&self, pipes: &[RunPipe]) -> PerStream<Option<Holders>> {
        writers_of(pipes, self.program.started_ticks)
    }

    /// The time at which the caller is told who holds the pipes of a program that has exited:
    /// a silence that was asked for, and then the usual moment, is no news.
    pub(super) fn held_at(&self, exited: Instant) -> Deadline {
        let silence = self.spec.until.silence().unwrap_or_default();
        Timeout::after(silence.saturating_add(HELD_AFTER)).starting(exited)
    }

    /// Tells once who holds the pipes when the program has been gone for a while.
    pub(super) fn tell_holders(&mut self, now: Instant) {
        let Some(exited) = self.program.exited_at else {
            return;
        };
        let is_time = self.held_at(exited).reached(now) && !self.streams.all_ended();
        let RunPhase::Moving { told_holders, .. } = &mut self.phase else {
            return;
        };
        if *told_holders || !is_time {
            return;
        }
        *told_holders = true;
        let held = self.holders(&self.open_pipes());
        let event = Event::of_holders(&self.spec.argv, held, self.spec.until.silence());
        let trace = self.program.running.trace();
        trace.say(|| format!("held: {}", event.fact()));
        self.tell(&event);
    }

    /// The holders of streams that were left before their end. Asks the pipes first:
    /// the processes are looked through only if one of them has a writer.
    pub(super) fn remaining_holders(&self) -> PerStream<Option<Holders>> {
        let has_writers = self.streams.drains().map(|drain| {
            let left = drain.filter(|drain| drain.was_left());
            left.and_then(Drain::fd).is_some_and(|fd| {
                let mut fds = [poll::Fd::from_borrowed_fd(fd, Flags::empty())];
                let _ = poll::poll(&mut fds, Deadline::at(Instant::now()));
                !fds[0].revents().contains(Flags::HUP)
            })
        });
        let pipes = self.program.pipes.iter();
        let held = pipes.filter(|pipe| stream_of(pipe).is_some_and(|stream| has_writers[stream]));
        self.holders(&held.cloned().collect::<Vec<_>>())
    }
}
