//! The kernel wakes one of those who sleep on a dead holder's word, and that one
//! wakes the others. What if it does not?

mod common;

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::sys;
use procwright::liveness::{Invitation, Monitor, State, ThreadToken, Token};

/// Who holds the token, and does this when it is told to.
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

/// A process that sleeps on the word, and ends with this code when it was told
/// `state`. It is in the queue when this returns.
fn waiter(holder: &Holder, state: State, before: impl FnOnce()) -> i32 {
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
    asleep_on_a_word(pid);
    pid
}

/// Until the first thread of a process sleeps on a word.
fn asleep_on_a_word(pid: i32) {
    common::eventually(|| sys::sleeps_on_a_word(pid));
}

/// Somebody else's code that sleeps on the word, with the place in the queue that it
/// has when this returns, and wakes nobody when it is woken.
fn stranger(holder: &Holder) -> i32 {
    let [cells, _] = holder.invitation.files();
    let place = holder.invitation.ticket();
    let cell = usize::from_str_radix(&place[..8], 16).unwrap();
    // Behind the numbers of the cells come those of the words of a thread's file.
    let cells_of_a_file = sys::attacks::page() / 64;
    let at = match cell.checked_sub(cells_of_a_file) {
        None => 64 * cell,
        Some(word) => 4 * word,
    };
    let stranger = sys::fork_pausing_after(|| sys::sleep_on_a_word(cells, at));
    asleep_on_a_word(stranger);
    stranger
}

/// The first in the queue is killed before it can wake the others.
fn the_first_is_killed(state: State, mut holder: Holder) {
    let first = waiter(&holder, state, sys::kill_on_shared_wake);
    let others = [(); 3].map(|()| waiter(&holder, state, || {}));
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
        the_first_is_killed(State::Died, Holder::new(|_| sys::exec_pausing()));
    }
}

alone! {
    fn also_if_the_holder_is_killed() {
        the_first_is_killed(State::Died, Holder::new(|_| sys::kill_ourselves()));
    }
}

alone! {
    fn a_holder_that_is_killed_while_it_releases_its_token() {
        let mut holder = Holder::new(|token| {
            sys::kill_on_shared_wake();
            // The word says that it was released, and nobody was told yet.
            drop(token);
        });
        let waiters = [(); 3].map(|()| waiter(&holder, State::Released, || {}));
        holder.go();
        for waiter in waiters {
            assert_eq!(sys::reap(waiter), 0);
        }
    }
}

alone! {
    fn a_stranger_on_the_word_who_wakes_nobody() {
        let mut holder = Holder::new(|_| sys::kill_ourselves());
        let strangers = [(); 3].map(|()| stranger(&holder));
        let waiters = [(); 3].map(|()| waiter(&holder, State::Died, || {}));
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
            // It lives on, so that nothing but the word tells.
            drop(token);
        });
        let invitation = Invitation::receive(&ours).unwrap();
        let mut holder = Holder { pid, socket: ours, invitation };
        let stranger = stranger(&holder);
        let waiters = [(); 3].map(|()| waiter(&holder, State::Released, || {}));
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
        let stranger = stranger(&holder);
        let (mut told, tell) = std::io::pipe().unwrap();
        let between = sys::fork_pausing_after(|| {
            let invitation = holder.invitation.try_clone().unwrap();
            let monitor = Monitor::accept(invitation).unwrap();
            // Long enough to be looked after.
            assert_eq!(monitor.wait(Duration::from_millis(1100)), None);
            let fork = sys::fork_pausing_after(|| {
                assert_eq!(monitor.wait(None), Some(State::Died));
                (&tell).write_all(b"d").unwrap();
            });
            asleep_on_a_word(fork);
            (&tell).write_all(b"a").unwrap();
        });
        told.read_exact(&mut [0]).unwrap();
        // It is not the thread of the process that forked which does it.
        sys::kill(between, libc::SIGSTOP);
        common::eventually(|| common::state(between) == Some('T'));
        holder.go();
        told.read_exact(&mut [0]).unwrap();
        sys::end(between);
        sys::end(stranger);
    }
}
