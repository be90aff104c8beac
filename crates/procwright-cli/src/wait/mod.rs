//! `procwright wait`: until processes have ended, children or not.

mod ended;
mod named_process;
mod progress;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::io;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use procwright::Process;
use procwright::process::{Exit, Id, ProcessError, Unknown, named};
use procwright::time::{Deadline, Timeout};
use procwright::wait::{self, Event, Key, Mechanism, Outcome, WaitSet, Waited, Want};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::WaitArgs;
use crate::exit::Termination;
use crate::human::HumanDuration;
use crate::{message, stdout};
use ended::{EndedProcess, Ending};
use named_process::NamedProcess;
use progress::WaitProgress;

/// Bytes of a script's name that the system keeps.
#[doc(alias = "TASK_COMM_LEN")]
const NAME_MAX: usize = 15;

/// Waits for the processes of the options.
///
/// # Errors
/// The wait could not go on, or a signal ended it.
pub(crate) fn wait(args: WaitArgs) -> Result<Termination, Termination> {
    WaitCommand::begin(args)?.run()
}

/// A wait under way.
struct WaitCommand {
    args: WaitArgs,
    event: Event,
    begun: Instant,
    deadline: Deadline,
    set: WaitSet<NamedProcess>,
    mechanisms: HashMap<Key, Mechanism>,
    /// Processes that were gone when the wait began. They count as ended.
    gone: Vec<Id>,
    /// Number of all processes, gone or not.
    total: usize,
    /// Number of processes that have ended and were printed.
    printed: usize,
    progress: Option<WaitProgress>,
}

impl WaitCommand {
    /// Opens the processes, so that from now on their numbers mean them.
    fn begin(args: WaitArgs) -> Result<WaitCommand, Termination> {
        let begun = Instant::now();
        if args.process.is_empty() && args.name.is_empty() {
            return Err(Termination::trouble(
                "there is nothing to wait for\n  \
                 hint: give numbers of processes, or --name NAME; \
                 `pgrep -l NAME` shows both",
            ));
        }
        raise_descriptor_limit();
        let timeout = args.timeout.unwrap_or(Timeout::NEVER);
        let mut wait = WaitCommand {
            event: args.event.into(),
            begun,
            deadline: timeout.starting(begun),
            set: WaitSet::new().map_err(cannot_wait)?,
            mechanisms: HashMap::new(),
            gone: Vec::new(),
            total: 0,
            printed: 0,
            progress: None,
            args,
        };
        wait.add_all()?;
        if !wait.args.quiet {
            wait.progress = WaitProgress::on_terminal().map_err(cannot_wait)?;
        }
        if let Some(progress) = &wait.progress {
            let wake = progress.wake_fd().map_err(cannot_wait)?;
            wait.set.cancel_on(wake).map_err(cannot_wait)?;
        }
        Ok(wait)
    }

