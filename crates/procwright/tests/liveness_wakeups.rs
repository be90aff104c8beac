//! The kernel wakes one of those who sleep on a dead holder's word, and that one
//! wakes the others. What if it does not?

mod common;

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use common::sys;
use procwright::liveness::{Invitation, Monitor, State, Token};

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

/// Until the first thread of a process sleeps in a futex.
fn asleep_on_a_word(pid: i32) {
    common::eventually(|| {
        let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap();
        call.starts_with(&format!("{} ", libc::SYS_futex))
    });
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
        let cell = usize::from_str_radix(&holder.invitation.ticket()[..8], 16).unwrap();
        // They are first in the queue, take the wake-up and keep it.
        let strangers = [(); 3].map(|()| {
            let [cells, _] = holder.invitation.files();
            let stranger = sys::fork_pausing_after(|| sys::sleep_on_a_word(cells, cell * 64));
            asleep_on_a_word(stranger);
            stranger
        });
        let waiters = [(); 3].map(|()| waiter(&holder, State::Died, || {}));
        holder.go();
        for waiter in waiters {
            assert_eq!(sys::reap(waiter), 0);
        }
        for stranger in strangers {
            sys::kill(stranger, libc::SIGKILL);
            sys::reap(stranger);
        }
    }
}

alone! {
    fn a_wait_in_a_fork_is_looked_after_too() {
        let mut holder = Holder::new(|_| sys::kill_ourselves());
        let cell = usize::from_str_radix(&holder.invitation.ticket()[..8], 16).unwrap();
        let [cells, _] = holder.invitation.files();
        let stranger = sys::fork_pausing_after(|| sys::sleep_on_a_word(cells, cell * 64));
        asleep_on_a_word(stranger);
        let monitor = Monitor::accept(holder.invitation.try_clone().unwrap()).unwrap();
        std::thread::scope(|scope| {
            // The process that forks has slept on it itself.
            scope.spawn(|| assert_eq!(monitor.wait(None), Some(State::Died)));
            common::eventually(|| common::threads().iter().any(|name| name == "procwright-watc"));
            let fork = sys::fork_pausing_after(|| {
                assert_eq!(monitor.wait(None), Some(State::Died));
                sys::exit_now();
            });
            asleep_on_a_word(fork);
            holder.go();
            assert_eq!(sys::reap(fork), 0);
        });
        sys::kill(stranger, libc::SIGKILL);
        sys::reap(stranger);
    }
}
