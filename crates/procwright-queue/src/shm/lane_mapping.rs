//! A lane in the memory of a queue.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::queue_file::QueueFile;
use crate::format::{DONE, HEAD, MAILBOX_WORDS, PEER, PEER_SIZE, SECTION, SPACE, TAIL};
use crate::lane::{LaneMemory, MessageSpan, each_word};
use procwright_liveness::HolderId;
use procwright_os::shared_memory::{self, Region, RegionWord};

/// A lane's memory, mapped by its sender or by the receiver.
#[derive(Debug)]
pub(crate) struct LaneMapping {
    queue: Arc<QueueFile>,
    lane: u32,
    region: Arc<Region>,
    /// Tail, stamp and mailbox: two cache lines.
    line: RegionWord<[AtomicU64; 2 + MAILBOX_WORDS]>,
    head: RegionWord<AtomicU64>,
    done: RegionWord<AtomicU64>,
}

impl LaneMapping {
    pub(crate) fn map(queue: &Arc<QueueFile>, lane: u32) -> io::Result<LaneMapping> {
        let geometry = queue.geometry();
        let size = geometry.lane_size();
        let region = Region::map(queue.file()?, geometry.lane_page(lane), size, true)?;
        let region = Arc::new(region);
        let line = geometry.line(lane);
        Ok(LaneMapping {
            lane,
            line: region.word(TAIL),
            head: queue.receivers.word(line + HEAD),
            done: queue.receivers.word(line + DONE),
            region,
            queue: Arc::clone(queue),
        })
    }

    /// Makes sure that the lane's page has memory, before anything is written to it.
    pub(crate) fn provide_page(&self) -> io::Result<()> {
        let at = self.queue.geometry().lane_page(self.lane);
        shared_memory::allocate(self.queue.file()?, at, PEER + PEER_SIZE)
    }

    pub(crate) fn lane(&self) -> u32 {
        self.lane
    }

    pub(crate) fn space(&self) -> &AtomicU32 {
        self.region.atomic(SPACE)
    }

    /// Wakes the senders that wait for a lane: they look at this one, too.
    pub(crate) fn tell_lane_freed(&self) {
        self.queue.tell_lane_freed();
    }

    /// The sender's process, and its number in this queue, as it says itself.
    pub(crate) fn peer(&self) -> (u32, u32) {
        (self.number(PEER), self.number(PEER + 4))
    }

    /// The sender's process, with all that identifies it.
    pub(crate) fn holder(&self) -> HolderId {
        let known = |at| Some(self.long_number(at)).filter(|number| *number != 0);
        HolderId {
            pid: self.number(PEER).cast_signed(),
            inode: known(PEER + 8),
            start_ticks: self.long_number(PEER + 16),
            namespace: known(PEER + 24),
        }
    }

    /// A word of the lane's page. Acquire: it may be read before the claim state is.
    fn number(&self, at: u64) -> u32 {
        self.region.atomic::<AtomicU32>(at).load(Ordering::Acquire)
    }

    fn long_number(&self, at: u64) -> u64 {
        self.region.atomic::<AtomicU64>(at).load(Ordering::Acquire)
    }

    /// Writes down the sender's process. The claim state that follows orders these stores
    /// for the receiver; release suits a reader that looks earlier.
    pub(crate) fn set_peer(&self, holder: &HolderId, guest: u32) {
        for (at, value) in [
            (8, holder.inode.unwrap_or(0)),
            (16, holder.start_ticks),
            (24, holder.namespace.unwrap_or(0)),
        ] {
            let word = self.region.atomic::<AtomicU64>(PEER + at);
            word.store(value, Ordering::Release);
        }
        for (at, value) in [(0, holder.pid.cast_unsigned()), (4, guest)] {
            let word = self.region.atomic::<AtomicU32>(PEER + at);
            word.store(value, Ordering::Release);
        }
    }

    /// The bytes of a message that was received, or is being made.
    #[inline]
    #[expect(unsafe_code, reason = "bytes that another process has written")]
    pub(crate) fn bytes(&self, span: MessageSpan) -> &[u8] {
        // SAFETY: the sender has shown this message, and the head has not passed it: until
        // then no sender that follows the format writes there. A queue is for processes
        // that trust each other so far; all that lengths and offsets depend on is checked.
        // Or the span is reserved, and the `&Sender` that is lent for reading excludes a
        // writer.
        unsafe { self.region.bytes(SECTION + span.at, span.length) }
    }

    /// The bytes of a message that is being made.
    #[inline]
    #[expect(unsafe_code, reason = "bytes that another process will read")]
    #[expect(
        clippy::mut_from_ref,
        reason = "of one reservation at a time, by who holds the lane"
    )]
    pub(crate) fn bytes_mut(&self, span: MessageSpan) -> &mut [u8] {
        // SAFETY: the span is reserved: the receiver does not look there before the tail
        // has passed it, and there is one reservation of a lane at a time, which borrows
        // the sender for its life.
        unsafe { self.region.bytes_mut(SECTION + span.at, span.length) }
    }

    fn in_file(&self, offset: u64) -> u64 {
        self.queue.geometry().lane_page(self.lane) + SECTION + offset
    }
}

/// Orders are those that [`LaneMemory`] asks for, and gives the reasons of.
impl LaneMemory for LaneMapping {
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
        // Relaxed: read once, when the receiver that wrote it is gone and the lock was
        // taken from it.
        self.done.load(Ordering::Relaxed)
    }

    #[inline]
    fn set_done(&self, word: u64) {
        // Release, and before anything is given back: a receiver that takes over begins
        // here, and must not read what is gone.
        self.done.store(word, Ordering::Release);
    }

    fn is_awaited(&self) -> bool {
        self.space().load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn record(&self, offset: u64) -> u64 {
        self.region
            .atomic::<AtomicU64>(SECTION + offset)
            .load(Ordering::Relaxed)
    }

    #[inline]
    fn set_record(&self, offset: u64, word: u64) {
        let at = self.region.atomic::<AtomicU64>(SECTION + offset);
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
    fn post(&self, offset: u64, bytes: &[u8]) {
        let ring = self.region.words(SECTION + offset, bytes.len().div_ceil(8));
        each_word(bytes, &self.line[2..], ring, |mail, ring, word| {
            mail.store(word, Ordering::Relaxed);
            ring.store(word, Ordering::Relaxed);
        });
    }

    #[inline]
    fn copy_in(&self, offset: u64, bytes: &[u8]) {
        self.region.copy_in(SECTION + offset, bytes);
    }

    fn provide(&self, offset: u64, length: u64) -> io::Result<()> {
        shared_memory::allocate(self.queue.file()?, self.in_file(offset), length)
    }

    fn discard(&self, offset: u64, length: u64) {
        if let Ok(file) = self.queue.file() {
            shared_memory::punch_hole(file, self.in_file(offset), length);
        }
    }
}
