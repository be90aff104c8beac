//! The run as a job of a shell: stops, and which process group has the terminal.
//!
//! The command stops when the program stops. Ctrl-Z goes to both, but the program may
//! ignore it, and then the command must not stop either. So it blocks the stop
//! signals, and when the program has stopped it stops itself by the same signal,
//! once. The shell that waits for this command then sees what it would have seen of
//! the program.
//!
//! Under `--scope group` the program has the terminal while it runs in the
//! foreground. It is taken back at a stop, and handed over again when this command
//! is continued in the foreground. A program that is itself a shell may have made a
//! process group and taken the terminal; that is treated alike.
//!
//! While the run is being stopped none of this happens: a deadline has come or somebody
//! has asked for the end, and the program is frozen before it is killed. Its SIGCHLD
//! cannot be told from that of another stop, and a command that stood still now would
//! leave the frozen ones for ever where no shell says `fg`, as in a script. So nothing
//! that stops is followed any more; Ctrl-Z in the grace is undone.
//!
//! A program on a terminal of its own (`--pty`) is stopped by SIGSTOP alone, because
//! its process group is orphaned. Such a stop is followed as well, and SIGSTOP is what
//! the program gets when this command is asked to stop.

use procwright::process::job::{Terminal, group_of, is_stopped, stop_self, take_stop};
use procwright::process::{Scope, Signal};
use procwright::{Moment, Spec, terminal};
use rustix::io::Errno;
use rustix::process as system;
use rustix::process::Pid;

use super::saved_modes::SavedModes;
use crate::message;

/// Job control signals that have arrived since the last update.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JobSignals {
    /// SIGTSTP.
    pub(super) stop: bool,
    /// True if that was Ctrl-Z at the terminal, which stops the whole group.
    pub(super) stop_key: bool,
    /// SIGCONT.
    pub(super) continued: bool,
    /// Ctrl-C or Ctrl-\ at the terminal.
    pub(super) keys: bool,
}

/// The run, as the shell that waits for this command sees it.
#[derive(Debug)]
pub(super) struct ShellJob {
    /// Program's name in messages.
    name: String,
    /// Program of the latest update.
    program: Option<Pid>,
    /// True if the program was given a process group of its own.
    has_own_group: bool,
    /// True if the program has made a process group, and has had the terminal.
    made_own_group: bool,
    /// True if the program has a terminal of its own.
    has_pty: bool,
    /// True if the run has a time limit: this command must not sleep through it.
    has_deadline: bool,
    terminal: Option<Terminal>,
    modes: SavedModes,
    /// Modes for the terminal while this command is stopped, where they differ from
    /// those at other times.
    modes_while_stopped: Option<terminal::Modes>,
    /// True if the terminal got those modes, since this was asked last.
    modes_were_changed: bool,
    /// True if a stop of the program has been handled, and no continuation yet.
    program_is_stopped: bool,
    /// True if the program was sent SIGSTOP because this command got SIGTSTP.
    stop_was_passed_on: bool,
    /// True if this command has stopped itself. The next SIGCONT ends that stop.
    stopped_itself: bool,
}

impl Drop for ShellJob {
    fn drop(&mut self) {
        // The run has taken the terminal back by now. After a panic the modes are
        // restored, too: the program had no say in such an end.
        self.restore_modes_after(std::thread::panicking());
    }
}

/// Process group that has the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Foreground {
    ThisCommand,
    Program,
    /// Another group, or there is no terminal.
    Other,
}

impl ShellJob {
    /// Job for a run of `spec`. While this command is stopped the terminal has
    /// `modes_while_stopped`, or those that the program leaves.
    pub(super) fn new(spec: &Spec, modes_while_stopped: Option<terminal::Modes>) -> ShellJob {
        let has_pty = spec.pty.is_some();
        let terminal = Terminal::open();
        let name = spec.argv.first().map(|word| word.to_string_lossy());
        ShellJob {
            name: name.unwrap_or_default().into_owned(),
            program: None,
            has_own_group: has_pty || spec.stop.scope() == Scope::Group,
            made_own_group: false,
            has_pty,
            has_deadline: !spec.timeout.is_never() || !spec.idle_timeout.is_never(),
            modes: SavedModes::save(terminal.as_ref().filter(|_| !has_pty)),
            terminal,
            modes_while_stopped,
            modes_were_changed: false,
            program_is_stopped: false,
            stop_was_passed_on: false,
            stopped_itself: false,
        }
    }

