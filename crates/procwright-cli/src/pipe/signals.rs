//! Signals that arrive while the stages run.
//!
//! The stages are in our process group and on our terminal, unless `--scope group` gives each a
//! group of its own. Ctrl-C then goes to them as well, and is theirs to answer; a second one
//! stops them. A signal to this command alone stops them at once; one more ends the grace. This
//! command dies by the first that has stopped them. Ctrl-Z stops this command and the stages in
//! its group, by default.
//!
//! A signal that is no wish for an end but ends a process by default is held back, as by `run`:
//! sent to a job it has reached the stages.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use procwright::process::job::{Arrival, Inbox};
use procwright::process::{Scope, Stop};
use procwright::{BoxError, Demand, Moment, Watch};

use crate::own_signals::{self, is_for_this_command, is_from_keyboard};

/// The blocked signals of this process.
#[derive(Debug)]
pub(super) struct PipeSignals {
    inbox: Inbox,
    shares_group: bool,
    /// True if Ctrl-C was left to the stages to answer.
    was_interrupted: bool,
    fatal: Option<i32>,
}

impl PipeSignals {
    /// Blocks the signals; to be called before there is another thread. The stages are stopped
    /// by `stop`.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn block(stop: Stop) -> io::Result<PipeSignals> {
        Ok(PipeSignals {
            inbox: Inbox::new(own_signals::that_end_us())?,
            shares_group: stop.scope() != Scope::Group,
            was_interrupted: false,
            fatal: None,
        })
    }

    /// The signal that this command has to die by, if one has stopped the stages.
    pub(super) fn fatal(&self) -> Option<i32> {
        self.fatal
    }

    /// True if Ctrl-C was left to the stages to answer.
    pub(super) fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }

    fn demand_of(&mut self, arrival: Arrival) -> Demand {
        let reached_all = self.shares_group && is_from_keyboard(arrival);
        if reached_all && !std::mem::replace(&mut self.was_interrupted, true) {
            return Demand::Nothing;
        }
        match self.fatal.replace(arrival.signal.number()) {
            Some(_) => Demand::Kill,
            None => Demand::Stop,
        }
    }
}

impl Watch for PipeSignals {
    fn fd(&self) -> BorrowedFd<'_> {
        self.inbox.as_fd()
    }

    fn ready(&mut self, _moment: Moment<'_>) -> Result<Demand, BoxError> {
        let mut demand = Demand::Nothing;
        while let Some(arrival) = self.inbox.take() {
            if !is_for_this_command(arrival) {
                continue;
            }
            demand = match (demand, self.demand_of(arrival)) {
                (before, Demand::Nothing) => before,
                (Demand::Nothing, other) => other,
                _ => Demand::Kill,
            };
        }
        Ok(demand)
    }
}
