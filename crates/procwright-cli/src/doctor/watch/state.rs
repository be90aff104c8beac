//! What somebody who watches calls a change.

use std::collections::BTreeSet;

use procwright_explain::{Diagnosis, Pattern, Verdict};

/// What of a diagnosis lasts from look to look, if nothing has changed. Rates, counts and those
/// who happen to wait behind a hang are not in it, nor whether somebody who is well runs or
/// sleeps: both change at any moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// `Healthy` for who is busy, too.
    verdict: Verdict,
    findings: BTreeSet<(Verdict, Pattern, Vec<i32>)>,
}

impl State {
    pub(super) fn of(diagnosis: &Diagnosis) -> State {
        let findings = diagnosis.findings.iter();
        State {
            verdict: match diagnosis.verdict {
                Verdict::Busy => Verdict::Healthy,
                verdict => verdict,
            },
            findings: findings
                .map(|found| (found.verdict, found.pattern, found.processes.clone()))
                .collect(),
        }
    }

    /// A word for it.
    pub(super) fn name(&self) -> &'static str {
        self.verdict.name()
    }
}
