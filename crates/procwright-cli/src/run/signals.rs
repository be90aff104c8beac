//! Signals that arrive at this command while the program runs.
//!
//! The program is in our process group and on our terminal. A signal that the
//! terminal sends (Ctrl-C, Ctrl-\) goes to both, and the program answers it: an
//! editor or a debugger goes on. A signal that is sent to this command alone means
//! the run, which is then stopped, and this command dies by the same signal. The
//! same holds for signals before the program's start and after its end.
//!
//! Under `--scope group` the program has a process group and, in the foreground, the
//! terminal of its own. The terminal then signals this command only while the
//! program does not have it, and means this command, too.
//!
//! A shell signals the whole group of a job (`kill -USR1 %1`), which cannot be told
//! from a signal to this command alone. A signal that is no request to terminate,
//! but terminates by default, is therefore the program's to answer: the program has
//! got it as a member of the group, or gets it passed on in a group of its own.
//! Signals of the kernel (a timer that was set before the exec, a limit of processor
//! time) are for this command alone.
//!
//! Signals that were ignored when this command started (`nohup`, a job in the
//! background) stay ignored, for the program too. Stops are the subject of
//! [`ShellJob`].
//!
//! No handlers are installed: all signals are blocked, in all threads, and read from
//! a signalfd(2). So no system call is interrupted, and signals that are pending
//! when the run is over act by default the moment they are unblocked.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use procwright::process::job::{Arrival, Inbox, group_of};
use procwright::process::{Signal, reap_orphans};
use procwright::{Demand, Moment, Process};
use rustix::event::{PollFd, PollFlags};

use super::shell_job::{JobSignals, ShellJob};
use crate::exit::is_process_1;
use crate::own_signals::{self, JOB_CONTROL, is_for_this_command, is_from_keyboard};
use crate::poll;

/// The blocked signals of this process, and what they mean for the run.
#[derive(Debug)]
pub(super) struct RunSignals {
    inbox: Inbox,
    job: ShellJob,
    /// Signal that this command has to die by.
    fatal: Option<i32>,
    /// True if Ctrl-C or Ctrl-\ was left to the program to answer.
    interrupted: bool,
    /// True if this command was stopped and continued.
    was_continued: bool,
}

impl RunSignals {
    /// Blocks the signals; to be called before there is another thread. `has_pty`
    /// says that the program will have a terminal of its own, which has a size.
    ///
    /// # Errors
    /// No descriptor is left.
    #[doc(alias = "sigprocmask")]
    #[doc(alias = "signalfd")]
    pub(super) fn block(job: ShellJob, has_pty: bool) -> io::Result<RunSignals> {
        let others = own_signals::that_end_us();
        let size = has_pty.then_some(Signal::WINCH);
        Ok(RunSignals {
            inbox: Inbox::new(others.chain(JOB_CONTROL).chain(size))?,
            job,
            fatal: None,
            interrupted: false,
            was_continued: false,
        })
    }

    /// Descriptor that is readable when a signal has arrived.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.inbox.as_fd()
    }

    /// Returns whether this command was stopped, or has prepared to stop, since the
    /// last call: the terminal may have other modes now.
    pub(super) fn take_was_stopped(&mut self) -> bool {
        std::mem::take(&mut self.was_continued) | self.job.take_modes_were_changed()
    }

    /// Signal that ended the run, if one did.
    pub(super) fn fatal(&self) -> Option<i32> {
        self.fatal
    }

    /// Returns whether a signal has asked this command or the program to terminate: a
    /// failed run is then not repeated.
    pub(super) fn asked_to_terminate(&self) -> bool {
        self.fatal.is_some() || self.interrupted
    }

    /// Sleeps while no program runs. All signals are for this command then: the
    /// first that asks to terminate is returned at once, and Ctrl-Z stops this
    /// command alone.
    ///
    /// # Errors
    /// Those of poll(2).
    pub(super) fn sleep(&mut self, duration: Duration) -> io::Result<Option<i32>> {
        // A time that the clock cannot hold is None: it never comes.
        let until = Instant::now().checked_add(duration);
        loop {
            while let Some(arrival) = self.inbox.take() {
                match arrival.signal {
                    // Any child may be reaped: no program runs, whose status is the
                    // library's to take.
                    Signal::CHLD => _ = reap_orphans(0),
                    Signal::CONT | Signal::WINCH => {}
                    Signal::TSTP | Signal::TTIN | Signal::TTOU => {
                        _ = self.job.stop_this_command(arrival.signal);
                    }
                    fatal => return Ok(Some(fatal.number())),
                }
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            poll::wait_ready(&mut [PollFd::new(&self.inbox, PollFlags::IN)], left)?;
        }
    }

    /// Calls `work` while signals act by default.
    pub(super) fn unblocked<T>(&self, work: impl FnOnce() -> T) -> T {
        self.inbox.open(work)
    }

    /// Ends a run. Signals that have arrived since its program's end are for this
    /// command. `by_signal` says that the program died by a signal or was stopped.
    pub(super) fn finish_run(&mut self, by_signal: bool) {
        while let Some(arrival) = self.inbox.take() {
            if is_for_this_command(arrival) && !JOB_CONTROL.contains(&arrival.signal) {
                self.fatal.get_or_insert(arrival.signal.number());
            }
        }
        self.job
            .restore_modes_after(by_signal || self.fatal.is_some());
    }

    /// Handles the signals that have arrived, and a stop of the program. Returns
    /// what they demand of the run.
    pub(super) fn handle(&mut self, run: Moment<'_>) -> Demand {
        let mut demand = Demand::Nothing;
        let mut job_signals = JobSignals::default();
        while let Some(arrival) = self.inbox.take() {
            match arrival.signal {
                Signal::CHLD => _ = reap_orphans(run.pid),
                Signal::CONT => {
                    job_signals.continued = true;
                    self.was_continued = true;
                }
                Signal::TSTP => {
                    job_signals.stop = true;
                    job_signals.stop_key |= arrival.from_kernel;
                }
                // `RunWatch` compares the sizes.
                Signal::WINCH => {}
                // The whole group has got them. A program that stops by them is
                // reported by its stop.
                Signal::TTIN | Signal::TTOU => {}
                signal if run.running && !is_for_this_command(arrival) => {
                    pass_on(signal, run.pid);
                }
                _ => {
                    job_signals.keys |= is_from_keyboard(arrival);
                    demand = match (demand, self.demand_of(arrival, run)) {
                        (Demand::Nothing, other) => other,
                        (Demand::Stop, Demand::Nothing) => Demand::Stop,
                        _ => Demand::Kill,
                    };
                }
            }
        }
        self.job.update(run, job_signals);
        demand
    }

    /// Demand on the run of a signal that asks to terminate.
    fn demand_of(&mut self, arrival: Arrival, run: Moment<'_>) -> Demand {
        if self.job.shares_group() && run.running && is_from_keyboard(arrival) {
            self.interrupted = true;
            // Ctrl-C during a stop means that the person has waited long enough.
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

/// Sends `signal` to the program unless it is in our process group: there it has
/// got the signal, if the group was meant. Process 1 is signalled alone, by whoever
/// manages the container.
fn pass_on(signal: Signal, pid: i32) {
    let shares_signals = || group_of(pid).is_none_or(|group| Some(group) == group_of(0));
    if (is_process_1() || !shares_signals())
        && let Ok(program) = Process::open(pid)
    {
        // A program that has ended needs no signal.
        let _ = program.signal(signal);
    }
}
