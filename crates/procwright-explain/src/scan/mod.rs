//! One look at all processes, by `/proc` alone: nothing of theirs is opened, and nobody is
//! stopped.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod among;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod calls;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod children;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod closer;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod creation;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod descriptors;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod ends;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod files;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod frozen;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod jobserver;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod kin;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod locks;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod look;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod maps;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod mutexes;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod partial;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod peers;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod process;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod restarted;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sets;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sharers;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod slept;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod tcp;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod tree;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use closer::look_closer;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use creation::Probe;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use frozen::tell as tell_frozen;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use jobserver::is_jobserver;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use look::{command_lines, look, look_since, pipe_budget};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use other::{
    Probe, Sleeper, add_children, add_links, add_pipes, add_traced, add_tracers, command_lines,
    connect, family, holders, is_jobserver, look, look_again, look_at, look_at_each, look_closer,
    look_since, newcomers, outline_others, outline_these, pipe_budget, sleepers, tell_frozen,
    tell_paths,
};
#[cfg(all(test, target_os = "linux"))]
pub(crate) use partial::own_family;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use partial::{
    add_children, add_links, add_pipes, add_traced, add_tracers, connect, family, holders,
    look_again, look_at, look_at_each, newcomers, outline_others, outline_these, tell_paths,
};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use tree::{Sleeper, sleepers};
