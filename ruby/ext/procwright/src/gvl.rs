//! Ruby's lock (the GVL): letting go of it to wait, and the interrupts that end the wait.
#![allow(unsafe_code)]

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Mutex;

use magnus::error::ErrorType;
use magnus::{Error, Ruby};
use rb_sys::VALUE;

use crate::signal_pipe::SignalPipe;

/// Ruby, whose lock this thread has: Ruby calls every function here.
pub(crate) fn ruby() -> Ruby {
    Ruby::get().expect("called by Ruby")
}

/// A panic, caught.
pub(crate) type Panic = Box<dyn Any + Send>;

/// A descriptor that wakes a thread which waits without the lock, because another thread has
/// raised in it, killed it or sent a signal. Readable once that has happened.
#[derive(Debug)]
pub(crate) struct WakeFd {
    read: OwnedFd,
    /// The end to write to; none where one descriptor is both ends.
    write: Option<OwnedFd>,
    /// Signals, which only the main thread watches.
    signals: Option<SignalPipe>,
    process: u32,
}

/// Wake descriptors of earlier waits: to make one costs more than most waits. In a fork they
/// would be shared with its parent, so each knows its process.
///
/// The lock is only ever tried: another thread may have held it when this process was forked.
static SPARE_FDS: Mutex<Vec<WakeFd>> = Mutex::new(Vec::new());
const MAX_SPARE: usize = 8;

/// Wake descriptors of the main thread, which are never closed. A signal handler writes to
/// them, on whatever thread it runs, and may do so a moment late: a number that belongs to
/// another file by then must not be written to.
static MAIN_FDS: Mutex<Vec<WakeFd>> = Mutex::new(Vec::new());

impl WakeFd {
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn take(kind: ThreadKind) -> io::Result<WakeFd> {
        let process = std::process::id();
        if let Ok(mut spare) = kind.spare().try_lock() {
            while let Some(wake_fd) = spare.pop() {
                if wake_fd.process == process {
                    return Ok(wake_fd);
                }
            }
        }
        let mut wake_fd = WakeFd::new(process)?;
        if kind == ThreadKind::Main {
            wake_fd.signals = SignalPipe::beside(&wake_fd.read)?;
        }
        Ok(wake_fd)
    }

    #[cfg(target_os = "linux")]
    fn new(process: u32) -> io::Result<WakeFd> {
        use rustix::event::{EventfdFlags, eventfd};
        let read = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(WakeFd {
            read,
            write: None,
            signals: None,
            process,
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn new(process: u32) -> io::Result<WakeFd> {
        let (read, write) = io::pipe()?;
        rustix::io::ioctl_fionbio(&read, true)?;
        rustix::io::ioctl_fionbio(&write, true)?;
        Ok(WakeFd {
            read: read.into(),
            write: Some(write.into()),
            signals: None,
            process,
        })
    }

    /// Keeps it for the next wait of any thread of this kind.
    pub(crate) fn give_back(self, kind: ThreadKind) {
        match kind.spare().try_lock() {
            Ok(mut spare) if kind == ThreadKind::Main || spare.len() < MAX_SPARE => {
                spare.push(self);
            }
            Err(_) if kind == ThreadKind::Main => std::mem::forget(self),
            _ => {}
        }
    }

    /// Makes it unreadable again.
    pub(crate) fn clear(&self) {
        let mut written = [0; 64];
        while rustix::io::read(&self.read, &mut written).is_ok_and(|n| n == written.len()) {}
        if let Some(signals) = &self.signals {
            signals.clear();
        }
    }

    pub(crate) fn wake(&self) {
        write_to(self.number());
    }

    /// The descriptor to write to.
    fn number(&self) -> RawFd {
        self.write.as_ref().unwrap_or(&self.read).as_raw_fd()
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.signals {
            Some(signals) => signals.as_fd(),
            None => self.read.as_fd(),
        }
    }
}

fn write_to(number: RawFd) {
    // SAFETY: it is only written to, and is open: `MAIN_FDS` says why, for the one caller
    // that cannot know.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    // A full one is readable already.
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}

/// The thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadKind {
    /// The thread that handles signals.
    Main,
    Other,
}

impl ThreadKind {
    pub(crate) fn current() -> ThreadKind {
        // SAFETY: we have the lock; both only look.
        match unsafe { rb_sys::rb_thread_current() == rb_sys::rb_thread_main() } {
            true => ThreadKind::Main,
            false => ThreadKind::Other,
        }
    }

    fn spare(self) -> &'static Mutex<Vec<WakeFd>> {
        match self {
            ThreadKind::Main => &MAIN_FDS,
            ThreadKind::Other => &SPARE_FDS,
        }
    }
}

/// A closure on its way through C.
struct Trampoline<F, T> {
    work: Option<F>,
    done: Option<Result<T, Panic>>,
}

impl<F: FnOnce() -> T, T> Trampoline<F, T> {
    fn new(work: F) -> Trampoline<F, T> {
        Trampoline {
            work: Some(work),
            done: None,
        }
    }

