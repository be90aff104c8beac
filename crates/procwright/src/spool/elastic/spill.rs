//! The thread that moves bytes from memory to disk.
//!
//! Started when there is something to move, ended when there is nothing more.
//! All that may be slow, making files, writing them, is done here and without
//! the lock, so the producer never waits for a disk. The consumer may overtake:
//! what it takes from memory while it is being written is not counted as
//! written, and the next write goes to the same place.

use std::io;
use std::path::Path;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use super::disk::{Disk, Extent, Segment, Target};
use super::state::{Entry, Piece, State};
use super::{Event, Shared, monitor, place};
use crate::spool::budget;
use crate::sys::thread;
use crate::time::Timeout;

/// When a disk has refused, it is asked again after this time.
const RETRY: Duration = Duration::from_secs(1);

/// A disk that refuses is told of again when it has not for this time. One that is
/// full refuses every time when what was read has made room, and that was used.
const CALM: Duration = Duration::from_secs(60);

/// How long the thread waits for more before it ends.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the thread waits for. Whoever brings it says "nothing" and rings, so
/// that nothing else wakes the thread.
#[derive(Debug, Default, PartialEq, Eq)]
enum Waits {
    #[default]
    Nothing,
    /// More bytes than the memory is to hold.
    Work,
    /// Room on the disk.
    Room,
}

#[derive(Debug, Default)]
pub(super) struct Spill {
    running: bool,
    waits: Waits,
    /// It writes, without the lock.
    busy: bool,
    /// The latest attempt failed: not again before this.
    retry_at: Option<Instant>,
    /// When an attempt failed.
    refused_at: Option<Instant>,
    told: bool,
}

impl Spill {
    /// Whether a file is being written.
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }
}

impl State {
    /// Above this, bytes go to disk.
    fn high(&self) -> u64 {
        // Asked once: others may change it between two looks.
        let limit = self.limit();
        limit - limit / 4
    }

    /// Down to this, once they do.
    fn low(&self) -> u64 {
        self.limit() / 2
    }

    fn is_over(&self) -> bool {
        self.closed || self.left
    }

    /// The piece that goes to disk next.
    fn candidate(&mut self) -> Option<Piece> {
        let nothing_there = self.disk.as_ref().is_some_and(|disk| disk.unread() == 0);
        if nothing_there && self.head.is_empty() && !self.spill.busy {
            // Spilling begins: what the consumer will want first stays, so that
            // it finds memory and no disk if it comes back soon.
            let mut kept = self.in_memory - self.tail_bytes();
            while kept < self.limit() / 4
                && self.tail.len() > 2
                && let Some(entry) = self.tail.pop_front()
            {
                if let Entry::Piece(piece) = &entry {
                    kept += piece.len();
                }
                self.head.push_back(entry);
            }
        }
        match self.tail.front() {
            // The last one may still be filled.
            Some(Entry::Piece(piece))
                if self.tail.len() > 1 || piece.end == piece.block.size() || !self.filling =>
            {
                Some(piece.clone())
            }
            _ => None,
        }
    }

    fn tail_bytes(&self) -> u64 {
        self.tail.iter().map(Entry::bytes).sum()
    }

    /// The first `n` bytes of `piece` have been written to the disk's target.
    fn wrote(&mut self, piece: &Piece, n: u64) {
        let Some(Entry::Piece(first)) = self.tail.front_mut() else {
            return;
        };
        if !Arc::ptr_eq(&first.block, &piece.block) || first.start != piece.start {
            // The consumer was faster and has it.
            return;
        }
        first.start += usize::try_from(n).unwrap_or(usize::MAX);
        let is_empty = first.start == first.end;
        if is_empty && let Some(Entry::Piece(first)) = self.tail.pop_front() {
            self.pool.give(first.block);
        }
        self.in_memory -= n;
        self.share.keeps(self.in_memory);
        self.spilled += n;
        if let Some(disk) = &mut self.disk {
            disk.wrote(n);
        }
    }
}

/// Wakes the thread if there is work; whether it has to be started first.
pub(super) fn wanted(shared: &Shared, state: &mut State) -> bool {
    if state.disk.is_none() || state.in_memory <= state.high() || state.is_over() {
        return false;
    }
    if state.spill.running {
        if state.spill.waits == Waits::Work {
            ring(shared, state);
        }
        return false;
    }
    if state.spill.retry_at.is_some_and(|at| Instant::now() < at) {
        return false;
    }
    state.spill.running = true;
    true
}

