//! Every system call, one folder a concern, one file a platform.
//!
//! Nothing above this module names an operating system. Each folder's `mod.rs`
//! states the contract; what a platform cannot offer returns
//! [`unsupported`].
#![allow(unsafe_code)]

pub(crate) mod fd;
pub(crate) mod fence;
pub(crate) mod file;
pub(crate) mod folder;
pub(crate) mod fork;
pub(crate) mod guard;
pub(crate) mod job;
pub(crate) mod known;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod orphans;
pub(crate) mod pidfd;
pub(crate) mod pipe;
pub(crate) mod poll;
pub(crate) mod proc;
pub(crate) mod pty;
pub(crate) mod ready;
#[cfg(not(procwright_loom))]
pub(crate) mod rendezvous;
pub(crate) mod robust;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) mod sealed;
#[cfg(not(procwright_loom))]
pub(crate) mod shared;
pub(crate) mod signal;
pub(crate) mod spawn;
pub(crate) mod table;
#[cfg(all(test, target_os = "linux"))]
pub(crate) mod testing;
pub(crate) mod thread;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod trial;
pub(crate) mod wait;
pub(crate) mod wake;
pub(crate) mod write;

/// The error of what this platform cannot do.
#[allow(dead_code)]
pub(crate) fn unsupported(what: &str) -> std::io::Error {
    std::io::Error::new(
        std::io::ErrorKind::Unsupported,
        format!("{what} is not available on this platform"),
    )
}
