//! Is the peer alive? One relaxed atomic load, no system call.
//!
//! The watched side holds a [`Token`], the watching side has a [`Monitor`] of it.
//! A process that holds no token can be monitored all the same, as exactly and for
//! the same load, once a thread of ours has been told of its end.
//!
//! ```
//! use procwright::liveness::{Monitor, State, Token};
//!
//! let token = Token::new()?;
//! // Over a Unix socket, or by inheritance, to another process:
//! let monitor = Monitor::accept(token.invite()?)?;
//! assert!(monitor.alive());
//! drop(token);
//! assert_eq!(monitor.state(), State::Released);
//! # Ok::<(), procwright::liveness::Error>(())
//! ```
//!
//! # What alive means
//! A process that is stopped, swapped out, hung, or writing a core dump is alive.
//! Liveness is not progress. And dead does not mean quiet: a thread that was inside
//! a system call when its process was killed may still finish that call. Reclaim
//! what a dead process was writing to only when [`Monitor::wait_gone`] says that
//! it is gone.
//!
//! A token stands for a program: an exec ends it, since the new program knows
//! nothing of it. A monitor of a process ([`Monitor::of_process`]) stands for the
//! process, whatever programs it runs. [`Monitor::guarantee`] says which.
//!
//! # How
//! A thread of the holder's process, which does nothing else, holds a robust futex
//! word for each token. When the process ends, however it does, the kernel marks
//! the words before it tells anybody else. The words are in memory that the holder
//! alone can write to and nobody can shorten.

mod bell;
mod cell;
mod claim;
mod error;
mod guarantee;
mod herald;
mod holder;
mod invitation;
mod monitor;
mod parent;
mod portable_token;
mod readiness;
mod thread_token;
mod token;
mod unmarked;
mod waiting;
mod watcher;

#[cfg(not(procwright_loom))]
pub(crate) use cell::nonce;
pub use claim::{Claim, Cleaner};
pub use error::Error;
pub use guarantee::{Guarantee, Mechanism, Names, State};
#[cfg(not(procwright_loom))]
pub(crate) use holder::{Holder, Seen};
pub use invitation::Invitation;
pub use monitor::Monitor;
pub(crate) use parent::{VARIABLE, heirloom};
pub use portable_token::PortableToken;
pub use thread_token::ThreadToken;
pub use token::Token;
