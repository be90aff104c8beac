//! `procwright wait`: until processes have ended, whoever started them.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use procwright::Process;
use procwright::process::{Exit, Id, ProcessError, Signal, Unknown, named};
use procwright::time::{Deadline, Timeout};
use procwright::wait::{
    self, Awaits, Event, Key, Mechanism, Outcome, WaitSet, Waitable, Waited, Want,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::WaitArgs;
use crate::ended::{Ended, How};
use crate::exit::End;
use crate::figures::Seconds;
use crate::message::say;
use crate::progress::Progress;

/// Of the name of a script the system keeps no more bytes.
const NAME_MAX: usize = 15;

pub(crate) fn wait(args: WaitArgs) -> End {
    Waiting::begin(args)
        .and_then(Waiting::run)
        .unwrap_or_else(|end| end)
}

/// Says what is wrong, for a wait that cannot go on.
fn trouble(message: impl Display) -> End {
    say(message);
    End::TROUBLE
}

/// One to wait for.
#[derive(Debug)]
struct Member {
    process: Process,
    /// What it went by when the wait began.
    name: Option<String>,
}

impl Member {
    fn new(process: Process) -> Member {
        let name = process.name().ok();
        Member { process, name }
    }

    /// What it goes by now, which a zombie shows still, or went by before it was
    /// reaped. Not only the latter: what a shell has just started (`job & procwright
    /// wait $!`) goes by the name of the shell until its exec.
    fn name(&self) -> Option<String> {
        self.process.name().ok().or_else(|| self.name.clone())
    }
}

impl Waitable for Member {
    fn awaits(&self) -> Awaits<'_> {
        self.process.awaits()
    }
}

/// `PID NAME`
impl Display for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.name();
        let name = name.as_deref().unwrap_or("?");
        write!(f, "{} {name}", self.process.pid())
    }
}

/// A wait under way.
struct Waiting {
    args: WaitArgs,
    event: Event,
    begun: Instant,
    deadline: Deadline,
    set: WaitSet<Member>,
    mechanisms: HashMap<Key, Mechanism>,
    /// Those that were not there to begin with. They count as ended.
    gone: Vec<Id>,
    /// All of them, gone or not.
    total: usize,
    /// How many have ended and were told of.
    told: usize,
    progress: Option<Progress>,
}

impl Waiting {
    /// Takes hold of the processes, so that from now on their numbers mean them.
    fn begin(args: WaitArgs) -> Result<Waiting, End> {
        let begun = Instant::now();
        if args.process.is_empty() && args.name.is_empty() {
            return Err(trouble(
                "there is nothing to wait for\n  \
                 hint: give numbers of processes, or --name NAME; \
                 `pgrep -l NAME` shows both",
            ));
        }
        lift_descriptor_limit();
        let timeout = args.timeout.unwrap_or(Timeout::NEVER);
        let cannot = |error: io::Error| trouble(format_args!("cannot wait: {error}"));
        let mut waiting = Waiting {
            event: args.event.into(),
            begun,
            deadline: timeout.starting(begun),
            set: WaitSet::new().map_err(cannot)?,
            mechanisms: HashMap::new(),
            gone: Vec::new(),
            total: 0,
            told: 0,
            progress: None,
            args,
        };
        waiting.find()?;
        if !waiting.args.quiet {
            waiting.progress = Progress::on_terminal().map_err(cannot)?;
        }
        if let Some(progress) = &waiting.progress {
            let wake = progress.wake().map_err(cannot)?;
            waiting.set.cancel_on(wake).map_err(cannot)?;
        }
        Ok(waiting)
    }

