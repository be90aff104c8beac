//! A queue between a program and the one that has started it.

mod child;
mod parent;

pub(crate) use parent::OurEnd;

/// What is told beside the socket over which a child answers: its version.
const SOCKET: &str = "pwc1";
