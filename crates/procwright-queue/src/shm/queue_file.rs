//! A queue's file, as one of its ends has it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;
use crate::format::{
    CLAIMS, ClaimWord, FREED, GUESTS, Geometry, HEADER_SIZE, HeaderError, QueueHeader,
    RECEIVER_LOCK, RECEIVER_PAGE, SECTION, SLEEP, page_offsets,
};
use crate::wakeup::lane;
use procwright_liveness::nonce;
use procwright_os::fork::CloseOnFork;
use procwright_os::robust::{Flag, wake};
use procwright_os::shared_memory::{self, Region, RegionWord};

impl QueueHeader {
    /// Reads the header of a file, which may be any file.
    pub(crate) fn read(file: BorrowedFd<'_>) -> Result<QueueHeader, Error> {
        let size = shared_memory::sealed_size(file).map_err(Error::from_io)?;
        if size < SECTION {
            return Err(Error::Invalid("it is too short for a queue".into()));
        }
        // A read in place of a mapping: the page may have no memory, and a load be a
        // SIGBUS.
        let mut bytes = [0; HEADER_SIZE];
        for (i, part) in bytes.chunks_mut(8).enumerate() {
            let word = shared_memory::read_u64(file, 8 * i as u64).map_err(Error::from_io)?;
            part.copy_from_slice(&word.to_le_bytes());
        }
        let header = QueueHeader::parse(&bytes).map_err(|why| match why {
            HeaderError::NotAQueue(why) => Error::Invalid(why.into()),
            HeaderError::Version(version) => Error::WrongVersion(version),
        })?;
        if size != header.geometry.file_size() {
            return Err(Error::Invalid("its size is another than it says".into()));
        }
        Ok(header)
    }
}

/// A queue's file and the mappings of all but its lanes.
#[doc(alias = "memfd_create")]
#[derive(Debug)]
pub(crate) struct QueueFile {
    pub(crate) header: QueueHeader,
    /// The file, under an open file description of its own, which no fork has.
    file: CloseOnFork,
    /// The region that the receiver alone writes to.
    pub(crate) receivers: Arc<Region>,
    /// The region that all processes write to.
    shared: Arc<Region>,
    /// Flag that is not 0 in the process that made this, and 0 in its forks, where none of
    /// the regions is mapped.
    here: Flag,
}

impl QueueFile {
    /// Makes a queue, whose receiver this process is to be.
    pub(crate) fn new(geometry: Geometry) -> Result<QueueFile, Error> {
        let queue = QueueFile::create(geometry, nonce()).map_err(Error::from_io)?;
        // No other process knows the file yet, so the lock is free.
        shared_memory::lock(queue.file()?, RECEIVER_LOCK)?;
        Ok(queue)
    }

    fn create(geometry: Geometry, nonce: u64) -> io::Result<QueueFile> {
        let header = QueueHeader { geometry, nonce };
        let file = shared_memory::create(geometry.file_size())?;
        let file = shared_memory::reopen(file.as_fd())?;
        shared_memory::allocate(file.as_fd(), 0, HEADER_SIZE as u64)?;
        provide(file.as_fd(), &geometry)?;
        let queue = QueueFile::map(file, header, true)?;
        queue.receivers.copy_in(0, &header.to_bytes());
        Ok(queue)
    }

    /// Opens a queue to send. The file may have any content.
    pub(crate) fn open_as_sender(file: BorrowedFd<'_>, nonce: u64) -> Result<QueueFile, Error> {
        QueueFile::open(file, nonce, false)
    }

    /// Opens a queue to receive. The file may have any content.
    pub(crate) fn open_as_receiver(file: BorrowedFd<'_>, nonce: u64) -> Result<QueueFile, Error> {
        QueueFile::open(file, nonce, true)
    }

    fn open(file: BorrowedFd<'_>, nonce: u64, receiver: bool) -> Result<QueueFile, Error> {
        let header = QueueHeader::read(file)?;
        if header.nonce != nonce {
            return Err(Error::Invalid("it is another queue".into()));
        }
        let file = shared_memory::reopen(file).map_err(Error::from_io)?;
        // Another process may have left these regions without memory, and a load be a
        // SIGBUS.
        provide(file.as_fd(), &header.geometry)?;
        QueueFile::map(file, header, receiver).map_err(Error::from_io)
    }

