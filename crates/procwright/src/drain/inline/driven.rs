//! A state machine, and what it needs before its next step.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: step.
    Nothing,
    /// The descriptor must become ready.
    Ready,
    /// The wake-up must ring.
    Wake,
    /// No step comes, but the descriptor stays open.
    Over,
}

#[derive(Debug)]
pub(super) struct Driven<T> {
    pub(super) machine: T,
    pub(super) need: Need,
}

impl<T> Driven<T> {
    pub(super) fn new(machine: T, need: Need) -> Driven<T> {
        Driven { machine, need }
    }
}