/// The consumer has emptied a file, or all.
pub(super) fn room_was_made(shared: &Shared, state: &mut State) {
    if state.spill.waits == Waits::Room {
        ring(shared, state);
    }
}

/// The consumer has taken from memory: a thread that waits for room may have no
/// need of it any more.
pub(super) fn relieved(shared: &Shared, state: &mut State) {
    if state.in_memory <= state.low() {
        room_was_made(shared, state);
    }
}

fn ring(shared: &Shared, state: &mut State) {
    state.spill.waits = Waits::Nothing;
    shared.work.notify_all();
}

/// Starts the thread. Without one everything stays in memory, and it is tried
/// again in a second.
pub(super) fn start(shared: &Arc<Shared>) {
    if let Err(error) = spawn(shared) {
        let mut state = shared.lock();
        state.spill.running = false;
        refused(shared, state, "start a thread", error);
    }
}

fn spawn(shared: &Arc<Shared>) -> io::Result<()> {
    let theirs = Arc::clone(shared);
    thread::spawn_quiet("procwright-spill", move || work(&theirs))?;
    Ok(())
}

/// Nobody wants more: whether a thread has to be started that gives the files
/// back. Closing one frees its blocks, for which a disk can take any time, and a
/// close waits for nothing. A thread that is there does it when it sees the close.
pub(super) fn left_files(state: &mut State) -> bool {
    let has_files = state.disk.as_ref().is_some_and(Disk::has_files);
    has_files && !std::mem::replace(&mut state.spill.running, true)
}

/// Starts it. Where there can be none the caller does it.
pub(super) fn give_back(shared: &Arc<Shared>) {
    if spawn(shared).is_err() {
        let mut state = shared.lock();
        state.spill.running = false;
        let files = state.disk.as_mut().map(Disk::release);
        drop(state);
        drop(files);
    }
}

/// More than this takes a while to be given back to the system: 0.1 ms a MiB.
const MUCH: u64 = 1 << 20;

/// Drops what holds so many bytes, on a thread of its own if they are many: a close
/// waits for nothing. Not on the one that writes files, which a disk can hold up.
pub(super) fn forget<T: Send + 'static>(entries: T, bytes: u64) {
    if bytes > MUCH {
        // Where there can be none they are dropped here, with the errand.
        let _ = thread::spawn_quiet("procwright-free", move || drop(entries));
    }
}

/// Notes that it cannot be done now, and tells it unless that was told.
fn refused(
    shared: &Shared,
    mut state: MutexGuard<'_, State>,
    what: &'static str,
    error: io::Error,
) {
    let now = Instant::now();
    let before = state.spill.refused_at.replace(now);
    state.spill.retry_at = Some(now + RETRY);
    drop(state);
    if before.is_none_or(|before| now.saturating_duration_since(before) >= CALM) {
        (shared.hook)(&Event::Degraded { what, error });
    }
}

fn work(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        state = match turn(shared, state) {
            Some(state) => state,
            None => return,
        };
    }
}

/// Moves one piece, or waits for one; none at the end.
fn turn<'a>(shared: &'a Shared, mut state: MutexGuard<'a, State>) -> Option<MutexGuard<'a, State>> {
    if state.is_over() {
        state.spill.running = false;
        let files = state.disk.as_mut().map(Disk::release);
        drop(state);
        drop(files);
        return None;
    }
    let piece = match state.in_memory > state.low() {
        true => state.candidate(),
        false => None,
    };
    let Some(piece) = piece else {
        return idle(shared, state);
    };
    let State { disk, share, .. } = &mut *state;
    let Some(disk) = disk else {
        state.spill.running = false;
        return None;
    };
    if !disk.has_limit() {
        let directory = disk.directory().to_owned();
        drop(state);
        let limit = place::default_limit(&directory);
        budget::measure(&directory);
        state = shared.lock();
        if let Some(disk) = &mut state.disk {
            disk.set_limit(limit);
        }
        return Some(state);
    }
    let (limit, is_less) = disk.limit(share);
    match disk.target(limit) {
        Target::Extent(extent) => Some(write(shared, state, &piece, &extent)),
        Target::Make(size) => {
            let directory = disk.directory().to_owned();
            Some(make(shared, state, &directory, size))
        }
        // A file that the consumer has emptied rings.
        Target::Full => {
            state.pool.give(piece.block);
            // A share grows when others are done with theirs, of which nobody
            // tells: it is asked again, as a disk is that was full.
            let retry = is_less.then_some(RETRY);
            Some(wait(shared, state, Waits::Room, retry).0)
        }
    }
}

