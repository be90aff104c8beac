//! A lane in ordinary memory, for tests: each end can be stopped after any store, and
//! memory that was given back or never provided is known.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::rc::Rc;

use crate::format::{Geometry, MAILBOX_WORDS};
use crate::lane::{LaneMemory, each_word};

#[derive(Debug)]
pub(super) struct Heap {
    tail: Cell<u64>,
    head: Cell<u64>,
    done: Cell<u64>,
    stamp: Cell<u64>,
    mail: Cell<[u64; MAILBOX_WORDS]>,
    bytes: RefCell<Vec<u8>>,
    /// A flag for each word of 8 bytes that has memory.
    there: RefCell<Vec<bool>>,
    occupied: Cell<u64>,
    pub(super) shape: Geometry,
    /// Number of calls of `provide` and `discard`.
    pub(super) calls: Cell<u64>,
    /// Number of loads of the head.
    pub(super) looks: Cell<u64>,
    /// Bytes that may have memory at a time.
    pub(super) most: Cell<u64>,
    /// Stores of the receiver that the sender goes by, a letter each: `h` for the head, `d`
    /// for memory that it discards.
    pub(super) order: RefCell<String>,
}

/// The words that so many bytes lie in.
fn words(offset: u64, length: u64) -> Range<usize> {
    offset as usize / 8..(offset + length).div_ceil(8) as usize
}

/// One end's view of the heap.
#[derive(Clone, Debug)]
pub(super) struct HeapEnd {
    heap: Rc<Heap>,
    /// Number of stores that are left to this end; none is endless.
    left: Rc<Cell<Option<u64>>>,
}

impl Heap {
    pub(super) fn new(shape: Geometry) -> Rc<Heap> {
        let window = shape.window() as usize;
        Rc::new(Heap {
            tail: Cell::new(0),
            head: Cell::new(0),
            done: Cell::new(0),
            // The stamp in fresh memory is that of a message without bytes at the position
            // 0.
            stamp: Cell::new(0),
            mail: Cell::new([0; MAILBOX_WORDS]),
            bytes: RefCell::new(vec![0; window]),
            there: RefCell::new(vec![false; window.div_ceil(8)]),
            occupied: Cell::new(0),
            shape,
            calls: Cell::new(0),
            looks: Cell::new(0),
            most: Cell::new(u64::MAX),
            order: RefCell::default(),
        })
    }

    pub(super) fn end(self: &Rc<Heap>) -> HeapEnd {
        HeapEnd {
            heap: Rc::clone(self),
            left: Rc::new(Cell::new(None)),
        }
    }

    /// Bytes of a range of words that have memory.
    fn count(&self, words: Range<usize>) -> u64 {
        let there = &self.there.borrow()[words];
        8 * there.iter().filter(|there| **there).count() as u64
    }

    pub(super) fn occupied(&self) -> u64 {
        self.occupied.get()
    }

    pub(super) fn spoil_mailbox(&self, stamp: u64, mail: [u64; MAILBOX_WORDS]) {
        self.stamp.set(stamp);
        self.mail.set(mail);
    }

    pub(super) fn spoil(&self, tail: u64, head: u64, bytes: &[u8]) {
        self.tail.set(tail);
        self.head.set(head);
        self.done.set(head);
        self.bytes.borrow_mut()[..bytes.len()].copy_from_slice(bytes);
    }
}

impl HeapEnd {
    /// Lets this end die after so many more stores.
    pub(super) fn dies_after(self, stores: u64) -> HeapEnd {
        self.left.set(Some(stores));
        self
    }

    pub(super) fn is_dead(&self) -> bool {
        self.left.get() == Some(0)
    }

    fn may_store(&self) -> bool {
        match self.left.get() {
            None => true,
            Some(0) => false,
            Some(left) => {
                self.left.set(Some(left - 1));
                true
            }
        }
    }

    pub(super) fn read(&self, at: u64, length: u64) -> Vec<u8> {
        let at = at as usize;
        self.heap.bytes.borrow()[at..at + length as usize].to_vec()
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        if !self.may_store() {
            return;
        }
        let range = at as usize..at as usize + bytes.len();
        assert!(
            self.heap.there.borrow()[words(at, bytes.len() as u64)]
                .iter()
                .all(|there| *there),
            "written where there is no memory"
        );
        self.heap.bytes.borrow_mut()[range].copy_from_slice(bytes);
    }
}

impl LaneMemory for HeapEnd {
    fn tail(&self) -> u64 {
        self.heap.tail.get()
    }

    fn set_tail(&self, word: u64) {
        if self.may_store() {
            self.heap.tail.set(word);
        }
    }

    fn head(&self) -> u64 {
        self.heap.looks.set(self.heap.looks.get() + 1);
        self.heap.head.get()
    }

    fn set_head(&self, word: u64) {
        if self.may_store() {
            self.heap.order.borrow_mut().push('h');
            self.heap.head.set(word);
        }
    }

    fn done(&self) -> u64 {
        self.heap.done.get()
    }

    fn set_done(&self, word: u64) {
        if self.may_store() {
            self.heap.done.set(word);
        }
    }

    fn is_awaited(&self) -> bool {
        false
    }

    fn record(&self, offset: u64) -> u64 {
        assert_eq!(offset % 8, 0);
        let mut word = [0; 8];
        word.copy_from_slice(&self.read(offset, 8));
        u64::from_le_bytes(word)
    }

    fn set_record(&self, offset: u64, word: u64) {
        assert_eq!(offset % 8, 0);
        self.put(offset, &word.to_le_bytes());
    }

    fn stamp(&self) -> u64 {
        self.heap.stamp.get()
    }

    fn set_stamp(&self, stamp: u64) {
        if self.may_store() {
            self.heap.stamp.set(stamp);
        }
    }

    fn mail(&self, at: usize) -> u64 {
        self.heap.mail.get()[at]
    }

    fn post(&self, offset: u64, bytes: &[u8]) {
        let at: [usize; MAILBOX_WORDS] = std::array::from_fn(|at| at);
        each_word(bytes, &at, &at, |at, _, word| {
            if self.may_store() {
                let mut mail = self.heap.mail.get();
                mail[*at] = word;
                self.heap.mail.set(mail);
            }
            self.set_record(offset + 8 * *at as u64, word);
        });
    }

    fn copy_in(&self, offset: u64, bytes: &[u8]) {
        // A processor does not copy at once, either.
        for (i, part) in bytes.chunks(8).enumerate() {
            self.put(offset + 8 * i as u64, part);
        }
    }

    fn provide(&self, offset: u64, length: u64) -> io::Result<()> {
        self.heap.calls.set(self.heap.calls.get() + 1);
        let words = words(offset, length);
        let more = length - self.heap.count(words.clone());
        if self.heap.occupied() + more > self.heap.most.get() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if self.may_store() {
            self.heap.there.borrow_mut()[words].fill(true);
            self.heap.occupied.set(self.heap.occupied() + more);
        }
        Ok(())
    }

    fn discard(&self, offset: u64, length: u64) {
        self.heap.calls.set(self.heap.calls.get() + 1);
        if !self.may_store() {
            return;
        }
        self.heap.order.borrow_mut().push('d');
        let range = offset as usize..(offset + length) as usize;
        let words = words(offset, length);
        let gone = self.heap.count(words.clone());
        self.heap.occupied.set(self.heap.occupied() - gone);
        self.heap.there.borrow_mut()[words].fill(false);
        // The kernel gives zeros.
        self.heap.bytes.borrow_mut()[range].fill(0);
    }
}
