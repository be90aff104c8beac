//! The receiver's page: which process receives, and which word tells whether it lives.
//!
//! The page is a seqlock. The receiver alone writes it, in several steps; its sequence is
//! odd meanwhile, so that no process takes the half of one for the whole. A receiver that
//! is killed in between leaves it odd: a sender then reads nothing, and finds out in
//! another way.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::queue_file::QueueFile;
use crate::error::Error;
use crate::format::{LIVENESS, LIVENESS_SECTIONS, RECEIVER_PAGE, SECTION, page_offsets};
use procwright_liveness::{HolderId, HolderLookup};
use procwright_os::robust::{OWNER_DIED, TID_MASK, WAITERS};
use procwright_os::shared_memory::{self, Region};
use procwright_os::unix_socket::SocketName;

/// The content of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceiverPage {
    /// Number of words that were held up to this one, by this receiver and all before: 0 if
    /// there never was a receiver.
    pub(crate) epoch: u64,
    /// The receiver's word. None where the kernel marks none.
    pub(crate) word: Option<LivenessWord>,
    pub(crate) holder: HolderId,
    /// True if the receiver has left, as it says itself.
    pub(crate) is_closed: bool,
    /// Abstract name where the receiver listens for senders without a link.
    pub(crate) name: [u8; page_offsets::NAME_LENGTH],
    /// Number of the receiver's descriptor that leads to its private socket.
    pub(crate) door: Option<u32>,
}

/// The name of a socket with that number.
pub(crate) fn socket_name(number: u64) -> SocketName {
    let mut name = SocketName::default();
    let text = format!("procwright-{number:016x}");
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

/// A word that a receiver holds.
#[doc(alias = "robust futex")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LivenessWord {
    /// Offset in the file.
    pub(crate) at: u64,
    /// Value as long as the word is held.
    pub(crate) value: u32,
}

impl LivenessWord {
    /// Returns whether a receiver holds the word. Acquire, as for any word that says that its
    /// holder is there.
    pub(crate) fn is_held(self, queue: &QueueFile) -> bool {
        // The page may have no memory, and a load be a SIGBUS.
        let file = queue.file();
        let is_there = file.is_ok_and(|file| shared_memory::allocate(file, self.at, 4).is_ok());
        is_there
            && queue
                .receivers
                .atomic::<AtomicU32>(self.at)
                .load(Ordering::Acquire)
                == self.value
    }
}

/// The page makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadPage;

impl From<BadPage> for Error {
    fn from(_: BadPage) -> Error {
        Error::Invalid("what its receiver says of itself makes no sense".into())
    }
}

/// Largest epoch. The sequence is a word of 64 bits and counts each epoch twice.
const LAST_EPOCH: u64 = u64::MAX / 2;

/// The section where the word of an epoch lies. The epoch is not 0.
pub(crate) fn section_of(epoch: u64) -> u64 {
    (epoch - 1) % LIVENESS_SECTIONS
}

/// Number of reads before a page counts as being written. A receiver needs some nanoseconds
/// for it; a process that finds the page odd for longer finds out in another way, and comes
/// back.
const READ_TRIES: u32 = 1000;

impl ReceiverPage {
    /// Reads the page. None while it is being written.
    ///
    /// 1. The sequence is loaded with acquire: the loads of the page come after it.
    /// 2. The page is loaded, relaxed.
    /// 3. An acquire fence keeps those loads before the second load of the sequence.
    /// 4. If the sequence is even and the same, no write was in between.
    pub(crate) fn read(region: &Region) -> Result<Option<ReceiverPage>, BadPage> {
        for _ in 0..READ_TRIES {
            let sequence = at64(region, page_offsets::SEQUENCE).load(Ordering::Acquire);
            let page = RawPage::read(region);
            fence(Ordering::Acquire);
            if at64(region, page_offsets::SEQUENCE).load(Ordering::Relaxed) == sequence
                && sequence.is_multiple_of(2)
            {
                return page.check(sequence / 2).map(Some);
            }
            std::hint::spin_loop();
        }
        Ok(None)
    }

    /// Number of words that were held, even if the receiver was killed when it was about to
    /// write one more. Acquire, as in [`read`](ReceiverPage::read).
    pub(crate) fn last_epoch(region: &Region) -> u64 {
        at64(region, page_offsets::SEQUENCE).load(Ordering::Acquire) / 2
    }

    /// The epoch after this one: from 1 on, and 1 again after more than any queue will
    /// have.
    pub(crate) fn next_epoch(epoch: u64) -> u64 {
        epoch % LAST_EPOCH + 1
    }

    /// Returns whether that receiver is known to be there, without a link to it.
    pub(crate) fn is_held(&self, queue: &QueueFile) -> bool {
        match self.word {
            Some(word) => word.is_held(queue),
            None => match HolderLookup::find(&self.holder) {
                HolderLookup::Found(process) => process.is_alive(),
                HolderLookup::Gone => false,
                HolderLookup::Hidden => true,
            },
        }
    }

