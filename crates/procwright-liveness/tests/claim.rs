//! The right to clean up after a dead peer: which survivor gets it, and when.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use test_support::alone;

use procwright_liveness::{
    Claim, Error, Invitation, Monitor, State, ThreadToken, Token, Withdrawal,
};
use procwright_process::Process;
use test_support::sys;

const NOW: Duration = Duration::ZERO;

/// Invitations to `tokens` tokens of a process that has died.
fn invitations_of_a_dead_process(tokens: usize) -> Vec<Invitation> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        for _ in 0..tokens {
            let token = Token::new().unwrap();
            token.invite().unwrap().send(&theirs).unwrap();
            std::mem::forget(token);
        }
    });
    let all = (0..tokens)
        .map(|_| Invitation::receive(&ours).unwrap())
        .collect();
    sys::kill(pid, libc::SIGKILL);
    sys::reap(pid);
    all
}

fn monitor_of(invitation: &Invitation) -> Monitor {
    Monitor::accept(invitation.try_clone().unwrap()).unwrap()
}

/// A fork that gets the right, reports it, and calls `and_then` on command.
fn fork_that_claims(monitor: &Monitor, and_then: fn(Claim)) -> (i32, UnixStream) {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let claim = monitor.claim(Duration::MAX).unwrap();
        assert!(matches!(claim, Claim::Ours(_)));
        theirs.write_all(b"c").unwrap();
        let _ = theirs.read(&mut [0]);
        and_then(claim);
    });
    ours.read_exact(&mut [0]).unwrap();
    (pid, ours)
}

alone! {
    fn the_right_is_one_survivors_until_it_is_done() {
        let invitation = &invitations_of_a_dead_process(1)[0];
        let (one, other) = (monitor_of(invitation), monitor_of(invitation));
        let Claim::Ours(right) = one.claim(NOW).unwrap() else { panic!() };
        assert!(matches!(other.claim(NOW).unwrap(), Claim::Theirs));
        let (_, took) = test_support::timed(|| {
            assert!(matches!(one.claim(Duration::from_millis(20)).unwrap(), Claim::Theirs));
        });
        assert!(took >= Duration::from_millis(20));
        // The right is given back.
        drop(right);
        let Claim::Ours(right) = other.claim(NOW).unwrap() else { panic!() };
        right.done();
        assert!(matches!(one.claim(Duration::MAX).unwrap(), Claim::Done));
        assert!(matches!(other.claim(NOW).unwrap(), Claim::Done));
    }
}

alone! {
    fn there_is_nothing_to_clean_up_after_the_living() {
        let token = Token::new().unwrap();
        let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
        let not_died = |expected| match monitor.claim(Duration::MAX).unwrap() {
            Claim::NotDied(state) => assert_eq!(state, expected),
            other => panic!("{other:?}"),
        };
        not_died(State::Alive);
        drop(token);
        not_died(State::Released);
        let ourselves = Process::open(std::process::id().cast_signed()).unwrap();
        let of_process = Monitor::of_process(&ourselves).unwrap();
        assert!(matches!(of_process.claim(NOW), Err(Error::Unsupported(_))));
    }
}

alone! {
    fn there_is_a_right_to_clean_up_after_a_thread() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let token = ThreadToken::new().unwrap();
            token.invite().unwrap().send(&theirs).unwrap();
            std::mem::forget(token);
        });
        let invitation = Invitation::receive(&ours).unwrap();
        let (one, other) = (monitor_of(&invitation), monitor_of(&invitation));
        assert!(matches!(one.claim(NOW).unwrap(), Claim::NotDied(State::Alive)));
        sys::kill(pid, libc::SIGKILL);
        assert_eq!(one.wait(Duration::MAX), Some(State::Died));
        let Claim::Ours(right) = one.claim(NOW).unwrap() else { panic!() };
        assert!(matches!(other.claim(NOW).unwrap(), Claim::Theirs));
        right.done();
        assert!(matches!(other.claim(NOW).unwrap(), Claim::Done));
        sys::reap(pid);
    }
}

