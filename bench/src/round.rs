//! Running subjects in turn.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde_json::Value;

use crate::stats;
use crate::tools::Tools;

/// A contestant of one case.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As tables name it.
    pub name: String,
    /// The command, to which the case adds its own arguments.
    pub argv: Vec<PathBuf>,
}

/// How often to go round.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Not fewer.
    pub least: usize,
    /// Not more.
    pub most: usize,
    /// Between the two, stop once this has passed.
    pub budget: Duration,
}

/// How much time a measurement may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Figures to look at: small cases, a suite in a minute.
    Quick,
    /// Cases in full size, so many rounds of them. 15 make a figure to quote.
    Rounds(usize),
}

impl Effort {
    /// Whether the cases are small.
    pub fn is_quick(self) -> bool {
        self == Effort::Quick
    }

    /// Rounds of this effort; of a quick one, those given.
    pub fn rounds(self, quick: Rounds) -> Rounds {
        match self {
            Effort::Quick => quick,
            Effort::Rounds(n) => Rounds {
                least: n,
                most: n,
                budget: Duration::MAX,
            },
        }
    }
}

/// What came out, by subject: one value a round, none where it failed.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The line of JSON of each round.
    pub lines: BTreeMap<String, Vec<Option<Value>>>,
    /// Subjects that could not be run, with the reason.
    pub missing: BTreeMap<String, String>,
    /// The last words of those that have failed once.
    failed: BTreeMap<String, String>,
}

impl Outcome {
    /// The entries that can be had; the others are noted.
    fn present<'a>(&mut self, tools: &Tools, entries: &'a [Entry]) -> Vec<&'a Entry> {
        let mut present = Vec::new();
        for entry in entries {
            match tools.missing(&entry.name, &entry.argv) {
                Some(reason) => {
                    self.missing.insert(entry.name.clone(), reason);
                }
                None => present.push(entry),
            }
        }
        present
    }

    fn note(&mut self, name: &str, line: Result<Value, String>) {
        if self.missing.contains_key(name) {
            return;
        }
        let lines = self.lines.entry(name.to_owned()).or_default();
        match line {
            Ok(line) => lines.push(Some(line)),
            Err(reason) => {
                lines.push(None);
                if let Some(reason) = self.failed.insert(name.to_owned(), reason) {
                    self.missing.insert(name.to_owned(), reason);
                }
            }
        }
    }

    /// Without the lines of those that failed, if only for want of another round.
    fn settled(mut self) -> Outcome {
        for (name, reason) in std::mem::take(&mut self.failed) {
            let never = self
                .lines
                .get(&name)
                .is_some_and(|lines| lines.iter().all(Option::is_none));
            if never {
                self.missing.insert(name, reason);
            }
        }
        for name in self.missing.keys() {
            self.lines.remove(name);
        }
        self
    }

    /// Every line must bear this figure; a subject of which one does not is named as
    /// missing.
    pub fn require(&mut self, key: &str, value: u64) {
        let wrong = |line: &Option<Value>| line.as_ref().is_some_and(|l| l[key] != value);
        let named = self
            .lines
            .iter()
            .filter(|(_, lines)| lines.iter().any(wrong));
        let names: Vec<String> = named.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.lines.remove(&name);
            self.missing.insert(name, format!("{key} is not {value}"));
        }
    }

    /// Of a list in each line, that share of the way from its least to its
    /// greatest: 0.99 for the 99th percentile.
    pub fn quantiles(&self, subject: &str, key: &str, share: f64) -> Vec<f64> {
        let lines = self.lines.get(subject).map_or(&[][..], Vec::as_slice);
        let quantile = |line: &Option<Value>| {
            let values = line.as_ref()?.get(key)?.as_array()?;
            let values: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
            stats::quantile(&values, share)
        };
        lines.iter().filter_map(quantile).collect()
    }

    /// Of the lists of all rounds, every figure.
    pub fn all(&self, subject: &str, key: &str) -> Vec<f64> {
        let lines = self.lines.get(subject).map_or(&[][..], Vec::as_slice);
        let lists = lines
            .iter()
            .filter_map(|line| line.as_ref()?.get(key)?.as_array());
        lists.flatten().filter_map(Value::as_f64).collect()
    }

    /// A figure of a subject, round by round; of a list, its median.
    pub fn figures(&self, subject: &str, key: &str) -> Vec<Option<f64>> {
        let lines = self.lines.get(subject).map_or(&[][..], Vec::as_slice);
        lines
            .iter()
            .map(|line| figure(line.as_ref()?.get(key)?))
            .collect()
    }

    /// The rounds in which there is one.
    pub fn known(&self, subject: &str, key: &str) -> Vec<f64> {
        self.figures(subject, key).into_iter().flatten().collect()
    }

    /// Quotients of two subjects' figures in the same round.
    pub fn ratios(&self, over: &str, under: &str, key: &str) -> Vec<f64> {
        let pairs = self
            .figures(over, key)
            .into_iter()
            .zip(self.figures(under, key));
        pairs
            .filter_map(|(over, under)| Some(over? / under?))
            .collect()
    }
}

