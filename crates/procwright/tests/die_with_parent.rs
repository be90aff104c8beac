//! Programs that must not outlive the process that runs them.

mod common;

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::Stdio;
use test_support::alone;

use common::{child, sys};
use procwright::process::Signal;

/// Runs a program for ever in a copy of this executable, and prints its pid.
#[test]
fn a_host_that_is_killed() {
    let name = "a_host_that_is_killed";
    let _dog = common::watchdog(name);
    if std::env::var_os("PROCWRIGHT_TEST_HOST").is_some() {
        // The run is made by a thread other than the main one, after another has ended.
        std::thread::spawn(|| {
            child(&["exit", "0"])
                .die_with_parent(Signal::KILL)
                .run()
                .unwrap()
        })
        .join()
        .unwrap();
        let run = || {
            child(&["ignore-term", "--print-ready"])
                .die_with_parent(Signal::KILL)
                .on_stdout_line(|line| {
                    common::say(&String::from_utf8_lossy(line));
                    Ok(())
                })
                .run()
        };
        panic!("{:?}", std::thread::spawn(run).join().unwrap());
    }
    let mut host = common::copy_of_test(name)
        .env("PROCWRIGHT_TEST_HOST", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(host.stderr.take().unwrap());
    let line = stderr
        .lines()
        .map(Result::unwrap)
        .find(|line| line.starts_with("ready "))
        .unwrap();
    let [pid] = common::ready_pids(line.as_bytes())[..] else {
        panic!("{line}")
    };
    let pidfd = sys::pidfd(pid).unwrap();
    assert!(common::lives(pid));
    host.kill().unwrap();
    host.wait().unwrap();
    // A pidfd is readable once the process has ended; the watchdog ends this test if it
    // has not.
    sys::wait_for_end(pidfd.as_fd());
}

alone! {
    fn threads_may_end() {
        // Each run is made by a thread that ends right after: the kernel watches the
        // thread that made the child, which must be none of these.
        let long = std::thread::spawn(|| {
            child(&["trickle", "20", "20"]).die_with_parent(Signal::KILL).run().unwrap()
        });
        for code in 0..30 {
            let text = code.to_string();
            let output = std::thread::spawn(move || {
                child(&["exit", &text]).die_with_parent(Signal::KILL).run().unwrap()
            });
            assert_eq!(output.join().unwrap().status().code(), Some(code));
        }
        let output = long.join().unwrap();
        assert!(output.success());
        assert!(output.stdout.ends_with(b"line 19\n"));
    }
}
