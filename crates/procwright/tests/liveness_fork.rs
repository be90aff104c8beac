//! A fork that comes while other threads are in the middle of something.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::sys;
use procwright::Process;
use procwright::liveness::{Monitor, State, Token};

/// Makes and drops a token and its monitors.
fn use_them() {
    let token = Token::new().unwrap();
    let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
    let ourselves = Process::open(std::process::id().cast_signed()).unwrap();
    let of_process = Monitor::of_process(&ourselves).unwrap();
    assert!(monitor.alive() && of_process.alive());
    drop(token);
    assert_eq!(monitor.state(), State::Released);
}

alone! {
    fn a_fork_works_whatever_other_threads_were_doing() {
        // What is made once and kept is made before.
        use_them();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| while !over.load(Ordering::Relaxed) { use_them() });
            }
            // Threads of the standard library's, which take a lock when they come
            // and go.
            scope.spawn(|| while !over.load(Ordering::Relaxed) {
                std::thread::spawn(|| {}).join().unwrap();
            });
            for _ in 0..common::scaled(200, 10_000) {
                assert_eq!(sys::in_fork(|| { use_them(); 0 }), 0);
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
