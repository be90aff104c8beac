//! Forks while other threads are in the middle of something.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use test_support::alone;

use procwright_liveness::{Monitor, State, Token};
use procwright_process::Process;
use test_support::sys;

/// Makes and drops a token and its monitors.
fn use_tokens() {
    let token = Token::new().unwrap();
    let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
    let ourselves = Process::open(std::process::id().cast_signed()).unwrap();
    let of_process = Monitor::of_process(&ourselves).unwrap();
    assert!(monitor.alive() && of_process.alive());
    drop(token);
    assert_eq!(monitor.state(), State::Released);
}

/// Forks again and again while two threads work; each fork uses tokens and monitors.
fn forks_while(two_threads: fn()) {
    // Everything that is made once per process is made before.
    use_tokens();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    two_threads();
                }
            });
        }
        for _ in 0..test_support::scaled(500, 10_000) {
            let code = sys::in_fork(|| {
                use_tokens();
                0
            });
            assert_eq!(code, 0);
        }
        over.store(true, Ordering::Relaxed);
    });
}

alone! {
    fn a_fork_works_whatever_is_done_with_tokens() {
        forks_while(use_tokens);
    }
}

alone! {
    fn a_fork_works_whatever_threads_come_and_go() {
        forks_while(|| {
            let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(|| {})).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

alone! {
    fn a_fork_can_use_a_monitor_that_another_thread_is_about_to_use() {
        use_tokens();
        let token = Token::new().unwrap();
        let current = Mutex::new(None);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
                    let monitor = Arc::new(monitor);
                    *current.lock().unwrap() = Some(Arc::clone(&monitor));
                    monitor.readiness_fd().unwrap();
                }
            });
            for _ in 0..test_support::scaled(500, 10_000) {
                let monitor = current.lock().unwrap().clone();
                let code = sys::in_fork(|| {
                    // Made before the fork or not: the fork does not hang.
                    if let Some(monitor) = monitor {
                        let _ = monitor.readiness_fd();
                    }
                    0
                });
                assert_eq!(code, 0);
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
