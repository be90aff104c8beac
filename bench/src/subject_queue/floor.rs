//! Floors: words in shared memory with nothing around. They know of one message at a
//! time, so they go back and forth and nothing else.

use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};

use super::{Pause, Plan, Rx, Tx, Way};

/// A word, and the bytes: behind it in the same line if they fit, else from the next.
#[derive(Debug)]
pub struct Slot {
    word: NonNull<AtomicU64>,
    length: usize,
}

/// What processors pass to each other.
const LINE: usize = 64;

// SAFETY: the word is atomic, and says who may use the bytes.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// In memory that children share.
    fn new(length: usize) -> Result<Slot, String> {
        // SAFETY: new memory at a place of the kernel's choice.
        let at = unsafe {
            mmap_anonymous(
                None,
                (LINE + length).try_into().expect("more than nothing"),
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED,
            )
        };
        Ok(Slot {
            word: at.map_err(|error| format!("mmap: {error}"))?.cast(),
            length,
        })
    }

    /// The same memory: it is never given back.
    fn again(&self) -> Slot {
        let Slot { word, length } = *self;
        Slot { word, length }
    }

    #[inline]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: mapped for good, aligned as pages are.
        unsafe { self.word.as_ref() }
    }

    /// The lower half, as futexes want it.
    #[inline]
    fn half(&self) -> &AtomicU32 {
        // SAFETY: as above; all who use this memory use this half alone.
        unsafe { self.word.cast().as_ref() }
    }

    #[inline]
    fn range(&self, length: usize) -> Range<*mut u8> {
        assert!(length <= self.length);
        let after = if length + 8 <= LINE { 8 } else { LINE };
        // SAFETY: within the mapping.
        let at = unsafe { self.word.as_ptr().cast::<u8>().add(after) };
        at..at.wrapping_add(length)
    }

    /// # Safety
    /// The word has said that they can be read, and not yet that they may be
    /// written.
    #[inline]
    unsafe fn bytes(&self, length: usize) -> &[u8] {
        // SAFETY: within the mapping; the caller's word.
        unsafe { &*ptr::slice_from_raw_parts(self.range(length).start, length) }
    }

    /// # Safety
    /// The word has said that they may be written, and not yet that they can be
    /// read.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller's word")]
    unsafe fn bytes_mut(&self, length: usize) -> &mut [u8] {
        // SAFETY: within the mapping; the caller's word.
        unsafe { &mut *ptr::slice_from_raw_parts_mut(self.range(length).start, length) }
    }
}

/// One end of a slot, and how many messages have gone through.
#[derive(Debug)]
pub struct End {
    slot: Slot,
    length: usize,
    count: u64,
    pause: Pause,
}

impl End {
    fn new(slot: &Slot, plan: &Plan) -> End {
        End {
            slot: slot.again(),
            length: plan.length,
            count: 0,
            pause: plan.pause(),
        }
    }
}

/// Two words back and forth, with the bytes beside them. Of no bytes: the words
/// alone.
#[derive(Debug)]
pub struct Words;

/// An end of [`Words`].
#[derive(Debug)]
pub struct WordEnd(End);

impl Way for Words {
    type Common = Slot;
    type Rx = WordEnd;
    type Tx = WordEnd;

    fn common(plan: &Plan) -> Result<Slot, String> {
        match plan.is_spinning {
            true => Slot::new(plan.length),
            false => Err("it only spins".into()),
        }
    }

    fn receiver(slot: &Slot, plan: &Plan, _: &[UnixStream]) -> WordEnd {
        WordEnd(End::new(slot, plan))
    }

    fn sender(slot: &Slot, plan: &Plan, _: usize, _: &UnixStream) -> WordEnd {
        WordEnd(End::new(slot, plan))
    }
}

impl Rx for WordEnd {
    #[inline]
    fn recv(&mut self, mut read: impl FnMut(&[u8])) {
        let End {
            slot,
            length,
            count,
            pause,
        } = &mut self.0;
        *count += 1;
        while slot.word().load(Ordering::Acquire) != *count {
            pause.pause();
        }
        // SAFETY: the word is there, and the next is sent when this is answered.
        read(unsafe { slot.bytes(*length) });
    }
}

