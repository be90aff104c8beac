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
//! 1. `fork()` runs `before_fork`, which holds registrations and closes off
//!    ([`ForkHold`]). None is half done then.
//! 2. The kernel copies the process: in both copies every registered number is an
//!    open descriptor of ours.
//! 3. The parent's handler lets them go on and changes nothing.
//! 4. The fork's handler closes every registered number, counts [`GENERATION`] up,
//!    and lets go as well. From then on every [`CloseOnFork`] knows by its generation
//!    that its descriptor is gone.
//!
//! # Closes that wait
//!
//! `close(2)` of a socket may wait for its peer (`SO_LINGER`), that of a terminal for
//! its line. Nobody else may have to wait for that, neither a close nor a fork, and yet
//! a fork meanwhile must neither keep a copy nor close the number once it is another
//! file's. So `dup3(2)` puts something else in its place first, which is closed in no
//! time:
//!
//! 1. `dup3` gives the number to the stand-in at once, and then waits for the close of
//!    what was there. A fork from here on closes its copy of the stand-in.
//! 2. With forks held off, the stand-in is closed and its number registered no more.
//!
//! A pipe's close never waits, and goes without the first step.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

use super::fork_hold::ForkHold;

/// Number of forks between the first process and this one.
///
/// Relaxed everywhere: the handler changes it in a process of one thread.
static GENERATION: AtomicU32 = AtomicU32::new(0);

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

extern "C" fn before_fork() {
    std::mem::forget(ForkHold::begin());
}

extern "C" fn after_fork_in_parent() {
    // SAFETY: `before_fork` has left it to us.
    unsafe { ForkHold::end() };
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
    // SAFETY: `before_fork` has left it to us.
    unsafe { ForkHold::end() };
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

/// Holds off the forks of all other threads until the hold is dropped: `pthread_atfork`
/// lets them wait. A fork by a raw system call does not.
///
/// For memory that a fork must not find half changed, and for a few instructions only:
/// who comes meanwhile spins. What may wait does not belong under it, nor what may take a
/// lock whose owner may fork, or has a fork handler of its own.
#[doc(alias = "pthread_atfork")]
pub fn hold() -> ForkHold {
    install_handlers();
    ForkHold::begin()
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

/// Registers a number in a free slot. Slots need no ordering of their own: they change
/// only while forks are held off.
fn register(number: RawFd) -> &'static AtomicI32 {
    // Memory comes from elsewhere: an allocator may have a fork handler that waits for
    // its own threads.
    let mut more: Option<Box<SlotBlock>> = None;
    loop {
        let held = ForkHold::begin();
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
            block = match (block.next(), more.take()) {
                (Some(next), unused) => {
                    more = unused;
                    next
                }
                (None, Some(new)) => {
                    let new: &'static SlotBlock = Box::leak(new);
                    let pointer = std::ptr::from_ref(new).cast_mut();
                    // Release, with the Acquire of `next`: the fork's handler sees a whole block.
                    block.next.store(pointer, Ordering::Release);
                    new
                }
                (None, None) => break,
            };
        }
        drop(held);
        more = Some(Box::new(SlotBlock::new()));
    }
}

impl Drop for CloseOnFork {
    fn drop(&mut self) {
        if self.generation != generation() {
            // The fork has closed the descriptor, and its number may be another file's.
            return;
        }
        // Without a stand-in, for want of descriptors, a fork during the close keeps its copy.
        let may_wait = !is_pipe(&self.fd) && put_stand_in(&mut self.fd).is_err();
        // SAFETY: dropped once, here.
        let fd = unsafe { ManuallyDrop::take(&mut self.fd) };
        let hold = ForkHold::begin();
        self.slot.store(FREE, Ordering::Relaxed);
        if may_wait {
            drop(hold);
            drop(fd);
        } else {
            drop(fd);
            drop(hold);
        }
    }
}

/// True if no close of `fd` waits: it is a pipe.
fn is_pipe(fd: &OwnedFd) -> bool {
    let stat = rustix::fs::fstat(fd);
    stat.is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_fifo())
}

/// Closes what `fd` is of, as long as that takes, and gives its number to something whose
/// close never waits.
fn put_stand_in(fd: &mut OwnedFd) -> io::Result<()> {
    let (stand_in, _) = io::pipe()?;
    #[cfg(not(target_vendor = "apple"))]
    rustix::io::dup3(&stand_in, fd, rustix::io::DupFlags::CLOEXEC)?;
    #[cfg(target_vendor = "apple")]
    {
        rustix::io::dup2(&stand_in, fd)?;
        rustix::io::fcntl_setfd(&*fd, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "close_on_fork_tests.rs"]
mod tests;
