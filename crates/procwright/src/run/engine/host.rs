//! The caller's part in a run that goes on: what it is asked, told and wants.

use procwright_process::Orphans;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use crate::error::BoxError;
use crate::run::event_thread::EventThread;
use crate::run::hooks::TickHook;
use crate::run::ticker::Ticker;
use crate::run::watch::{Demand, Moment, Watch};
use procwright_os::poll;
use procwright_os::time::Deadline;
use procwright_process::Cancel;

/// The caller's hooks, and what they have demanded so far.
pub(super) struct Host<'a> {
    pub(super) cancel: Option<Cancel>,
    /// The hook for events, if there is one.
    pub(super) events: Option<EventThread>,
    /// What an event that goes to stderr calls `Until::Exit`.
    pub(super) until_exit: &'static str,
    pub(super) watch: Option<Box<dyn Watch + 'a>>,
    pub(super) ticker: Option<Ticker<TickHook<'a>>>,
    /// True if orphans come to this process.
    pub(super) orphans: Orphans,
    pub(super) demanded: DemandedEnd,
    /// True if the caller is to have a turn.
    pub(super) pause: bool,
    /// True until the watch is asked what it had before the program was started.
    pub(super) watch_was_early: bool,
}

/// The end that was demanded of a run, the sharper one last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DemandedEnd {
    #[default]
    None,
    /// A stop as the spec says.
    Stop,
    /// A stop without more grace.
    Kill,
}

impl Host<'_> {
    /// Notes what the watch wants, or the caller of a run that pauses.
    pub(super) fn note(&mut self, demand: Demand) {
        match demand {
            Demand::Nothing => {}
            Demand::Pause => self.pause = true,
            Demand::Stop => self.demanded = self.demanded.max(DemandedEnd::Stop),
            // Also when it is the first demand, before there is a stop.
            Demand::Kill => self.demanded = DemandedEnd::Kill,
        }
    }

    /// True if the caller wants the run to end.
    pub(super) fn wants_end(&self) -> bool {
        self.demanded != DemandedEnd::None || self.is_cancelled()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(Cancel::is_cancelled)
    }

    /// Asks the watch what it wants, now that its descriptor is readable. Gives the
    /// error of a watch that failed: it stops the run, or ends the grace of a stop.
    pub(super) fn ask_watch(&mut self, moment: Moment<'_>) -> Option<BoxError> {
        let (demand, error) = match self.watch.as_mut()?.ready(moment) {
            Ok(demand) => (demand, None),
            Err(error) if moment.stopping => (Demand::Kill, Some(error)),
            Err(error) => (Demand::Stop, Some(error)),
        };
        self.note(demand);
        error
    }

    pub(super) fn watch_is_ready(&self) -> bool {
        self.watch
            .as_ref()
            .is_some_and(|watch| is_readable(watch.fd()))
    }

    pub(super) fn watch_fd(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(|watch| watch.fd())
    }

    pub(super) fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        self.cancel.as_ref().map(AsFd::as_fd)
    }

    pub(super) fn next_tick(&self) -> Deadline {
        self.ticker
            .as_ref()
            .map_or(Deadline::NEVER, |ticker| ticker.next())
    }

    /// Tells the hook for events that no more will come.
    pub(super) fn end_events(&self) {
        if let Some(events) = &self.events {
            events.end();
        }
    }

    /// Leaves the hook for events behind, which may be at work: the run is over.
    pub(super) fn leave_events(&self) {
        if let Some(events) = &self.events {
            events.leave();
        }
    }

    /// True if no event waits to be told, and the hook is not at work.
    pub(super) fn has_told_events(&self) -> bool {
        self.events.as_ref().is_none_or(EventThread::has_finished)
    }
}

/// True if `fd` is readable at this moment.
fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let fd = poll::Fd::from_borrowed_fd(fd, poll::Flags::IN);
    poll::wait_one(fd, Deadline::at(Instant::now())).unwrap_or(false)
}
