//! The result of an examination.

use serde::Serialize;

use crate::finding::Finding;
use crate::verdict::Verdict;

/// The result of an examination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    /// What was looked at.
    pub counts: Counts,
    /// Milliseconds between the two looks.
    pub between_ms: u64,
    /// What could not be seen, each with what would help.
    pub unseen: Vec<String>,
}

/// Numbers of what was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// All processes that were seen, at the second look.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WaitView {
    /// Its number.
    pub thread: i32,
    /// What it does, in words.
    pub text: String,
    /// True if it has not run from the first look to the second.
    pub slept: bool,
}

impl Diagnosis {
    /// The diagnosis as JSON, as `docs/reference/doctor.schema.json` describes it.
    ///
    /// # Errors
    /// None in practice: all keys are text.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    pub(crate) fn process(&self, pid: i32) -> Option<&ProcessView> {
        self.processes.iter().find(|process| process.pid == pid)
    }
}
