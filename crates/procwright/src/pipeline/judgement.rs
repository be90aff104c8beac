//! What each stage's end means for the whole.

use crate::run::{FunctionEnd, Joint, JointStop, Reason, Report, Shape};
use procwright_process::{Exit, Signal};

/// The rule by which a pipeline succeeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SuccessRule {
    /// Every stage has to end with code 0, or one that is
    /// [allowed](super::Pipeline::ok_codes), but for those that are
    /// [forgiven](Judgement::Forgiven). The default.
    #[default]
    Forgiving,
    /// Every stage has to, and none is forgiven: `set -o pipefail` of a shell.
    #[doc(alias = "pipefail")]
    Strict,
    /// The last stage has to, as in a shell, or each program of a [fan](super::Pipeline::fan): how
    /// the others end does not matter.
    Last,
}

impl SuccessRule {
    /// The name that stands in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            SuccessRule::Forgiving => "forgiving",
            SuccessRule::Strict => "strict",
            SuccessRule::Last => "last",
        }
    }
}

/// What the end of a stage means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Judgement {
    /// It ended with code 0, or one that is allowed.
    Success,
    /// It could write no more, as the next stage had read enough and ended well: it died of
    /// SIGPIPE, exited with 141 as a shell whose program did, or failed with "Broken pipe" or
    /// `EPIPE` at the end of its captured stderr; and the last reader of the pipe had left
    /// before its last writer, as far as that can be known. Before a [fan](super::Pipeline::fan)
    /// all of its programs had read enough and ended well.
    #[doc(alias = "SIGPIPE")]
    #[doc(alias = "EPIPE")]
    Forgiven,
    /// It failed, and the rule does not ask.
    Ignored,
    /// It failed, or it held up the rest when all were stopped.
    Failed,
    /// It ended as it did since another stage failed, or since all were stopped.
    Collateral,
}

impl Judgement {
    /// The name that stands in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Judgement::Success => "success",
            Judgement::Forgiven => "forgiven",
            Judgement::Ignored => "ignored",
            Judgement::Failed => "failed",
            Judgement::Collateral => "collateral",
        }
    }

    /// True of a stage that does not count against the whole.
    pub const fn is_well(self) -> bool {
        matches!(
            self,
            Judgement::Success | Judgement::Forgiven | Judgement::Ignored
        )
    }
}

/// What became of a [function](super::Pipeline::pipe_fn) between two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionReport {
    /// How it came out.
    pub end: FunctionEnd,
    /// What that means for the whole.
    pub judgement: Judgement,
}

/// The exit code of a shell whose last program died of SIGPIPE: 128 + 13.
const SHELL_SIGPIPE: i32 = 141;

/// How much of the end of stderr is looked at for a broken pipe: the traceback of an
/// interpreter names it in its last line.
const LAST_WORDS: usize = 1000;

/// All that is known of the end of one stage.
pub(super) struct StageEnd<'e> {
    pub(super) report: &'e Report,
    pub(super) stderr: &'e [u8],
    pub(super) ok_codes: &'e [i32],
}

impl StageEnd<'_> {
    fn was_stopped(&self) -> bool {
        self.report.reason != Reason::Finished
    }

    fn ended_well(&self) -> bool {
        let is_allowed = |code| self.ok_codes.contains(&code);
        self.report.exited_well() || self.report.status.code().is_some_and(is_allowed)
    }

    /// True if it ended as programs do that write to a pipe which nobody reads.
    fn ended_by_broken_pipe(&self) -> bool {
        match self.report.status {
            Exit::Signal { signal, .. } => signal == Signal::PIPE,
            Exit::Code(SHELL_SIGPIPE) => true,
            Exit::Code(_) => {
                let from = self.stderr.len().saturating_sub(LAST_WORDS);
                tells_of_broken_pipe(&self.stderr[from..])
            }
            _ => false,
        }
    }
}

/// True if `Broken pipe`, in whatever case, or the word `EPIPE` is in these.
fn tells_of_broken_pipe(words: &[u8]) -> bool {
    const BROKEN_PIPE: &[u8] = b"broken pipe";
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut parts = words.split(|byte| !is_of_word(byte));
    let mut windows = words.windows(BROKEN_PIPE.len());
    parts.any(|part| part == b"EPIPE")
        || windows.any(|window| window.eq_ignore_ascii_case(BROKEN_PIPE))
}

