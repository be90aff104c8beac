//! What was found, for people and programs.

use crate::pattern::Pattern;
use crate::verdict::Verdict;

/// Something that keeps processes from going on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// How certain it is, or of which kind.
    pub verdict: Verdict,
    /// The hang's name.
    pub pattern: Pattern,
    /// What happens, in one sentence.
    pub sentence: String,
    /// What to do.
    pub fix: String,
    /// The processes that it is about, in the order of their numbers.
    pub processes: Vec<i32>,
    /// Who waits for whom: the circle of a deadlock, else the way from who waits longest
    /// to who is waited for.
    pub links: Vec<Link>,
    /// True if the last link leads back to the first.
    pub circle: bool,
    /// Processes that wait for those above and for nobody else.
    pub behind: Vec<i32>,
    /// What was not seen and could make it untrue, with what would settle it.
    pub doubts: Vec<String>,
}

/// One process that waits for another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Link {
    /// Process that waits.
    pub from: i32,
    /// Thread of it that waits.
    pub thread: i32,
    /// Process that is waited for.
    pub to: i32,
    /// Kind of wait: `read`, `write`, `end` or `unlock`.
    pub wait: &'static str,
    /// Descriptor of who waits, if it is one.
    pub fd: Option<i32>,
    /// Descriptor of the other, if it is one.
    pub other_fd: Option<i32>,
    /// The pipe, socket or terminal between them, such as `pipe 1234`.
    pub object: Option<String>,
    /// The wait in words.
    pub text: String,
}
