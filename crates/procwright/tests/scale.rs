//! Many runs, at once and in a row: the results are right, and nothing grows.

mod common;

use common::{Census, child, scaled};
use test_support::alone;

alone! {
    fn many_at_once() {
        let (threads, rounds) = (64, scaled(20, 200));
        let before = Census::now();
        let ((), took) = common::timed(|| {
            let all: Vec<_> = (0..threads).map(|thread| std::thread::spawn(move || {
                for round in 0..rounds {
                    let text = format!("{thread}-{round}");
                    let output = match round % 4 {
                        0 => child(&["echo", &text]).run(),
                        1 => child(&["cat"]).stdin_bytes(format!("{text}\n")).run(),
                        2 => child(&["echo", &text]).new_session().umask(0o77).run(),
                        _ => child(&["echo", "--stderr", &text]).stderr(procwright::Sink::Merged).run(),
                    };
                    let output = output.unwrap();
                    assert_eq!(output.stdout, format!("{text}\n").as_bytes());
                    assert!(output.success() && output.stderr.is_empty());
                }
            })).collect();
            for thread in all { thread.join().unwrap(); }
        });
        before.comes_back();
        common::figure(&format!("{threads} threads x {rounds} runs in {took:?}"));
    }
}

alone! {
    fn many_in_a_row() {
        let rounds = scaled(500, 20_000);
        // The first runs warm up the allocator.
        for _ in 0..100 { child(&["echo", "x"]).run().unwrap(); }
        let before = Census::now();
        let base = common::reset_peak();
        let ((), took) = common::timed(|| for round in 0..rounds {
            let text = round.to_string();
            let output = child(&["echo", &text]).run().unwrap();
            assert_eq!(output.stdout, format!("{text}\n").as_bytes());
            // No helper thread exists either, not for a moment.
            if round % 50 == 0 { before.unchanged(); }
        });
        before.unchanged();
        let grown = common::status_bytes("VmRSS").saturating_sub(base);
        common::figure(&format!("{rounds} runs in a row in {took:?}, memory grew by {} KiB", grown >> 10));
        assert!(grown < 1 << 20, "{grown}");
    }
}

alone! {
    fn a_plain_run_has_no_helper_thread() {
        // The creation of a thread ends the process from here on. (The C library makes
        // threads by clone3; a program is started by another call.)
        common::sys::kill_on(&[libc::SYS_clone3]);
        for _ in 0..20 {
            common::shown(&child(&["show"]).run().unwrap());
        }
        let input = vec![0; 1 << 20];
        assert_eq!(child(&["cat"]).stdin_bytes(input).run().unwrap().stdout.len(), 1 << 20);
        child(&["flood", "--out", "8M"]).timeout(std::time::Duration::from_secs(1000)).run().unwrap();
        common::stopped(child(&["sleep-forever"]).timeout(std::time::Duration::from_millis(20)).run());
        child(&["fork-holder", "50"]).until(procwright::Until::Exit).run().unwrap();
        // The filter works.
        if std::env::var_os("PROCWRIGHT_TEST_THREAD").is_some() {
            let _ = std::thread::spawn(|| ()).join();
        }
    }
}

#[test]
fn the_filter_of_that_test_kills() {
    let name = "a_plain_run_has_no_helper_thread";
    let output = common::copy_of_test(name)
        .env("PROCWRIGHT_TEST_THREAD", "1")
        .output()
        .unwrap();
    assert!(!output.status.success());
}
