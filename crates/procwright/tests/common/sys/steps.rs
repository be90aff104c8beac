//! A fork that is run one instruction at a time.

use super::check;

/// Stopped between two instructions, and killed when this is dropped.
pub(crate) struct Traced {
    pub(crate) pid: i32,
    pub(crate) has_ended: bool,
}

/// Forks a child that makes ready, is stopped, and then does `work`. Only for
/// processes without other threads that it could miss.
pub(crate) fn fork_traced<T>(ready: impl FnOnce() -> T, work: impl FnOnce(T)) -> Traced {
    unsafe {
        let pid = check(libc::fork());
        if pid == 0 {
            libc::alarm(900);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let made = ready();
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::raise(libc::SIGSTOP);
            work(made);
            libc::_exit(0);
        }
        let mut this = Traced {
            pid,
            has_ended: false,
        };
        this.until_stopped();
        this
    }
}

impl Traced {
    /// One instruction; false once the child has ended.
    pub(crate) fn step(&mut self) -> bool {
        if !self.has_ended {
            let null = std::ptr::null_mut::<libc::c_void>();
            unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid, null, null) };
            self.until_stopped();
        }
        !self.has_ended
    }

    /// Runs on until the next system call begins or ends; false once the child has
    /// ended.
    pub(crate) fn run_to_call(&mut self) -> bool {
        if !self.has_ended {
            let null = std::ptr::null_mut::<libc::c_void>();
            unsafe { libc::ptrace(libc::PTRACE_SYSCALL, self.pid, null, null) };
            self.until_stopped();
        }
        !self.has_ended
    }

    fn until_stopped(&mut self) {
        let mut status = 0;
        unsafe { check(libc::waitpid(self.pid, &mut status, 0)) };
        self.has_ended = !libc::WIFSTOPPED(status);
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        while !self.has_ended {
            self.until_stopped();
        }
    }
}

/// A number that a fork shares with this process.
pub(crate) fn shared_number() -> &'static std::sync::atomic::AtomicU64 {
    unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(page, libc::MAP_FAILED);
        &*page.cast()
    }
}