impl Tx for WordEnd {
    #[inline]
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        let End { slot, count, .. } = &mut self.0;
        *count += 1;
        // SAFETY: the last one was answered.
        fill(unsafe { slot.bytes_mut(length) });
        slot.word().store(*count, Ordering::Release);
    }
}

/// The same with a sleep and a wake-up for each message.
#[derive(Debug)]
pub struct Futex;

/// An end of [`Futex`].
#[derive(Debug)]
pub struct FutexEnd(End);

impl Way for Futex {
    type Common = Slot;
    type Rx = FutexEnd;
    type Tx = FutexEnd;

    fn common(plan: &Plan) -> Result<Slot, String> {
        match plan.is_spinning {
            true => Err("it only sleeps".into()),
            false => Slot::new(plan.length),
        }
    }

    fn receiver(slot: &Slot, plan: &Plan, _: &[UnixStream]) -> FutexEnd {
        FutexEnd(End::new(slot, plan))
    }

    fn sender(slot: &Slot, plan: &Plan, _: usize, _: &UnixStream) -> FutexEnd {
        FutexEnd(End::new(slot, plan))
    }
}

impl Rx for FutexEnd {
    fn recv(&mut self, mut read: impl FnMut(&[u8])) {
        let End {
            slot,
            length,
            count,
            ..
        } = &mut self.0;
        let before = *count as u32;
        *count += 1;
        while slot.half().load(Ordering::Acquire) == before {
            futex(slot.half(), libc::FUTEX_WAIT, before);
        }
        // SAFETY: the word is there, and the next is sent when this is answered.
        read(unsafe { slot.bytes(*length) });
    }
}

impl Tx for FutexEnd {
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        let End { slot, count, .. } = &mut self.0;
        *count += 1;
        // SAFETY: the last one was answered.
        fill(unsafe { slot.bytes_mut(length) });
        slot.half().store(*count as u32, Ordering::Release);
        futex(slot.half(), libc::FUTEX_WAKE, 1);
    }
}

fn futex(word: &AtomicU32, what: libc::c_int, value: u32) {
    let timeout: *const libc::timespec = ptr::null();
    // SAFETY: a word that is there; no time is given. What comes back is looked for
    // in the word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), what, value, timeout) };
}

/// Memory that nobody had before, filled from its beginning and never used again:
/// what can be written at most before anything is read.
#[derive(Debug)]
pub struct Fresh;

/// An end of [`Fresh`].
#[derive(Debug)]
pub struct FreshEnd {
    end: End,
    /// Where the next message goes, or comes from.
    at: usize,
}

impl FreshEnd {
    fn new(slot: &Slot, plan: &Plan) -> FreshEnd {
        FreshEnd {
            end: End::new(slot, plan),
            at: 0,
        }
    }
}

impl Way for Fresh {
    type Common = Slot;
    type Rx = FreshEnd;
    type Tx = FreshEnd;

    fn common(plan: &Plan) -> Result<Slot, String> {
        match plan.room {
            0 => Err("it is never used again".into()),
            room => Slot::new(room),
        }
    }

    fn receiver(slot: &Slot, plan: &Plan, _: &[UnixStream]) -> FreshEnd {
        FreshEnd::new(slot, plan)
    }

    fn sender(slot: &Slot, plan: &Plan, _: usize, _: &UnixStream) -> FreshEnd {
        FreshEnd::new(slot, plan)
    }
}

impl Rx for FreshEnd {
    fn recv(&mut self, mut read: impl FnMut(&[u8])) {
        let FreshEnd { end, at } = self;
        end.count += 1;
        while end.slot.word().load(Ordering::Acquire) < end.count {
            end.pause.pause();
        }
        // SAFETY: the word has counted it, and nobody writes there again.
        let bytes = unsafe { end.slot.bytes(*at + end.length) };
        read(&bytes[*at..]);
        *at += end.length;
    }
}

impl Tx for FreshEnd {
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        let FreshEnd { end, at } = self;
        let range = end.slot.range(*at + length);
        let start = range.start.wrapping_add(*at);
        // SAFETY: within the mapping, and the word has not counted it yet.
        fill(unsafe { &mut *ptr::slice_from_raw_parts_mut(start, length) });
        *at += length;
        end.count += 1;
        end.slot.word().store(end.count, Ordering::Release);
    }
}
