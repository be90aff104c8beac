//! `--retry`: a program that fails is run again.

use std::time::{Duration, Instant};

use procwright::{Output, Reason};

use super::signals::RunSignals;
use crate::args::RunArgs;
use crate::exit::Termination;
use crate::human::HumanDuration;
use crate::message;

/// Longest pause that doubling leads to.
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Attempts that were made, and those that may follow.
#[derive(Debug)]
pub(super) struct Attempts {
    started: Instant,
    made: u64,
    allowed: u64,
    /// Pause before the next attempt.
    pause: Duration,
    longest_pause: Duration,
    /// Of failures that another attempt follows nothing is said.
    quiet: bool,
}

impl Attempts {
    pub(super) fn new(args: &RunArgs) -> Attempts {
        Attempts {
            started: Instant::now(),
            made: 0,
            allowed: u64::from(args.retry) + 1,
            pause: args.backoff,
            longest_pause: LONGEST_PAUSE.max(args.backoff),
            quiet: args.quiet,
        }
    }

    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// Time since the first attempt began.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Counts an attempt.
    pub(super) fn begin(&mut self) {
        self.made += 1;
    }

    /// Why the latest attempt failed, if another one is to follow.
    pub(super) fn failure(&self, output: &Output, signals: &RunSignals) -> Option<String> {
        if self.made >= self.allowed || signals.asked_to_terminate() {
            return None;
        }
        failure(output)
    }

    /// Waits for the next attempt.
    ///
    /// # Errors
    /// There is to be none: a signal came, or the wait failed.
    pub(super) fn pause(
        &mut self,
        failure: &str,
        signals: &mut RunSignals,
    ) -> Result<(), Termination> {
        // Not waited for: signals are blocked, and the sleep below tells of them.
        if !self.quiet {
            message::post(format_args!(
                "attempt {} of {} failed: {failure}; next in {}",
                self.made,
                self.allowed,
                HumanDuration(self.pause).short(),
            ));
        }
        let pause = self.pause;
        self.pause = pause.saturating_mul(2).min(self.longest_pause);
        match signals.sleep(pause) {
            Ok(None) => Ok(()),
            Ok(Some(signal)) => Err(Termination::Signal(signal)),
            Err(error) => Err(Termination::trouble(format_args!(
                "cannot wait for the next attempt: {error}"
            ))),
        }
    }
}

/// Why the program failed, if another attempt may succeed.
fn failure(output: &Output) -> Option<String> {
    use procwright::process::{Exit, Signal};
    if output.success() {
        return None;
    }
    match (output.report.reason, output.report.status) {
        // SIGINT was a person's, who does not want the program to begin again.
        (Reason::Finished, Exit::Signal { signal, .. }) if signal == Signal::INT => None,
        (Reason::Finished, Exit::Code(_) | Exit::Signal { .. })
        | (Reason::Timeout | Reason::IdleTimeout | Reason::OutputLimit, _) => {
            Some(output.report.outcome())
        }
        _ => None,
    }
}
