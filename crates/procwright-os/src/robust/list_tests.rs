//! After each store that the kernel could see, it walks.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::super::OWNER_DIED;
use super::*;

type Hook = Box<dyn Fn()>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Called after each store.
pub(super) fn step() {
    HOOK.with_borrow(|hook| {
        if let Some(hook) = hook {
            hook();
        }
    });
}

const HOLDER: u32 = 4711;
const OTHER: u32 = 4712;
const NUMBER: u32 = 0x3fff_ffff;

/// Entries that the kernel walks before it gives up (`ROBUST_LIST_LIMIT`).
const LIMIT: usize = 2048;

/// A head, and so many entries and words.
#[derive(Clone, Copy)]
struct Memory {
    start: NonNull<u8>,
    cells: usize,
}

const SIZE: usize = 64;

impl Memory {
    fn new(cells: usize) -> Memory {
        let whole = vec![0_u64; SIZE / 8 * (1 + 2 * cells)];
        let start = Box::leak(whole.into_boxed_slice()).as_mut_ptr();
        Memory {
            start: NonNull::new(start).unwrap().cast(),
            cells,
        }
    }

    /// The kernel does not read it any more.
    fn free(self) {
        let whole = ptr::slice_from_raw_parts_mut(
            self.start.cast::<u64>().as_ptr(),
            SIZE / 8 * (1 + 2 * self.cells),
        );
        // SAFETY: it comes from `new`, in this form.
        drop(unsafe { Box::from_raw(whole) });
    }

    fn offset(self) -> usize {
        SIZE * self.cells
    }

    fn list(self) -> List {
        // SAFETY: of that size, aligned.
        unsafe { List::begin(self.start.cast(), self.offset() as c_long) }
    }

    fn entry<'a>(self, cell: usize) -> ListEntry<'a> {
        // SAFETY: within the memory, aligned.
        unsafe {
            let link = self.start.add(SIZE * (1 + cell));
            ListEntry::new(link.cast(), link.add(self.offset()).cast())
        }
    }

    fn number(self, cell: usize) -> u32 {
        self.entry(cell).word.load(R) & NUMBER
    }

    /// Walks as `exit_robust_list` of kernel/futex/core.c does; the cells whose
    /// words it marks, in its order.
    fn walk(self, list: List) -> Vec<usize> {
        let head = list.head();
        let (end, pending) = (list.end(), head.pending.load(R));
        let mut marked = Vec::new();
        let mut look = |link: *mut RobustLink| {
            let word = link.cast::<u8>().wrapping_offset(head.offset as isize);
            // SAFETY: the test is about this: every entry that the kernel comes to
            // must be one of the memory's.
            let value = unsafe { (*word.cast::<AtomicU32>()).load(R) };
            let cell = (word.addr() - self.start.as_ptr().addr()) / SIZE - 1 - self.cells;
            if value & NUMBER == HOLDER && !marked.contains(&cell) {
                marked.push(cell);
            }
        };
        let mut left = LIMIT;
        let mut at = head.first.load(R);
        while at != end {
            if at != pending {
                look(at);
            }
            // SAFETY: as above.
            at = unsafe { (*at).next.load(R) };
            left -= 1;
            assert_ne!(left, 0, "the kernel gives up");
        }
        if !pending.is_null() {
            look(pending);
        }
        marked
    }
}

/// Numbers that look like chance.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % n
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Own,
    /// Others write there, too.
    Claim,
    /// A thread of another namespace has our number.
    Namesake,
}

fn kind(cell: usize) -> Kind {
    match cell % 8 {
        7 => Kind::Namesake,
        5 | 6 => Kind::Claim,
        _ => Kind::Own,
    }
}

/// A random sequence of what may be done.
fn many(seed: u64, cells: usize, operations: usize) {
    let memory = Memory::new(cells);
    let list = memory.list();
    for cell in (0..cells).filter(|cell| kind(*cell) == Kind::Namesake) {
        memory.entry(cell).word.store(HOLDER | WAITERS, R);
    }
    HOOK.set(Some(Box::new(move || {
        let ours: BTreeSet<usize> = (0..cells)
            .filter(|cell| memory.number(*cell) == HOLDER && kind(*cell) != Kind::Namesake)
            .collect();
        let marked = memory.walk(list);
        assert_eq!(marked.iter().copied().collect::<BTreeSet<_>>(), ours);
        // The order of all but the pending one, which comes last.
        let whole = &marked[..marked.len().saturating_sub(1)];
        assert!(
            whole.is_sorted_by_key(|cell| kind(*cell) == Kind::Claim),
            "a hole in others' memory would hide a word of ours"
        );
    })));
    let mut claimed = vec![false; cells];
    let mut dice = Dice(seed);
    for _ in 0..operations {
        let cell = dice.below(cells);
        let entry = memory.entry(cell);
        let word = entry.word.load(R);
        match kind(cell) {
            Kind::Namesake => assert!(!list.claim(entry, HOLDER)),
            Kind::Own if word == 0 => list.hold(entry, HOLDER),
            Kind::Own => assert!(list.give(entry, HOLDER, 0, || {})),
            Kind::Claim if claimed[cell] => {
                // Another process may have written there.
                if dice.below(4) == 0 {
                    let value = [0, OTHER | WAITERS, OWNER_DIED | WAITERS, WAITERS][dice.below(4)];
                    entry.word.store(value, R);
                }
                let intact = entry.word.load(R) == HOLDER | WAITERS;
                let value = [0, WAITERS][dice.below(2)];
                assert_eq!(list.give(entry, HOLDER, value, || {}), intact);
                claimed[cell] = false;
            }
            Kind::Claim => {
                claimed[cell] = list.claim(entry, HOLDER);
                assert_eq!(claimed[cell], is_free(word));
                if !claimed[cell] {
                    entry
                        .word
                        .store([0, OWNER_DIED | WAITERS][dice.below(2)], R);
                }
            }
        }
    }
    HOOK.set(None);
    memory.free();
}

#[test]
fn whenever_it_ends_the_kernel_finds_what_is_held_and_nothing_else() {
    let (sequences, operations) = match cfg!(miri) {
        true => (3, 60),
        false => (200, 400),
    };
    for seed in 0..sequences {
        many(seed, 1 + seed as usize % 24, operations);
    }
}

#[test]
fn as_many_as_there_may_be_are_walked() {
    let cells = super::super::MAX_WORDS + super::super::MAX_RIGHTS;
    let memory = Memory::new(cells);
    let list = memory.list();
    for cell in 0..cells {
        match cell % 3 {
            0 => assert!(list.claim(memory.entry(cell), HOLDER)),
            _ => list.hold(memory.entry(cell), HOLDER),
        }
    }
    if !cfg!(miri) {
        assert_eq!(memory.walk(list).len(), cells);
    }
    // One more is pending.
    assert!(cells + 1 < LIMIT);
    memory.free();
}