alone! {
    fn of_sixteen_processes_one_at_a_time_has_it() {
        const PROCESSES: u8 = 16;
        // One round per fork: each goes through all of them.
        let rounds = test_support::scaled(50, 1000) as usize;
        let dead: Vec<Invitation> = (0..rounds.div_ceil(500))
            .flat_map(|_| invitations_of_a_dead_process(500.min(rounds)))
            .collect();
        let monitors: Vec<Monitor> = dead.iter().map(monitor_of).collect();
        let owners = sys::SharedNumbers::new(2 * rounds);
        let pids: Vec<i32> = (0..PROCESSES)
            .map(|_| {
                sys::fork_running_aside(|| {
                    let mut cleaned = 0;
                    for (round, monitor) in monitors.iter().enumerate() {
                        match monitor.claim(Duration::MAX).unwrap() {
                            Claim::Ours(right) => {
                                // No other fork is in here now, and none was before.
                                assert_eq!(owners.at(round).fetch_add(1, SeqCst), 0);
                                std::thread::yield_now();
                                owners.at(rounds + round).fetch_add(1, SeqCst);
                                right.done();
                                cleaned += 1;
                            }
                            Claim::Done => assert_eq!(owners.at(rounds + round).load(SeqCst), 1),
                            other => panic!("{other:?}"),
                        }
                    }
                    i32::from(cleaned > rounds)
                })
            })
            .collect();
        for pid in pids {
            assert_eq!(sys::reap(pid), 0);
        }
        for round in 0..2 * rounds {
            assert_eq!(owners.at(round).load(SeqCst), 1);
        }
    }
}

use std::sync::atomic::Ordering::SeqCst;

alone! {
    fn if_the_cleaner_dies_another_has_it() {
        let invitations = invitations_of_a_dead_process(test_support::scaled(20, 500) as usize);
        for invitation in &invitations {
            let monitor = monitor_of(invitation);
            let (cleaner, _talk) = fork_that_claims(&monitor, std::mem::forget);
            let got = sys::SharedNumbers::new(1);
            let others: Vec<i32> = (0..3)
                .map(|_| {
                    sys::fork_running_aside(|| match monitor.claim(Duration::MAX).unwrap() {
                        Claim::Ours(right) => {
                            assert_eq!(got.at(0).fetch_add(1, SeqCst), 0);
                            right.done();
                            0
                        }
                        Claim::Done => i32::from(got.at(0).load(SeqCst) != 1),
                        other => panic!("{other:?}"),
                    })
                })
                .collect();
            assert!(matches!(monitor.claim(Duration::from_millis(1)).unwrap(), Claim::Theirs));
            sys::kill(cleaner, libc::SIGKILL);
            sys::reap(cleaner);
            for pid in others {
                assert_eq!(sys::reap(pid), 0);
            }
            assert_eq!(got.at(0).load(SeqCst), 1);
            assert!(matches!(monitor.claim(NOW).unwrap(), Claim::Done));
        }
    }
}

alone! {
    fn a_fork_has_no_part_in_a_right() {
        let monitor = monitor_of(&invitations_of_a_dead_process(1)[0]);
        let mut right = match monitor.claim(NOW).unwrap() {
            Claim::Ours(right) => Some(right),
            other => panic!("{other:?}"),
        };
        let code = sys::in_fork(|| {
            right.take().unwrap().done();
            // The fork may ask for the right like any process.
            assert!(matches!(monitor.claim(NOW).unwrap(), Claim::Theirs));
            0
        });
        assert_eq!(code, 0);
        assert!(matches!(monitor.claim(NOW).unwrap(), Claim::Theirs));
        drop(right);
        assert_eq!(sys::in_fork(|| {
            i32::from(!matches!(monitor.claim(NOW).unwrap(), Claim::Ours(_)))
        }), 0);
    }
}

