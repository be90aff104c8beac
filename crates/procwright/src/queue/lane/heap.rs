//! A lane in ordinary memory, for tests: whoever holds one of its ends can be
//! stopped after any store, and what is given back or was never provided is known.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use super::{Memory, each_word};
use crate::queue::format::{Geometry, MAILBOX};

#[derive(Debug)]
pub(super) struct Heap {
    tail: Cell<u64>,
    head: Cell<u64>,
    done: Cell<u64>,
    stamp: Cell<u64>,
    mail: Cell<[u64; MAILBOX]>,
    bytes: RefCell<Vec<u8>>,
    /// Whether there is memory, a byte each.
    there: RefCell<Vec<bool>>,
    occupied: Cell<u64>,
    pub(super) shape: Geometry,
    /// How many calls `provide` and `discard` there were.
    pub(super) calls: Cell<u64>,
    /// How often the head was looked at.
    pub(super) looks: Cell<u64>,
    /// So much memory may be there at a time.
    pub(super) most: Cell<u64>,
    /// What the receiver does that the sender goes by, a letter each: `h` for the head,
    /// `d` for memory that it discards.
    pub(super) order: RefCell<String>,
}

/// One end's view of it.
#[derive(Clone, Debug)]
pub(super) struct End {
    heap: Rc<Heap>,
    /// So many stores are left to it; none is endless.
    left: Rc<Cell<Option<u64>>>,
}

impl Heap {
    pub(super) fn new(shape: Geometry) -> Rc<Heap> {
        let window = shape.window() as usize;
        Rc::new(Heap {
            tail: Cell::new(0),
            head: Cell::new(0),
            done: Cell::new(0),
            // As the memory is at first: that is the stamp of a message without bytes
            // at the position 0.
            stamp: Cell::new(0),
            mail: Cell::new([0; MAILBOX]),
            bytes: RefCell::new(vec![0; window]),
            there: RefCell::new(vec![false; window]),
            occupied: Cell::new(0),
            shape,
            calls: Cell::new(0),
            looks: Cell::new(0),
            most: Cell::new(u64::MAX),
            order: RefCell::default(),
        })
    }

    pub(super) fn end(self: &Rc<Heap>) -> End {
        End {
            heap: Rc::clone(self),
            left: Rc::new(Cell::new(None)),
        }
    }

    fn count(&self, range: std::ops::Range<usize>) -> u64 {
        let there = &self.there.borrow()[range];
        there.iter().filter(|there| **there).count() as u64
    }

    pub(super) fn occupied(&self) -> u64 {
        self.occupied.get()
    }

    pub(super) fn spoil_mailbox(&self, stamp: u64, mail: [u64; MAILBOX]) {
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

impl End {
    /// Dead after so many more stores.
    pub(super) fn dies_after(self, stores: u64) -> End {
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
            self.heap.there.borrow()[range.clone()]
                .iter()
                .all(|there| *there),
            "written where there is no memory"
        );
        self.heap.bytes.borrow_mut()[range].copy_from_slice(bytes);
    }
}

impl Memory for End {
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

    fn record(&self, place: u64) -> u64 {
        assert_eq!(place % 8, 0);
        let mut word = [0; 8];
        word.copy_from_slice(&self.read(place, 8));
        u64::from_le_bytes(word)
    }

    fn set_record(&self, place: u64, word: u64) {
        assert_eq!(place % 8, 0);
        self.put(place, &word.to_le_bytes());
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

    fn post(&self, place: u64, bytes: &[u8]) {
        let at: [usize; MAILBOX] = std::array::from_fn(|at| at);
        each_word(bytes, &at, &at, |at, _, word| {
            if self.may_store() {
                let mut mail = self.heap.mail.get();
                mail[*at] = word;
                self.heap.mail.set(mail);
            }
            self.set_record(place + 8 * *at as u64, word);
        });
    }

    fn copy_in(&self, place: u64, bytes: &[u8]) {
        // As a processor does it: not at once.
        for (i, part) in bytes.chunks(8).enumerate() {
            self.put(place + 8 * i as u64, part);
        }
    }

    fn provide(&self, place: u64, length: u64) -> io::Result<()> {
        self.heap.calls.set(self.heap.calls.get() + 1);
        let range = place as usize..(place + length) as usize;
        let more = length - self.heap.count(range.clone());
        if self.heap.occupied() + more > self.heap.most.get() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if self.may_store() {
            self.heap.there.borrow_mut()[range].fill(true);
            self.heap.occupied.set(self.heap.occupied() + more);
        }
        Ok(())
    }

    fn discard(&self, place: u64, length: u64) {
        self.heap.calls.set(self.heap.calls.get() + 1);
        if !self.may_store() {
            return;
        }
        self.heap.order.borrow_mut().push('d');
        let range = place as usize..(place + length) as usize;
        let gone = self.heap.count(range.clone());
        self.heap.occupied.set(self.heap.occupied() - gone);
        self.heap.there.borrow_mut()[range.clone()].fill(false);
        // Zeros, as the kernel has it.
        self.heap.bytes.borrow_mut()[range].fill(0);
    }
}