    /// Writes the page. The caller is the receiver, and so the only writer.
    ///
    /// The release fence keeps the odd sequence before all that follows; the release store
    /// at the end keeps the even one behind it.
    pub(crate) fn write(&self, region: &Region) {
        let sequence = at64(region, page_offsets::SEQUENCE);
        sequence.store(2 * self.epoch - 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let (plot, place) = match &self.word {
            Some(word) => ((word.at - LIVENESS) / SECTION, word.at % SECTION),
            None => (section_of(self.epoch), 0),
        };
        for (at, value) in [
            (page_offsets::WORD_SECTION, plot as u32),
            (page_offsets::WORD_OFFSET, place as u32),
            (
                page_offsets::WORD_VALUE,
                self.word.map_or(0, |word| word.value),
            ),
            (page_offsets::PID, self.holder.pid.cast_unsigned()),
            (page_offsets::STATUS, status(self.is_closed)),
            (
                page_offsets::DOOR,
                self.door.map_or(0, |door| door.wrapping_add(1)),
            ),
        ] {
            at32(region, at).store(value, Ordering::Relaxed);
        }
        for (at, value) in [
            (page_offsets::INODE, self.holder.inode.unwrap_or(0)),
            (page_offsets::START, self.holder.start_ticks),
            (page_offsets::NAMESPACE, self.holder.namespace.unwrap_or(0)),
        ] {
            at64(region, at).store(value, Ordering::Relaxed);
        }
        let (words, _) = self.name.as_chunks::<8>();
        for (at, part) in (page_offsets::NAME..).step_by(8).zip(words) {
            at64(region, at).store(u64::from_le_bytes(*part), Ordering::Relaxed);
        }
        sequence.store(2 * self.epoch, Ordering::Release);
    }

    /// Says that the receiver leaves. The caller is the receiver. Release: a sender that
    /// sees this sees all that the receiver has done.
    pub(crate) fn close(region: &Region) {
        at32(region, page_offsets::STATUS).store(page_offsets::CLOSED, Ordering::Release);
    }
}

fn status(is_closed: bool) -> u32 {
    match is_closed {
        true => page_offsets::CLOSED,
        false => page_offsets::OPEN,
    }
}

/// The words of the page, unchecked.
struct RawPage {
    plot: u32,
    place: u32,
    value: u32,
    pid: u32,
    open: u32,
    inode: u64,
    start: u64,
    namespace: u64,
    door: u32,
    name: [u8; page_offsets::NAME_LENGTH],
}

impl RawPage {
    fn read(region: &Region) -> RawPage {
        let short = |at| at32(region, at).load(Ordering::Relaxed);
        let long = |at| at64(region, at).load(Ordering::Relaxed);
        let mut name = [0; page_offsets::NAME_LENGTH];
        let (words, _) = name.as_chunks_mut::<8>();
        for (at, part) in (page_offsets::NAME..).step_by(8).zip(words) {
            *part = long(at).to_le_bytes();
        }
        RawPage {
            plot: short(page_offsets::WORD_SECTION),
            place: short(page_offsets::WORD_OFFSET),
            value: short(page_offsets::WORD_VALUE),
            pid: short(page_offsets::PID),
            open: short(page_offsets::STATUS),
            inode: long(page_offsets::INODE),
            start: long(page_offsets::START),
            namespace: long(page_offsets::NAMESPACE),
            door: short(page_offsets::DOOR),
            name,
        }
    }

