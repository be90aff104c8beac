//! Descriptors that a fork closes: close-on-fork, as `O_CLOFORK` of POSIX 2024 has
//! it, which Linux lacks.
//!
//! A fork copies every descriptor, close-on-exec or not. In a worker that was
//! forked and goes on without exec (Python's `multiprocessing`, a pre-forking
//! server) the copies of our pipes' ends would live as long as the worker: a
//! child would see no end of its input and no EPIPE, long after we have closed
//! our end. So the ends that a caller may hold for long are [`CloseOnFork`], and a
//! handler closes them in the fork.
//!
//! The handler is one of the C library's fork (`pthread_atfork`), as Python's and
//! Ruby's is. A fork by a raw system call is not noticed. Neither is one by another
//! thread while a program is being started: the pipes are registered once it runs.
//!
//! # The race with a fork
//!
//! 1. `fork()` runs `before_fork`, which takes the lock. No registration and no
//!    close is half done then.
//! 2. The kernel copies the process: in both copies every registered number is an
//!    open descriptor of ours.
//! 3. The parent's handler releases its lock and changes nothing.
//! 4. The fork's handler closes every registered number, counts [`GENERATION`] up,
//!    and releases its copy of the lock. From then on every [`CloseOnFork`] knows by
//!    its generation that its descriptor is gone.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// Number of forks between the first process and this one.
///
/// Relaxed everywhere: the handler changes it in a process of one thread.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The lock: held while a number is registered or closed, and across a fork.
///
/// A fork might find without it a number registered whose descriptor is closed
/// already, and perhaps another file's, or a descriptor open that is registered no
/// more. Never held for longer than one `close(2)` of a pipe takes.
static BUSY: AtomicBool = AtomicBool::new(false);

/// The numbers, in blocks that are never freed: a fork can come at any moment, and
/// its handler may not allocate.
static FIRST: SlotBlock = SlotBlock::new();

const SLOTS: usize = 64;
const FREE: i32 = -1;

struct SlotBlock {
    slots: [AtomicI32; SLOTS],
    next: AtomicPtr<SlotBlock>,
}

impl SlotBlock {
    const fn new() -> SlotBlock {
        SlotBlock {
            slots: [const { AtomicI32::new(FREE) }; SLOTS],
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    fn next(&self) -> Option<&'static SlotBlock> {
        // SAFETY: blocks are leaked when they are made and never freed.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

/// The lock as a guard. Spinning is right: the holder is in one short system call.
struct RegistryLock;

impl RegistryLock {
    fn take() -> RegistryLock {
        // Acquire: sees the slots as the holder before us has left them.
        while BUSY.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        RegistryLock
    }
}

impl Drop for RegistryLock {
    fn drop(&mut self) {
        // Release: the next holder sees our slots.
        BUSY.store(false, Ordering::Release);
    }
}

extern "C" fn before_fork() {
    std::mem::forget(RegistryLock::take());
}

extern "C" fn after_fork_in_parent() {
    drop(RegistryLock);
}

extern "C" fn after_fork_in_child() {
    let mut block = Some(&FIRST);
    while let Some(this) = block {
        for slot in &this.slots {
            let number = slot.swap(FREE, Ordering::Relaxed);
            if number != FREE {
                // SAFETY: registered, so open, says the lock. Its owner sees by the
                // generation that it is gone.
                unsafe { libc::close(number) };
            }
        }
        block = this.next();
    }
    GENERATION.fetch_add(1, Ordering::Relaxed);
    drop(RegistryLock);
}

/// A number that every fork changes: a value made under another number belongs to
/// another process.
#[doc(alias = "pthread_atfork")]
pub fn generation() -> u32 {
    install_handlers();
    GENERATION.load(Ordering::Relaxed)
}

/// The identity of a process, which no fork of it shares.
///
/// The pid alone does not do: the first process of every pid namespace is number 1,
/// and may be a fork of the first of the namespace around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkId {
    number: u32,
    generation: u32,
}

impl ForkId {
    /// The identity of no process.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub const NONE: ForkId = ForkId {
        number: 0,
        generation: 0,
    };

    /// The identity of the calling process.
    #[doc(alias = "getpid")]
    pub fn current() -> ForkId {
        ForkId {
            number: std::process::id(),
            generation: generation(),
        }
    }

    /// True if the calling process is the one that this identifies.
    pub fn is_current(self) -> bool {
        self == ForkId::current()
    }
}

fn install_handlers() {
    // A `Once` is no option: a fork that comes while one thread runs it would wait for
    // that thread for ever. In such a fork the handler may be missing; the pid tells it
    // from its forks.
    //
    // Relaxed: the flag guards no other memory. A thread that is second may register a
    // descriptor before the first has installed the handler, and a fork in between
    // keeps its copy, no worse than one a moment earlier.
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if BEGUN.load(Ordering::Relaxed) || BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    // Fails for want of memory only; then a fork keeps its copies.
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

/// A descriptor that a fork closes.
#[doc(alias = "O_CLOFORK")]
#[doc(alias = "FD_CLOFORK")]
#[derive(Debug)]
pub struct CloseOnFork {
    fd: ManuallyDrop<OwnedFd>,
    slot: &'static AtomicI32,
    generation: u32,
}

impl CloseOnFork {
    /// Registers `fd` for closing in forks.
    pub fn new(fd: OwnedFd) -> CloseOnFork {
        let generation = generation();
        let _quiet = RegistryLock::take();
        CloseOnFork {
            slot: register(fd.as_raw_fd()),
            fd: ManuallyDrop::new(fd),
            generation,
        }
    }

    /// The descriptor, unless this is a fork of the process that opened it.
    ///
    /// # Errors
    /// [`used_in_fork`].
    pub fn get(&self) -> io::Result<BorrowedFd<'_>> {
        if self.generation == generation() {
            return Ok(self.fd.as_fd());
        }
        Err(used_in_fork())
    }
}

/// The error for a fork that uses a stream of the process it was forked from.
pub fn used_in_fork() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "this stream is of the process that was forked; a fork has none of its streams",
    )
}

/// Registers a number in a free slot. The caller holds the lock, so that slots need no
/// ordering of their own.
fn register(number: RawFd) -> &'static AtomicI32 {
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
                let new: &'static SlotBlock = Box::leak(Box::new(SlotBlock::new()));
                let pointer = std::ptr::from_ref(new).cast_mut();
                block.next.store(pointer, Ordering::Release);
                new
                // Release, with the Acquire of `next`: the fork's handler sees a whole block.
            }
        };
    }
}

impl Drop for CloseOnFork {
    fn drop(&mut self) {
        let quiet = RegistryLock::take();
        if self.generation == generation() {
            self.slot.store(FREE, Ordering::Relaxed);
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
        // A fork has closed the descriptor, and its number may be another file's.
        drop(quiet);
    }
}