    /// # Safety
    /// `call` is a `Trampoline<F, T>` that no other code uses meanwhile.
    unsafe extern "C" fn run(call: *mut c_void) -> *mut c_void {
        // SAFETY: the caller says so.
        let call = unsafe { &mut *call.cast::<Trampoline<F, T>>() };
        if let Some(work) = call.work.take() {
            // A panic must not unwind through C.
            call.done = Some(catch_unwind(AssertUnwindSafe(work)));
        }
        ptr::null_mut()
    }
}

/// Ruby calls this to interrupt a wait: with a lock of its own held, or from a signal handler.
unsafe extern "C" fn unblock(number: *mut c_void) {
    write_to(number as usize as RawFd);
}

/// Does `work` without the lock, on this thread. An interrupt makes `wake_fd` readable. None,
/// and nothing was done, if one is pending already: [`check_interrupts`] is due then.
///
/// `work` must not touch Ruby, which is why there is no way back in: taking the lock looks
/// for interrupts, and what these throw would unwind `work` without a word. It is not
/// interrupted in any other way, and nothing unwinds through it.
#[doc(alias = "rb_nogvl")]
pub(crate) fn without_gvl<T>(
    wake_fd: &WakeFd,
    work: impl FnOnce() -> T,
) -> Option<Result<T, Panic>> {
    let number = wake_fd.number() as usize as *mut c_void;
    call_without_gvl(work, Some(unblock), number)
}

/// [`without_gvl`] for `work` that a signal ends early, and nothing else: to interrupt it, Ruby
/// sends this thread signals, again and again, until it is over.
#[doc(alias = "RUBY_UBF_IO")]
pub(crate) fn without_gvl_for_signals<T>(work: impl FnOnce() -> T) -> Option<Result<T, Panic>> {
    // SAFETY: `RUBY_UBF_IO`, which the headers write as a cast and bindgen leaves out. It
    // is compared and never called.
    let unblock =
        unsafe { std::mem::transmute::<usize, rb_sys::rb_unblock_function_t>(usize::MAX) };
    call_without_gvl(work, unblock, ptr::null_mut())
}

/// Does `work` without the lock that is over soon, and that nothing interrupts.
pub(crate) fn without_gvl_briefly<T>(
    mut work: impl FnMut() -> T,
) -> Result<Result<T, Panic>, Error> {
    loop {
        if let Some(done) = call_without_gvl(&mut work, None, ptr::null_mut()) {
            return Ok(done);
        }
        check_interrupts()?;
    }
}

fn call_without_gvl<F: FnOnce() -> T, T>(
    work: F,
    unblock: rb_sys::rb_unblock_function_t,
    argument: *mut c_void,
) -> Option<Result<T, Panic>> {
    // A pending interrupt makes it return at once; and a signal handler may call `unblock`.
    let flags = rb_sys::RB_NOGVL_INTR_FAIL | rb_sys::RB_NOGVL_UBF_ASYNC_SAFE;
    let mut call = Trampoline::new(work);
    // SAFETY: we have the lock, as every function that Ruby has called. `run` gets the
    // trampoline that lives in this frame, and the frame is there until it returns: with
    // these flags it neither raises nor jumps.
    unsafe {
        rb_sys::rb_nogvl(
            Some(Trampoline::<F, T>::run),
            ptr::from_mut(&mut call).cast(),
            unblock,
            argument,
            flags as _,
        );
    }
    call.done
}

/// A thread that waits inside of a call of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockedThread(rb_sys::VALUE);

impl BlockedThread {
    /// Must not be kept for longer than the thread is inside: so long Ruby neither frees nor
    /// moves it.
    pub(crate) fn current() -> BlockedThread {
        // SAFETY: we have the lock.
        BlockedThread(unsafe { rb_sys::rb_thread_current() })
    }

