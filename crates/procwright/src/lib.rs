//! Runs programs, talks to them and knows when they end or die: without
//! deadlocks, polling or lost output. When something hangs, it says who and
//! why.
#![deny(unsafe_code)]

pub mod error;
mod holders;
mod ident;
pub mod process;
mod sys;
pub mod time;