    /// Puts in who was named. Who was named twice is in it once, or it would
    /// count twice for `--first`.
    fn find(&mut self) -> Result<(), End> {
        let mut known = HashSet::new();
        let by_name = !self.args.name.is_empty();
        for id in std::mem::take(&mut self.args.process) {
            if u32::try_from(id.pid()) == Ok(std::process::id()) {
                return Err(trouble(format_args!(
                    "{id} is this command itself, which would wait for ever\n  \
                     hint: after `exec` the number of a shell is that of the command"
                )));
            }
            match Process::open_id(id) {
                Ok(process) if known.insert(process.id()) => self.put_in(process)?,
                Err(ProcessError::Gone(_)) if known.insert(id) => self.gone.push(id),
                Ok(_) | Err(ProcessError::Gone(_)) => {}
                Err(error) => return Err(trouble(error)),
            }
        }
        for name in std::mem::take(&mut self.args.name) {
            let mut found = named(&name)
                .map_err(|error| trouble(format_args!("cannot list processes: {error}")))?;
            // What has ended and has its name still is not to be waited for,
            // unless for its reap.
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
                    self.put_in(process)?;
                }
            }
        }
        self.total = self.gone.len() + self.set.len();
        match self.args.first {
            Some(k) if k.get() > self.total => {
                let total = self.total;
                let text = format!("--first {k}, but there are no more than {total} in all");
                // A name may mean any number of them; a list is as long as it is.
                if !by_name {
                    return Err(trouble(text));
                }
                self.remark(text);
            }
            _ => {}
        }
        Ok(())
    }

    fn put_in(&mut self, process: Process) -> Result<(), End> {
        let id = process.id();
        let key = self.set.add(Member::new(process), self.event);
        let key = key.map_err(|error| trouble(format_args!("cannot wait for {id}: {error}")))?;
        if let Some(mechanism) = self.set.mechanism(key) {
            self.mechanisms.insert(key, mechanism);
        }
        Ok(())
    }

    /// Waits and tells of each that ends.
    fn run(mut self) -> Result<End, End> {
        self.tell_mechanisms();
        let (need, most) = match self.args.first {
            Some(k) => (k.get().min(self.total), k.get()),
            None if self.args.any => (self.total.min(1), usize::MAX),
            None => (self.total, usize::MAX),
        };
        self.tell_gone(most)?;
        // At first a mere look, for those that have ended by now. With `--any`
        // they are told of even if somebody was gone.
        let mut until = Deadline::at(self.begun);
        let timed_out = loop {
            if until == self.deadline {
                self.draw(need);
            }
            let waited = self.set.wait_until(Want::Any, until);
            if let Some(signal) = self.erase() {
                return Err(End::Signal(signal));
            }
            let waited = waited.map_err(|error| trouble(format_args!("cannot wait: {error}")))?;
            let timed_out = waited.outcome == Outcome::TimedOut && until == self.deadline;
            self.tell(waited, most)?;
            if self.told >= need {
                break false;
            }
            if timed_out {
                break true;
            }
            until = self.deadline;
        };
        if timed_out {
            self.tell_who_is_left();
        }
        self.tell_stats();
        Ok(if timed_out { End::TIMED_OUT } else { End::OK })
    }

    /// Tells of those that were not there.
    fn tell_gone(&mut self, most: usize) -> Result<(), End> {
        let gone = self.gone.iter().take(most).map(|&id| Ended {
            id,
            name: None,
            event: self.event,
            how: How::GoneBefore,
            waited: Duration::ZERO,
        });
        let text: String = gone.map(|ended| self.line(&ended)).collect();
        self.told = self.gone.len().min(most);
        print(&text)
    }

    /// Tells of those that have ended, in one write: whoever reads a line has
    /// it at once.
    fn tell(&mut self, mut waited: Waited<Member>, most: usize) -> Result<(), End> {
        waited.ended.truncate(most - self.told);
        let at = Timestamp::now();
        let elapsed = self.begun.elapsed();
        // Before the parent has reaped them.
        let names: Vec<_> = waited.ended.iter().map(|(_, one)| one.name()).collect();
        Process::linger(waited.ended.iter().map(|(_, member)| &member.process));
        let mut text = String::new();
        for ((key, member), name) in waited.ended.iter().zip(&names) {
            let exit = member.process.exit();
            text += &self.line(&Ended {
                id: member.process.id(),
                name: name.as_deref(),
                event: self.event,
                how: How::Seen {
                    exit: exit.unwrap_or(Exit::Unknown(Unknown::NotTold)),
                    at,
                    mechanism: self.mechanisms.get(key).copied(),
                },
                waited: elapsed,
            });
        }
        self.told += waited.ended.len();
        print(&text)
    }

    fn line(&self, ended: &Ended<'_>) -> String {
        match self.args.json {
            true => format!("{}\n", ended.json()),
            false => format!("{}\n", ended.text()),
        }
    }

    fn draw(&self, need: usize) {
        let Some(progress) = &self.progress else {
            return;
        };
        let (left, there) = (need - self.told, self.set.len());
        let head = if self.args.first.is_some() {
            format!("waiting for {left} more of {there}: ")
        } else if self.args.any {
            format!("waiting for any of {there}: ")
        } else {
            format!("waiting for {there} of {}: ", self.total)
        };
        progress.draw(&head, self.set.iter().map(|(_, member)| member.to_string()));
    }

    /// Erases the progress; the signal to end by, if one has come.
    fn erase(&self) -> Option<i32> {
        self.progress.as_ref().and_then(Progress::erase)
    }

    fn tell_who_is_left(&self) {
        let mut text = format!(
            "timed out after {}; still there:",
            Seconds(self.begun.elapsed())
        );
        for (_, member) in &self.set {
            // Who only waits for its parent will not be helped by a signal.
            let state = match member.process.is_alive() {
                true => "",
                false => " (has ended, was not reaped)",
            };
            text += &format!("\n  {member}{state}");
        }
        self.remark(text);
    }

    /// With `--verbose`: what will tell of their ends.
    fn tell_mechanisms(&self) {
        if self.args.verbose {
            let mut by: Vec<(Mechanism, u64)> = Vec::new();
            for &mechanism in self.mechanisms.values() {
                match by.iter_mut().find(|(one, _)| *one == mechanism) {
                    Some((_, n)) => *n += 1,
                    None => by.push((mechanism, 1)),
                }
            }
            let n = self.set.len();
            say(format_args!("{n} to wait for{}", listed(&by)));
        }
    }

    /// With `--verbose`: what has told of them.
    fn tell_stats(&self) {
        if self.args.verbose {
            let stats = wait::stats();
            let n: u64 = stats.served.iter().map(|(_, n)| n).sum();
            let by = listed(&stats.served);
            say(format_args!("{n} waited for{by}; looks: {}", stats.looks));
        }
    }

    /// Says what is not an error.
    fn remark(&self, text: impl Display) {
        if !self.args.quiet {
            say(text);
        }
    }
}

/// `: pidfd 3, polling 1`; nothing if all are 0.
fn listed(by: &[(Mechanism, u64)]) -> String {
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

/// Writes whole lines to stdout.
fn print(text: &str) -> Result<(), End> {
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        // Quietly, as every program that left SIGPIPE alone; Rust's runtime
        // does not.
        io::ErrorKind::BrokenPipe => End::Signal(Signal::PIPE.number()),
        _ => trouble(format_args!("cannot write to stdout: {error}")),
    })
}

/// Every process takes a descriptor. The usual limit, 1024, is for programs
/// that call select(2), and nothing here does, nor is a program started that
/// would inherit ours.
fn lift_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let lifted = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Where it cannot be had, waiting gets on with what there is.
    let _ = setrlimit(Resource::Nofile, lifted);
}
