//! A run under way: its parts, its phase, and what ends them.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::host::Host;
use super::program::Program;
use crate::drain::Inline;
use crate::looks::{Looks, PromptLooks};
use crate::quote::quote;
use crate::run::collected::Failure;
use crate::run::error::{Error, Foreign};
use crate::run::output::Reason;
use crate::spec::{Spec, Until};
use crate::spool::Memory;
use crate::std_stream::PerStream;
use crate::taps::OutputConsumer;
use procwright_explain::Diagnosis;
use procwright_os::fork;
use procwright_os::time::Deadline;
use procwright_process::Stopping;
use procwright_process::holders::Holders;

/// A run under way.
pub(crate) struct Run<'a, M> {
    pub(super) spec: Arc<Spec>,
    /// Generation of the process that has started it.
    pub(super) process: u32,
    pub(super) started: Instant,
    /// Time at which the timeout comes.
    pub(super) deadline: Deadline,
    pub(super) program: Program,
    pub(super) streams: Inline<M>,
    pub(super) consumers: Vec<OutputConsumer>,
    pub(super) host: Host<'a>,
    pub(super) looks: Looks,
    /// The looks at whether it waits for input, if the caller wants to know.
    pub(super) prompts: Option<PromptLooks>,
    pub(super) phase: RunPhase,
    /// The first failure: it is the cause, and others are its consequences.
    pub(super) failure: Option<Failure>,
    /// Those others. They are dropped when the run is over: what a host has thrown may take
    /// that host's lock then.
    pub(super) later_failures: Vec<Failure>,
    /// Time at which nothing was left to wait for.
    pub(super) over_at: Option<Instant>,
    /// How often the system has refused to let us read or wait. After the first time
    /// the streams are given up, after the second one the run is.
    pub(super) refusals: u32,
}

/// How far a run is.
pub(super) enum RunPhase {
    /// The program runs, or its streams have not ended.
    Moving {
        /// Turns since a deadline came.
        late_turns: u8,
        /// True if the caller was told who holds the pipes after the program's exit.
        told_holders: bool,
    },
    /// The program and its processes are being ended.
    Stopping(Box<RunStop>),
    /// Nothing is left to wait for, and what is demanded from now on comes too late.
    Over(Option<Box<RunStop>>),
}

impl Default for RunPhase {
    fn default() -> RunPhase {
        RunPhase::Moving {
            late_turns: 0,
            told_holders: false,
        }
    }
}

/// A stop under way, and what was seen when it began.
pub(super) struct RunStop {
    pub(super) reason: Reason,
    pub(super) began: Instant,
    pub(super) machine: Stopping,
    /// Time until which callbacks and copies may go on with what they have.
    pub(super) patience: Deadline,
    /// True if the grace was ended before its time.
    pub(super) hurried: bool,
    /// What was found out shortly before about why the program does not end.
    pub(super) diagnosis: Option<Box<Diagnosis>>,
    /// Activities of the processes, a line each.
    pub(super) activities: Vec<String>,
    pub(super) holders: PerStream<Option<Holders>>,
    /// Streams that had not ended.
    pub(super) open: PerStream<bool>,
    /// True if the program had exited, and the run waited for others that held its pipes.
    pub(super) held_after_exit: bool,
    /// True if the trace has told of SIGKILL.
    pub(super) traced_kill: bool,
}

impl RunStop {
    /// Leaves callbacks and copies no more time than until `end`: there is no more grace.
    pub(super) fn hurry(&mut self, end: Instant) {
        if !std::mem::replace(&mut self.hurried, true) {
            self.patience = self.patience.min(Deadline::at(end));
        }
    }

    /// Time at which something is to be done next.
    pub(super) fn deadline(&self) -> Deadline {
        let patience = match self.machine.finished() {
            true => self.patience,
            false => Deadline::NEVER,
        };
        self.machine.deadline().min(patience)
    }
}

impl<M: Memory> Run<'_, M> {
    /// True while its stop is under way.
    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.phase, RunPhase::Stopping(_))
    }

    /// True if a hook of the caller's has forked, and this is the fork. The program, the threads
    /// and what comes by the pipes are the parent's: nothing of the run is to be touched.
    pub(super) fn is_in_fork(&self) -> bool {
        self.process != fork::generation()
    }

    /// The error of the call in a fork.
    pub(crate) fn fork_error(&mut self) -> Error {
        Error::Forked {
            command: quote(&self.spec.argv),
            source: match self.later_failures.pop().or(self.failure.take()) {
                Some(Failure::Foreign(Foreign::Watch, error)) => Some(error),
                _ => None,
            },
        }
    }

    /// Notes that the program has ended. All that it wrote is in its pipes.
    pub(super) fn exited(&mut self, now: Instant) {
        self.program.exited_at = Some(now);
        let running = &mut self.program.running;
        running.trace().say(|| "the program has exited");
        running.take_terminal();
        self.streams.exited();
        if self.spec.until == Until::Exit && matches!(self.phase, RunPhase::Moving { .. }) {
            self.finish_streams();
        }
    }

    pub(super) fn finish_streams(&mut self) {
        self.streams.stop_feeding();
        if let Err(error) = self.streams.finish() {
            self.note_refusal(error);
        }
    }

    /// Gives the streams up, since reading or waiting failed; what was read of them
    /// stays.
    pub(super) fn note_refusal(&mut self, error: io::Error) {
        // Counted apart from other failures: the stop that one begins must go on.
        self.refusals += 1;
        self.streams.abandon();
        self.fail(Failure::Io(error));
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        match self.failure {
            None => self.failure = Some(failure),
            Some(_) => self.later_failures.push(failure),
        }
    }
}