alone! {
    fn so_many_rights_and_no_more() {
        let monitors: Vec<Monitor> = invitations_of_a_dead_process(513).iter().map(monitor_of).collect();
        let mut rights = Vec::new();
        let error = loop {
            match monitors[rights.len()].claim(NOW) {
                Ok(Claim::Ours(right)) => rights.push(right),
                Ok(other) => panic!("{other:?}"),
                Err(error) => break error,
            }
        };
        assert_eq!(rights.len(), 512);
        assert!(matches!(error, Error::Full(512)), "{error}");
        rights.pop();
        assert!(matches!(monitors[512].claim(NOW).unwrap(), Claim::Ours(_)));
        // With as many words as a process may hold, every one is marked.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let mine: Vec<Token> = (0..1024).map(|_| Token::new().unwrap()).collect();
            mine[0].invite().unwrap().send(&theirs).unwrap();
            for monitor in &monitors[511..] {
                std::mem::forget(monitor.claim(NOW).unwrap());
            }
            mine[1023].invite().unwrap().send(&theirs).unwrap();
            std::mem::forget(mine);
        });
        let first = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
        let last = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
        assert!(matches!(monitors[512].claim(NOW).unwrap(), Claim::Theirs));
        sys::kill(pid, libc::SIGKILL);
        assert_eq!(first.wait(Duration::MAX), Some(State::Died));
        assert_eq!(last.wait(Duration::MAX), Some(State::Died));
        assert!(matches!(monitors[512].claim(Duration::MAX).unwrap(), Claim::Ours(_)));
        assert!(matches!(monitors[511].claim(Duration::MAX).unwrap(), Claim::Ours(_)));
        sys::reap(pid);
    }
}

alone! {
    fn who_is_woken_and_may_not_have_it_wakes_another() {
        let monitors: Vec<Monitor> = invitations_of_a_dead_process(514).iter().map(monitor_of).collect();
        let wanted = &monitors[512];
        let (cleaner, _talk) = fork_that_claims(wanted, std::mem::forget);
        // A fork that holds the rights to `others` and waits for `wanted`.
        let waiter = |others: &[Monitor], expected: fn(Result<Claim, Error>) -> bool| {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            let pid = sys::fork_running_aside(|| {
                let claim = |monitor: &Monitor| monitor.claim(NOW).unwrap();
                let all: Vec<Claim> = others.iter().map(claim).collect();
                assert!(all.iter().all(|claim| matches!(claim, Claim::Ours(_))));
                theirs.write_all(b"h").unwrap();
                i32::from(!expected(wanted.claim(Duration::MAX)))
            });
            ours.read_exact(&mut [0]).unwrap();
            test_support::eventually(|| sys::sleeps_on_a_word(pid));
            pid
        };
        // The kernel wakes the longest sleeper first.
        let has_all = waiter(&monitors[..512], |claim| matches!(claim, Err(Error::Full(512))));
        let next = waiter(&monitors[513..], |claim| matches!(claim, Ok(Claim::Ours(_))));
        sys::kill(cleaner, libc::SIGKILL);
        assert_eq!(sys::reap(has_all), 0);
        assert_eq!(sys::reap(next), 0);
        sys::reap(cleaner);
    }
}

alone! {
    fn a_right_whose_bit_for_those_who_wait_was_taken_away() {
        let invitation = &invitations_of_a_dead_process(1)[0];
        let monitor = monitor_of(invitation);
        let [_, rights] = invitation.files();
        let (cleaner, _talk) = fork_that_claims(&monitor, std::mem::forget);
        let word = sys::number_at(rights);
        assert_eq!(word >> 30, 2);
        sys::write_at(rights, &(word & 0x3fff_ffff).to_ne_bytes());
        let waiter = sys::fork_running_aside(|| {
            let claim = monitor.claim(Duration::MAX);
            i32::from(!matches!(claim, Ok(Claim::Ours(_))))
        });
        test_support::eventually(|| sys::sleeps_on_a_word(waiter));
        sys::kill(cleaner, libc::SIGKILL);
        assert_eq!(sys::reap(waiter), 0);
        sys::reap(cleaner);
    }
}

