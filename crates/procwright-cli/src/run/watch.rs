//! The run's watch on signals and on the person's terminal.

use std::os::fd::BorrowedFd;

use procwright::{BoxError, Demand, Moment, Watch};

use super::outer_terminal::OuterTerminal;
use super::signals::RunSignals;

/// The signals of a run, some of which are about the terminal.
#[derive(Debug)]
pub(super) struct RunWatch<'a> {
    pub(super) signals: &'a mut RunSignals,
    pub(super) outer: Option<&'a OuterTerminal>,
}

impl Watch for RunWatch<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.signals.fd()
    }

    fn ready(&mut self, moment: Moment<'_>) -> Result<Demand, BoxError> {
        let demand = self.signals.handle(moment);
        if let Some(outer) = self.outer {
            if self.signals.take_was_stopped() {
                outer.make_raw_again();
            }
            outer.update_size(moment);
        }
        Ok(demand)
    }
}
