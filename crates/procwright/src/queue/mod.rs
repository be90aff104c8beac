//! A channel between processes, in memory that they share.

mod bell;
mod format;
mod lane;
