//! Nobody else is signalled, where numbers come round in milliseconds: stops of trees
//! that change all the time, in a pid namespace of 400 numbers, beside processes that
//! write down every signal that they get (`test-child among-strangers`).
//!
//! `STRESS=1` makes 10,000 stops of each kind. `ruby/test/test_strangers.rb` is the same
//! from Ruby.
#![allow(clippy::disallowed_methods)]

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use procwright::process::Stop;

/// What the driver is to do: this test program again, among strangers.
const DRIVER: &str = "PROCWRIGHT_TEST_DRIVER";
/// How many stops it makes.
const STOPS: &str = "PROCWRIGHT_TEST_STOPS";

const THREADS: usize = 4;
const NUMBERS: &str = "400";

/// Trees that change while they are looked at: storms of forks, sessions, and groups,
/// whose makers are gone before their members.
const LOADS: [&str; 6] = [
    "trap '' TERM; while :; do (sleep 0.02 &); done",
    "while :; do setsid sh -c 'sleep 0.03 & sleep 0.01 & :'; done",
    "set -m; while :; do (sleep 0.03 & sleep 0.02 & exit) & wait $!; done",
    "set -m; trap '' TERM; while :; do (setsid sleep 0.02 & exec sleep 0.01) | sleep 0.01; done",
    "while :; do (:) & (:) & (:) & wait; done >/dev/null",
    "(setsid sh -c 'for i in 1 2 3 4 5 6 7 8 9; do sleep 0.01 & wait; done' \
     </dev/null >/dev/null 2>&1 &) ; sleep 9",
];

fn among_strangers(driver: &str) {
    if !test_support::root_or_skip(driver) {
        return;
    }
    let stops = test_support::scaled(40, 10_000).to_string();
    let output = Command::new(test_children::path())
        .args(["among-strangers", "--numbers", NUMBERS])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "driver", "--nocapture"])
        .env(DRIVER, driver)
        .env(STOPS, &stops)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(77) {
        test_support::skip(
            driver,
            "no pid namespace with numbers of its own may be made",
        );
        return;
    }
    assert!(
        output.status.success(),
        "{}: {told}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let last = told.lines().rfind(|line| line.starts_with("strangers "));
    let stopped = told.lines().rfind(|line| line.contains(" stops, "));
    test_support::figure(&format!(
        "{driver}: {}, {}",
        stopped.unwrap_or("?"),
        last.unwrap_or("?")
    ));
}

#[test]
fn the_library_signals_no_stranger() {
    among_strangers("library");
}

#[test]
fn the_command_signals_no_stranger() {
    among_strangers("command");
}

/// Not a test: what is run among the strangers.
#[test]
fn driver() {
    let Ok(driver) = std::env::var(DRIVER) else {
        return;
    };
    let wanted: u32 = std::env::var(STOPS).unwrap().parse().unwrap();
    let (next, stopped) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while stopped.load(Ordering::Relaxed) < wanted {
                    let load = LOADS[next.fetch_add(1, Ordering::Relaxed) as usize % LOADS.len()];
                    let was_stopped = match driver.as_str() {
                        "library" => stop_by_library(load),
                        _ => stop_by_command(load),
                    };
                    // With 400 numbers a fork may fail for want of one.
                    if was_stopped {
                        let so_far = stopped.fetch_add(1, Ordering::Relaxed) + 1;
                        if so_far.is_multiple_of(500) {
                            println!("{so_far} stops so far");
                        }
                    } else {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
            });
        }
    });
    println!(
        "{} stops, {} starts",
        stopped.into_inner(),
        next.into_inner()
    );
}

fn stop_by_library(load: &str) -> bool {
    let stop = Stop::new().with_grace(Duration::from_millis(30));
    let result = procwright::Command::new("bash")
        .args(["-c", load])
        .timeout(Duration::from_millis(60))
        .stop(stop)
        .run();
    matches!(result, Err(procwright::Error::Stopped(_)))
}

fn stop_by_command(load: &str) -> bool {
    let status = Command::new(env!("CARGO_BIN_EXE_procwright"))
        .args([
            "run",
            "--timeout",
            "60ms",
            "--grace",
            "30ms",
            "--",
            "bash",
            "-c",
            load,
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.code() == Some(124))
}
