//! Who holds the run's pipes, and what its processes are doing.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::{NAMES, Run};
use crate::drain::Drain;
use crate::holders::{self, Holders, PipeId, RunPipe};
use crate::process::{Scope, Target, Tree};
use crate::run::{Event, Foreign, Trouble, quote};
use crate::spool::Memory;
use crate::sys::poll::{self, Flags};
use crate::time::Deadline;

/// A second after the program's exit somebody is told who still holds its
/// pipes: long enough that no ordinary run says anything, short enough that a
/// person at a terminal has not yet begun to wonder.
pub(super) const HELD_AFTER: Duration = Duration::from_secs(1);

impl<M: Memory> Run<'_, M> {
    /// The pipes whose other ends may still be held.
    pub(super) fn open_pipes(&self) -> Vec<RunPipe> {
        let open = self.inline.open_streams();
        let is_open = |pipe: &&RunPipe| match pipe.label {
            "stdout" => open[0],
            "stderr" => open[1],
            _ => true,
        };
        self.pipes.iter().filter(is_open).copied().collect()
    }

    /// Who holds the writing ends of the output pipes among `pipes`.
    pub(super) fn holders(&self, pipes: &[RunPipe]) -> [Option<Holders>; 2] {
        let ids: Vec<PipeId> = pipes.iter().map(|pipe| pipe.id).collect();
        let mut found = [None, None];
        if ids.is_empty() {
            return found;
        }
        // A second of doubt about the ticks.
        let since = self.started_ticks.saturating_sub(100);
        let mut ends = holders::of_pipes(&ids, std::process::id().cast_signed(), since)
            .ok()
            .map(Vec::into_iter);
        for pipe in pipes {
            let ends = ends.as_mut().and_then(Iterator::next);
            let Some(index) = NAMES.iter().position(|name| *name == pipe.label) else {
                continue;
            };
            found[index] = Some(match ends {
                Some(ends) => {
                    // Who holds our end as well is a copy of ourselves, forked by
                    // another thread and about to become its program.
                    let mut writers = ends.writers;
                    writers
                        .list
                        .retain(|writer| !ends.readers.list.contains(writer));
                    writers
                }
                // Nobody could look, which is not "nobody".
                None => Holders::default(),
            });
        }
        found
    }

    pub(super) fn tell_held(&mut self, now: Instant) {
        let due = self
            .exited_at
            .is_some_and(|exited| now >= exited + HELD_AFTER);
        if !due || self.said_held || self.inline.all_ended() {
            return;
        }
        self.said_held = true;
        let open = self.open_pipes();
        let held = self.holders(&open);
        let mut streams = Vec::new();
        let mut all = Holders::nobody();
        for (name, found) in NAMES.iter().zip(held) {
            let Some(found) = found else { continue };
            streams.push(*name);
            all.absorb(found);
        }
        let event = Event::Held {
            command: quote(&self.spec.argv),
            streams: streams.join(" and "),
            holders: all.list,
            complete: all.complete,
        };
        self.running
            .trace()
            .say(|| format!("held: {}", event.fact()));
        match &mut self.on_event {
            Some(on_event) => {
                if let Err(error) = on_event(&event) {
                    self.fail(Trouble::Foreign(Foreign::Event, error));
                }
            }
            // Never silent: see `Command::on_event`.
            None => say(&event),
        }
    }

    /// Who holds a stream that was left before its end. Asks the pipes first:
    /// the processes are looked through only if somebody is there.
    pub(super) fn still_held(&self) -> [Option<Holders>; 2] {
        let cut = self.inline.drains().map(|drain| {
            let left = drain.filter(|drain| drain.was_left());
            left.and_then(Drain::fd).is_some_and(|fd| {
                let mut fds = [poll::Fd::from_borrowed_fd(fd, Flags::empty())];
                let _ = poll::poll(&mut fds, Deadline::at(Instant::now()));
                !fds[0].revents().contains(Flags::HUP)
            })
        });
        let pipes: Vec<RunPipe> = self
            .pipes
            .iter()
            .filter(|pipe| {
                NAMES
                    .iter()
                    .zip(cut)
                    .any(|(name, cut)| cut && *name == pipe.label)
            })
            .copied()
            .collect();
        self.holders(&pipes)
    }
}

/// What every process of the run is doing, a line each.
pub(super) fn activities(target: &Target) -> Vec<String> {
    let members = Tree::new(target.clone(), Scope::Tree).survey(&mut |_| {});
    let members = members.unwrap_or_default();
    let living = members.iter().filter(|stat| !stat.is_gone());
    living
        .filter_map(|stat| holders::activity(stat.pid, &target.pipes).ok())
        .map(|activity| activity.to_string())
        .collect()
}

/// Writes to stderr, if it takes that without a wait. Not by `eprintln`, which
/// panics when stderr is a closed pipe or a full disk, and the program would be
/// left running.
fn say(event: &Event) {
    let stderr = io::stderr();
    let mut fds = [poll::Fd::new(&stderr, Flags::OUT)];
    let now = Deadline::at(Instant::now());
    if poll::poll(&mut fds, now).is_ok_and(|ready| ready > 0) {
        let _ = writeln!(&stderr, "procwright: {event}");
    }
}
