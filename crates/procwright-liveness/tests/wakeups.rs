//! The kernel wakes one sleeper on a dead holder's word, and that one wakes the others.
//! These tests are about a first sleeper that does not.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use procwright_liveness::{Invitation, Monitor, State, ThreadToken, Token};
use test_support::sys;

/// A process that holds a token, and acts on it on command.
struct Holder {
    pid: i32,
    socket: UnixStream,
    invitation: Invitation,
}

impl Holder {
    fn new(then: impl FnOnce(Token)) -> Holder {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            sys::close(&ours);
            let token = Token::new().unwrap();
            token.invite().unwrap().send(&theirs).unwrap();
            sys::await_order(theirs.as_raw_fd());
            then(token);
        });
        Holder {
            pid,
            invitation: Invitation::receive(&ours).unwrap(),
            socket: ours,
        }
    }

    fn go(&mut self) {
        self.socket.write_all(b"g").unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        sys::kill(self.pid, libc::SIGKILL);
        sys::reap(self.pid);
    }
}

/// A process that sleeps on the word, and exits normally once its wait returns `state`.
/// It is in the queue when this returns.
fn fork_waiter(holder: &Holder, state: State, before: impl FnOnce()) -> i32 {
    let (mut told, tell) = std::io::pipe().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let invitation = holder.invitation.try_clone().unwrap();
        let monitor = Monitor::accept(invitation).unwrap();
        before();
        (&tell).write_all(b"r").unwrap();
        assert_eq!(monitor.wait(None), Some(state));
        sys::exit_now();
    });
    told.read_exact(&mut [0]).unwrap();
    wait_for_sleep_on_a_word(pid);
    pid
}

/// Waits until the first thread of a process sleeps on a word.
fn wait_for_sleep_on_a_word(pid: i32) {
    test_support::eventually(|| sys::sleeps_on_a_word(pid));
}

/// A process that sleeps on the word without the library, and wakes no other sleeper
/// when it is woken. It is in the queue when this returns.
fn fork_stranger(holder: &Holder) -> i32 {
    let [cells, _] = holder.invitation.files();
    let place = holder.invitation.ticket();
    let cell = usize::from_str_radix(&place[..8], 16).unwrap();
    // A thread's file has single words behind the numbers of the cells.
    let cells_of_a_file = sys::attacks::page() / 64;
    let at = match cell.checked_sub(cells_of_a_file) {
        None => 64 * cell,
        Some(word) => 4 * word,
    };
    let stranger = sys::fork_pausing_after(|| sys::sleep_on_a_word(cells, at));
    wait_for_sleep_on_a_word(stranger);
    stranger
}

/// The first sleeper in the queue is killed before it can wake the others.
fn check_first_is_killed(state: State, mut holder: Holder) {
    let first = fork_waiter(&holder, state, sys::kill_on_shared_wake);
    let others = [(); 3].map(|()| fork_waiter(&holder, state, || {}));
    holder.go();
    let status = sys::reap(first);
    assert!(
        libc::WIFSIGNALED(status),
        "it was to be killed: {status:#x}"
    );
    for other in others {
        assert_eq!(sys::reap(other), 0);
    }
}

alone! {
    fn who_was_woken_and_is_killed_leaves_it_to_the_next() {
        // The process lives on, so nothing but the word tells of the exec.
        check_first_is_killed(State::Died, Holder::new(|_| sys::exec_pausing()));
    }
}

alone! {
    fn also_if_the_holder_is_killed() {
        check_first_is_killed(State::Died, Holder::new(|_| sys::kill_ourselves()));
    }
}

alone! {
    fn a_holder_that_is_killed_while_it_releases_its_token() {
        let mut holder = Holder::new(|token| {
            sys::kill_on_shared_wake();
            // The process is killed when the word says "released" and no sleeper is
            // woken yet.
            drop(token);
        });
        let waiters = [(); 3].map(|()| fork_waiter(&holder, State::Released, || {}));
        holder.go();
        for waiter in waiters {
            assert_eq!(sys::reap(waiter), 0);
        }
    }
}

alone! {
    fn a_stranger_on_the_word_who_wakes_nobody() {
        let mut holder = Holder::new(|_| sys::kill_ourselves());
        let strangers = [(); 3].map(|()| fork_stranger(&holder));
        let waiters = [(); 3].map(|()| fork_waiter(&holder, State::Died, || {}));
        holder.go();
        for waiter in waiters {
            assert_eq!(sys::reap(waiter), 0);
        }
        strangers.into_iter().for_each(sys::end);
    }
}

alone! {
    fn a_stranger_on_the_word_of_a_thread_who_wakes_nobody() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let token = ThreadToken::new().unwrap();
            token.invite().unwrap().send(&theirs).unwrap();
            sys::await_order(theirs.as_raw_fd());
            // The holder lives on, so nothing but the word tells.
            drop(token);
        });
        let invitation = Invitation::receive(&ours).unwrap();
        let mut holder = Holder { pid, socket: ours, invitation };
        let stranger = fork_stranger(&holder);
        let waiters = [(); 3].map(|()| fork_waiter(&holder, State::Released, || {}));
        holder.go();
        for waiter in waiters {
            assert_eq!(sys::reap(waiter), 0);
        }
        sys::end(stranger);
    }
}

alone! {
    fn a_wait_in_a_fork_is_looked_after_too() {
        let mut holder = Holder::new(|_| sys::kill_ourselves());
        let stranger = fork_stranger(&holder);
        let (mut told, tell) = std::io::pipe().unwrap();
        let between = sys::fork_pausing_after(|| {
            let invitation = holder.invitation.try_clone().unwrap();
            let monitor = Monitor::accept(invitation).unwrap();
            // Long enough to get a thread that looks after the wait.
            assert_eq!(monitor.wait(Duration::from_millis(1100)), None);
            let fork = sys::fork_pausing_after(|| {
                assert_eq!(monitor.wait(None), Some(State::Died));
                (&tell).write_all(b"d").unwrap();
            });
            wait_for_sleep_on_a_word(fork);
            (&tell).write_all(b"a").unwrap();
        });
        told.read_exact(&mut [0]).unwrap();
        // The forking process's thread is stopped, so it cannot be the one that helps.
        sys::kill(between, libc::SIGSTOP);
        test_support::eventually(|| test_support::state(between) == Some('T'));
        holder.go();
        told.read_exact(&mut [0]).unwrap();
        sys::end(between);
        sys::end(stranger);
    }
}
