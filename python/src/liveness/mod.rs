//! Liveness of peers. Users get these classes themselves, without a wrapper in Python: a check
//! is one call of a native method and nothing else.
//!
//! `procwright/_liveness.py` has what needs modules of Python's.
//!
//! The files of this folder, highest first; each imports only from lines below its own:
//!
//! ```text
//! monitor              the watching side
//! token                the watched side
//! claim, invitation    the right to clean up; a token on its way to another process
//! words                words and tuples for Python, and calls of its half
//! ```

mod claim;
mod invitation;
mod monitor;
mod token;
mod words;

pub(crate) use claim::LivenessClaim;
pub(crate) use invitation::LivenessInvitation;
pub(crate) use monitor::{LivenessMonitor, LivenessSleep};
pub(crate) use token::LivenessToken;
