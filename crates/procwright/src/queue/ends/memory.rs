//! A lane in the memory of a queue.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::ground::Ground;
use crate::liveness::Holder;
use crate::queue::format::{DONE, HEAD, MAILBOX, PEER, PEER_SIZE, PLOT, SPACE, TAIL};
use crate::queue::lane::{Memory, Place, each_word};
use crate::sys::shared::{self, Region, Word};

/// A lane's memory.
#[derive(Debug)]
pub(super) struct LaneMemory {
    ground: Arc<Ground>,
    lane: u32,
    region: Arc<Region>,
    /// Tail, stamp, mailbox: two lines.
    line: Word<[AtomicU64; 2 + MAILBOX]>,
    head: Word<AtomicU64>,
    done: Word<AtomicU64>,
}

impl LaneMemory {
    pub(super) fn map(ground: &Arc<Ground>, lane: u32) -> io::Result<LaneMemory> {
        let geometry = ground.geometry();
        let size = geometry.lane_size();
        let region = Region::map(ground.file()?, geometry.lane(lane), size, true)?;
        let region = Arc::new(region);
        let line = geometry.line(lane);
        Ok(LaneMemory {
            lane,
            line: region.word(TAIL),
            head: ground.receivers.word(line + HEAD),
            done: ground.receivers.word(line + DONE),
            region,
            ground: Arc::clone(ground),
        })
    }

    /// Before anything is written to the lane's page.
    pub(super) fn provide_page(&self) -> io::Result<()> {
        let at = self.ground.geometry().lane(self.lane);
        shared::provide(self.ground.file()?, at, PEER + PEER_SIZE)
    }

    pub(super) fn lane(&self) -> u32 {
        self.lane
    }

    pub(super) fn space(&self) -> &AtomicU32 {
        self.region.look(SPACE)
    }

    /// The sender's process, and its number as a guest, as it says.
    pub(super) fn peer(&self) -> (u32, u32) {
        (self.number(PEER), self.number(PEER + 4))
    }

    /// More of that process.
    pub(super) fn holder(&self) -> Holder {
        let known = |at| Some(self.long_number(at)).filter(|number| *number != 0);
        Holder {
            pid: self.number(PEER).cast_signed(),
            inode: known(PEER + 8),
            start_ticks: self.long_number(PEER + 16),
            namespace: known(PEER + 24),
        }
    }

    fn number(&self, at: u64) -> u32 {
        self.region.look::<AtomicU32>(at).load(Ordering::Acquire)
    }

    fn long_number(&self, at: u64) -> u64 {
        self.region.look::<AtomicU64>(at).load(Ordering::Acquire)
    }

    pub(super) fn set_peer(&self, holder: &Holder, guest: u32) {
        for (at, value) in [
            (8, holder.inode.unwrap_or(0)),
            (16, holder.start_ticks),
            (24, holder.namespace.unwrap_or(0)),
        ] {
            let word = self.region.look::<AtomicU64>(PEER + at);
            word.store(value, Ordering::Release);
        }
        for (at, value) in [(0, holder.pid.cast_unsigned()), (4, guest)] {
            let word = self.region.look::<AtomicU32>(PEER + at);
            word.store(value, Ordering::Release);
        }
    }

    /// The bytes of a message that was received, or is being made.
    #[inline]
    #[expect(unsafe_code, reason = "bytes that another process has written")]
    pub(super) fn bytes(&self, place: Place) -> &[u8] {
        // SAFETY: the sender has shown this message, and the head has not passed
        // it: until then no sender that follows the format writes there. A queue
        // is for processes that trust each other so far; all that lengths and
        // places depend on is checked. Or it is reserved, and who may write to it
        // has lent the sender out for reading.
        unsafe { self.region.bytes(PLOT + place.at, place.length) }
    }

    /// The place of a message that is being made.
    #[inline]
    #[expect(unsafe_code, reason = "bytes that another process will read")]
    #[expect(
        clippy::mut_from_ref,
        reason = "of one reservation at a time, by who holds the lane"
    )]
    pub(super) fn bytes_mut(&self, place: Place) -> &mut [u8] {
        // SAFETY: it is reserved: the receiver does not look there before the tail
        // has passed it, and there is one reservation of a lane at a time, which
        // borrows the sender for its life.
        unsafe { self.region.bytes_mut(PLOT + place.at, place.length) }
    }

    fn in_file(&self, place: u64) -> u64 {
        self.ground.geometry().lane(self.lane) + PLOT + place
    }
}

impl Memory for LaneMemory {
    #[inline]
    fn tail(&self) -> u64 {
        self.line[0].load(Ordering::Acquire)
    }

    #[inline]
    fn set_tail(&self, word: u64) {
        self.line[0].store(word, Ordering::Release);
    }

    #[inline]
    fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    #[inline]
    fn set_head(&self, word: u64) {
        self.head.store(word, Ordering::Release);
    }

    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    #[inline]
    fn set_done(&self, word: u64) {
        // Before anything is given back: another process may go by it.
        self.done.store(word, Ordering::Release);
    }

    fn is_awaited(&self) -> bool {
        self.space().load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn record(&self, place: u64) -> u64 {
        self.region
            .look::<AtomicU64>(PLOT + place)
            .load(Ordering::Relaxed)
    }

    #[inline]
    fn set_record(&self, place: u64, word: u64) {
        let at = self.region.look::<AtomicU64>(PLOT + place);
        at.store(word, Ordering::Relaxed);
    }

    #[inline]
    fn stamp(&self) -> u64 {
        self.line[1].load(Ordering::Relaxed)
    }

    #[inline]
    fn set_stamp(&self, stamp: u64) {
        self.line[1].store(stamp, Ordering::Relaxed);
    }

    #[inline]
    fn mail(&self, at: usize) -> u64 {
        self.line[2 + at].load(Ordering::Relaxed)
    }

    #[inline]
    fn post(&self, place: u64, bytes: &[u8]) {
        let ring = self.region.words(PLOT + place, bytes.len().div_ceil(8));
        each_word(bytes, &self.line[2..], ring, |mail, ring, word| {
            mail.store(word, Ordering::Relaxed);
            ring.store(word, Ordering::Relaxed);
        });
    }

    #[inline]
    fn copy_in(&self, place: u64, bytes: &[u8]) {
        self.region.copy_in(PLOT + place, bytes);
    }

    fn provide(&self, place: u64, length: u64) -> io::Result<()> {
        shared::provide(self.ground.file()?, self.in_file(place), length)
    }

    fn discard(&self, place: u64, length: u64) {
        if let Ok(file) = self.ground.file() {
            shared::discard(file, self.in_file(place), length);
        }
    }
}