    /// Adds the processes of the options to the set, each once: a process that was
    /// named twice would count twice for `--first`.
    fn add_all(&mut self) -> Result<(), Termination> {
        let mut known = HashSet::new();
        let by_name = !self.args.name.is_empty();
        for id in std::mem::take(&mut self.args.process) {
            if u32::try_from(id.pid()) == Ok(std::process::id()) {
                return Err(Termination::trouble(format_args!(
                    "{id} is this command itself, which would wait for ever\n  \
                     hint: after `exec` the number of a shell is that of the command"
                )));
            }
            match Process::open_id(id) {
                Ok(process) if known.insert(process.id()) => self.add(process)?,
                Err(ProcessError::Gone(_)) if known.insert(id) => self.gone.push(id),
                Ok(_) | Err(ProcessError::Gone(_)) => {}
                Err(error) => return Err(Termination::trouble(error)),
            }
        }
        for name in std::mem::take(&mut self.args.name) {
            let mut found = named(&name).map_err(|error| {
                Termination::trouble(format_args!("cannot list processes: {error}"))
            })?;
            // A zombie still has its name. It has ended, but may yet be reaped.
            found.retain(|process| self.event == Event::Reaped || process.is_alive());
            if found.is_empty() {
                let hint = match name.len() {
                    0..=NAME_MAX => "",
                    _ => "\n  hint: of a script's name the system keeps 15 bytes",
                };
                self.remark(format_args!("no process has the name {name:?}{hint}"));
            }
            for process in found {
                if known.insert(process.id()) {
                    self.add(process)?;
                }
            }
        }
        self.total = self.gone.len() + self.set.len();
        match self.args.first {
            Some(k) if k.get() > self.total => {
                let total = self.total;
                let text = format!("--first {k}, but there are no more than {total} in all");
                // A name may mean any number of processes, a list has its length.
                if !by_name {
                    return Err(Termination::trouble(text));
                }
                self.remark(text);
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, process: Process) -> Result<(), Termination> {
        let id = process.id();
        let key = self.set.add(NamedProcess::new(process), self.event);
        let key = key
            .map_err(|error| Termination::trouble(format_args!("cannot wait for {id}: {error}")))?;
        if let Some(mechanism) = self.set.mechanism(key) {
            self.mechanisms.insert(key, mechanism);
        }
        Ok(())
    }

    /// Waits, and prints each process that ends.
    fn run(mut self) -> Result<Termination, Termination> {
        self.print_mechanisms();
        let (needed, most) = match self.args.first {
            Some(k) => (k.get().min(self.total), k.get()),
            None if self.args.any => (self.total.min(1), usize::MAX),
            None => (self.total, usize::MAX),
        };
        self.print_gone(most)?;
        // The first wait returns at once, with the processes that have ended by now.
        // They are printed under `--any` even if another one was gone.
        let mut until = Deadline::at(self.begun);
        let timed_out = loop {
            if until == self.deadline {
                self.draw_progress(needed);
            }
            let waited = self.set.wait_until(Want::Any, until);
            if let Some(signal) = self.erase_progress() {
                return Err(Termination::Signal(signal));
            }
            let waited = waited.map_err(cannot_wait)?;
            let timed_out = waited.outcome == Outcome::TimedOut && until == self.deadline;
            self.print_ended(waited, most)?;
            if self.printed >= needed {
                break false;
            }
            if timed_out {
                break true;
            }
            until = self.deadline;
        };
        if timed_out {
            self.print_remaining();
        }
        self.print_stats();
        Ok(match timed_out {
            true => Termination::TIMED_OUT,
            false => Termination::OK,
        })
    }

    /// Prints the processes that were gone when the wait began.
    fn print_gone(&mut self, most: usize) -> Result<(), Termination> {
        let gone = self.gone.iter().take(most).map(|&id| EndedProcess {
            id,
            name: None,
            event: self.event,
            ending: Ending::GoneBefore,
            waited: Duration::ZERO,
        });
        let text: String = gone.map(|ended| self.line(&ended)).collect();
        self.printed = self.gone.len().min(most);
        stdout::print(text.as_bytes())
    }

    /// Prints processes that have ended, in one write: a reader has each line at
    /// once.
    fn print_ended(
        &mut self,
        mut waited: Waited<NamedProcess>,
        most: usize,
    ) -> Result<(), Termination> {
        waited.ended.truncate(most - self.printed);
        let at = Timestamp::now();
        let elapsed = self.begun.elapsed();
        // Read at once, before their parents reap them.
        let names: Vec<_> = waited.ended.iter().map(|(_, one)| one.name()).collect();
        Process::linger(waited.ended.iter().map(|(_, one)| &one.process));
        let mut text = String::new();
        for ((key, one), name) in waited.ended.iter().zip(&names) {
            let exit = one.process.exit();
            text += &self.line(&EndedProcess {
                id: one.process.id(),
                name: name.as_deref(),
                event: self.event,
                ending: Ending::Observed {
                    exit: exit.unwrap_or(Exit::Unknown(Unknown::NotTold)),
                    at,
                    mechanism: self.mechanisms.get(key).copied(),
                },
                waited: elapsed,
            });
        }
        self.printed += waited.ended.len();
        stdout::print(text.as_bytes())
    }

    fn line(&self, ended: &EndedProcess<'_>) -> String {
        match self.args.json {
            true => format!("{}\n", ended.json()),
            false => format!("{}\n", ended.text()),
        }
    }

    fn draw_progress(&self, needed: usize) {
        let Some(progress) = &self.progress else {
            return;
        };
        let (left, there) = (needed - self.printed, self.set.len());
        let head = if self.args.first.is_some() {
            format!("waiting for {left} more of {there}: ")
        } else if self.args.any {
            format!("waiting for any of {there}: ")
        } else {
            format!("waiting for {there} of {}: ", self.total)
        };
        progress.draw(&head, self.set.iter().map(|(_, one)| one.to_string()));
    }

    /// Erases the progress. Returns the signal to die by, if one has come.
    fn erase_progress(&self) -> Option<i32> {
        self.progress.as_ref().and_then(WaitProgress::erase)
    }

    fn print_remaining(&self) {
        let mut text = format!(
            "timed out after {}; still there:",
            HumanDuration(self.begun.elapsed())
        );
        for (_, one) in &self.set {
            // No signal ends a process that only waits for its parent to reap it.
            let state = match one.process.is_alive() {
                true => "",
                false => " (has ended, was not reaped)",
            };
            text += &format!("\n  {one}{state}");
        }
        self.remark(text);
    }

    /// Prints, under `--verbose`, the mechanisms that will report the ends.
    fn print_mechanisms(&self) {
        if self.args.verbose {
            let mut by: Vec<(Mechanism, u64)> = Vec::new();
            for &mechanism in self.mechanisms.values() {
                match by.iter_mut().find(|(one, _)| *one == mechanism) {
                    Some((_, n)) => *n += 1,
                    None => by.push((mechanism, 1)),
                }
            }
            let n = self.set.len();
            message::print(format_args!("{n} to wait for{}", list(&by)));
        }
    }

    /// Prints, under `--verbose`, the mechanisms that have reported the ends.
    fn print_stats(&self) {
        if self.args.verbose {
            let stats = wait::stats();
            let n: u64 = stats.served.iter().map(|(_, n)| n).sum();
            let by = list(&stats.served);
            message::print(format_args!("{n} waited for{by}; looks: {}", stats.looks));
        }
    }

    /// Prints a message that is no error, unless under `--quiet`.
    fn remark(&self, text: impl Display) {
        if !self.args.quiet {
            message::print(text);
        }
    }
}

/// `: pidfd 3, polling 1`; nothing if all are 0.
fn list(by: &[(Mechanism, u64)]) -> String {
    let by: Vec<String> = by
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(mechanism, n)| format!("{} {n}", mechanism.name()))
        .collect();
    match by.is_empty() {
        true => String::new(),
        false => format!(": {}", by.join(", ")),
    }
}

fn cannot_wait(error: io::Error) -> Termination {
    Termination::trouble(format_args!("cannot wait: {error}"))
}

/// Raises the soft limit of descriptors to the hard one: each process takes a
/// descriptor. The usual limit, 1024, protects callers of select(2). This command
/// calls it nowhere, and starts no program that would inherit the limit.
#[doc(alias = "RLIMIT_NOFILE")]
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // A failure is no error: waits get on with the descriptors that there are.
    let _ = setrlimit(Resource::Nofile, raised);
}
