//! The thread that moves bytes from memory to disk.
//!
//! The thread is started when there is something to move, and ends when there is
//! nothing more. All that may be slow, making files, writing them, is done here and
//! without the lock, so the producer never waits for a disk.
//!
//! The consumer may overtake:
//!
//! 1. the thread takes a slice, leaves it where it is, and writes it without the lock;
//! 2. the consumer meanwhile takes those bytes from memory;
//! 3. the thread takes the lock and no longer finds the slice at the front of the tail:
//!    it does not count what it wrote, and the next write goes to the same place.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::entry::BlockSlice;
use super::event::Event;
use super::shared::{self, ElasticShared};
use super::sides::SpillWaits;
use super::spill_files::{FileRange, SpillFile, SpillFiles, WriteTarget};
use super::state::QueueState;
use crate::spool::{budget, spool_dir};
use procwright_os::sync::MutexGuard;
use procwright_os::thread;
use procwright_os::time::Timeout;

/// The time after which a disk that has refused is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// A disk that refuses is told of again only after it has not refused for this time: a
/// full disk refuses each time when the room that a read has made was used.
const CALM: Duration = Duration::from_secs(60);

/// How long the thread waits for more before it ends.
const PATIENCE: Duration = Duration::from_millis(100);

/// Wakes the thread if there is work. Returns whether it has to be [started](start)
/// first, without the lock.
pub(super) fn wake_if_needed(shared: &ElasticShared, state: &mut QueueState) -> bool {
    if state.storage.disk.is_none()
        || state.storage.in_memory() <= state.storage.high_water()
        || state.is_abandoned()
    {
        return false;
    }
    if state.spill.is_running {
        if state.spill.waits == SpillWaits::Work {
            wake(shared, state);
        }
        return false;
    }
    if state.spill.retry_at.is_some_and(|at| Instant::now() < at) {
        return false;
    }
    state.spill.is_running = true;
    true
}

/// Wakes a thread that waits for room on the disk: the consumer has emptied a file, or
/// all.
pub(super) fn disk_room_was_made(shared: &ElasticShared, state: &mut QueueState) {
    if state.spill.waits == SpillWaits::Room {
        wake(shared, state);
    }
}

/// Wakes a thread that waits for room on the disk and may need none any more: the
/// consumer has taken from memory.
pub(super) fn memory_was_relieved(shared: &ElasticShared, state: &mut QueueState) {
    if state.storage.in_memory() <= state.storage.low_water() {
        disk_room_was_made(shared, state);
    }
}

fn wake(shared: &ElasticShared, state: &mut QueueState) {
    state.spill.waits = SpillWaits::Nothing;
    shared.spill_wakeup.notify_all();
}

/// Starts the thread. Where there can be none everything stays in memory, and the
/// start is tried again in a second.
pub(super) fn start(shared: &Arc<ElasticShared>) {
    if let Err(error) = spawn(shared) {
        let mut state = shared.lock();
        state.spill.is_running = false;
        note_failure(shared, state, "start a thread", error);
    }
}

fn spawn(shared: &Arc<ElasticShared>) -> io::Result<()> {
    let theirs = Arc::clone(shared);
    thread::spawn_quiet("procwright-spill", move || run(&theirs))?;
    Ok(())
}

/// Returns whether a closed queue has to [start](start_release) a thread that gives the
/// files back. Closing one frees its blocks, for which a disk can take any time, and a
/// close waits for nothing. A thread that is there does it when it sees the close.
pub(super) fn claim_release(state: &mut QueueState) -> bool {
    let has_files = state
        .storage
        .disk
        .as_ref()
        .is_some_and(SpillFiles::has_files);
    has_files && !std::mem::replace(&mut state.spill.is_running, true)
}

/// Starts the thread that gives the files back. Where there can be none the caller gives
/// them back.
pub(super) fn start_release(shared: &Arc<ElasticShared>) {
    if spawn(shared).is_err() {
        let mut state = shared.lock();
        state.spill.is_running = false;
        let files = state.storage.disk.as_mut().map(SpillFiles::release);
        drop(state);
        drop(files);
    }
}

/// Memory above this takes a while to be given back to the system: 0.1 ms a MiB.
const MUCH: u64 = 1 << 20;

/// Drops what holds so many bytes, on a thread of its own if they are many: a close
/// waits for nothing. Not on the one that writes files, which a disk can hold up.
pub(super) fn drop_elsewhere<T: Send + 'static>(entries: T, bytes: u64) {
    if bytes > MUCH {
        // A thread that cannot be made drops them here, with the closure.
        let _ = thread::spawn_quiet("procwright-free", move || drop(entries));
    }
}

/// Notes that the disk or the system has refused, and tells that unless it was told.
fn note_failure(
    shared: &ElasticShared,
    mut state: MutexGuard<'_, QueueState>,
    what: &'static str,
    error: io::Error,
) {
    let now = Instant::now();
    let before = state.spill.failed_at.replace(now);
    state.spill.retry_at = Some(now + RETRY);
    drop(state);
    if before.is_none_or(|before| now.saturating_duration_since(before) >= CALM) {
        (shared.hook)(&Event::Degraded { what, error });
    }
}

fn run(shared: &ElasticShared) {
    let mut state = shared.lock();
    loop {
        state = match step(shared, state) {
            Some(state) => state,
            None => return,
        };
    }
}