fn make<'a>(
    shared: &'a Shared,
    state: MutexGuard<'a, State>,
    directory: &Path,
    size: u64,
) -> MutexGuard<'a, State> {
    drop(state);
    let made = Segment::make(directory, size);
    let mut state = shared.lock();
    match made {
        Ok(segment) => {
            if let Some(disk) = &mut state.disk {
                disk.add(segment);
            }
            state.count_files();
            state
        }
        Err(error) => wait_to_retry(shared, state, "make a file", error),
    }
}

fn write<'a>(
    shared: &'a Shared,
    mut state: MutexGuard<'a, State>,
    piece: &Piece,
    extent: &Extent,
) -> MutexGuard<'a, State> {
    let n = piece.len().min(extent.length);
    let bytes = &piece.bytes()[..usize::try_from(n).unwrap_or(usize::MAX)];
    state.spill.busy = true;
    drop(state);
    let written = write_all(extent, bytes);
    let mut state = shared.lock();
    state.spill.busy = false;
    let mut files = Vec::new();
    let mut tell = None;
    let mut failed = None;
    match written {
        Ok(()) => {
            state.spill.retry_at = None;
            state.wrote(piece, n);
            if !std::mem::replace(&mut state.spill.told, true)
                && let Some(disk) = &state.disk
            {
                let directory = disk.directory().to_owned();
                tell = Some(Event::Spilling { directory });
            }
            shared.let_on(&mut state, Instant::now());
        }
        Err(error) => {
            if let Some(disk) = &mut state.disk {
                files.extend(disk.refused());
            }
            failed = Some(error);
        }
    }
    if let Some(disk) = &mut state.disk
        && disk.unread() == 0
    {
        // The consumer has everything and could not close the file under us.
        files.extend(disk.release());
    }
    state.count_files();
    state.pool.give(Arc::clone(&piece.block));
    if !files.is_empty() || tell.is_some() {
        drop(state);
        drop(files);
        if let Some(event) = tell {
            (shared.hook)(&event);
        }
        state = shared.lock();
    }
    match failed {
        Some(error) => wait_to_retry(shared, state, "write a file", error),
        None => state,
    }
}

fn write_all(extent: &Extent, mut bytes: &[u8]) -> io::Result<()> {
    let mut at = extent.at;
    while !bytes.is_empty() {
        match rustix::io::pwrite(&extent.file, bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                at += n as u64;
                bytes = &bytes[n..];
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Waits for more to do, and ends when there is none for a while.
fn idle<'a>(shared: &'a Shared, state: MutexGuard<'a, State>) -> Option<MutexGuard<'a, State>> {
    let (mut state, in_vain) = wait(shared, state, Waits::Work, Some(PATIENCE));
    if in_vain {
        state.spill.running = false;
        return None;
    }
    Some(state)
}

fn wait_to_retry<'a>(
    shared: &'a Shared,
    state: MutexGuard<'a, State>,
    what: &'static str,
    error: io::Error,
) -> MutexGuard<'a, State> {
    refused(shared, state, what, error);
    wait(shared, shared.lock(), Waits::Room, Some(RETRY)).0
}

/// Waits until what it waits for was brought, or the end; whether the time was
/// over before that.
fn wait<'a>(
    shared: &'a Shared,
    mut state: MutexGuard<'a, State>,
    waits: Waits,
    most: Option<Duration>,
) -> (MutexGuard<'a, State>, bool) {
    let deadline = Timeout::from(most).starting(Instant::now());
    state.spill.waits = waits;
    loop {
        if state.spill.waits == Waits::Nothing || state.is_over() {
            return (state, false);
        }
        let now = Instant::now();
        if deadline.reached(now) {
            state.spill.waits = Waits::Nothing;
            return (state, true);
        }
        state = monitor::wait(&shared.work, state, deadline.remaining(now));
    }
}
