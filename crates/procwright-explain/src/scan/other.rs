//! Systems without `/proc` as Linux has it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::time::Duration;

use crate::world::{Births, Fd, Object, Process, World};

pub(crate) fn look() -> io::Result<World> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "what processes wait for can be read on Linux alone",
    ))
}

pub(crate) fn look_since(_: &World) -> io::Result<World> {
    look()
}

pub(crate) fn family(_: &[i32]) -> io::Result<World> {
    look()
}

pub(crate) fn add_links(_: &mut World, _: &BTreeSet<i32>) -> io::Result<()> {
    look().map(drop)
}

pub(crate) fn add_pipes(_: &mut World, _: &BTreeSet<i32>) -> io::Result<()> {
    look().map(drop)
}

pub(crate) fn tell_paths(_: &mut World) -> io::Result<bool> {
    look().map(|_| false)
}

pub(crate) fn add_children(_: &mut World, _: i32) -> io::Result<bool> {
    look().map(|_| false)
}

pub(crate) fn add_traced(_: &mut World, _: &BTreeSet<i32>) -> io::Result<bool> {
    look().map(|_| false)
}

pub(crate) fn holders(_: &World, _: &HashSet<Object>) -> BTreeSet<i32> {
    BTreeSet::new()
}

pub(crate) fn outline_others(_: &mut World) -> io::Result<()> {
    look().map(drop)
}

pub(crate) fn outline_these(_: &mut World, _: &BTreeSet<i32>) -> io::Result<()> {
    look().map(drop)
}

pub(crate) fn connect(_: &mut World) -> io::Result<()> {
    look().map(drop)
}

pub(crate) fn look_at(_: &mut World, _: &BTreeSet<i32>) -> io::Result<()> {
    look().map(drop)
}

pub(crate) fn look_at_each(_: &mut World, _: &BTreeSet<i32>) -> io::Result<()> {
    look().map(drop)
}

pub(crate) fn newcomers(_: &World) -> io::Result<BTreeSet<i32>> {
    look().map(|_| BTreeSet::new())
}

pub(crate) fn add_tracers(_: &mut World, _: Option<&BTreeSet<i32>>) -> io::Result<()> {
    look().map(drop)
}

pub(crate) fn look_again(_: &World, _: &BTreeSet<i32>) -> io::Result<World> {
    look()
}

pub(crate) fn tell_frozen(_: &mut World, _: &BTreeSet<i32>) -> bool {
    false
}

pub(crate) fn look_closer(_: &mut World, _: &BTreeSet<i32>, _: bool) -> Births {
    Births::new()
}

#[derive(Debug)]
pub(crate) struct Probe;

impl Probe {
    pub(crate) fn new() -> Option<Probe> {
        None
    }

    pub(crate) fn keeps_creation(&self) -> bool {
        false
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sleeper {
    pub(crate) pid: i32,
}

#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    pub(crate) waiting: Vec<Sleeper>,
    pub(crate) limit: Option<Duration>,
}

pub(crate) fn sleepers(_: i32) -> io::Result<Sleepers> {
    look().map(|_| Sleepers::default())
}

pub(crate) fn command_lines(_: &BTreeSet<i32>) -> BTreeMap<i32, String> {
    BTreeMap::new()
}

pub(crate) fn is_jobserver(_: &Process, _: &Fd) -> bool {
    false
}

pub(crate) fn pipe_budget() -> Option<u64> {
    None
}
