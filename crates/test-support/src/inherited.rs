//! Signal dispositions and the mask, which a test must not inherit from its starter.
//!
//! `nohup` ignores SIGHUP, `&` in a script SIGINT and SIGQUIT, and children inherit
//! that: a shell or `procwright` that a test interrupts would not end. Dispositions and
//! the mask are reset before `main` of each test executable, so that no test has to
//! remember it. Only executables that use this crate are concerned: `test-child` and the
//! command behave as they do for any user.

#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = reset_signals;

#[cfg(target_os = "linux")]
extern "C" fn reset_signals() {
    // SAFETY: no other thread runs yet, no handler is installed, and the pointers are
    // to locals. SIGKILL, SIGSTOP and those of libc are refused, which does no harm.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}
