//! What is said of a process.

/// What is said of a process, from the gravest to the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Verdict {
    /// A deadlock for certain: nobody of those who wait can be released by anybody else.
    Proven,
    /// It may hang: what was not seen decides.
    Possible,
    /// It was stopped by a signal, or waits for somebody who was.
    Stopped,
    /// It waits for somebody who takes its output more slowly than it comes.
    Slow,
    /// It waits at its terminal for what a person types, or for somebody who does. Who waits on its
    /// stdin for another program is healthy: [`Waiting`](crate::Waiting) tells that it does.
    Input,
    /// It runs.
    Busy,
    /// It waits as programs do, for somebody who can go on, or for time.
    Healthy,
}

impl Verdict {
    /// The exit code of `procwright doctor` for it.
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Proven => 1,
            Verdict::Possible | Verdict::Stopped | Verdict::Slow => 2,
            Verdict::Input => 3,
            Verdict::Busy | Verdict::Healthy => 0,
        }
    }

    /// The name in JSON and in texts.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Proven => "proven",
            Verdict::Possible => "possible",
            Verdict::Stopped => "stopped",
            Verdict::Slow => "slow",
            Verdict::Input => "input",
            Verdict::Busy => "busy",
            Verdict::Healthy => "healthy",
        }
    }
}