    fn map(file: OwnedFd, header: QueueHeader, receiver: bool) -> io::Result<QueueFile> {
        let begin = header.geometry.shared();
        Ok(QueueFile {
            receivers: Arc::new(Region::map(file.as_fd(), 0, begin, receiver)?),
            shared: Arc::new(Region::map(file.as_fd(), begin, SECTION, true)?),
            header,
            file: CloseOnFork::new(file),
            here: Flag::new(1)?,
        })
    }

    /// The file.
    ///
    /// # Errors
    /// In a fork.
    pub(crate) fn file(&self) -> io::Result<BorrowedFd<'_>> {
        self.file.get()
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.header.geometry
    }

    /// Returns whether this is the process that has mapped the queue. Relaxed: the flag
    /// changes in a fork alone, by the fork.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.here.word().load(Ordering::Relaxed) != 0
    }

    /// Checks that this is the process that has mapped the queue.
    ///
    /// # Panics
    /// In a fork, where a message that was lent before is not mapped.
    #[inline]
    pub(crate) fn assert_not_forked(&self) {
        assert!(
            self.is_here(),
            "this message is of the process that this one was forked from"
        );
    }

    pub(crate) fn sleep_word(&self) -> RegionWord<AtomicU32> {
        self.shared.word(SLEEP)
    }

    pub(crate) fn claims(&self) -> RegionWord<AtomicU32> {
        self.shared.word(CLAIMS)
    }

    /// The word that senders without a lane sleep on.
    pub(crate) fn freed(&self) -> &AtomicU32 {
        self.shared.atomic(FREED)
    }

    /// Wakes the senders that wait for a lane, after one has become free.
    pub(crate) fn tell_lane_freed(&self) {
        if lane::take_waiters(self.freed()) {
            wake(self.freed());
        }
    }

    /// The number that was given to a sender's process last.
    fn guests(&self) -> &AtomicU32 {
        self.shared.atomic(GUESTS)
    }

    /// A number for a sender's process. No other gets it, whichever process hands it out:
    /// the addition is atomic. Relaxed: the number orders nothing else.
    ///
    /// # Errors
    /// When all were handed out.
    pub(crate) fn next_guest(&self) -> io::Result<u32> {
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        // The number 0 is that of a lane that never had a sender.
        let last = self
            .guests()
            .fetch_update(set, fetch, |last| last.checked_add(1));
        last.map(|last| last + 1)
            .map_err(|_| io::ErrorKind::QuotaExceeded.into())
    }

    fn claim_word(&self, lane: u32) -> &AtomicU32 {
        let geometry = self.geometry();
        self.shared
            .atomic(geometry.claim_state(lane) - geometry.shared())
    }

    /// The claim of a lane. Acquire: the lane's words, and its sender's, are read after it.
    pub(crate) fn claim(&self, lane: u32) -> ClaimWord {
        ClaimWord(self.claim_word(lane).load(Ordering::Acquire))
    }

    /// Changes the claim of a lane whose claim nobody else may change. Release: a process
    /// that sees it sees all that this one has done with the lane.
    pub(crate) fn set_claim(&self, lane: u32, claim: ClaimWord) {
        self.claim_word(lane).store(claim.0, Ordering::Release);
    }

    /// Changes the claim of a lane if it still is what it was. Acquire and release, as the
    /// load and the store.
    pub(crate) fn change_claim(&self, lane: u32, from: ClaimWord, to: ClaimWord) -> bool {
        let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let word = self.claim_word(lane);
        word.compare_exchange(from.0, to.0, done, failed).is_ok()
    }
}

/// Makes sure that all that every process looks at has memory: the page, the lines of the
/// lanes and their claim states.
fn provide(file: BorrowedFd<'_>, geometry: &Geometry) -> io::Result<()> {
    let lines = geometry.line(geometry.lanes()) - geometry.line(0);
    let states = geometry.claim_state(geometry.lanes()) - geometry.shared();
    shared_memory::allocate(file, RECEIVER_PAGE, page_offsets::SIZE)?;
    shared_memory::allocate(file, geometry.line(0), lines)?;
    shared_memory::allocate(file, geometry.shared(), states)
}
