//! The run as a job of a shell: stops, and whose the terminal is.
//!
//! We do as the program does. Ctrl-Z goes to both of us; it may ignore it, and
//! then we must not stop either. So stop signals are held back, and when the
//! program has stopped we stop by the same signal, once. A shell that waits for
//! us then sees what it would have seen of the program.
//!
//! Under `--scope group` the terminal is the program's while it runs in front.
//! It is taken back at a stop, and handed over again when we are continued in
//! front. So too if the program is a shell that has made a group of its own and
//! has taken the terminal by itself.
//!
//! On a terminal of its own nothing stops the program but SIGSTOP: its group is
//! an orphaned one. That is followed, too, and what it is sent when we are asked
//! to stop.

use procwright::process::job::{Terminal, group_of, is_stopped, stop_self, take_stop};
use procwright::process::{Scope, Signal};
use procwright::{Moment, Spec, terminal};
use rustix::io::Errno;
use rustix::process as system;
use rustix::process::Pid;

use super::modes::Modes;
use crate::message::{say_in_run as say, without_line};

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
    /// The one that was seen last.
    program: Option<Pid>,
    /// The program was given a process group of its own.
    own_group: bool,
    /// It has made one, and has had the terminal.
    moved: bool,
    /// It has a terminal of its own.
    has_pty: bool,
    /// It is stopped at some time, whatever happens: we must not sleep then.
    has_deadline: bool,
    terminal: Option<Terminal>,
    modes: Modes,
    /// Those that our terminal has while we are stopped, where they are others
    /// than at other times.
    outside: Option<terminal::Modes>,
    /// It was given those.
    yielded: bool,
    /// The program has stopped and we have taken note of it.
    halted: bool,
    /// Somebody has asked for its stop by SIGTSTP, and it was sent SIGSTOP.
    asked: bool,
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
    /// The job that a run of `spec` will be. While it is stopped the terminal has
    /// the modes `outside`, or those that the program leaves.
    pub(crate) fn of(spec: &Spec, outside: Option<terminal::Modes>) -> Job {
        let has_pty = spec.pty.is_some();
        let terminal = Terminal::open();
        let name = spec.argv.first().map(|word| word.to_string_lossy());
        Job {
            name: name.unwrap_or_default().into_owned(),
            program: None,
            own_group: has_pty || spec.stop.scope() == Scope::Group,
            moved: false,
            has_pty,
            has_deadline: !spec.timeout.is_never() || !spec.idle_timeout.is_never(),
            modes: Modes::new(terminal.as_ref().filter(|_| !has_pty)),
            terminal,
            outside,
            yielded: false,
            halted: false,
            asked: false,
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
            && (terminal.is_ours() || self.is_left(terminal))
        {
            self.modes.restore(terminal);
        }
    }

    /// Stops us, and says whether that was possible.
    pub(crate) fn stop(&mut self, signal: Signal) -> bool {
        if let (Some(modes), Some(terminal)) = (&self.outside, &self.terminal)
            && terminal.is_ours()
        {
            self.yielded = true;
            let _ = modes.apply(terminal);
        }
        let mut stopped = false;
        without_line(&mut || stopped = stop_self(signal).unwrap_or(false));
        stopped
    }

    /// Whether the terminal is still the program's that was in front and is gone,
    /// as a shell which was killed before it could give it back. It is ours then.
    fn is_left(&self, terminal: &Terminal) -> bool {
        let foreground = terminal.foreground().and_then(Pid::from_raw);
        foreground
            .filter(|_| foreground == self.program)
            .is_some_and(|group| {
                system::test_kill_process_group(group) == Err(Errno::SRCH)
                    && terminal.take().is_ok()
            })
    }

    /// Whether the terminal has been given other modes for a stop since this was
    /// asked last.
    pub(crate) fn take_yielded(&mut self) -> bool {
        std::mem::take(&mut self.yielded)
    }

    /// The program's group, if it is another than ours and gets no signals of
    /// ours.
    fn apart(&self, pid: i32) -> Option<Pid> {
        other_group(pid).filter(|_| self.own_group || self.moved)
    }

    /// Looks whether the program has stopped, and does what follows from that
    /// and from the signals that have come.
    pub(crate) fn look(&mut self, run: Moment<'_>, seen: Seen) {
        self.program = Pid::from_raw(run.pid);
        if !run.running {
            // Nobody is there who could answer in our place.
            if seen.stop {
                self.stop(Signal::TSTP);
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
                    self.stop(Signal::TSTP);
                }
            }
            None => {
                let Some(group) = self.apart(run.pid) else {
                    return;
                };
                if seen.continued {
                    self.go_on(run, seen);
                } else if seen.stop {
                    // It is not us whom they want to stop.
                    self.asked = self.has_pty;
                    let signal = match self.has_pty {
                        true => system::Signal::STOP,
                        false => system::Signal::TSTP,
                    };
                    let _ = system::kill_process_group(group, signal);
                }
            }
        }
    }

    /// The program has been stopped by `signal`.
    fn follow(&mut self, run: Moment<'_>, signal: Signal) {
        let signal = match std::mem::take(&mut self.asked) {
            true => Signal::TSTP,
            false => signal,
        };
        let front = self.front(run.pid);
        let by_terminal = matches!(signal, Signal::TTIN | Signal::TTOU);
        self.halted = true;
        self.moved |= front == Front::Program;
        if by_terminal && front == Front::Us && self.apart(run.pid).is_some() {
            // Brought to the front while it ran, of which nothing tells.
            return self.go_on(run, Seen::default());
        }
        if front == Front::Program
            && let Some(terminal) = &self.terminal
        {
            let _ = terminal.take();
        }
        let stays =
            front == Front::Others && (self.has_deadline || run.stopping || signal == Signal::STOP);
        if by_terminal && front != Front::Program {
            self.tell_background(signal, stays);
        }
        if !stays && self.stop(signal) {
            // SIGCONT has come, and waits to be taken next.
            self.stood = true;
            return;
        }
        if self.apart(run.pid).is_some() && signal == Signal::TSTP && !stays {
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
        let Some(group) = self.apart(run.pid) else {
            // Whoever continued our group has meant the program as well, and may
            // just not have come to it yet; but a key goes to those who stand.
            let _ = match seen.keys {
                true => system::kill_current_process_group(system::Signal::CONT),
                false => system::kill_process(pid, system::Signal::CONT),
            };
            return;
        };
        if let Some(terminal) = self.terminal.as_ref().filter(|_| !self.has_pty)
            && terminal.is_ours()
        {
            self.modes = Modes::new(Some(terminal));
            let _ = terminal.hand_to(group.as_raw_nonzero().get());
        }
        let _ = system::kill_process_group(group, system::Signal::CONT);
    }

    fn front(&self, pid: i32) -> Front {
        let Some(terminal) = &self.terminal else {
            return Front::Others;
        };
        let foreground = terminal.foreground().and_then(Pid::from_raw);
        if terminal.is_ours() {
            Front::Us
        } else if foreground.is_some() && foreground == other_group(pid) {
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

/// The group of a child of ours, if it is not ours.
fn other_group(pid: i32) -> Option<Pid> {
    let group = group_of(pid).filter(|group| Some(*group) != group_of(0));
    Pid::from_raw(group?)
}
