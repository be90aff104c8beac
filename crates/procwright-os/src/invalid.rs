//! The error of a value that cannot be used.

/// A value that cannot be used, found before anything was started.
///
/// The text has three parts: which value, what is wrong with it, and what
/// would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {problem}: {hint}")]
pub struct Invalid {
    what: String,
    problem: String,
    hint: String,
}

impl Invalid {
    /// An error about the value called `what`.
    pub fn new(
        what: impl Into<String>,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> Invalid {
        Invalid {
            what: what.into(),
            problem: problem.into(),
            hint: hint.into(),
        }
    }

    /// The name of the value, as in the documentation.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What is wrong with it.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// What would be right.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}
