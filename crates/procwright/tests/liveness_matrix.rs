//! Every way in which the holder of a token may end or go on, for every thread
//! that may have made it, as each kind of monitor sees it. The table in the
//! documentation is made of the one here.

mod common;

use std::ffi::CString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::sys;
use procwright::Process;
use procwright::liveness::{Invitation, Monitor, State, Token};

/// Which thread makes the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Main,
    Worker,
    /// That has ended when it begins.
    ExitedWorker,
}

const THREADS: [On; 3] = [On::Main, On::Worker, On::ExitedWorker];

/// What the holder does, what a monitor of its token says then, and what one of its
/// process.
struct Row {
    what: &'static str,
    does: fn(),
    token: State,
    process: State,
}

use State::{Alive, Died};

const ROWS: [Row; 10] = [
    Row {
        what: "is killed by SIGKILL",
        does: sys::kill_ourselves,
        token: Died,
        process: Died,
    },
    Row {
        what: "calls `_exit`",
        does: sys::exit_now,
        token: Died,
        process: Died,
    },
    Row {
        what: "aborts and dumps core",
        does: sys::dump_core,
        token: Died,
        process: Died,
    },
    Row {
        what: "calls exec on its main thread",
        does: exec,
        token: Died,
        process: Alive,
    },
    Row {
        what: "calls exec on another thread",
        does: exec_on_another_thread,
        token: Died,
        process: Alive,
    },
    Row {
        what: "ends its main thread (`pthread_exit`)",
        does: end_main,
        token: Alive,
        process: Alive,
    },
    Row {
        what: "forks, and the child exits",
        does: fork_that_exits,
        token: Alive,
        process: Alive,
    },
    Row {
        what: "forks and is killed, and the child lives on",
        does: die_before_a_fork,
        token: Died,
        process: Died,
    },
    Row {
        what: "starts a program by vfork, which exits",
        does: start_a_program,
        token: Alive,
        process: Alive,
    },
    Row {
        what: "unshares namespaces",
        does: unshare,
        token: Alive,
        process: Alive,
    },
];

fn exec() {
    let program = test_children::path();
    let words = [program.as_os_str().as_bytes(), b"sleep-forever"];
    let words = words.map(|word| CString::new(word).unwrap());
    sys::exec(&words);
}

fn exec_on_another_thread() {
    let _ = std::thread::spawn(exec).join();
}

fn end_main() {
    // Somebody has to say that it is done.
    std::thread::spawn(|| {
        sys::wait_until_main_has_ended();
        sys::tell(DONE, b"d");
        loop {
            std::thread::park();
        }
    });
    sys::end_thread();
}

fn fork_that_exits() {
    sys::in_fork(|| 0);
}

fn die_before_a_fork() {
    // It ends with the socket, when the test has seen what it wants.
    sys::fork_reading(DONE);
    sys::kill_ourselves();
}

fn start_a_program() {
    let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
    child.wait().unwrap();
}

fn unshare() {
    sys::unshare_what_may_be();
}

/// The number of the holder's end of the socket.
const DONE: i32 = 100;

/// One cell of the matrix, once.
fn one(row: &Row, on: On) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        // Or a fork of the fork would never see its end.
        sys::close(&ours);
        let theirs = sys::copy_at(&theirs, DONE);
        let make = move || {
            let token = Token::new().unwrap();
            token.invite().unwrap().send(&theirs).unwrap();
            std::mem::forget((token, theirs));
        };
        match on {
            On::Main => make(),
            On::ExitedWorker => std::thread::spawn(make).join().unwrap(),
            On::Worker => {
                let (made, is_made) = std::sync::mpsc::channel();
                std::thread::spawn(move || {
                    make();
                    made.send(()).unwrap();
                    loop {
                        std::thread::park();
                    }
                });
                is_made.recv().unwrap();
            }
        }
        sys::await_order(DONE);
        (row.does)();
        sys::tell(DONE, b"d");
    });
    drop(theirs);
    let token = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
    let process = Monitor::of_process(&Process::open(pid).unwrap()).unwrap();
    assert!(token.alive() && process.alive());
    ours.write_all(b"g").unwrap();
    let told = |monitor: &Monitor, expected| match expected {
        Alive => assert_eq!(monitor.state(), Alive, "{} ({on:?})", row.what),
        dead => assert_eq!(
            monitor.wait(Duration::MAX),
            Some(dead),
            "{} ({on:?})",
            row.what
        ),
    };
    if row.token == Alive {
        let mut done = [0];
        ours.read_exact(&mut done).unwrap();
    }
    told(&token, row.token);
    told(&process, row.process);
    if row.process == Alive {
        sys::kill(pid, libc::SIGKILL);
        assert_eq!(process.wait(Duration::MAX), Some(Died));
        told(&token, Died);
    }
    sys::reap(pid);
}

fn all(on: On) {
    let directory = tempfile::tempdir().unwrap();
    std::env::set_current_dir(&directory).unwrap();
    for row in &ROWS {
        for _ in 0..common::scaled(10, 1000) {
            one(row, on);
        }
    }
}

alone! {
    fn of_a_token_made_on_the_main_thread() {
        all(THREADS[0]);
    }
}

alone! {
    fn of_a_token_made_on_a_worker() {
        all(THREADS[1]);
    }
}

alone! {
    fn of_a_token_made_on_a_worker_that_has_exited() {
        all(THREADS[2]);
    }
}
