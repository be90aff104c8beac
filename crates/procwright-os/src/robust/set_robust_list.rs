//! Robust lists that are set for threads of ours, and the probe of whether the kernel
//! walks them.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use libc::{c_int, c_long, c_void};
use rustix::io::Errno;

use super::list::{List, ListEntry, RobustListHead};
use super::{OWNER_DIED, page_size, pages};
use crate::{seccomp, thread};

/// Stack size: enough for the message of a panic.
const STACK: usize = 128 * 1024;

/// Makes `list` the calling thread's own, and returns that thread's number.
///
/// # Safety
/// This thread holds no robust lock of the C library and never will: its list is this
/// one from now on.
unsafe fn adopt(list: List) -> io::Result<u32> {
    // SAFETY: the head is whole and stays where it is for ever.
    let result = unsafe {
        libc::syscall(
            libc::SYS_set_robust_list,
            list.address(),
            size_of::<RobustListHead>(),
        )
    };
    match result {
        0 => Ok(rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .cast_unsigned()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Starts the thread that holds the words, and returns its number. The thread sleeps
/// until the process ends, or its program.
pub(super) fn start_holder(list: List) -> io::Result<u32> {
    let (told, number) = mpsc::sync_channel(1);
    thread::spawn_bare(c"procwright-alive", STACK, move || {
        // SAFETY: the list is given to this thread alone, which takes no lock.
        let adopted = unsafe { adopt(list) };
        let has_it = adopted.is_ok();
        let _ = told.send(adopted);
        if has_it {
            loop {
                rustix::event::pause();
            }
        }
    })?;
    number.recv().unwrap_or_else(|_| {
        Err(io::Error::other(
            "the thread that holds the words has ended",
        ))
    })
}

/// True if the kernel marks the word of a thread that ends. A sandbox may deny the
/// list, and some systems that look like Linux (gVisor, emulators) take it and never
/// walk it. A thread of ours tries; afterwards the list has to be begun anew.
pub(super) fn marks_words(list: List, entry: ListEntry<'static>) -> io::Result<bool> {
    let tried = thread::spawn_bare(c"procwright-trial", STACK, move || {
        // SAFETY: the list is this thread's alone, and it takes no lock until it
        // ends.
        if let Ok(number) = unsafe { adopt(list) } {
            list.hold(entry, number);
        }
    })?;
    tried.join();
    // SeqCst, as all accesses that the kernel's walk is compared with. The kernel walks
    // the list before it tells in any other way that the thread has ended.
    Ok(entry.word.swap(0, Ordering::SeqCst) & OWNER_DIED != 0)
}

/// True if the kernel marks words at all, for a caller that needs no [`HolderThread`](super::HolderThread)
/// and no thread of ours: a child that shares our memory for a moment tries. It has a
/// list of its own: one of the C library's would not tell, since musl marks the words
/// of a thread that ends itself.
///
/// # Errors
/// When there is no memory left, or no child can be had: then it is not known.
pub(super) fn probe_kernel() -> io::Result<bool> {
    const OFFSET: usize = 1024;
    if seccomp::is_filtered() && !survives().ok_or(Errno::BUSY)? {
        return Ok(false);
    }
    let start = pages::map(page_size())?;
    // SAFETY: within a page that no other code knows of, aligned; it is unmapped only
    // when the child whose list was in there has ended.
    let mut trial = unsafe {
        let (link, word) = (start.add(OFFSET), start.add(2 * OFFSET));
        let list = List::begin(start.cast(), OFFSET as c_long);
        (list, ListEntry::new(link.cast(), word.cast()))
    };
    // SAFETY: `hold` does what it may, and to that; it is no call that a filter
    // answers with a kill.
    let tried = unsafe { seccomp::run_sharing_memory(hold, (&raw mut trial).cast()) };
    // The kernel walks the list before it lets go of the memory.
    let marks = trial.1.word.load(Ordering::SeqCst) & OWNER_DIED != 0;
    // SAFETY: as above.
    let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), page_size()) };
    tried.map(|()| marks)
}

type ProbeList = (List, ListEntry<'static>);

extern "C" fn hold(trial: *mut c_void) -> c_int {
    // SAFETY: `probe_kernel` passes one, which outlives us.
    let (list, entry) = unsafe { &*trial.cast::<ProbeList>() };
    // SAFETY: the list is this child's alone, and it takes no lock until it ends.
    if let Ok(number) = unsafe { adopt(*list) } {
        list.hold(*entry, number);
    }
    0
}

/// Whether a seccomp filter lets a list be set; none if that cannot be tried now.
fn survives() -> Option<bool> {
    // SAFETY: one raw call, with a null pointer.
    unsafe {
        seccomp::survives(|| {
            let null = std::ptr::null::<RobustListHead>();
            libc::syscall(libc::SYS_set_robust_list, null, size_of::<RobustListHead>());
        })
    }
}
