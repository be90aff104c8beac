//! Out of Ruby's lock, to wait, and what interrupts that.
#![allow(unsafe_code)]

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Mutex;

use magnus::Error;
use magnus::error::ErrorType;
use rb_sys::VALUE;

use crate::signals::Signals;

/// A panic, caught.
pub(crate) type Panic = Box<dyn Any + Send>;

/// Where Ruby rings when a waiting thread has to look up: somebody has raised in it,
/// killed it, or sent a signal. Readable once that has happened.
#[derive(Debug)]
pub(crate) struct Bell {
    read: OwnedFd,
    /// None where one descriptor is both.
    write: Option<OwnedFd>,
    /// Of the main thread, in which there is also what Ruby's signal handlers write to.
    signals: Option<Signals>,
    process: u32,
}

/// Those of earlier waits: to make one for each costs more than most waits. In a
/// fork they would be its parent's, too, so each knows its process.
///
/// Never waited for: another thread may have had it when this process was forked.
static SPARE: Mutex<Vec<Bell>> = Mutex::new(Vec::new());
const SPARES: usize = 8;

/// Those of the main thread, which are never closed. A signal handler rings them, on
/// whatever thread it runs, and may come to it a moment late: a number that is somebody
/// else's by then must not be written to.
static MAINS: Mutex<Vec<Bell>> = Mutex::new(Vec::new());

impl Bell {
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn take(place: Place) -> io::Result<Bell> {
        let process = std::process::id();
        if let Ok(mut spare) = place.bells().try_lock() {
            while let Some(bell) = spare.pop() {
                if bell.process == process {
                    return Ok(bell);
                }
            }
        }
        let mut bell = Bell::new(process)?;
        if place == Place::Main {
            bell.signals = Signals::beside(&bell.read)?;
        }
        Ok(bell)
    }