/// Moves one slice, or waits for one. Returns none when the thread is to end.
fn step<'a>(
    shared: &'a ElasticShared,
    mut state: MutexGuard<'a, QueueState>,
) -> Option<MutexGuard<'a, QueueState>> {
    if state.is_abandoned() {
        state.spill.is_running = false;
        let files = state.storage.disk.as_mut().map(SpillFiles::release);
        drop(state);
        drop(files);
        return None;
    }
    let Some(slice) = state.spill_candidate() else {
        return idle(shared, state);
    };
    let (limit, is_less) = state.storage.disk_limit();
    let Some(disk) = &mut state.storage.disk else {
        state.spill.is_running = false;
        return None;
    };
    if !disk.has_limit() {
        let directory = disk.directory().to_owned();
        drop(state);
        let limit = spool_dir::default_limit(&directory);
        budget::measure(&directory);
        state = shared.lock();
        if let Some(disk) = &mut state.storage.disk {
            disk.set_limit(limit);
        }
        return Some(state);
    }
    match disk.target(limit) {
        WriteTarget::Range(range) => Some(write(shared, state, &slice, &range)),
        WriteTarget::Make(size) => {
            let directory = disk.directory().to_owned();
            Some(make(shared, state, &directory, size))
        }
        // The consumer wakes the thread when it has emptied a file.
        WriteTarget::Full => {
            state.storage.pool.give(slice.block);
            // A share grows when other queues are done with theirs, which no call
            // tells: the share is looked at again, as a disk is that was full.
            let retry = is_less.then_some(RETRY);
            Some(wait(shared, state, SpillWaits::Room, retry).0)
        }
    }
}

fn make<'a>(
    shared: &'a ElasticShared,
    state: MutexGuard<'a, QueueState>,
    directory: &Path,
    size: u64,
) -> MutexGuard<'a, QueueState> {
    drop(state);
    let made = SpillFile::make(directory, size);
    let mut state = shared.lock();
    match made {
        Ok(file) => {
            if let Some(disk) = &mut state.storage.disk {
                disk.add(file);
            }
            state.storage.count_files();
            state
        }
        Err(error) => wait_to_retry(shared, state, "make a file", error),
    }
}

fn write<'a>(
    shared: &'a ElasticShared,
    mut state: MutexGuard<'a, QueueState>,
    slice: &BlockSlice,
    range: &FileRange,
) -> MutexGuard<'a, QueueState> {
    let n = slice.len().min(range.length);
    let bytes = &slice.bytes()[..usize::try_from(n).unwrap_or(usize::MAX)];
    state.spill.is_writing = true;
    drop(state);
    let written = write_all(range, bytes);
    let mut state = shared.lock();
    state.spill.is_writing = false;
    let mut files = Vec::new();
    let mut tell = None;
    let mut failed = None;
    match written {
        Ok(()) => {
            state.spill.retry_at = None;
            state.move_to_disk(slice, n);
            if !std::mem::replace(&mut state.spill.has_told, true)
                && let Some(disk) = &state.storage.disk
            {
                let directory = disk.directory().to_owned();
                tell = Some(Event::Spilling { directory });
            }
            shared.resume_producer(&mut state, Instant::now());
        }
        Err(error) => {
            if let Some(disk) = &mut state.storage.disk {
                files.extend(disk.seal_target());
            }
            failed = Some(error);
        }
    }
    if let Some(disk) = &mut state.storage.disk
        && disk.unread() == 0
    {
        // The consumer has everything, and could not close the file while it was
        // being written.
        files.extend(disk.release());
    }
    state.storage.count_files();
    state.storage.pool.give(Arc::clone(&slice.block));
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

fn write_all(range: &FileRange, mut bytes: &[u8]) -> io::Result<()> {
    let mut at = range.at;
    while !bytes.is_empty() {
        match rustix::io::pwrite(&range.file, bytes, at) {
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
fn idle<'a>(
    shared: &'a ElasticShared,
    state: MutexGuard<'a, QueueState>,
) -> Option<MutexGuard<'a, QueueState>> {
    let (mut state, in_vain) = wait(shared, state, SpillWaits::Work, Some(PATIENCE));
    if in_vain {
        state.spill.is_running = false;
        return None;
    }
    Some(state)
}

fn wait_to_retry<'a>(
    shared: &'a ElasticShared,
    state: MutexGuard<'a, QueueState>,
    what: &'static str,
    error: io::Error,
) -> MutexGuard<'a, QueueState> {
    note_failure(shared, state, what, error);
    wait(shared, shared.lock(), SpillWaits::Room, Some(RETRY)).0
}

/// Sleeps until the thread is woken for what it waits for, or the queue is closed.
/// Returns whether the time was over before that.
fn wait<'a>(
    shared: &'a ElasticShared,
    mut state: MutexGuard<'a, QueueState>,
    waits: SpillWaits,
    most: Option<Duration>,
) -> (MutexGuard<'a, QueueState>, bool) {
    let deadline = Timeout::from(most).starting(Instant::now());
    state.spill.waits = waits;
    loop {
        if state.spill.waits == SpillWaits::Nothing || state.is_abandoned() {
            return (state, false);
        }
        let now = Instant::now();
        if deadline.reached(now) {
            state.spill.waits = SpillWaits::Nothing;
            return (state, true);
        }
        state = shared::wait(&shared.spill_wakeup, state, deadline.remaining(now));
    }
}
