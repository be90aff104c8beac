//! The receiver's page: who receives, and which word tells whether it lives.
//!
//! The receiver alone writes it, in several steps; a number that is odd meanwhile
//! keeps others from taking the half of one for the whole. A receiver that is
//! killed in between leaves it odd: whoever reads gets nothing then, and asks in
//! another way.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::ground::Ground;
use crate::liveness::{Holder, Seen};
use crate::queue::Error;
use crate::queue::format::{LIVENESS, PLOT, READER, WORDS, reader};
use crate::sys::robust::{AWAITED, DIED, TID};
use crate::sys::shared::{self, Region};

/// What stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// How many words there were with this one, of this receiver and all before: 0 if
    /// there never was a receiver.
    pub(super) epoch: u64,
    /// None where the kernel marks none.
    pub(super) word: Option<LifeWord>,
    pub(super) holder: Holder,
    /// It says itself that it is not there any more.
    pub(super) is_closed: bool,
    /// Where senders that have no link find it.
    pub(super) name: [u8; reader::NAME_LENGTH],
}

/// A word that a receiver holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LifeWord {
    /// In the file.
    pub(super) at: u64,
    /// What it says as long as it is held.
    pub(super) value: u32,
}

impl LifeWord {
    /// Whether somebody holds it.
    pub(super) fn is_held(self, ground: &Ground) -> bool {
        // Nobody needs to have put memory there, and to look then may be a SIGBUS.
        let file = ground.file();
        let is_there = file.is_ok_and(|file| shared::provide(file, self.at, 4).is_ok());
        is_there
            && ground
                .receivers
                .look::<AtomicU32>(self.at)
                .load(Ordering::Acquire)
                == self.value
    }
}

/// What stands there makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

impl From<Nonsense> for Error {
    fn from(_: Nonsense) -> Error {
        Error::Invalid("what its receiver says of itself makes no sense".into())
    }
}

/// Of the epochs, which a word of 64 bits has twice.
const LAST: u64 = u64::MAX / 2;

/// Where the word of an epoch, which is not 0, may lie: a plot.
pub(super) fn plot_of(epoch: u64) -> u64 {
    (epoch - 1) % WORDS
}

/// Who writes it needs some nanoseconds; who finds it odd for longer asks in another
/// way, and comes back.
const LOOKS: u32 = 1000;

impl Page {
    /// None while it is being written.
    pub(super) fn read(region: &Region) -> Result<Option<Page>, Nonsense> {
        for _ in 0..LOOKS {
            let sequence = at64(region, reader::SEQUENCE).load(Ordering::Acquire);
            let page = Parts::read(region);
            fence(Ordering::Acquire);
            if at64(region, reader::SEQUENCE).load(Ordering::Relaxed) == sequence
                && sequence.is_multiple_of(2)
            {
                return page.check(sequence / 2).map(Some);
            }
            std::hint::spin_loop();
        }
        Ok(None)
    }

    /// How many words there were, whoever was killed when it was about to tell of one
    /// more.
    pub(super) fn epochs(region: &Region) -> u64 {
        at64(region, reader::SEQUENCE).load(Ordering::Acquire) / 2
    }

    /// The number of the word after the one with this number: from 1, and from there
    /// again after what is more than any queue will have.
    pub(super) fn next(epoch: u64) -> u64 {
        epoch % LAST + 1
    }

    /// Whether that receiver is known to be there, without a link to it.
    pub(super) fn is_held(&self, ground: &Ground) -> bool {
        match self.word {
            Some(word) => word.is_held(ground),
            None => match Seen::of(&self.holder) {
                Seen::It(process) => process.is_alive(),
                Seen::Gone => false,
                Seen::Hidden => true,
            },
        }
    }

