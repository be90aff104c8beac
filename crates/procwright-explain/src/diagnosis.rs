//! The result of an examination.

use crate::finding::Finding;
use crate::verdict::Verdict;
use crate::waiting::{WaitKind, WaitedFor, Waiting};

/// The result of an examination.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Diagnosis {
    /// Version of this form; 1.
    pub version: u32,
    /// The gravest verdict.
    pub verdict: Verdict,
    /// All in one sentence.
    pub sentence: String,
    /// What keeps processes from going on, the gravest first.
    pub findings: Vec<Finding>,
    /// The processes that were asked about, and those that the findings name.
    pub processes: Vec<ProcessView>,
    /// What the process waits for that was asked about by its number, if it was one alone.
    pub waiting: Option<Waiting>,
    /// What was looked at.
    pub counts: Counts,
    /// Milliseconds between the two looks.
    pub between_ms: u64,
    /// What could not be seen, each with what would help.
    pub unseen: Vec<String>,
}

/// Numbers of what was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Counts {
    /// Processes that were looked at, at the second look: all, or those whom the question
    /// concerns.
    pub processes: usize,
    /// Their threads.
    pub threads: usize,
    /// Their descriptors.
    pub descriptors: usize,
    /// Pipes and FIFOs among them.
    pub pipes: usize,
    /// Processes whose verdict was asked for.
    pub asked: usize,
}

/// A process, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ProcessView {
    /// Its number.
    pub pid: i32,
    /// Number of its parent.
    pub ppid: i32,
    /// Its name.
    pub name: String,
    /// Its command line, as a shell would take it, cut behind 4,096 bytes with `…`; `None` if
    /// it has none.
    pub command: Option<String>,
    /// What is said of it.
    pub verdict: Verdict,
    /// What each thread waits for.
    pub waits: Vec<WaitView>,
}

/// A thread, and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WaitView {
    /// Its number.
    pub thread: i32,
    /// What it does, in words, with those who could end its wait.
    pub text: String,
    /// Those who could end its wait, all of them: by what they have open, by their end or by a
    /// lock. Of a wait in a set of descriptors, itself excepted.
    pub holders: Vec<WaitedFor>,
    /// True if it has not run from the first look to the second.
    pub slept: bool,
}

impl Diagnosis {
    /// The diagnosis as JSON, as `docs/reference/doctor.schema.json` describes it.
    ///
    /// # Errors
    /// None in practice: all keys are text.
    #[cfg(feature = "serde")]
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Why it does not go on, in one sentence without a full stop: the gravest finding, or that
    /// the process which was asked about waits for input, for room, for a lock or for somebody
    /// else. `None` if it is well, as far as can be seen.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// // This process runs.
    /// let own = std::process::id() as i32;
    /// let diagnosis = procwright_explain::examine(&[own], Duration::from_millis(20))?;
    /// assert_eq!(diagnosis.why(), None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn why(&self) -> Option<String> {
        if let Some(gravest) = self.findings.first() {
            // A person is waited for in the words of a wait, which tell the descriptor, too.
            let is_input = gravest.verdict == Verdict::Input;
            let waiting = self.waiting.as_ref().filter(|_| is_input);
            let text = waiting.map_or(&self.sentence, |waiting| &waiting.text);
            return Some(text.trim_end_matches('.').to_owned());
        }
        let why = self.waiting.as_ref()?.why()?;
        Some(why.to_owned())
    }

    /// With what the process waits for that was asked about: where nothing hangs, that is what
    /// there is to say.
    pub(crate) fn with_waiting(mut self, waiting: Option<Waiting>) -> Diagnosis {
        let is_well = matches!(self.verdict, Verdict::Busy | Verdict::Healthy);
        let known = waiting.as_ref().filter(|one| one.kind != WaitKind::Nothing);
        if let Some(known) = known.filter(|_| is_well && self.findings.is_empty()) {
            self.sentence = format!("Nothing hangs: {}.", known.text);
        }
        self.waiting = waiting;
        self
    }

    pub(crate) fn process(&self, pid: i32) -> Option<&ProcessView> {
        self.processes.iter().find(|process| process.pid == pid)
    }
}