/// Judges each stage, and the function behind it if there is one. `joints` are the pipes between
/// them.
pub(super) fn judge(
    rule: SuccessRule,
    stages: &[StageEnd<'_>],
    shape: &Shape,
    joints: &[Joint],
    stop: Option<JointStop>,
) -> Vec<(Judgement, Option<FunctionReport>)> {
    let to_blame = stages_to_blame(stages, shape, joints, stop);
    let mut judgements = vec![Judgement::Success; stages.len()];
    let mut functions = vec![None; stages.len()];
    for (place, stage) in stages.iter().enumerate().rev() {
        let readers = &judgements[shape.behind(place)];
        let are_well = readers.iter().all(|reader| reader.is_well());
        let function = joints.get(place).and_then(Joint::function);
        let function = function.map(|(end, held_up)| {
            let judgement = judge_function(rule, end, held_up, are_well);
            FunctionReport { end, judgement }
        });
        functions[place] = function;
        let next_is_well = function.map_or(are_well, |function| function.judgement.is_well());
        let is_read = shape.is_read(place);
        let is_ignored = rule == SuccessRule::Last && is_read;
        judgements[place] = if stage.was_stopped() {
            match to_blame.contains(&place) {
                true => Judgement::Failed,
                false => Judgement::Collateral,
            }
        } else if stage.ended_well() {
            Judgement::Success
        } else {
            // A reader that was there when the writer left was there before: the signal came
            // from elsewhere.
            let ends = joints.get(place).and_then(|joint| joint.behind_writer);
            let reader_left_first = ends.and_then(|ends| ends.reader_left_first);
            let is_broken = stage.ended_by_broken_pipe() && reader_left_first != Some(false);
            match next_is_well {
                false if is_read && is_broken => Judgement::Collateral,
                true if is_read && is_broken && rule != SuccessRule::Strict => Judgement::Forgiven,
                _ if is_ignored => Judgement::Ignored,
                _ => Judgement::Failed,
            }
        };
    }
    judgements.into_iter().zip(functions).collect()
}

/// Judges a function, by whether the program behind it is well.
fn judge_function(
    rule: SuccessRule,
    end: FunctionEnd,
    held_up: bool,
    next_is_well: bool,
) -> Judgement {
    match end {
        FunctionEnd::Returned => Judgement::Success,
        FunctionEnd::BrokenPipe if !next_is_well => Judgement::Collateral,
        FunctionEnd::BrokenPipe => match rule {
            SuccessRule::Strict => Judgement::Failed,
            SuccessRule::Forgiving | SuccessRule::Last => Judgement::Forgiven,
        },
        FunctionEnd::Cancelled if !held_up => Judgement::Collateral,
        // One that has not come out is named, whoever held up whom.
        FunctionEnd::Failed | FunctionEnd::Cancelled | FunctionEnd::Running => Judgement::Failed,
    }
}

/// The places of the stages that were in the way of the others when all were stopped.
fn stages_to_blame(
    stages: &[StageEnd<'_>],
    shape: &Shape,
    joints: &[Joint],
    stop: Option<JointStop>,
) -> Vec<usize> {
    let by = match stop {
        None => return Vec::new(),
        Some(stop) => match (stop.by, stop.reason) {
            (Some(place), _) => return vec![place],
            (None, Reason::Timeout | Reason::IdleTimeout) => stages.iter().enumerate(),
            (None, _) => return Vec::new(),
        },
    };
    let function = |place: usize| joints.get(place).and_then(Joint::function);
    let goes_on = |place: usize| function(place).is_some_and(|(end, _)| !has_ended_itself(end));
    let was_stopped = |place: usize| stages.get(place).is_some_and(StageEnd::was_stopped);
    let at_stop = |place: usize| joints.get(place).and_then(|joint| joint.at_stop);
    // One whose input is empty waits for the one before it, or for what that has left behind,
    // as the end to write is open; one whose output is full for those behind it, if one of them
    // goes on.
    let waits = |place: usize| {
        let before = shape.before(place);
        let waited =
            |(before, reader): (usize, usize)| joints.get(before)?.waited.get(reader).copied();
        let for_input = before.and_then(waited).unwrap_or(false);
        let is_read = shape.behind(place).any(was_stopped) || goes_on(place);
        let for_output = is_read && at_stop(place).is_some_and(|ends| ends.is_full);
        for_input || for_output
    };
    let stopped: Vec<usize> = by
        .filter(|(_, stage)| stage.was_stopped())
        .map(|(place, _)| place)
        .collect();
    let busy: Vec<usize> = stopped
        .iter()
        .copied()
        .filter(|place| !waits(*place))
        .collect();
    let is_a_function = joints
        .iter()
        .filter_map(Joint::function)
        .any(|(_, held_up)| held_up);
    match busy.is_empty() && !is_a_function {
        true => stopped,
        false => busy,
    }
}

fn has_ended_itself(function: FunctionEnd) -> bool {
    matches!(function, FunctionEnd::Returned | FunctionEnd::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_broken_pipe() {
        let tells = |words: &str| tells_of_broken_pipe(words.as_bytes());
        for words in [
            "tool: write: Broken pipe",
            "BrokenPipeError: [Errno 32] Broken pipe",
            "BROKEN PIPE",
            "Error: write EPIPE",
            "errno=EPIPE\n",
            "EPIPE",
        ] {
            assert!(tells(words), "{words}");
        }
        for words in [
            "",
            "ImagePipeline failed",
            "epipe",
            "EPIPELINE",
            "MY_EPIPE",
            "EPIPE2",
            "broken  pipe",
        ] {
            assert!(!tells(words), "{words}");
        }
    }
}
