//! Runs and pipelines, driven to their ends with a turn of Ruby's for each of its interrupts.

use magnus::Error;
use procwright::pipeline::{self, OngoingPipeline, PipelineCollected};
use procwright::{Collected, Memory, Ongoing};

use crate::errors::panic_error;
use crate::gvl;
use crate::interruptible::{Interrupts, fork_error};

/// What was started, and goes on until it asks for a pause.
pub(crate) trait TakesTurns {
    /// What came of it.
    type Done;

    fn proceed(&mut self) -> bool;
    fn stop(&mut self);
    fn kill(&mut self);
    fn finish(self) -> Self::Done;
}

impl<M: Memory> TakesTurns for Ongoing<'_, M> {
    type Done = Result<Collected<M>, procwright::Error>;

    fn proceed(&mut self) -> bool {
        Ongoing::proceed(self)
    }
    fn stop(&mut self) {
        Ongoing::stop(self);
    }
    fn kill(&mut self) {
        Ongoing::kill(self);
    }
    fn finish(self) -> Self::Done {
        Ongoing::finish(self)
    }
}

impl<M: Memory> TakesTurns for OngoingPipeline<'_, M> {
    type Done = Result<PipelineCollected<M>, pipeline::Error>;

    fn proceed(&mut self) -> bool {
        OngoingPipeline::proceed(self)
    }
    fn stop(&mut self) {
        OngoingPipeline::stop(self);
    }
    fn kill(&mut self) {
        OngoingPipeline::kill(self);
    }
    fn finish(self) -> Self::Done {
        OngoingPipeline::finish(self)
    }
}

/// Begins it without Ruby's lock.
///
/// # Errors
/// What an interrupt has thrown: nothing was begun.
pub(crate) fn begin<T>(interrupts: &Interrupts, mut begin: impl FnMut() -> T) -> Result<T, Error> {
    loop {
        match interrupts.without_gvl(&mut begin)? {
            None => {}
            Some(Err(panic)) => return Err(panic_error(&*panic)),
            Some(Ok(begun)) => return Ok(begun),
        }
    }
}

/// Drives it to its end. Its watch is [`PauseOnInterrupt`](crate::interruptible::PauseOnInterrupt):
/// this thread has Ruby's lock only for interrupts.
///
/// # Errors
/// What an interrupt has thrown, when all is over: it stops what runs, and a second one ends the
/// grace. In a fork that a handler has made, at once.
pub(crate) fn drive<T: TakesTurns>(interrupts: &Interrupts, ongoing: T) -> Result<T::Done, Error> {
    let mut ongoing = Some(ongoing);
    let process = std::process::id();
    // Kept in this frame, where the collector finds it.
    let mut raised = None;
    loop {
        let done = interrupts.without_gvl_unchecked(|| {
            match ongoing.as_mut().is_some_and(TakesTurns::proceed) {
                true => ongoing.take().map(TakesTurns::finish),
                false => None,
            }
        });
        match done {
            Some(Ok(Some(done))) => return raised.map_or(Ok(done), Err),
            Some(Err(panic)) => return Err(panic_error(&*panic)),
            // It has paused, or there was an interrupt before it went on.
            Some(Ok(None)) | None => {}
        }
        interrupts.clear();
        // Ruby throws one at a time, and has nobody woken for another that was raised in this
        // thread by then: who has caught one looks again. More than two change nothing.
        for _ in 0..2 {
            let handled = gvl::check_interrupts_beside(raised.as_ref());
            if std::process::id() != process {
                // A handler has forked. What runs is the parent's.
                return Err(fork_error(raised, handled));
            }
            let Err(error) = handled else { break };
            match (&mut ongoing, &raised) {
                (Some(ongoing), None) => {
                    ongoing.stop();
                    raised = Some(error);
                }
                // The first exception is the cause; a second one ends the grace.
                (Some(ongoing), Some(_)) => ongoing.kill(),
                (None, _) => {}
            }
        }
    }
}
