//! The signals that come to us while the program runs.
//!
//! The program is in our process group and on our terminal. What the terminal
//! sends (Ctrl-C, Ctrl-\) goes to both of us and is the program's to answer:
//! an editor or a debugger goes on. What somebody sends to us alone means the
//! run, which is then stopped, and we end by the same signal. So does what comes
//! while there is no program to answer: before its start, after its end.
//!
//! Under `--scope group` the program has a group and, in front, the terminal of
//! its own. What the terminal sends to us then comes while the program does not
//! have it, and is for us, too.
//!
//! A job's shell sends to the whole group (`kill -USR1 %1`), and there is no
//! telling that from what is sent to us alone. What is no wish for an end, but
//! would end us by default, is the program's to answer for that reason: it has
//! got it as well, or gets it from us if it is in another group. The kernel's own
//! (a timer that was set before us, a limit of processor time) are for us alone.
//!
//! Signals that we were started with ignored (`nohup`, a job in the background)
//! stay ignored, for the program too. Stops are another subject: [`Job`].
//!
//! No handlers: all of them are blocked, in all threads, and read from one
//! descriptor. So nothing interrupts a system call, and those that come when
//! nobody reads any more act by default the moment they are let through.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use procwright::process::job::{Arrival, Inbox, group_of};
use procwright::process::{Signal, reap_orphans};
use procwright::{BoxError, Demand, Moment, Process, Watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::run::job::{Job, Seen};

/// Those that mean an end.
const ENDING: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// Those that nobody but us can answer: our own faults, and those that cannot be
/// held back.
const LEFT: [Signal; 13] = [
    Signal::ILL,
    Signal::TRAP,
    Signal::ABRT,
    Signal::BUS,
    Signal::FPE,
    Signal::SEGV,
    Signal::SYS,
    Signal::PIPE,
    Signal::XFSZ,
    Signal::KILL,
    Signal::STOP,
    // They do nothing by default.
    Signal::URG,
    Signal::WINCH,
];

/// Above the last signal of any system.
const HIGHEST: i32 = 127;

/// Those of job control, and that a child has ended or stopped.
const JOB: [Signal; 5] = [
    Signal::CHLD,
    Signal::CONT,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
];

/// The signals of this process, as a run watches them.
#[derive(Debug)]
pub(crate) struct Signals {
    inbox: Inbox,
    job: Job,
    /// The one that we have to end by.
    fatal: Option<i32>,
    /// The keyboard has sent one that was the program's to answer.
    interrupted: bool,
    /// Somebody has stopped us and let us go on.
    resumed: bool,
}

impl Signals {
    /// Holds them back from now on: before there is any other thread. `pty` says
    /// that the program will have a terminal of its own, which has a size.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn catch(job: Job, pty: bool) -> io::Result<Signals> {
        let others = (1..=HIGHEST).filter_map(|number| Signal::new(number).ok());
        let held = others
            .filter(|signal| !LEFT.contains(signal) && !JOB.contains(signal))
            .filter(|signal| !signal.is_ignored());
        let size = pty.then_some(Signal::WINCH);
        Ok(Signals {
            inbox: Inbox::new(held.chain(JOB).chain(size))?,
            job,
            fatal: None,
            interrupted: false,
            resumed: false,
        })
    }

    /// Whether we have been stopped since this was asked last, or have wanted to:
    /// the terminal may have other modes now.
    pub(crate) fn take_resumed(&mut self) -> bool {
        std::mem::take(&mut self.resumed) | self.job.take_yielded()
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
    /// means an end comes back at once, and Ctrl-Z stops us alone.
    ///
    /// # Errors
    /// When the system does not let us wait.
    pub(crate) fn pause(&mut self, pause: Duration) -> io::Result<Option<i32>> {
        // A time that the clock cannot count is without end.
        let until = Instant::now().checked_add(pause);
        loop {
            while let Some(arrival) = self.inbox.take() {
                match arrival.signal {
                    // There is no program whose status would be somebody else's.
                    Signal::CHLD => _ = reap_orphans(0),
                    Signal::CONT | Signal::WINCH => {}
                    Signal::TSTP | Signal::TTIN | Signal::TTOU => _ = self.job.stop(arrival.signal),
                    ending => return Ok(Some(ending.number())),
                }
            }
            let left = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Ok(None),
                left => left,
            };
            let left = left.map(|left| Timespec::try_from(left).unwrap_or(LONGEST));
            let mut fds = [PollFd::new(&self.inbox, PollFlags::IN)];
            match poll(&mut fds, left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Does something of ours, during which signals do what they do by default.
    pub(crate) fn open<T>(&self, work: impl FnOnce() -> T) -> T {
        self.inbox.open(work)
    }

    /// The run is over, and what has come since its program's end means us.
    /// `by_signal` says that a signal or we have ended the program.
    pub(crate) fn conclude(&mut self, by_signal: bool) {
        while let Some(arrival) = self.inbox.take() {
            if means_us(arrival) && !JOB.contains(&arrival.signal) {
                self.fatal.get_or_insert(arrival.signal.number());
            }
        }
        self.job.end(by_signal || self.fatal.is_some());
    }

    /// What a signal that means an end asks of the run.
    fn ending(&mut self, arrival: Arrival, run: Moment<'_>) -> Demand {
        if self.job.is_shared() && run.running && is_of_the_keys(arrival) {
            self.interrupted = true;
            // Unless the run is being stopped anyway: then whoever presses
            // Ctrl-C has waited long enough.
            return match run.stopping {
                true => Demand::Kill,
                false => Demand::Nothing,
            };
        }
        match self.fatal.replace(arrival.signal.number()) {
            Some(_) => Demand::Kill,
            None => Demand::Stop,
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
        self.inbox.as_fd()
    }

    fn ready(&mut self, run: Moment<'_>) -> Result<Demand, BoxError> {
        let mut demand = Demand::Nothing;
        let mut seen = Seen::default();
        while let Some(arrival) = self.inbox.take() {
            match arrival.signal {
                Signal::CHLD => _ = reap_orphans(run.pid),
                Signal::CONT => {
                    seen.continued = true;
                    self.resumed = true;
                }
                Signal::TSTP => seen.stop = true,
                // Whoever has the terminal looks at its size.
                Signal::WINCH => {}
                // Whoever they are for has got them as well, and if that is the
                // program it is told of by its stop.
                Signal::TTIN | Signal::TTOU => {}
                signal if run.running && !means_us(arrival) => pass_on(signal, run.pid),
                _ => {
                    seen.keys |= is_of_the_keys(arrival);
                    demand = match (demand, self.ending(arrival, run)) {
                        (Demand::Nothing, other) => other,
                        (Demand::Stop, Demand::Nothing) => Demand::Stop,
                        _ => Demand::Kill,
                    };
                }
            }
        }
        self.job.look(run, seen);
        Ok(demand)
    }
}

/// Whether it wants an end, or was for nobody but us.
fn means_us(arrival: Arrival) -> bool {
    arrival.from_kernel || ENDING.contains(&arrival.signal)
}

/// Gives the program what was sent to us, unless it is in our group, and then it
/// has got it if the group was meant.
fn pass_on(signal: Signal, pid: i32) {
    if group_of(pid).is_some_and(|group| Some(group) != group_of(0))
        && let Ok(program) = Process::open(pid)
    {
        // One that has ended needs none.
        let _ = program.signal(signal);
    }
}

/// Whether it was the keyboard, and so went to the whole group.
fn is_of_the_keys(arrival: Arrival) -> bool {
    arrival.from_kernel && matches!(arrival.signal, Signal::INT | Signal::QUIT)
}