    /// By the receiver: it is the only one.
    pub(super) fn write(&self, region: &Region) {
        let sequence = at64(region, reader::SEQUENCE);
        sequence.store(2 * self.epoch - 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let (plot, place) = match &self.word {
            Some(word) => ((word.at - LIVENESS) / PLOT, word.at % PLOT),
            None => (plot_of(self.epoch), 0),
        };
        for (at, value) in [
            (reader::WORD_PLOT, plot as u32),
            (reader::WORD_PLACE, place as u32),
            (reader::WORD_VALUE, self.word.map_or(0, |word| word.value)),
            (reader::PID, self.holder.pid.cast_unsigned()),
            (reader::OPEN, said(self.is_closed)),
        ] {
            at32(region, at).store(value, Ordering::Relaxed);
        }
        for (at, value) in [
            (reader::INODE, self.holder.inode.unwrap_or(0)),
            (reader::START, self.holder.start_ticks),
            (reader::NAMESPACE, self.holder.namespace.unwrap_or(0)),
        ] {
            at64(region, at).store(value, Ordering::Relaxed);
        }
        let (words, _) = self.name.as_chunks::<8>();
        for (at, part) in (reader::NAME..).step_by(8).zip(words) {
            at64(region, at).store(u64::from_le_bytes(*part), Ordering::Relaxed);
        }
        sequence.store(2 * self.epoch, Ordering::Release);
    }

    /// By the receiver, which leaves.
    pub(super) fn close(region: &Region) {
        at32(region, reader::OPEN).store(reader::HAS_CLOSED, Ordering::Release);
    }
}

fn said(is_closed: bool) -> u32 {
    match is_closed {
        true => reader::HAS_CLOSED,
        false => reader::IS_THERE,
    }
}

/// As it stands there.
struct Parts {
    plot: u32,
    place: u32,
    value: u32,
    pid: u32,
    open: u32,
    inode: u64,
    start: u64,
    namespace: u64,
    name: [u8; reader::NAME_LENGTH],
}

impl Parts {
    fn read(region: &Region) -> Parts {
        let short = |at| at32(region, at).load(Ordering::Relaxed);
        let long = |at| at64(region, at).load(Ordering::Relaxed);
        let mut name = [0; reader::NAME_LENGTH];
        let (words, _) = name.as_chunks_mut::<8>();
        for (at, part) in (reader::NAME..).step_by(8).zip(words) {
            *part = long(at).to_le_bytes();
        }
        Parts {
            plot: short(reader::WORD_PLOT),
            place: short(reader::WORD_PLACE),
            value: short(reader::WORD_VALUE),
            pid: short(reader::PID),
            open: short(reader::OPEN),
            inode: long(reader::INODE),
            start: long(reader::START),
            namespace: long(reader::NAMESPACE),
            name,
        }
    }