    #[cfg(target_os = "linux")]
    fn new(process: u32) -> io::Result<Bell> {
        use rustix::event::{EventfdFlags, eventfd};
        let read = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Bell {
            read,
            write: None,
            signals: None,
            process,
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn new(process: u32) -> io::Result<Bell> {
        let (read, write) = io::pipe()?;
        rustix::io::ioctl_fionbio(&read, true)?;
        rustix::io::ioctl_fionbio(&write, true)?;
        Ok(Bell {
            read: read.into(),
            write: Some(write.into()),
            signals: None,
            process,
        })
    }

    /// For the next wait of any thread.
    pub(crate) fn give_back(self, place: Place) {
        match place.bells().try_lock() {
            Ok(mut spare) if place == Place::Main || spare.len() < SPARES => spare.push(self),
            Err(_) if place == Place::Main => std::mem::forget(self),
            _ => {}
        }
    }

    /// Forgets that it rang.
    pub(crate) fn silence(&self) {
        let mut rings = [0; 64];
        while rustix::io::read(&self.read, &mut rings).is_ok_and(|n| n == rings.len()) {}
        if let Some(signals) = &self.signals {
            signals.silence();
        }
    }

    pub(crate) fn ring(&self) {
        ring(self.number());
    }

    /// What is written to.
    fn number(&self) -> RawFd {
        self.write.as_ref().unwrap_or(&self.read).as_raw_fd()
    }
}

fn ring(number: RawFd) {
    // SAFETY: it is only written to, and is open: see `MAINS` for the one place where that
    // is not for the caller to know.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    // One that cannot take more rings already.
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The thread that handles signals.
    Main,
    Other,
}

impl Place {
    pub(crate) fn here() -> Place {
        // SAFETY: we have the lock; both only look.
        match unsafe { rb_sys::rb_thread_current() == rb_sys::rb_thread_main() } {
            true => Place::Main,
            false => Place::Other,
        }
    }

    fn bells(self) -> &'static Mutex<Vec<Bell>> {
        match self {
            Place::Main => &MAINS,
            Place::Other => &SPARE,
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.signals {
            Some(signals) => signals.as_fd(),
            None => self.read.as_fd(),
        }
    }
}

/// A call on its way through C.
struct Call<F, T> {
    work: Option<F>,
    done: Option<Result<T, Panic>>,
}

impl<F: FnOnce() -> T, T> Call<F, T> {
    fn new(work: F) -> Call<F, T> {
        Call {
            work: Some(work),
            done: None,
        }
    }

    /// # Safety
    /// `call` is a `Call<F, T>` that nobody else uses meanwhile.
    unsafe extern "C" fn make(call: *mut c_void) -> *mut c_void {
        // SAFETY: the caller says so.
        let call = unsafe { &mut *call.cast::<Call<F, T>>() };
        if let Some(work) = call.work.take() {
            // C has no way for a panic to go on.
            call.done = Some(catch_unwind(AssertUnwindSafe(work)));
        }
        ptr::null_mut()
    }
}

/// Where Ruby calls to interrupt us: with a lock of its own, or from a signal handler.
unsafe extern "C" fn unblock(number: *mut c_void) {
    ring(number as usize as RawFd);
}

/// Does `work` without the lock, on this thread. Whoever interrupts it rings `bell`.
/// None, and nothing was done, if that has happened already: [`check`] is due then.
///
/// `work` must not touch Ruby, which is why there is no way back in: taking the lock looks
/// for interrupts, and what these throw would unwind `work` without a word. It is not
/// interrupted in any other way, and nothing unwinds through it.
pub(crate) fn unlocked<T>(bell: &Bell, work: impl FnOnce() -> T) -> Option<Result<T, Panic>> {
    without(work, Some(unblock), bell.number() as usize as *mut c_void)
}

/// The same for `work` that a signal ends early, and nothing else: whoever interrupts it
/// sends this thread signals, again and again, until it is over.
pub(crate) fn unlocked_for_signals<T>(work: impl FnOnce() -> T) -> Option<Result<T, Panic>> {
    // SAFETY: `RUBY_UBF_IO`, which the headers write as a cast and bindgen leaves out. It
    // is compared and never called.
    let unblock =
        unsafe { std::mem::transmute::<usize, rb_sys::rb_unblock_function_t>(usize::MAX) };
    without(work, unblock, ptr::null_mut())
}

/// A thread that waits inside of a call of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller(rb_sys::VALUE);

impl Caller {
    /// To be kept for no longer than that thread is inside: so long Ruby neither frees nor
    /// moves it.
    pub(crate) fn here() -> Caller {
        // SAFETY: we have the lock.
        Caller(unsafe { rb_sys::rb_thread_current() })
    }

    /// Has it look up, as `Thread#wakeup` does.
    pub(crate) fn wake(&self) {
        // SAFETY: we have the lock; the thread is there, and no answer is asked for.
        unsafe { rb_sys::rb_thread_wakeup_alive(self.0) };
    }
}

/// Does `work` without the lock that is over soon, and that nothing interrupts.
pub(crate) fn briefly_unlocked<T>(mut work: impl FnMut() -> T) -> Result<Result<T, Panic>, Error> {
    loop {
        if let Some(done) = without(&mut work, None, ptr::null_mut()) {
            return Ok(done);
        }
        check()?;
    }
}

fn without<F: FnOnce() -> T, T>(
    work: F,
    unblock: rb_sys::rb_unblock_function_t,
    argument: *mut c_void,
) -> Option<Result<T, Panic>> {
    // Not at all if there is an interrupt; and `unblock` may be called by a handler.
    let flags = rb_sys::RB_NOGVL_INTR_FAIL | rb_sys::RB_NOGVL_UBF_ASYNC_SAFE;
    let mut call = Call::new(work);
    // SAFETY: we have the lock, as everyone whom Ruby has called. `make` gets the call
    // that lives in this frame, and the frame is there until it returns: with these flags
    // it neither raises nor jumps.
    unsafe {
        rb_sys::rb_nogvl(
            Some(Call::<F, T>::make),
            ptr::from_mut(&mut call).cast(),
            unblock,
            argument,
            flags as _,
        );
    }
    call.done
}

/// Handles what has interrupted this thread: runs signal handlers, raises what was
/// raised in it, ends it. With the lock.
///
/// # Errors
/// Whatever that throws. To be passed on.
pub(crate) fn check() -> Result<(), Error> {
    magnus::rb_sys::protect(|| {
        // SAFETY: we have the lock, and are in a frame that catches what is thrown.
        unsafe { rb_sys::rb_thread_check_ints() };
        rb_sys::Qnil as rb_sys::VALUE
    })
    .map(drop)
}

/// [`check`] for who has something to throw already, when all is over.
///
/// # Errors
/// What was thrown beside that.
pub(crate) fn check_beside(raised: Option<&Error>) -> Result<(), Error> {
    match raised.map(Error::error_type) {
        Some(ErrorType::Jump(tag)) => beside(*tag as c_int, check),
        _ => check(),
    }
}

/// What is thrown and is no exception (a thread's end, what `throw` throws, and with
/// that `Timeout`) is nowhere but where Ruby notes what was raised last. Whatever is
/// raised and caught meanwhile, by a signal handler as well, takes its place; to be
/// thrown then, with nothing there, is a crash. And who catches that, and puts back what
/// was there before, is told by another exception, past all that Rust would have dropped,
/// that this is none. So it is thrown once more, here, and `work` done as by an `ensure`:
/// Ruby keeps the place clear for that, and puts back what was in it.
fn beside<F: FnOnce() -> T, T>(tag: c_int, work: F) -> T {
    unsafe extern "C" fn throw(tag: VALUE) -> VALUE {
        // SAFETY: the caller is in a frame that catches it.
        unsafe { rb_sys::rb_jump_tag(tag as c_int) }
    }

    unsafe extern "C" fn work_on<F: FnOnce() -> T, T>(call: VALUE) -> VALUE {
        // SAFETY: as the caller says.
        unsafe { Call::<F, T>::make(call as *mut c_void) };
        rb_sys::Qnil as VALUE
    }

    unsafe extern "C" fn both<F: FnOnce() -> T, T>(both: VALUE) -> VALUE {
        // SAFETY: it is what is handed in below.
        let (tag, call) = unsafe { *(both as *const (c_int, *mut Call<F, T>)) };
        let work = Some(work_on::<F, T> as unsafe extern "C" fn(VALUE) -> VALUE);
        // SAFETY: in a frame that catches what is thrown. Nothing here has to be dropped.
        unsafe { rb_sys::rb_ensure(Some(throw), tag as VALUE, work, call as VALUE) }
    }

    let mut call = Call::new(work);
    let mut parts = (tag, ptr::from_mut(&mut call));
    let mut thrown = 0;
    // SAFETY: we have the lock. The call and its parts are there until this returns, and
    // nobody else uses them. What is thrown is what was caught before.
    unsafe {
        rb_sys::rb_protect(
            Some(both::<F, T>),
            ptr::from_mut(&mut parts) as VALUE,
            &raw mut thrown,
        );
    }
    match call.done.expect("what ensures is always done") {
        Ok(done) => done,
        Err(panic) => resume_unwind(panic),
    }
}