alone! {
    fn who_writes_anything_there_harms_no_token() {
        let invitation = &invitations_of_a_dead_process(1)[0];
        let monitor = monitor_of(invitation);
        let [_, rights] = invitation.files();
        let claim = || monitor.claim(Duration::from_millis(1)).unwrap();
        // A right that was marked as done before any process began.
        sys::write_at(rights, &[0, 0, 0, 0x80]);
        assert!(matches!(claim(), Claim::Done));
        // A holder's number, whichever process that is; with and without the kernel's
        // bit.
        for value in [0x3fff_ffff_u32, 0x1234, 0xbfff_ffff, 1] {
            sys::write_at(rights, &value.to_le_bytes());
            assert!(matches!(claim(), Claim::Theirs), "{value:x}");
        }
        // A free right, written as the kernel never writes it.
        sys::write_at(rights, &[0xff; 4]);
        let Claim::Ours(right) = claim() else { panic!() };
        // A hole is punched into the word while the right is ours: it is free again,
        // and giving it back takes nothing from its next holder.
        sys::punch(rights.as_fd(), 4096);
        let Claim::Ours(second) = claim() else { panic!() };
        drop(right);
        drop(second);
        // The holder of a right with a hole dies: its own words are marked.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let mut kept = vec![Token::new().unwrap()];
            let right = monitor.claim(NOW).unwrap();
            assert!(matches!(right, Claim::Ours(_)));
            kept.push(Token::new().unwrap());
            for token in &kept {
                token.invite().unwrap().send(&theirs).unwrap();
            }
            std::mem::forget((kept, right));
        });
        let tokens = [(); 2].map(|()| Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap());
        sys::punch(rights.as_fd(), 4096);
        sys::kill(pid, libc::SIGKILL);
        for token in &tokens {
            assert_eq!(token.wait(Duration::MAX), Some(State::Died));
        }
        sys::reap(pid);
    }
}

alone! {
    /// The right goes past those that have left: whoever asks when it is given back has it
    /// at once, each time.
    fn who_has_left_takes_no_right() {
        let invitation = &invitations_of_a_dead_process(1)[0];
        let (holder, asking) = (monitor_of(invitation), monitor_of(invitation));
        for _ in 0..test_support::scaled(20, 1000) {
            let Claim::Ours(right) = holder.claim(NOW).unwrap() else { panic!() };
            let withdrawal = &Withdrawal::new();
            std::thread::scope(|scope| {
                let gone: Vec<_> = (0..8)
                    .map(|_| scope.spawn(|| asking.claim_unless(withdrawal, Duration::MAX)))
                    .collect();
                asking.withdraw(withdrawal);
                drop(right);
                let Claim::Ours(right) = holder.claim(NOW).unwrap() else { panic!() };
                for thread in gone {
                    assert!(matches!(thread.join().unwrap(), Ok(Claim::Theirs)));
                }
                // One that begins when its caller has left takes none, either.
                drop(right);
                let late = asking.claim_unless(withdrawal, Duration::MAX).unwrap();
                assert!(matches!(late, Claim::Theirs));
            });
        }
    }
}

alone! {
    /// Whatever it sleeps on: the word alone, or with a thread that watches the process.
    fn a_wait_that_was_left_is_over() {
        let token = Token::new().unwrap();
        for time in [Duration::from_millis(900), Duration::MAX] {
            let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
            let early = AtomicU32::new(0);
            for _ in 0..test_support::scaled(20, 1000) {
                let withdrawal = &Withdrawal::new();
                let wait = || {
                    let begun = Instant::now();
                    assert_eq!(monitor.wait_unless(withdrawal, time), None);
                    early.fetch_add(u32::from(begun.elapsed() < time), Ordering::Relaxed);
                };
                std::thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(wait);
                    }
                    monitor.withdraw(withdrawal);
                });
            }
            assert!(monitor.alive());
            // A machine may stall one of them for its whole time, but not all.
            assert_ne!(early.into_inner(), 0);
        }
    }
}

alone! {
    /// A fork has not the threads that were inside, and waits for none of them.
    fn a_fork_that_leaves_waits_for_nobody() {
        let token = Token::new().unwrap();
        let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
        let withdrawal = &Withdrawal::new();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| monitor.wait_unless(withdrawal, Duration::MAX));
            assert_eq!(sys::fork_running(|| {
                monitor.withdraw(withdrawal);
                0
            }), 0);
            monitor.withdraw(withdrawal);
            assert_eq!(waiting.join().unwrap(), None);
        });
    }
}
