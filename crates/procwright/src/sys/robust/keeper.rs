//! The thread whose end marks the words.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use libc::c_long;

use super::list::{Entry, Head, List};
use super::{DIED, memory, sheet};
use crate::sys::thread;

/// Enough for a panic to be told of.
const STACK: usize = 128 * 1024;

/// Makes it the calling thread's own list, and returns that thread's number.
///
/// # Safety
/// No lock of the C library's that is robust is held by this thread or will be:
/// its list is this one from now on.
unsafe fn adopt(list: List) -> io::Result<u32> {
    // SAFETY: the head is whole and stays where it is for ever.
    let result =
        unsafe { libc::syscall(libc::SYS_set_robust_list, list.address(), size_of::<Head>()) };
    match result {
        0 => Ok(rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .cast_unsigned()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Starts the thread that holds the words, and returns its number. It ends when
/// the process does, or its program: there is nothing that it would ever do.
pub(super) fn keep(list: List) -> io::Result<u32> {
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

/// Whether the kernel marks the word of a thread that ends. A sandbox may deny the
/// list, and some that look like Linux (gVisor, emulators) take it and never look
/// at it. A thread of ours tries; afterwards the list has to be begun anew.
pub(super) fn marks_words(list: List, entry: Entry<'static>) -> io::Result<bool> {
    let tried = thread::spawn_bare(c"procwright-trial", STACK, move || {
        // SAFETY: the list is this thread's alone, and it takes no lock until it
        // ends.
        if let Ok(number) = unsafe { adopt(list) } {
            list.hold(entry, number);
        }
    })?;
    tried.join();
    // The kernel walks the list before it tells anybody that the thread has ended.
    Ok(entry.word.swap(0, Ordering::SeqCst) & DIED != 0)
}

/// Whether the kernel marks words at all, for who needs none of a ledger's.
pub(super) fn tries_out() -> io::Result<bool> {
    const OFFSET: usize = 1024;
    let start = memory::map(sheet())?;
    // SAFETY: within a page that nobody else knows of, aligned; it is unmapped only
    // when the thread whose list was in there has ended.
    let (list, entry) = unsafe {
        let (link, word) = (start.add(OFFSET), start.add(2 * OFFSET));
        let list = List::begin(start.cast(), OFFSET as c_long);
        (list, Entry::new(link.cast(), word.cast()))
    };
    let marks = marks_words(list, entry);
    // SAFETY: as above.
    let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), sheet()) };
    marks
}
