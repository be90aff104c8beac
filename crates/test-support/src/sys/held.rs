//! A disk that stands still: system calls on the files of a directory wait in the
//! kernel until they are let go.
//!
//! This uses `seccomp_unotify(2)`: the kernel asks a supervisor about each call, and
//! holds the thread meanwhile. No root is needed, and the supervisor knows which thread
//! is held in which call.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};

use seccompiler::SeccompAction;

/// A call that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    id: u64,
    /// Number of the system call.
    pub number: i64,
    /// Number of the thread.
    pub thread: i32,
    /// Name of the thread.
    pub name: String,
}

#[derive(Default)]
struct HeldCalls {
    /// Directory whose files' calls are held; none for all calls.
    directory: Option<PathBuf>,
    numbers: Vec<i64>,
    held: Vec<Call>,
}

/// A filter over some system calls, and the calls that it holds.
pub struct Held {
    shared: Arc<(Mutex<HeldCalls>, Condvar)>,
    listener: Arc<OwnedFd>,
}

impl Held {
    /// Makes the kernel ask about these calls of this thread, and of the threads and
    /// processes that it starts from now on. All of them go on until [`Held::hold`].
    /// None where a sandbox forbids it.
    pub fn new(numbers: &[i64]) -> Option<Held> {
        let shared = Arc::new((Mutex::new(HeldCalls::default()), Condvar::new()));
        let (send, listen) = mpsc::channel::<Arc<OwnedFd>>();
        let theirs = Arc::clone(&shared);
        // Started before the filter, so that the supervisor is not held itself.
        std::thread::Builder::new()
            .name("supervisor".into())
            .spawn(move || {
                if let Ok(listener) = listen.recv() {
                    while let Some(call) = next(&listener, &theirs) {
                        go_on(&listener, call);
                    }
                }
            })
            .expect("a thread");
        let listener = Arc::new(install(numbers)?);
        send.send(Arc::clone(&listener)).expect("a supervisor");
        Some(Held { shared, listener })
    }

    fn lock(&self) -> MutexGuard<'_, HeldCalls> {
        self.shared.0.lock().expect("no panic")
    }

    /// Holds these calls on files in `directory`.
    pub fn hold(&self, directory: &Path, numbers: &[i64]) {
        let mut state = self.lock();
        state.directory = Some(directory.to_owned());
        state.numbers = numbers.to_vec();
    }

    /// Holds these calls, whatever they are for.
    pub fn hold_all(&self, numbers: &[i64]) {
        let mut state = self.lock();
        state.directory = None;
        state.numbers = numbers.to_vec();
    }

    /// Waits until a call is held.
    pub fn wait(&self) -> Call {
        let mut state = self.lock();
        loop {
            if let Some(call) = state.held.first() {
                return call.clone();
            }
            state = self.shared.1.wait(state).expect("no panic");
        }
    }

    /// The calls that are held now.
    pub fn held(&self) -> Vec<Call> {
        self.lock().held.clone()
    }

    /// Lets all calls go on, now and later.
    pub fn let_on(&self) {
        let mut state = self.lock();
        state.numbers.clear();
        for call in state.held.drain(..) {
            go_on(&self.listener, call.id);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.let_on();
    }
}

pub(super) fn install(numbers: &[i64]) -> Option<OwnedFd> {
    const MARK: u32 = libc::SECCOMP_RET_TRACE;
    let mut program = super::program(numbers, SeccompAction::Trace(0));
    for instruction in &mut program {
        if i32::from(instruction.code) == libc::BPF_RET as i32 && instruction.k == MARK {
            instruction.k = libc::SECCOMP_RET_USER_NOTIF;
        }
    }
    let fprog = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr().cast(),
    };
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let listener = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &fprog,
        ) as i32;
        (listener >= 0).then(|| OwnedFd::from_raw_fd(listener))
    }
}

/// The next call that the kernel asks about; none when no process is left that could make one.
pub(super) fn received(listener: &OwnedFd) -> Option<libc::seccomp_notif> {
    loop {
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        let fd = listener.as_raw_fd();
        if unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_RECV as _, &mut call) } >= 0 {
            return Some(call);
        }
        match std::io::Error::last_os_error().raw_os_error() {
            // The calling thread is gone.
            Some(libc::EINTR | libc::ENOENT) => {}
            _ => return None,
        }
    }
}

/// The next call that may go on; none when no process is left that could make one.
fn next(listener: &OwnedFd, shared: &(Mutex<HeldCalls>, Condvar)) -> Option<u64> {
    loop {
        let call = received(listener)?;
        let number = i64::from(call.data.nr);
        let mut state = shared.0.lock().expect("no panic");
        if !state.numbers.contains(&number) {
            return Some(call.id);
        }
        let file = format!("/proc/{}/fd/{}", call.pid, call.data.args[0]);
        let is_theirs = |directory: &PathBuf| {
            std::fs::read_link(file).is_ok_and(|to| to.starts_with(directory))
        };
        if !state.directory.as_ref().is_none_or(is_theirs) {
            return Some(call.id);
        }
        let name = std::fs::read_to_string(format!("/proc/{}/comm", call.pid));
        state.held.push(Call {
            id: call.id,
            number,
            thread: call.pid as i32,
            name: name.unwrap_or_default().trim_end().to_owned(),
        });
        shared.1.notify_all();
    }
}

/// Has a call go on.
pub(super) fn go_on(listener: &OwnedFd, id: u64) {
    answer(
        listener,
        id,
        0,
        libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    );
}

/// Has a call fail.
pub(super) fn refuse(listener: &OwnedFd, id: u64, errno: i32) {
    answer(listener, id, -errno, 0);
}

fn answer(listener: &OwnedFd, id: u64, error: i32, flags: u32) {
    let answer = libc::seccomp_notif_resp {
        id,
        val: 0,
        error,
        flags,
    };
    // The answer fails if the calling thread is gone.
    unsafe {
        let fd = listener.as_raw_fd();
        libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_SEND as _, &answer)
    };
}
