//! How a process ends, stops, or becomes another program.

use super::check;

/// Ends this process as nobody can prevent.
pub(crate) fn kill_ourselves() {
    unsafe { libc::raise(libc::SIGKILL) };
}

/// Ends this process without a look back.
pub(crate) fn exit_now() {
    unsafe { libc::_exit(0) }
}

/// Aborts with a core dump, of which little is kept.
pub(crate) fn dump_core() {
    unsafe {
        let limit = libc::rlimit {
            rlim_cur: 64 * 1024,
            rlim_max: 64 * 1024,
        };
        check(libc::setrlimit(libc::RLIMIT_CORE, &limit));
        libc::abort()
    }
}

/// Becomes another program.
pub(crate) fn exec(words: &[std::ffi::CString]) {
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    unsafe { libc::execv(pointers[0], pointers.as_ptr()) };
    panic!("{}", std::io::Error::last_os_error());
}

/// Ends this thread alone, and runs nothing on the way.
pub(crate) fn end_thread() {
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Until the first thread of this process is a zombie.
pub(crate) fn wait_until_main_has_ended() {
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

/// Stops this process until somebody lets it go on or ends it.
pub(crate) fn stop_ourselves() {
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Ends this process without a look back.
pub(crate) fn exit_with(code: i32) {
    unsafe { libc::_exit(code) }
}

/// Aborts, and leaves no core.
pub(crate) fn abort_without_a_core() {
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
pub(crate) fn exec_pausing() {
    use std::os::unix::ffi::OsStrExt;
    let program = test_children::path();
    let words = [program.as_os_str().as_bytes(), b"sleep-forever"];
    exec(&words.map(|word| std::ffi::CString::new(word).expect("no NUL")));
}