    /// Interrupts its wait.
    #[doc(alias = "Thread#wakeup")]
    pub(crate) fn wakeup(&self) {
        // SAFETY: we have the lock; the thread is there, and no answer is asked for.
        unsafe { rb_sys::rb_thread_wakeup_alive(self.0) };
    }
}

/// Handles what has interrupted this thread: runs signal handlers, raises what was
/// raised in it, ends it. With the lock.
///
/// # Errors
/// Whatever that throws. To be passed on.
#[doc(alias = "rb_thread_check_ints")]
pub(crate) fn check_interrupts() -> Result<(), Error> {
    magnus::rb_sys::protect(|| {
        // SAFETY: we have the lock, and are in a frame that catches what is thrown.
        unsafe { rb_sys::rb_thread_check_ints() };
        rb_sys::Qnil as rb_sys::VALUE
    })
    .map(drop)
}

/// [`check_interrupts`] for a caller that has something to throw already, when all is over.
///
/// # Errors
/// What was thrown beside that.
pub(crate) fn check_interrupts_beside(raised: Option<&Error>) -> Result<(), Error> {
    match raised.map(Error::error_type) {
        Some(ErrorType::Jump(tag)) => rethrow_around(*tag as c_int, check_interrupts),
        _ => check_interrupts(),
    }
}

/// Does `work` as the `ensure` of a throw.
///
/// A thread's end and what `throw` throws (and so `Timeout`) are no exceptions. Ruby keeps
/// them nowhere but where it notes what was raised last. An exception that is raised and
/// caught meanwhile, by a signal handler as well, takes their place:
///
/// 1. To throw then, with nothing in that place, is a crash.
/// 2. The code that catches, and puts back what was there before, is told by another
///    exception that this is none, past all that Rust would have dropped.
///
/// Therefore they are thrown once more, here, inside of an `ensure` that does `work`: Ruby
/// keeps the place clear for that, and puts back what was in it.
#[doc(alias = "rb_ensure")]
fn rethrow_around<F: FnOnce() -> T, T>(tag: c_int, work: F) -> T {
    unsafe extern "C" fn throw(tag: VALUE) -> VALUE {
        // SAFETY: the caller is in a frame that catches it.
        unsafe { rb_sys::rb_jump_tag(tag as c_int) }
    }

    unsafe extern "C" fn run<F: FnOnce() -> T, T>(call: VALUE) -> VALUE {
        // SAFETY: as the caller says.
        unsafe { Trampoline::<F, T>::run(call as *mut c_void) };
        rb_sys::Qnil as VALUE
    }

    unsafe extern "C" fn throw_and_run<F: FnOnce() -> T, T>(parts: VALUE) -> VALUE {
        // SAFETY: it is what is handed in below.
        let (tag, call) = unsafe { *(parts as *const (c_int, *mut Trampoline<F, T>)) };
        let work = Some(run::<F, T> as unsafe extern "C" fn(VALUE) -> VALUE);
        // SAFETY: in a frame that catches what is thrown. Nothing here has to be dropped.
        unsafe { rb_sys::rb_ensure(Some(throw), tag as VALUE, work, call as VALUE) }
    }

    let mut call = Trampoline::new(work);
    let mut parts = (tag, ptr::from_mut(&mut call));
    let mut thrown = 0;
    // SAFETY: we have the lock. The trampoline and its parts are there until this returns, and
    // no other code uses them. What is thrown is what was caught before.
    unsafe {
        rb_sys::rb_protect(
            Some(throw_and_run::<F, T>),
            ptr::from_mut(&mut parts) as VALUE,
            &raw mut thrown,
        );
    }
    match call.done.expect("an ensure is always done") {
        Ok(done) => done,
        Err(panic) => resume_unwind(panic),
    }
}
