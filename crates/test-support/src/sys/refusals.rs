//! The one system call of many that fails: the first, the second, and so on, whichever it is.
//!
//! As with [`held`](super::held) the kernel asks a supervisor about each call.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};

use super::held::{go_on, install, received, refuse};

#[derive(Default)]
struct Refused {
    /// The calls that go on before one fails; none while all go on.
    before: Option<usize>,
    errno: i32,
    /// The number of the call that has failed.
    call: Option<i64>,
}

/// A filter over some system calls, one of which fails.
pub struct Refusals(Arc<Mutex<Refused>>);

impl Refusals {
    /// Makes the kernel ask about these calls of this thread, and of the threads and processes
    /// that it starts from now on, until they are another program. None where a sandbox forbids
    /// it.
    pub fn of(numbers: &[i64]) -> Option<Refusals> {
        let shared = Arc::default();
        let theirs = Arc::clone(&shared);
        let (send, listen) = mpsc::channel::<OwnedFd>();
        // Started before the filter, so that the supervisor is not asked about itself.
        std::thread::Builder::new()
            .name("supervisor".into())
            .spawn(move || {
                if let Ok(listener) = listen.recv() {
                    supervise(&listener, &theirs);
                }
            })
            .expect("a thread");
        send.send(install(numbers)?).expect("a supervisor");
        Some(Refusals(shared))
    }

    fn lock(&self) -> MutexGuard<'_, Refused> {
        self.0.lock().expect("no panic")
    }

    /// Has a call fail after so many from now on that go on.
    pub fn refuse(&self, before: usize, errno: i32) {
        *self.lock() = Refused {
            before: Some(before),
            errno,
            call: None,
        };
    }

    /// Has all calls go on. Returns the number of the call that has failed, if one has.
    pub fn end(&self) -> Option<i64> {
        let mut refused = self.lock();
        refused.before = None;
        refused.call
    }
}

fn supervise(listener: &OwnedFd, shared: &Mutex<Refused>) {
    let own = std::fs::read_link("/proc/self/exe").expect("our own program");
    while let Some(call) = received(listener) {
        match verdict(&call, &own, &mut shared.lock().expect("no panic")) {
            None => go_on(listener, call.id),
            Some(errno) => refuse(listener, call.id, errno),
        }
    }
}

/// The error of a call; none if it goes on.
fn verdict(call: &libc::seccomp_notif, own: &PathBuf, refused: &mut Refused) -> Option<i32> {
    let before = refused.before.as_mut()?;
    // A child is of this program until it is another.
    let program = std::fs::read_link(format!("/proc/{}/exe", call.pid));
    if program.ok().as_ref() != Some(own) {
        return None;
    }
    if *before > 0 {
        *before -= 1;
        return None;
    }
    refused.before = None;
    refused.call = Some(call.data.nr.into());
    Some(refused.errno)
}