    /// It is somebody else's, and may be anything.
    fn check(self, epoch: u64) -> Result<Page, Nonsense> {
        let is_closed = match self.open {
            reader::IS_THERE => false,
            reader::HAS_CLOSED => true,
            _ if epoch == 0 => true,
            _ => return Err(Nonsense),
        };
        let word = match self.value {
            0 => None,
            value => {
                let is_there = epoch != 0
                    && u64::from(self.plot) == plot_of(epoch)
                    && u64::from(self.place) + 4 <= PLOT
                    && self.place.is_multiple_of(4);
                // One that is held by somebody who lives.
                if !is_there || value & AWAITED == 0 || value & DIED != 0 || value & TID == 0 {
                    return Err(Nonsense);
                }
                let at = LIVENESS + u64::from(self.plot) * PLOT + u64::from(self.place);
                Some(LifeWord { at, value })
            }
        };
        Ok(Page {
            epoch,
            word,
            holder: Holder {
                pid: self.pid.cast_signed(),
                inode: Some(self.inode).filter(|inode| *inode != 0),
                start_ticks: self.start,
                namespace: Some(self.namespace).filter(|namespace| *namespace != 0),
            },
            is_closed,
            name: self.name,
        })
    }
}

fn at32(region: &Region, at: u64) -> &AtomicU32 {
    region.look(READER + at)
}

fn at64(region: &Region, at: u64) -> &AtomicU64 {
    region.look(READER + at)
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn region() -> Region {
        let size = LIVENESS + WORDS * PLOT;
        let file = shared::create(size).unwrap();
        Region::map(file.as_fd(), 0, size, true).unwrap()
    }

    fn page() -> Page {
        let mut name = [0; reader::NAME_LENGTH];
        name[..3].copy_from_slice(b"abc");
        Page {
            epoch: 18,
            word: Some(LifeWord {
                at: LIVENESS + PLOT + 4072,
                value: AWAITED | 0x1234,
            }),
            holder: Holder {
                pid: 4660,
                inode: Some(77),
                start_ticks: 99,
                namespace: Some(4_026_531_836),
            },
            is_closed: false,
            name,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let region = region();
        let none = Page::read(&region).unwrap().unwrap();
        assert_eq!((none.epoch, none.word, none.is_closed), (0, None, true));
        let mut page = page();
        page.write(&region);
        assert_eq!(Page::read(&region), Ok(Some(page.clone())));
        page.word = None;
        page.epoch = 19;
        page.write(&region);
        assert_eq!(Page::read(&region), Ok(Some(page.clone())));
        Page::close(&region);
        page.is_closed = true;
        assert_eq!(Page::read(&region), Ok(Some(page)));
    }

    #[test]
    fn the_reference_says_the_same() {
        let text = include_str!("../../../../../docs/reference/queue-format.md");
        let (_, rest) = text.split_once("<!-- vectors: page -->").unwrap();
        let (table, _) = rest.split_once("<!-- end -->").unwrap();
        let rows = table.lines().filter(|line| line.starts_with("| `"));
        let theirs: String = rows
            .flat_map(str::chars)
            .filter(char::is_ascii_hexdigit)
            .collect();
        let region = region();
        page().write(&region);
        let words = (0..reader::SIZE).step_by(8).map(|at| at64(&region, at));
        let bytes = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let ours: String = bytes.map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(theirs, ours);
    }

    #[test]
    fn a_receiver_that_was_killed_there_leaves_nothing_to_read() {
        let region = region();
        page().write(&region);
        at64(&region, reader::SEQUENCE).store(37, Ordering::Relaxed);
        assert_eq!(Page::read(&region), Ok(None));
        assert_eq!(Page::epochs(&region), 18);
        let mut next = page();
        next.epoch = Page::epochs(&region) + 1;
        next.word = None;
        next.write(&region);
        assert_eq!(Page::read(&region), Ok(Some(next)));
    }

    /// Others can write to the file, and what is left there is counted on from.
    #[test]
    fn the_last_number_of_all_is_followed_by_the_first() {
        let region = region();
        for left in [u64::MAX, u64::MAX - 1, u64::MAX - 2, 2, 1, 0] {
            at64(&region, reader::SEQUENCE).store(left, Ordering::Relaxed);
            let mut next = page();
            (next.epoch, next.word) = (Page::next(Page::epochs(&region)), None);
            next.write(&region);
            assert_eq!(Page::read(&region), Ok(Some(next.clone())), "{left}");
            // And by one more, of the same receiver.
            next.epoch = Page::next(next.epoch);
            next.write(&region);
            assert_eq!(Page::read(&region), Ok(Some(next)), "{left}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let region = region();
        for (at, value) in [
            (reader::WORD_PLOT, 99),
            (reader::WORD_PLOT, 2),
            (reader::WORD_PLACE, 4074),
            (reader::WORD_PLACE, PLOT as u32),
            (reader::WORD_PLACE, u32::MAX - 3),
            (reader::WORD_VALUE, 0x1234),
            (reader::WORD_VALUE, AWAITED),
            (reader::WORD_VALUE, AWAITED | DIED | 0x1234),
            (reader::OPEN, 0),
            (reader::OPEN, 3),
        ] {
            page().write(&region);
            at32(&region, at).store(value, Ordering::Relaxed);
            assert_eq!(Page::read(&region), Err(Nonsense), "{at}: {value:#x}");
        }
    }
}