    /// Returns whether the program is in the process group of this command, and gets
    /// the signals that the terminal sends to it.
    pub(super) fn shares_group(&self) -> bool {
        !self.has_own_group
    }

    /// Restores the terminal's modes at the end of a run, if the program died by a
    /// signal or was stopped. A shell does so itself when a job dies by a signal,
    /// but it sees an exit code of this command instead.
    pub(super) fn restore_modes_after(&self, by_signal: bool) {
        if let Some(terminal) = self.terminal.as_ref().filter(|_| by_signal)
            && (terminal.is_ours() || self.reclaim(terminal))
        {
            self.modes.restore(terminal);
        }
    }

    /// Takes the terminal if it still belongs to the program's group, which is gone,
    /// as after a shell that was killed before it could give the terminal back.
    fn reclaim(&self, terminal: &Terminal) -> bool {
        let foreground = terminal.foreground().and_then(Pid::from_raw);
        foreground
            .filter(|_| foreground == self.program)
            .is_some_and(|group| {
                system::test_kill_process_group(group) == Err(Errno::SRCH)
                    && terminal.take().is_ok()
            })
    }

    /// Stops this process by `signal`. Returns whether that was possible.
    pub(super) fn stop_this_command(&mut self, signal: Signal) -> bool {
        if let (Some(modes), Some(terminal)) = (&self.modes_while_stopped, &self.terminal)
            && terminal.is_ours()
        {
            self.modes_were_changed = true;
            let _ = modes.apply(terminal);
        }
        let mut stopped = false;
        message::before_stop(&mut || stopped = stop_self(signal).unwrap_or(false));
        stopped
    }

    /// Returns whether the terminal was given other modes for a stop since the last
    /// call.
    pub(super) fn take_modes_were_changed(&mut self) -> bool {
        std::mem::take(&mut self.modes_were_changed)
    }

    /// The program's process group, if it is another than ours and gets no signals
    /// that are sent to ours.
    fn separate_group(&self, pid: i32) -> Option<Pid> {
        other_group(pid).filter(|_| self.has_own_group || self.made_own_group)
    }

    /// Handles a stop of the program, and the signals that have arrived.
    pub(super) fn update(&mut self, run: Moment<'_>, signals: JobSignals) {
        self.program = Pid::from_raw(run.pid);
        if run.stopping {
            self.undo_stop(run, signals);
            return;
        }
        if !run.running {
            // No program is left that could stop or ignore the signal.
            if signals.stop {
                self.stop_this_command(Signal::TSTP);
            }
            return;
        }
        let ends_own_stop = signals.continued && std::mem::take(&mut self.stopped_itself);
        // Asked before `take_stop`, which then reports a stop that comes in between.
        let is_still_stopped = self.program_is_stopped && is_stopped(run.pid);
        match take_stop(run.pid) {
            // 1. SIGSTOP to the whole group stopped this command and the program.
            // 2. SIGCONT to the group continued this command first.
            // 3. This command reads the stop of step 1, which is over.
            Some(Signal::STOP) if signals.continued && !ends_own_stop => {
                self.continue_program(run, signals);
            }
            Some(signal) => self.follow_stop(run, signal),
            None if is_still_stopped => {
                if signals.continued || signals.keys {
                    self.continue_program(run, signals);
                } else if signals.stop {
                    // The program is stopped already.
                    self.stop_this_command(Signal::TSTP);
                }
            }
            None => {
                let Some(group) = self.separate_group(run.pid) else {
                    return;
                };
                if signals.continued {
                    self.continue_program(run, signals);
                } else if signals.stop {
                    // The stop is meant for the program, which is not in our group.
                    self.stop_was_passed_on = self.has_pty;
                    let signal = match self.has_pty {
                        true => system::Signal::STOP,
                        false => system::Signal::TSTP,
                    };
                    let _ = system::kill_process_group(group, signal);
                }
            }
        }
    }

    /// Lets those go on that Ctrl-Z has stopped in the grace of a stop, so that they can
    /// answer its signal. Whoever stands still by SIGSTOP, or waits for the terminal, is
    /// killed at the end of the grace.
    fn undo_stop(&self, run: Moment<'_>, signals: JobSignals) {
        // Taken in any case: it is no news for the next update.
        let by_key = take_stop(run.pid) == Some(Signal::TSTP);
        if run.killing {
            return;
        }
        if let Some(group) = self.separate_group(run.pid).filter(|_| by_key) {
            let _ = system::kill_process_group(group, system::Signal::CONT);
        } else if signals.stop_key {
            let _ = system::kill_current_process_group(system::Signal::CONT);
        } else if let Some(pid) = self.program.filter(|_| by_key) {
            let _ = system::kill_process(pid, system::Signal::CONT);
        }
    }

