//! A sticky wake-up that a poll can wait for: an eventfd, or a pipe to oneself.
//!
//! Once rung the descriptor stays readable until it is silenced, so a ring between
//! "nothing to do" and "enter poll" is never lost.

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
#[path = "eventfd.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
#[path = "pipe.rs"]
mod imp;

pub use imp::Wake;