fn figure(value: &Value) -> Option<f64> {
    match value {
        Value::Array(values) => {
            let values: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
            stats::summary(&values).map(|summary| summary.median)
        }
        other => other.as_f64(),
    }
}

/// Runs every entry once a round, each round beginning with another one. A
/// subject that fails twice is dropped and named as missing with its last words.
///
/// Every line must bear the figures in `expect`.
pub fn go(
    tools: &Tools,
    entries: &[Entry],
    args: &[OsString],
    expect: &[(&str, u64)],
    rounds: Rounds,
) -> Outcome {
    go_after(Duration::ZERO, tools, entries, args, expect, rounds)
}

/// As [`go`], and before each run the machine rests for so long: then memory that was
/// freed may have gone back to where it came from. Each line gets what the subject and its
/// children have used: `processor_s`, the page `faults`, and the `switches` from one process
/// to another.
pub fn go_after(
    rest: Duration,
    tools: &Tools,
    entries: &[Entry],
    args: &[OsString],
    expect: &[(&str, u64)],
    rounds: Rounds,
) -> Outcome {
    let mut outcome = Outcome::default();
    let present = outcome.present(tools, entries);
    let started = Instant::now();
    for round in 0..rounds.most {
        if round >= rounds.least && started.elapsed() > rounds.budget {
            break;
        }
        for turn in 0..present.len() {
            let entry = present[(turn + round) % present.len()];
            if !outcome.missing.contains_key(&entry.name) {
                #[expect(clippy::disallowed_methods, reason = "a rest is the case")]
                std::thread::sleep(rest);
                let before = used();
                let mut line = once(&entry.argv, args).and_then(|line| check(line, expect));
                if let Ok(Value::Object(figures)) = &mut line {
                    let names = ["processor_s", "faults", "switches"];
                    for ((name, before), after) in names.into_iter().zip(before).zip(used()) {
                        figures.insert(name.into(), (after - before).into());
                    }
                }
                outcome.note(&entry.name, line);
            }
        }
    }
    outcome.settled()
}

/// Runs all entries of a round at the same time: for what is counted, not timed,
/// and takes no processor worth the name.
pub fn together(tools: &Tools, entries: &[Entry], args: &[OsString], rounds: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let present = outcome.present(tools, entries);
    for _ in 0..rounds {
        let lines: Vec<_> = std::thread::scope(|scope| {
            let running: Vec<_> = present
                .iter()
                .map(|entry| (entry, scope.spawn(|| once(&entry.argv, args))))
                .collect();
            running
                .into_iter()
                .filter_map(|(entry, run)| Some((entry, run.join().ok()?)))
                .collect()
        });
        for (entry, line) in lines {
            outcome.note(&entry.name, line);
        }
    }
    outcome.settled()
}

/// What all children that have ended have used: processor time in seconds, page faults,
/// switches.
fn used() -> [f64; 3] {
    let Ok(used) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return [0.0; 3];
    };
    let processor = used.user_time() + used.system_time();
    let switches = used.voluntary_context_switches() + used.involuntary_context_switches();
    [
        processor.num_microseconds() as f64 / 1e6,
        used.minor_page_faults() as f64,
        switches as f64,
    ]
}

fn check(line: Value, expect: &[(&str, u64)]) -> Result<Value, String> {
    match expect
        .iter()
        .find(|(key, value)| line[*key].as_u64() != Some(*value))
    {
        Some((key, value)) => Err(format!("{key} is {}, not {value}", line[*key])),
        None => Ok(line),
    }
}

/// One run of one subject: its line of JSON, or why there is none.
pub(crate) fn once(argv: &[PathBuf], args: &[OsString]) -> Result<Value, String> {
    // A subject that hangs is a finding and must not hang the bench.
    let done = Command::new("timeout")
        .arg("300")
        .args(argv)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run it: {error}"))?;
    if !done.status.success() {
        let words = String::from_utf8_lossy(&done.stderr);
        let last = words
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("no message");
        return Err(format!("{}: {last}", done.status));
    }
    serde_json::from_slice(&done.stdout).map_err(|error| format!("no line of JSON: {error}"))
}
