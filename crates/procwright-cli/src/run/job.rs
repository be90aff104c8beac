//! The run as a job of a shell: stops, and whose the terminal is.
//!
//! We do as the program does. Ctrl-Z goes to both of us; it may ignore it, and
//! then we must not stop either. So stop signals are held back, and when the
//! program has stopped we stop by the same signal, once. A shell that waits for
//! us then sees what it would have seen of the program.
//!
//! Under `--scope group` the terminal is the program's while it runs in front.
//! It is taken back at a stop, and handed over again when we are continued in
//! front.

use procwright::process::job::{Terminal, is_stopped, stop_self, take_stop};
use procwright::process::{Scope, Signal};
use procwright::{Moment, Spec};
use rustix::process as system;
use rustix::process::Pid;

use super::modes::Modes;
use crate::message::say_in_run as say;

/// What has been seen of signals since the last look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// SIGTSTP.
    pub(crate) stop: bool,
    /// SIGCONT.
    pub(crate) continued: bool,
    /// Ctrl-C or Ctrl-\ at the terminal.
    pub(crate) keys: bool,
}

/// What the run is to the shell that waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    /// What to call the program.
    name: String,
    /// The program has a process group of its own.
    own_group: bool,
    /// It is stopped at some time, whatever happens: we must not sleep then.
    has_deadline: bool,
    terminal: Option<Terminal>,
    modes: Modes,
    /// The program has stopped and we have taken note of it.
    halted: bool,
    /// We have stopped of our own accord, and the next SIGCONT is for that.
    stood: bool,
}

impl Drop for Job {
    fn drop(&mut self) {
        // The core has taken the terminal back by now. A panic of ours is no
        // end that the program had a say in.
        self.end(std::thread::panicking());
    }
}

/// Who is in front.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Front {
    Us,
    Program,
    /// Somebody else, or there is no terminal.
    Others,
}

impl Job {
    /// The job that a run of `spec` will be.
    pub(crate) fn of(spec: &Spec) -> Job {
        // On a terminal of its own the program is no job of our shell's.
        let apart = spec.pty.is_some();
        let terminal = Terminal::open().filter(|_| !apart);
        let name = spec.argv.first().map(|word| word.to_string_lossy());
        Job {
            name: name.unwrap_or_default().into_owned(),
            own_group: apart || spec.stop.scope() == Scope::Group,
            has_deadline: !spec.timeout.is_never() || !spec.idle_timeout.is_never(),
            modes: Modes::new(terminal.as_ref()),
            terminal,
            halted: false,
            stood: false,
        }
    }

    /// Whether what the terminal sends to us is sent to the program, too.
    pub(crate) fn is_shared(&self) -> bool {
        !self.own_group
    }

    /// The run is over. Where the end would have been seen as one by a signal,
    /// a shell puts the terminal's modes back to what they were; it sees an exit
    /// code instead, so we do.
    pub(crate) fn end(&self, by_signal: bool) {
        if let Some(terminal) = self.terminal.as_ref().filter(|_| by_signal)
            && terminal.is_ours()
        {
            self.modes.restore(terminal);
        }
    }

    /// Looks whether the program has stopped, and does what follows from that
    /// and from the signals that have come.
    pub(crate) fn look(&mut self, run: Moment<'_>, seen: Seen) {
        if !run.running {
            // Nobody is there who could answer in our place.
            if seen.stop {
                let _ = stop_self(Signal::TSTP);
            }
            return;
        }
        let answered = seen.continued && std::mem::take(&mut self.stood);
        // Asked first: what has stopped since then is told of by the other.
        let stands = self.halted && is_stopped(run.pid);
        match take_stop(run.pid) {
            // Whoever stopped the whole group by it and then let it go on came
            // to us first: this is the old stop.
            Some(Signal::STOP) if seen.continued && !answered => self.go_on(run, seen),
            Some(signal) => self.follow(run, signal),
            None if stands => {
                if seen.continued || seen.keys {
                    self.go_on(run, seen);
                } else if seen.stop {
                    // It stands already, and now we shall, too.
                    let _ = stop_self(Signal::TSTP);
                }
            }
            None if seen.continued && self.own_group => self.go_on(run, seen),
            None if seen.stop && self.own_group => {
                // We have the terminal, but it is not us whom they want to stop.
                let Some(pid) = Pid::from_raw(run.pid) else {
                    return;
                };
                let _ = system::kill_process_group(pid, system::Signal::TSTP);
            }
            None => {}
        }
    }

    /// The program has been stopped by `signal`.
    fn follow(&mut self, run: Moment<'_>, signal: Signal) {
        let front = self.front(run.pid);
        let by_terminal = matches!(signal, Signal::TTIN | Signal::TTOU);
        self.halted = true;
        if self.own_group {
            if by_terminal && front == Front::Us {
                // Brought to the front while it ran, of which nothing tells.
                return self.go_on(run, Seen::default());
            }
            if front == Front::Program
                && let Some(terminal) = &self.terminal
            {
                let _ = terminal.take();
            }
        }
        let stays =
            front == Front::Others && (self.has_deadline || run.stopping || signal == Signal::STOP);
        if by_terminal {
            self.tell_background(signal, stays);
        }
        // SIGSTOP is nothing that the kernel would discard where nobody could
        // ever let us go on.
        let ours = match signal {
            Signal::STOP => Signal::TSTP,
            other => other,
        };
        if !stays && stop_self(ours).unwrap_or(false) {
            // SIGCONT has come, and waits to be taken next.
            self.stood = true;
            return;
        }
        if self.own_group && signal == Signal::TSTP && !stays {
            // As the kernel would have done for a member of our group.
            self.go_on(run, Seen::default());
        } else if !by_terminal {
            say(format_args!(
                "{} was stopped by {signal}\n  hint: kill -CONT {} lets it go on",
                self.name, run.pid
            ));
        }
    }

    /// Lets the program go on, in front if we are.
    fn go_on(&mut self, run: Moment<'_>, seen: Seen) {
        self.halted = false;
        let Some(pid) = Pid::from_raw(run.pid) else {
            return;
        };
        if self.own_group {
            if let Some(terminal) = self.terminal.as_ref().filter(|terminal| terminal.is_ours()) {
                self.modes = Modes::new(Some(terminal));
                let _ = terminal.hand_to(run.pid);
            }
            let _ = system::kill_process_group(pid, system::Signal::CONT);
        } else {
            // Whoever continued our group has meant the program as well, and may
            // just not have come to it yet; but a key goes to those who stand.
            let _ = match seen.keys {
                true => system::kill_current_process_group(system::Signal::CONT),
                false => system::kill_process(pid, system::Signal::CONT),
            };
        }
    }

    fn front(&self, pid: i32) -> Front {
        let Some(terminal) = &self.terminal else {
            return Front::Others;
        };
        if terminal.is_ours() {
            Front::Us
        } else if self.own_group && terminal.foreground() == Some(pid) {
            Front::Program
        } else {
            Front::Others
        }
    }

    /// Says what a program in the background waits for.
    fn tell_background(&self, signal: Signal, stays: bool) {
        // Not stopped ourselves, a shell thinks that we run, and its fg lets
        // nobody go on.
        let fg = match stays {
            true => "fg, Ctrl-Z and fg let it go on",
            false => "fg brings it to the front",
        };
        let (what, instead) = match signal {
            Signal::TTIN => ("read from", ", --stdin null gives it nothing to read"),
            _ => ("write to", ""),
        };
        say(format_args!(
            "{} wants to {what} the terminal, but runs in the background\n  hint: {fg}{instead}",
            self.name
        ));
    }
}
