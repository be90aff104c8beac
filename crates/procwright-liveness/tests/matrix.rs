//! Every way in which the holder of a token may end or go on, for every thread that may
//! have made it, as each kind of monitor sees it. The table in the documentation is
//! made from the one here.

use std::ffi::CString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use procwright_liveness::{Invitation, Monitor, State, ThreadToken, Token};
use procwright_process::Process;
use test_support::sys;

/// The kind of the token, and the thread that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    /// A [`Token`].
    Main,
    Worker,
    /// A [`Token`] of a thread that has exited when the row begins.
    ExitedWorker,
    /// A [`ThreadToken`], which only the main thread can have.
    Thread,
    /// A [`Token`] where the kernel does not mark words.
    Unmarked,
}

/// An act of the holder's process, and the states that monitors then report.
struct MatrixRow {
    what: &'static str,
    does: fn(),
    /// Reported by a monitor of a [`Token`], whichever thread made it.
    token: State,
    /// Reported by a monitor of a [`ThreadToken`].
    thread: State,
    /// Reported by a monitor of the process.
    process: State,
}

impl MatrixRow {
    fn expected_state(&self, holder: TokenKind) -> State {
        match holder {
            TokenKind::Main | TokenKind::Worker | TokenKind::ExitedWorker => self.token,
            TokenKind::Thread => self.thread,
            // The watcher reports the process's end, as for any process.
            TokenKind::Unmarked => self.process,
        }
    }
}

use State::{Alive, Died};

