//! A queue's file, as one of its ends has it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::liveness::nonce;
use crate::queue::Error;
use crate::queue::format::{
    BELL, CLAIMS, GUESTS, Geometry, HEADER, Header, NotOurs, PLOT, READER, READER_LOCK, State,
    reader,
};
use crate::sys::fork::Kept;
use crate::sys::robust::Flag;
use crate::sys::shared::{self, Region, Word};

impl Header {
    /// That of a file, which may be any.
    pub(super) fn of(file: BorrowedFd<'_>) -> Result<Header, Error> {
        let size = shared::size(file).map_err(Error::of)?;
        if size < PLOT {
            return Err(Error::Invalid("it is too short for a queue".into()));
        }
        // Read, not mapped: nobody needs to have put memory there.
        let mut bytes = [0; HEADER];
        for (i, part) in bytes.chunks_mut(8).enumerate() {
            let word = shared::number_at(file, 8 * i as u64).map_err(Error::of)?;
            part.copy_from_slice(&word.to_le_bytes());
        }
        let header = Header::parse(&bytes).map_err(|why| match why {
            NotOurs::NoQueue(why) => Error::Invalid(why.into()),
            NotOurs::Version(version) => Error::WrongVersion(version),
        })?;
        if size != header.geometry.file_size() {
            return Err(Error::Invalid("its size is another than it says".into()));
        }
        Ok(header)
    }
}

/// All of a queue but its lanes.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) header: Header,
    /// With an open file description of its own, which no fork has.
    file: Kept,
    /// What the receiver alone writes to.
    pub(super) receivers: Arc<Region>,
    /// What all write to.
    shared: Arc<Region>,
    /// Not 0 in the process that made this, and 0 in its forks, where nothing of
    /// it is mapped.
    here: Flag,
}

impl Ground {
    /// A new queue, whose receiver we are to be.
    pub(super) fn new(geometry: Geometry) -> Result<Ground, Error> {
        let ground = Ground::create(geometry, nonce()).map_err(Error::of)?;
        // Nobody else knows it yet.
        shared::lock(ground.file()?, READER_LOCK)?;
        Ok(ground)
    }

    fn create(geometry: Geometry, nonce: u64) -> io::Result<Ground> {
        let header = Header { geometry, nonce };
        let file = shared::create(geometry.file_size())?;
        let file = shared::reopen(file.as_fd())?;
        shared::provide(file.as_fd(), 0, HEADER as u64)?;
        provide(file.as_fd(), &geometry)?;
        let ground = Ground::map(file, header, true)?;
        ground.receivers.copy_in(0, &header.to_bytes());
        Ok(ground)
    }

    /// Somebody's. What is in the file may be anything.
    pub(super) fn attach(file: BorrowedFd<'_>, nonce: u64) -> Result<Ground, Error> {
        Ground::open(file, nonce, false)
    }

    /// The same, for who is to receive.
    pub(super) fn inherit(file: BorrowedFd<'_>, nonce: u64) -> Result<Ground, Error> {
        Ground::open(file, nonce, true)
    }

    fn open(file: BorrowedFd<'_>, nonce: u64, receiver: bool) -> Result<Ground, Error> {
        let header = Header::of(file)?;
        if header.nonce != nonce {
            return Err(Error::Invalid("it is another queue".into()));
        }
        let file = shared::reopen(file).map_err(Error::of)?;
        // It need not be there in somebody else's, and to look then may be a SIGBUS.
        provide(file.as_fd(), &header.geometry)?;
        Ground::map(file, header, receiver).map_err(Error::of)
    }

    fn map(file: OwnedFd, header: Header, receiver: bool) -> io::Result<Ground> {
        let begin = header.geometry.shared();
        Ok(Ground {
            receivers: Arc::new(Region::map(file.as_fd(), 0, begin, receiver)?),
            shared: Arc::new(Region::map(file.as_fd(), begin, PLOT, true)?),
            header,
            file: Kept::new(file),
            here: Flag::new(1)?,
        })
    }

    /// # Errors
    /// In a fork.
    pub(super) fn file(&self) -> io::Result<BorrowedFd<'_>> {
        self.file.get()
    }

    pub(super) fn geometry(&self) -> &Geometry {
        &self.header.geometry
    }

    /// Whether this is the process that it is mapped in.
    #[inline]
    pub(super) fn is_here(&self) -> bool {
        self.here.word().load(Ordering::Relaxed) != 0
    }

    pub(super) fn bell(&self) -> Word<AtomicU32> {
        self.shared.word(BELL)
    }

    pub(super) fn claims(&self) -> Word<AtomicU32> {
        self.shared.word(CLAIMS)
    }

    /// The number of the last who came.
    fn guests(&self) -> &AtomicU32 {
        self.shared.look(GUESTS)
    }

    /// A number for one who comes: nobody else gets it, whoever hands it out.
    ///
    /// # Errors
    /// When all were handed out.
    pub(super) fn number(&self) -> io::Result<u32> {
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        // None has the number 0, which is that of a lane that nobody had.
        let last = self
            .guests()
            .fetch_update(set, fetch, |last| last.checked_add(1));
        last.map(|last| last + 1)
            .map_err(|_| io::ErrorKind::QuotaExceeded.into())
    }

    /// What a lane is: one of [`State`], or anything.
    pub(super) fn state(&self, lane: u32) -> &AtomicU32 {
        let geometry = self.geometry();
        self.shared.look(geometry.state(lane) - geometry.shared())
    }

    pub(super) fn set_state(&self, lane: u32, state: State) {
        self.state(lane).store(state as u32, Ordering::Release);
    }
}

/// Puts memory where all look: the page, the lines of the lanes and their states.
fn provide(file: BorrowedFd<'_>, geometry: &Geometry) -> io::Result<()> {
    let lines = geometry.line(geometry.lanes()) - geometry.line(0);
    let states = geometry.state(geometry.lanes()) - geometry.shared();
    shared::provide(file, READER, reader::SIZE)?;
    shared::provide(file, geometry.line(0), lines)?;
    shared::provide(file, geometry.shared(), states)
}
