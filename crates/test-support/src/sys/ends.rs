//! Ends and stops of this process, and its replacement by another program.

use super::check;

/// Ends this process by SIGKILL.
pub fn kill_ourselves() {
    unsafe { libc::raise(libc::SIGKILL) };
}

/// Ends this process with code 0 and without clean-up.
pub fn exit_now() {
    unsafe { libc::_exit(0) }
}

/// Aborts with a core dump of at most 64 KiB.
pub fn dump_core() {
    unsafe {
        let limit = libc::rlimit {
            rlim_cur: 64 * 1024,
            rlim_max: 64 * 1024,
        };
        check(libc::setrlimit(libc::RLIMIT_CORE, &limit));
        libc::abort()
    }
}

/// Becomes another program; `words` are its path and arguments.
pub fn exec(words: &[std::ffi::CString]) {
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    unsafe { libc::execv(pointers[0], pointers.as_ptr()) };
    panic!("{}", std::io::Error::last_os_error());
}

/// Ends this thread alone, without clean-up.
pub fn end_thread() {
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Waits until the first thread of this process is a zombie.
pub fn wait_until_main_has_ended() {
    loop {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        if stat
            .rsplit_once(')')
            .unwrap()
            .1
            .trim_start()
            .starts_with('Z')
        {
            return;
        }
        std::thread::yield_now();
    }
}

/// Stops this process until it is continued or killed.
pub fn stop_ourselves() {
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Ends this process with this code and without clean-up.
pub fn exit_with(code: i32) {
    unsafe { libc::_exit(code) }
}

/// Aborts without a core dump.
pub fn abort_without_a_core() {
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        check(libc::setrlimit(libc::RLIMIT_CORE, &none));
        libc::abort()
    }
}

/// Becomes a program that does nothing until it is killed.
pub fn exec_pausing() {
    use std::os::unix::ffi::OsStrExt;
    let program = test_children::path();
    let words = [program.as_os_str().as_bytes(), b"sleep-forever"];
    exec(&words.map(|word| std::ffi::CString::new(word).expect("no NUL")));
}
