//! The signals that come to us while the program runs.
//!
//! The program is in our process group and on our terminal. What the terminal
//! sends (Ctrl-C, Ctrl-\) goes to both of us and is the program's to answer:
//! an editor or a debugger goes on. What somebody sends to us alone means the
//! run, which is then stopped, and we end by the same signal.
//!
//! Under `--scope group` the program has a group of its own, which the terminal
//! does not know: then what it sends is for us, too.
//!
//! Signals that we were started with ignored (`nohup`, a job in the background)
//! stay ignored, for the program too. SIGTSTP and SIGCONT are not touched, so
//! that Ctrl-Z stops both of us.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use procwright::process::{Signal, reap_orphans};
use procwright::{BoxError, Demand, Moment, Watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};

/// Those that mean an end.
const ENDING: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// The signals of this process, as a run watches them.
#[derive(Debug)]
pub(crate) struct Signals {
    delivery: SignalDelivery<UnixStream, WithOrigin>,
    /// Whether the terminal's signals reach the program as well.
    shared: bool,
    /// The one that we have to end by.
    fatal: Option<i32>,
    /// The keyboard has sent one that was the program's to answer.
    interrupted: bool,
}

impl Signals {
    /// Catches them from now on. `shared` says that the program will be in our
    /// process group.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn catch(shared: bool) -> io::Result<Signals> {
        let (read, write) = UnixStream::pair()?;
        let ending = ENDING.into_iter().filter(|signal| !signal.is_ignored());
        // SIGCHLD is caught whatever it was before: were it ignored, the
        // kernel would throw the program's status away.
        let caught = ending.chain([Signal::CHLD]).map(Signal::number);
        Ok(Signals {
            delivery: SignalDelivery::with_pipe(read, write, WithOrigin::default(), caught)?,
            shared,
            fatal: None,
            interrupted: false,
        })
    }

    /// The signal that ended the run, if one did.
    pub(crate) fn fatal(&self) -> Option<i32> {
        self.fatal
    }

    /// Whether somebody wants an end, of us or of the program: what was tried is
    /// then not tried again.
    pub(crate) fn were_for_an_end(&self) -> bool {
        self.fatal.is_some() || self.interrupted
    }

    /// Waits while no program runs. All signals are ours then: the first that
    /// means an end comes back at once.
    ///
    /// # Errors
    /// When the system does not let us wait.
    pub(crate) fn pause(&mut self, pause: Duration) -> io::Result<Option<i32>> {
        // A time that the clock cannot count is without end.
        let until = Instant::now().checked_add(pause);
        loop {
            for origin in self.delivery.pending().collect::<Vec<Origin>>() {
                if origin.signal != Signal::CHLD.number() {
                    return Ok(Some(origin.signal));
                }
                // There is no program whose status would be somebody else's.
                reap_orphans(0);
            }
            let left = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Ok(None),
                left => left,
            };
            let left = left.map(|left| Timespec::try_from(left).unwrap_or(LONGEST));
            let mut fds = [PollFd::new(self.delivery.get_read(), PollFlags::IN)];
            match poll(&mut fds, left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// 31 years, for times that do not fit the system's type: the loop looks at the
/// clock again after it.
const LONGEST: Timespec = Timespec {
    tv_sec: 1_000_000_000,
    tv_nsec: 0,
};

impl Watch for Signals {
    fn fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }

    fn ready(&mut self, run: Moment) -> Result<Demand, BoxError> {
        let mut demand = Demand::Nothing;
        let pending: Vec<Origin> = self.delivery.pending().collect();
        for origin in pending {
            if origin.signal == Signal::CHLD.number() {
                reap_orphans(run.pid);
            } else if self.shared && is_from_the_terminal(&origin) {
                self.interrupted = true;
                // Unless the run is being stopped anyway: then whoever presses
                // Ctrl-C has waited long enough.
                if run.stopping {
                    demand = Demand::Kill;
                }
            } else if self.fatal.replace(origin.signal).is_some() {
                demand = Demand::Kill;
            } else if demand == Demand::Nothing {
                demand = Demand::Stop;
            }
        }
        Ok(demand)
    }
}

/// Whether it was the keyboard, and so went to the whole group.
fn is_from_the_terminal(origin: &Origin) -> bool {
    let keyboard = [Signal::INT.number(), Signal::QUIT.number()];
    origin.cause == Cause::Kernel && keyboard.contains(&origin.signal)
}
