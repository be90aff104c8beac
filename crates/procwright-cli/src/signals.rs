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
//! that Ctrl-Z stops both of us; under `--pty` we hear of the latter, and of
//! SIGWINCH.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use procwright::process::{Signal, reap_orphans};
use procwright::{BoxError, Demand, Moment, Watch};
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
    /// Somebody has stopped us and let us go on.
    resumed: bool,
}

impl Signals {
    /// Catches them from now on. `shared` says that the program will be in our
    /// process group, `pty` that it will have a terminal of its own.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn catch(shared: bool, pty: bool) -> io::Result<Signals> {
        let (read, write) = UnixStream::pair()?;
        let ending = ENDING.into_iter().filter(|signal| !signal.is_ignored());
        // SIGCHLD is caught whatever it was before: were it ignored, the
        // kernel would throw the program's status away.
        let of_terminal = [Signal::WINCH, Signal::CONT].into_iter().filter(|_| pty);
        let caught = ending.chain([Signal::CHLD]).chain(of_terminal);
        let caught = caught.map(Signal::number);
        Ok(Signals {
            delivery: SignalDelivery::with_pipe(read, write, WithOrigin::default(), caught)?,
            shared,
            fatal: None,
            resumed: false,
        })
    }

    /// Whether we have been stopped since this was asked last.
    pub(crate) fn take_resumed(&mut self) -> bool {
        std::mem::take(&mut self.resumed)
    }

    /// The signal that ended the run, if one did.
    pub(crate) fn fatal(&self) -> Option<i32> {
        self.fatal
    }
}

impl Watch for Signals {
    fn fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }

    fn ready(&mut self, run: Moment<'_>) -> Result<Demand, BoxError> {
        let mut demand = Demand::Nothing;
        let pending: Vec<Origin> = self.delivery.pending().collect();
        for origin in pending {
            if origin.signal == Signal::CHLD.number() {
                reap_orphans(run.pid);
            } else if origin.signal == Signal::CONT.number() {
                self.resumed = true;
            } else if origin.signal == Signal::WINCH.number() {
                // Whoever has the terminal looks at its size.
            } else if self.shared && is_from_the_terminal(&origin) {
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