    /// Checks the words, which another process has written and may be anything.
    fn check(self, epoch: u64) -> Result<ReceiverPage, BadPage> {
        let is_closed = match self.open {
            page_offsets::OPEN => false,
            page_offsets::CLOSED => true,
            _ if epoch == 0 => true,
            _ => return Err(BadPage),
        };
        let word = match self.value {
            0 => None,
            value => {
                let is_there = epoch != 0
                    && u64::from(self.plot) == section_of(epoch)
                    && u64::from(self.place) + 4 <= SECTION
                    && self.place.is_multiple_of(4);
                // The word of a thread that lives has its number and the bit of waiters,
                // and nothing else.
                if !is_there
                    || value & WAITERS == 0
                    || value & OWNER_DIED != 0
                    || value & TID_MASK == 0
                {
                    return Err(BadPage);
                }
                let at = LIVENESS + u64::from(self.plot) * SECTION + u64::from(self.place);
                Some(LivenessWord { at, value })
            }
        };
        Ok(ReceiverPage {
            epoch,
            word,
            holder: HolderId {
                pid: self.pid.cast_signed(),
                inode: Some(self.inode).filter(|inode| *inode != 0),
                start_ticks: self.start,
                namespace: Some(self.namespace).filter(|namespace| *namespace != 0),
            },
            is_closed,
            name: self.name,
            door: self.door.checked_sub(1),
        })
    }
}

fn at32(region: &Region, at: u64) -> &AtomicU32 {
    region.atomic(RECEIVER_PAGE + at)
}

fn at64(region: &Region, at: u64) -> &AtomicU64 {
    region.atomic(RECEIVER_PAGE + at)
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::format::reference;

    fn region() -> Region {
        let size = LIVENESS + LIVENESS_SECTIONS * SECTION;
        let file = shared_memory::create(size).unwrap();
        Region::map(file.as_fd(), 0, size, true).unwrap()
    }

    fn page() -> ReceiverPage {
        let mut name = [0; page_offsets::NAME_LENGTH];
        name[..3].copy_from_slice(b"abc");
        ReceiverPage {
            epoch: 18,
            word: Some(LivenessWord {
                at: LIVENESS + SECTION + 4072,
                value: WAITERS | 0x1234,
            }),
            holder: HolderId {
                pid: 4660,
                inode: Some(77),
                start_ticks: 99,
                namespace: Some(4_026_531_836),
            },
            is_closed: false,
            name,
            door: Some(8),
        }
    }

    #[test]
    fn a_page_written_is_read() {
        let region = region();
        let none = ReceiverPage::read(&region).unwrap().unwrap();
        assert_eq!((none.epoch, none.word, none.is_closed), (0, None, true));
        let mut page = page();
        page.write(&region);
        assert_eq!(ReceiverPage::read(&region), Ok(Some(page.clone())));
        page.word = None;
        page.door = None;
        page.epoch = 19;
        page.write(&region);
        assert_eq!(ReceiverPage::read(&region), Ok(Some(page.clone())));
        ReceiverPage::close(&region);
        page.is_closed = true;
        assert_eq!(ReceiverPage::read(&region), Ok(Some(page)));
    }

    #[test]
    fn the_reference_says_the_same() {
        let Some(text) = reference::text("the_reference_says_the_same") else {
            return;
        };
        let table = reference::table(&text, "page");
        let rows = table.lines().filter(|line| line.starts_with("| `"));
        let theirs: String = rows
            .flat_map(str::chars)
            .filter(char::is_ascii_hexdigit)
            .collect();
        let region = region();
        page().write(&region);
        let words = (0..page_offsets::SIZE)
            .step_by(8)
            .map(|at| at64(&region, at));
        let bytes = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let ours: String = bytes.map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(theirs, ours);
    }

    #[test]
    fn a_receiver_that_was_killed_there_leaves_nothing_to_read() {
        let region = region();
        page().write(&region);
        at64(&region, page_offsets::SEQUENCE).store(37, Ordering::Relaxed);
        assert_eq!(ReceiverPage::read(&region), Ok(None));
        assert_eq!(ReceiverPage::last_epoch(&region), 18);
        let mut next = page();
        next.epoch = ReceiverPage::last_epoch(&region) + 1;
        next.word = None;
        next.write(&region);
        assert_eq!(ReceiverPage::read(&region), Ok(Some(next)));
    }

    /// Other processes can write to the file, and the next receiver counts on from what
    /// they left.
    #[test]
    fn the_last_number_of_all_is_followed_by_the_first() {
        let region = region();
        for left in [u64::MAX, u64::MAX - 1, u64::MAX - 2, 2, 1, 0] {
            at64(&region, page_offsets::SEQUENCE).store(left, Ordering::Relaxed);
            let mut next = page();
            (next.epoch, next.word) = (
                ReceiverPage::next_epoch(ReceiverPage::last_epoch(&region)),
                None,
            );
            next.write(&region);
            assert_eq!(
                ReceiverPage::read(&region),
                Ok(Some(next.clone())),
                "{left}"
            );
            // One more write by that receiver.
            next.epoch = ReceiverPage::next_epoch(next.epoch);
            next.write(&region);
            assert_eq!(ReceiverPage::read(&region), Ok(Some(next)), "{left}");
        }
    }

    #[test]
    fn a_page_of_nonsense_is_refused() {
        let region = region();
        for (at, value) in [
            (page_offsets::WORD_SECTION, 99),
            (page_offsets::WORD_SECTION, 2),
            (page_offsets::WORD_OFFSET, 4074),
            (page_offsets::WORD_OFFSET, SECTION as u32),
            (page_offsets::WORD_OFFSET, u32::MAX - 3),
            (page_offsets::WORD_VALUE, 0x1234),
            (page_offsets::WORD_VALUE, WAITERS),
            (page_offsets::WORD_VALUE, WAITERS | OWNER_DIED | 0x1234),
            (page_offsets::STATUS, 0),
            (page_offsets::STATUS, 3),
        ] {
            page().write(&region);
            at32(&region, at).store(value, Ordering::Relaxed);
            assert_eq!(
                ReceiverPage::read(&region),
                Err(BadPage),
                "{at}: {value:#x}"
            );
        }
    }
}