const ROWS: [MatrixRow; 11] = [
    MatrixRow {
        what: "is killed by SIGKILL",
        does: sys::kill_ourselves,
        token: Died,
        thread: Died,
        process: Died,
    },
    MatrixRow {
        what: "calls `_exit`",
        does: sys::exit_now,
        token: Died,
        thread: Died,
        process: Died,
    },
    MatrixRow {
        what: "aborts and dumps core",
        does: sys::dump_core,
        token: Died,
        thread: Died,
        process: Died,
    },
    MatrixRow {
        what: "calls exec on its main thread",
        does: exec,
        token: Died,
        thread: Died,
        process: Alive,
    },
    MatrixRow {
        what: "calls exec on another thread",
        does: exec_on_another_thread,
        token: Died,
        thread: Died,
        process: Alive,
    },
    MatrixRow {
        what: "ends its main thread (`pthread_exit`)",
        does: end_main,
        token: Alive,
        thread: Died,
        process: Alive,
    },
    MatrixRow {
        what: "forks, and the child exits",
        does: fork_that_exits,
        token: Alive,
        thread: Alive,
        process: Alive,
    },
    MatrixRow {
        what: "forks and is killed, and the child lives on",
        does: die_before_a_fork,
        token: Died,
        thread: Died,
        process: Died,
    },
    MatrixRow {
        what: "starts a program by vfork, which exits",
        does: start_a_program,
        token: Alive,
        thread: Alive,
        process: Alive,
    },
    MatrixRow {
        what: "unshares namespaces",
        does: unshare,
        token: Alive,
        thread: Alive,
        process: Alive,
    },
    MatrixRow {
        what: "is stopped by SIGSTOP",
        does: stop,
        token: Alive,
        thread: Alive,
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
    // The main thread is gone, so another has to report that it is done.
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
    // The fork ends with the socket, once the test has seen what it wants.
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

fn stop() {
    let stopped = std::process::id().cast_signed();
    sys::fork_that(|| {
        test_support::eventually(|| test_support::state(stopped) == Some('T'));
        sys::tell(DONE, b"d");
    });
    sys::stop_ourselves();
}

/// Number of the holder's end of the socket. It lies above all other descriptors: the
/// thread that watches processes closes its descriptors at a time of its own.
const DONE: i32 = 900;

/// One cell of the matrix, once.
fn check_row(row: &MatrixRow, holder: TokenKind) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        // A fork of this fork would otherwise never see the end of the socket.
        sys::close(&ours);
        let theirs = sys::copy_at(&theirs, DONE);
        let make = move || {
            let token = Token::new().unwrap();
            token.invite().unwrap().send(&theirs).unwrap();
            std::mem::forget((token, theirs));
        };
        match holder {
            TokenKind::Main => make(),
            TokenKind::Unmarked => {
                sys::deny(&[libc::SYS_set_robust_list], libc::ENOSYS);
                make();
            }
            TokenKind::ExitedWorker => std::thread::spawn(make).join().unwrap(),
            TokenKind::Worker => {
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
            TokenKind::Thread => {
                let token = ThreadToken::new().unwrap();
                token.invite().unwrap().send(sys::borrow(DONE)).unwrap();
                std::mem::forget((token, make));
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
    let told = |monitor: &Monitor, expected| {
        let says = match expected {
            Alive => Some(monitor.state()),
            _ => monitor.wait(Duration::MAX),
        };
        assert_eq!(says, Some(expected), "{} ({holder:?})", row.what);
        assert_eq!(monitor.alive(), expected == Alive);
    };
    if row.process == Alive && row.expected_state(holder) == Alive {
        // The holder reports, or the exec closes the socket.
        let _ = ours.read(&mut [0]).unwrap();
    }
    told(&token, row.expected_state(holder));
    told(&process, row.process);
    if row.process == Alive {
        sys::kill(pid, libc::SIGKILL);
        assert_eq!(process.wait(Duration::MAX), Some(Died));
        told(&token, Died);
        assert_eq!(token.wait_gone(Duration::MAX), Some(true));
    }
    let status = sys::reap(pid);
    if row.process == Alive {
        assert!(libc::WIFSIGNALED(status), "{}: {status:x}", row.what);
        assert_eq!(libc::WTERMSIG(status), libc::SIGKILL, "{}", row.what);
    }
}

fn check_all_rows(holder: TokenKind) {
    let directory = tempfile::tempdir().unwrap();
    std::env::set_current_dir(&directory).unwrap();
    for row in &ROWS {
        if test_support::stress() {
            test_support::say(&format!("{holder:?}: {}", row.what));
        }
        for _ in 0..test_support::scaled(10, 1000) {
            check_row(row, holder);
        }
    }
}

alone! {
    fn of_a_token_made_on_the_main_thread() {
        check_all_rows(TokenKind::Main);
    }
}

alone! {
    fn of_a_token_made_on_a_worker() {
        check_all_rows(TokenKind::Worker);
    }
}

alone! {
    fn of_a_token_made_on_a_worker_that_has_exited() {
        check_all_rows(TokenKind::ExitedWorker);
    }
}

alone! {
    fn of_a_token_that_the_main_thread_holds() {
        check_all_rows(TokenKind::Thread);
    }
}

alone! {
    fn of_a_token_where_words_are_not_marked() {
        check_all_rows(TokenKind::Unmarked);
    }
}

/// The matrix in the format of the documentation.
fn table() -> String {
    let mut table = String::from(
        "| the process | `Token` of its main thread | of a worker | of a worker that has exited \
         | `ThreadToken` | `Token` in a sandbox | the process itself |\n|---|---|---|---|---|---|---|\n",
    );
    for row in &ROWS {
        let columns = [
            row.expected_state(TokenKind::Main),
            row.expected_state(TokenKind::Worker),
            row.expected_state(TokenKind::ExitedWorker),
            row.expected_state(TokenKind::Thread),
            row.expected_state(TokenKind::Unmarked),
            row.process,
        ];
        let columns = columns.map(|state| match state {
            Alive => "alive",
            Died => "died",
            State::Released => "released",
        });
        table += &format!("| {} | {} |\n", row.what, columns.join(" | "));
    }
    table
}

/// Rewrites the documentation's table under `UPDATE_DOCS=1`.
#[test]
fn the_documentation_has_this_table() {
    const BEGIN: &str = "<!-- the fault matrix: tests/liveness_matrix.rs -->\n";
    const END: &str = "<!-- end of the fault matrix -->";
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/concepts/liveness.md"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("where the table begins");
    let (is, after) = rest.split_once(END).expect("where it ends");
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        let new = format!("{before}{BEGIN}{}{END}{after}", table());
        std::fs::write(path, new).unwrap();
    } else {
        assert_eq!(
            is,
            table(),
            "run this with UPDATE_DOCS=1 to write it into {path}"
        );
    }
}