    /// Stops this command after the program, which `signal` has stopped, or lets the
    /// program go on.
    fn follow_stop(&mut self, run: Moment<'_>, signal: Signal) {
        let signal = match std::mem::take(&mut self.stop_was_passed_on) {
            true => Signal::TSTP,
            false => signal,
        };
        let foreground = self.foreground(run.pid);
        let by_terminal = matches!(signal, Signal::TTIN | Signal::TTOU);
        self.program_is_stopped = true;
        self.made_own_group |= foreground == Foreground::Program;
        if by_terminal
            && foreground == Foreground::ThisCommand
            && self.separate_group(run.pid).is_some()
        {
            // `fg` has brought this command to the foreground while it ran, which
            // nothing reports. The program gets the terminal now.
            return self.continue_program(run, JobSignals::default());
        }
        if foreground == Foreground::Program
            && let Some(terminal) = &self.terminal
        {
            let _ = terminal.take();
        }
        let keeps_running =
            foreground == Foreground::Other && (self.has_deadline || signal == Signal::STOP);
        if by_terminal && foreground != Foreground::Program {
            self.print_background_stop(signal, keeps_running);
        }
        if !keeps_running && self.stop_this_command(signal) {
            // The SIGCONT that ended the stop is pending, and is read next.
            self.stopped_itself = true;
            return;
        }
        if self.separate_group(run.pid).is_some() && signal == Signal::TSTP && !keeps_running {
            // The stop of this command failed, as its group is orphaned. The kernel
            // ignores SIGTSTP for members of such a group; the program is treated alike.
            self.continue_program(run, JobSignals::default());
        } else if !by_terminal {
            message::post(format_args!(
                "{} was stopped by {signal}\n  hint: kill -CONT {} lets it go on",
                self.name, run.pid
            ));
        }
    }

    /// Continues the program, in the foreground if this command is there.
    fn continue_program(&mut self, run: Moment<'_>, signals: JobSignals) {
        self.program_is_stopped = false;
        let Some(pid) = Pid::from_raw(run.pid) else {
            return;
        };
        let Some(group) = self.separate_group(run.pid) else {
            // A SIGCONT to our group was meant for the program as well, and may just
            // not have reached it yet. A key was meant for all that are stopped.
            let _ = match signals.keys {
                true => system::kill_current_process_group(system::Signal::CONT),
                false => system::kill_process(pid, system::Signal::CONT),
            };
            return;
        };
        if let Some(terminal) = self.terminal.as_ref().filter(|_| !self.has_pty)
            && terminal.is_ours()
        {
            self.modes = SavedModes::save(Some(terminal));
            let _ = terminal.hand_to(group.as_raw_nonzero().get());
        }
        let _ = system::kill_process_group(group, system::Signal::CONT);
    }

    #[doc(alias = "tcgetpgrp")]
    fn foreground(&self, pid: i32) -> Foreground {
        let Some(terminal) = &self.terminal else {
            return Foreground::Other;
        };
        let foreground = terminal.foreground().and_then(Pid::from_raw);
        if terminal.is_ours() {
            Foreground::ThisCommand
        } else if foreground.is_some() && foreground == other_group(pid) {
            Foreground::Program
        } else {
            Foreground::Other
        }
    }

    /// Prints what a program in the background waits for.
    fn print_background_stop(&self, signal: Signal, keeps_running: bool) {
        // A shell takes the job for running as long as this command runs: its `fg`
        // then continues nothing.
        let fg = match keeps_running {
            true => "fg, Ctrl-Z and fg let it go on",
            false => "fg brings it to the front",
        };
        let (what, instead) = match signal {
            Signal::TTIN => ("read from", ", --stdin null gives it nothing to read"),
            _ => ("write to", ""),
        };
        message::post(format_args!(
            "{} wants to {what} the terminal, but runs in the background\n  hint: {fg}{instead}",
            self.name
        ));
    }
}

/// Process group of a child, if it is another than ours.
fn other_group(pid: i32) -> Option<Pid> {
    let group = group_of(pid).filter(|group| Some(*group) != group_of(0));
    Pid::from_raw(group?)
}
