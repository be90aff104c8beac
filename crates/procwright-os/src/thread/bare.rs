//! Threads that can be started in a fork, whatever the threads of its parent were
//! doing then.

use std::ffi::{CStr, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::signal::mask::BlockedMask;

/// A thread that the C library alone has started. Dropping this detaches it.
#[doc(alias = "pthread_t")]
#[derive(Debug)]
pub struct BareThread(libc::pthread_t);

// SAFETY: the name of a thread, which any thread may join or detach, once.
unsafe impl Send for BareThread {}
// SAFETY: as above; nothing can be done with a shared one.
unsafe impl Sync for BareThread {}

impl BareThread {
    /// Waits until the thread has ended.
    #[doc(alias = "pthread_join")]
    pub fn join(self) {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: neither joined nor detached before, and not after.
        unsafe { libc::pthread_join(this.0, ptr::null_mut()) };
    }
}

impl Drop for BareThread {
    fn drop(&mut self) {
        // SAFETY: neither joined nor detached before.
        unsafe { libc::pthread_detach(self.0) };
    }
}

/// Starts a thread with all signals blocked, by the C library alone.
///
/// A thread of the standard library's takes a lock of the library when it starts and
/// when it ends (that of the handler of stack overflows). A fork at that moment
/// inherits the lock held, by a thread that it does not have, and hangs as soon as it
/// starts such a thread itself. The C library sets its own locks right in a fork.
///
/// The stack is at least `stack` bytes. `work` should not start threads of the
/// standard library's.
///
/// # Errors
/// When no thread can be made.
#[doc(alias = "pthread_create")]
pub fn spawn_bare(
    name: &'static CStr,
    stack: usize,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<BareThread> {
    let work: Work = Box::new((
        name,
        Box::new(move || {
            // The panic hook has told of it on stderr. Beyond this function a panic would end
            // the process, as one in a thread of the standard library does not.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }),
    ));
    let work = Box::into_raw(work);
    let mut size = stack.next_multiple_of(rustix::param::page_size());
    // Inherited by the thread, so the signals are blocked from its first instruction on.
    let blocked = BlockedMask::all();
    let thread = loop {
        match create(size, work) {
            // EINVAL: the stack is smaller than the thread-local variables of all that is
            // loaded.
            Err(libc::EINVAL) if size < MOST_STACK => size *= 2,
            other => break other,
        }
    };
    drop(blocked);
    thread.map(BareThread).map_err(|error| {
        // SAFETY: no thread was made, so no other has it.
        drop(unsafe { Box::from_raw(work) });
        io::Error::from_raw_os_error(error)
    })
}

const MOST_STACK: usize = 64 << 20;

type Work = Box<(&'static CStr, Box<dyn FnOnce() + Send>)>;

/// Makes the thread, or returns the number of the error; then no thread owns `work`.
fn create(
    stack: usize,
    work: *mut (&'static CStr, Box<dyn FnOnce() + Send>),
) -> Result<libc::pthread_t, i32> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the attributes are initialised first and destroyed last; `thread` is
    // initialised when there is one; `work` is then the thread's.
    unsafe {
        checked(libc::pthread_attr_init(attributes.as_mut_ptr()))?;
        let made = checked(libc::pthread_attr_setstacksize(
            attributes.as_mut_ptr(),
            stack,
        ))
        .and_then(|()| {
            checked(libc::pthread_create(
                thread.as_mut_ptr(),
                attributes.as_ptr(),
                run,
                work.cast(),
            ))
        });
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        made.map(|()| thread.assume_init())
    }
}

fn checked(error: i32) -> Result<(), i32> {
    match error {
        0 => Ok(()),
        error => Err(error),
    }
}

extern "C" fn run(work: *mut c_void) -> *mut c_void {
    // SAFETY: it comes from `spawn_bare`, and is this thread's.
    let (name, work) = *unsafe { Box::from_raw(work.cast::<(&CStr, Box<dyn FnOnce()>)>()) };
    set_name(name);
    work();
    ptr::null_mut()
}

/// Names the thread in lists of threads; where it cannot be named, it goes without.
fn set_name(name: &CStr) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::thread::set_name(name);
    #[cfg(target_vendor = "apple")]
    // SAFETY: a string that ends.
    unsafe {
        libc::pthread_setname_np(name.as_ptr())
    };
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    let _ = name;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn it_has_its_name_and_no_signals() {
        let (tell, told) = channel();
        let thread = spawn_bare(c"procwright-bare", 1, move || {
            let name = std::fs::read_to_string("/proc/thread-self/comm");
            let status = std::fs::read_to_string("/proc/thread-self/status");
            tell.send((name, status)).unwrap();
        });
        thread.unwrap().join();
        let (name, status) = told.recv().unwrap();
        if let (Ok(name), Ok(status)) = (name, status) {
            assert_eq!(name.trim_end(), "procwright-bare");
            let blocked = status.lines().find_map(|l| l.strip_prefix("SigBlk:"));
            let blocked = u64::from_str_radix(blocked.unwrap().trim(), 16).unwrap();
            assert_ne!(blocked & 1 << (libc::SIGTERM - 1), 0);
        }
    }

    #[test]
    fn what_panics_ends_nothing_but_itself() {
        let thread = spawn_bare(c"procwright-bare", 128 * 1024, || {
            // Silent: a log that is searched for failures has none here.
            std::panic::resume_unwind(Box::new("on purpose, in a test"))
        });
        thread.unwrap().join();
    }

    #[test]
    fn who_is_not_waited_for_runs_all_the_same() {
        let (tell, told) = channel();
        drop(spawn_bare(c"procwright-bare", 128 * 1024, move || {
            tell.send(()).unwrap()
        }));
        told.recv().unwrap();
    }
}
