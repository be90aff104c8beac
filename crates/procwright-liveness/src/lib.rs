//! Is the peer alive? One relaxed atomic load, no system call.
//!
//! The watched side holds a [`Token`], the watching side has a [`Monitor`] of it.
//! A process that holds no token can be monitored all the same, as exactly and for
//! the same load, once a thread of this process has been told of its end.
//!
//! ```
//! use procwright_liveness::{Monitor, State, Token};
//!
//! let token = Token::new()?;
//! // Over a Unix socket, or by inheritance, to another process:
//! let monitor = Monitor::accept(token.invite()?)?;
//! assert!(monitor.alive());
//! drop(token);
//! assert_eq!(monitor.state(), State::Released);
//! # Ok::<(), procwright_liveness::Error>(())
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
#![deny(unsafe_code)]

mod claim;
mod error;
mod futex_watch;
mod guarantee;
mod holder;
#[doc(hidden)]
pub mod inherited;
mod invitation;
mod monitor;
mod owner;
mod parent;
#[cfg(not(procwright_loom))]
mod portable_token;
mod process_watch;
mod readiness;
mod thread_token;
mod token;
mod unmarked;
mod unmarked_sleepers;
mod waiting;
mod withdrawal;

pub use claim::{Claim, Cleaner};
pub use error::Error;
pub use guarantee::{Guarantee, Mechanism, Names, State};
#[cfg(not(procwright_loom))]
#[doc(hidden)]
pub use holder::{HolderId, HolderLookup};
pub use invitation::Invitation;
pub use monitor::Monitor;
#[cfg(not(procwright_loom))]
#[doc(hidden)]
pub use owner::nonce;
#[doc(hidden)]
pub use parent::{VARIABLE, inheritance};
#[cfg(not(procwright_loom))]
pub use portable_token::PortableToken;
pub use thread_token::ThreadToken;
pub use token::Token;
pub use withdrawal::Withdrawal;

/// The example of the README, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
