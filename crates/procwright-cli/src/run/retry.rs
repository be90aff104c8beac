//! `--retry`: a program that fails is run again.

use std::time::{Duration, Instant};

use procwright::{Output, Reason};

use crate::args::RunArgs;
use crate::exit::End;
use crate::figures::Seconds;
use crate::message::say;
use crate::signals::Signals;

/// The longest pause that doubling leads to.
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// The attempts that were made, and may still be.
#[derive(Debug)]
pub(super) struct Attempts {
    started: Instant,
    made: u64,
    allowed: u64,
    /// Before the next one.
    pause: Duration,
    longest: Duration,
}

impl Attempts {
    pub(super) fn new(args: &RunArgs) -> Attempts {
        Attempts {
            started: Instant::now(),
            made: 0,
            allowed: u64::from(args.retry) + 1,
            pause: args.backoff,
            longest: LONGEST.max(args.backoff),
        }
    }

    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// Since the first one began.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// An attempt begins.
    pub(super) fn begin(&mut self) {
        self.made += 1;
    }

    /// After an attempt: what was wrong with it, if it is to be tried again.
    pub(super) fn failure(&self, output: &Output, signals: &Signals) -> Option<String> {
        if self.made >= self.allowed || signals.were_for_an_end() {
            return None;
        }
        failure(output)
    }

    /// Waits for the next attempt. Comes back with an end if there is to be none.
    pub(super) fn pause(&mut self, failure: &str, signals: &mut Signals) -> Option<End> {
        say(format_args!(
            "attempt {} of {} failed: {failure}; next in {}",
            self.made,
            self.allowed,
            Seconds(self.pause).short(),
        ));
        let pause = self.pause;
        self.pause = pause.saturating_mul(2).min(self.longest);
        match signals.pause(pause) {
            Ok(None) => None,
            Ok(Some(signal)) => Some(End::Signal(signal)),
            Err(error) => {
                say(format_args!("cannot wait for the next attempt: {error}"));
                Some(End::TROUBLE)
            }
        }
    }
}

/// What was wrong, if it may be better the next time.
fn failure(output: &Output) -> Option<String> {
    use procwright::process::{Exit, Signal};
    let status = output.report.status;
    match (output.report.reason, status) {
        (Reason::Finished, Exit::Code(0)) => None,
        // Somebody wants it to end, and not to begin again.
        (Reason::Finished, Exit::Signal { signal, .. }) if signal == Signal::INT => None,
        (Reason::Finished, Exit::Code(_) | Exit::Signal { .. }) => Some(status.to_string()),
        (Reason::Timeout, _) => Some("timed out".to_owned()),
        (Reason::IdleTimeout, _) => Some("was silent for too long".to_owned()),
        (Reason::OutputLimit, _) => Some("wrote more than the limit".to_owned()),
        _ => None,
    }
}
