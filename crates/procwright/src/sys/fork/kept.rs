//! Descriptors that a fork does not keep.
//!
//! A fork copies every descriptor, close-on-exec or not. In a worker that was
//! forked and goes on without exec (Python's `multiprocessing`, a pre-forking
//! server) the copies of our pipes' ends would live as long as the worker: a
//! child would see no end of its input and no EPIPE, long after we have closed
//! our end. So the ends that a caller may hold for long are [`Kept`], and a
//! handler closes them in the fork.
//!
//! It is a handler of the C library's fork, as Python's and Ruby's is; a fork by
//! a raw system call is not noticed, and neither is one by another thread while a
//! program is being started: the pipes are noted once it runs.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// How many forks lie between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Held while a number is noted or closed, and across a fork: the fork must not
/// find a number noted that is closed already and perhaps somebody else's, nor
/// one open that is noted no more. Never for longer than one `close(2)` of a
/// pipe takes.
static BUSY: AtomicBool = AtomicBool::new(false);

/// The numbers, in blocks that are never given back: a fork can come at any
/// moment, and its handler may not allocate.
static FIRST: Block = Block::new();

const SLOTS: usize = 64;
const FREE: i32 = -1;

struct Block {
    slots: [AtomicI32; SLOTS],
    next: AtomicPtr<Block>,
}

impl Block {
    const fn new() -> Block {
        Block {
            slots: [const { AtomicI32::new(FREE) }; SLOTS],
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    fn next(&self) -> Option<&'static Block> {
        // SAFETY: blocks are leaked when they are made and never freed.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

/// The lock. Spinning is right: whoever holds it is in one short system call.
struct Quiet;

impl Quiet {
    fn take() -> Quiet {
        while BUSY.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        Quiet
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}

extern "C" fn before_fork() {
    std::mem::forget(Quiet::take());
}

extern "C" fn after_fork_in_parent() {
    drop(Quiet);
}

extern "C" fn after_fork_in_child() {
    let mut block = Some(&FIRST);
    while let Some(this) = block {
        for slot in &this.slots {
            let number = slot.swap(FREE, Ordering::Relaxed);
            if number != FREE {
                // SAFETY: noted, so open, says the lock; and whoever it belongs
                // to sees by the generation that it is gone.
                unsafe { libc::close(number) };
            }
        }
        block = this.next();
    }
    GENERATION.fetch_add(1, Ordering::Relaxed);
    drop(Quiet);
}

/// A number that changes with every fork: what was made under another is of
/// another process.
pub(crate) fn generation() -> u32 {
    watch();
    GENERATION.load(Ordering::Relaxed)
}

/// A process, as it is told from its forks.
///
/// Its number alone would not do: the first process of every pid namespace is number
/// 1, and may be a fork of the first of the one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ourselves {
    number: u32,
    generation: u32,
}

impl Ourselves {
    /// No process.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) const NOBODY: Ourselves = Ourselves {
        number: 0,
        generation: 0,
    };

    /// The one that asks.
    pub(crate) fn now() -> Ourselves {
        Ourselves {
            number: std::process::id(),
            generation: generation(),
        }
    }

    /// Whether the one that asks is the one that this was.
    pub(crate) fn are_we(self) -> bool {
        self == Ourselves::now()
    }
}

fn watch() {
    // Not a `Once`: a fork that comes while one thread is at it would wait for that
    // thread for ever. In such a fork no handler is known to be there; it is told
    // from its forks by its number.
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if BEGUN.load(Ordering::Relaxed) || BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    // It fails for want of memory only; then a fork keeps its copies.
    //
    // SAFETY: the handlers make no call that is not allowed after a fork.
    unsafe {
        libc::pthread_atfork(
            Some(before_fork),
            Some(after_fork_in_parent),
            Some(after_fork_in_child),
        )
    };
}

/// A descriptor that a fork does not keep.
#[derive(Debug)]
pub(crate) struct Kept {
    fd: ManuallyDrop<OwnedFd>,
    slot: &'static AtomicI32,
    generation: u32,
}

impl Kept {
    pub(crate) fn new(fd: OwnedFd) -> Kept {
        let generation = generation();
        let _quiet = Quiet::take();
        Kept {
            slot: note(fd.as_raw_fd()),
            fd: ManuallyDrop::new(fd),
            generation,
        }
    }

    /// The descriptor, unless this is a fork of the process that it was of.
    pub(crate) fn get(&self) -> io::Result<BorrowedFd<'_>> {
        if self.generation == generation() {
            return Ok(self.fd.as_fd());
        }
        Err(not_ours())
    }
}

/// What a fork is told that uses a stream of the process that it is of.
pub(crate) fn not_ours() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "this stream is of the process that was forked; a fork has none of its streams",
    )
}

/// A free slot, with this number in it. Under the lock.
fn note(number: RawFd) -> &'static AtomicI32 {
    let mut block = &FIRST;
    loop {
        let free = block
            .slots
            .iter()
            .find(|slot| slot.load(Ordering::Relaxed) == FREE);
        if let Some(slot) = free {
            slot.store(number, Ordering::Relaxed);
            return slot;
        }
        block = match block.next() {
            Some(next) => next,
            None => {
                let new: &'static Block = Box::leak(Box::new(Block::new()));
                let pointer = std::ptr::from_ref(new).cast_mut();
                block.next.store(pointer, Ordering::Release);
                new
            }
        };
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let quiet = Quiet::take();
        if self.generation == generation() {
            self.slot.store(FREE, Ordering::Relaxed);
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
        // Else it was closed at the fork, and its number is anybody's.
        drop(quiet);
    }
}
