//! Programs that must not outlive the process that runs them.

mod common;

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::Stdio;
use test_support::alone;

use common::{child, sys};
use procwright::error::Step;
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

/// The facts of a program that was started in the usual way and of one that dies with this
/// process, both by the calling thread.
fn both_ways() -> [Vec<String>; 2] {
    let sleeper = || child(&["sleep-forever"]);
    [sleeper(), sleeper().die_with_parent(Signal::KILL)].map(|command| {
        let child = command.spawn_with(None).unwrap();
        let facts = sys::confinement(child.pid());
        child.signal(Signal::KILL).unwrap();
        child.wait(None).unwrap();
        facts
    })
}

alone! {
    fn the_program_has_no_more_than_the_thread_that_starts_it() {
        let dir = tempfile::tempdir().unwrap();
        let [free, _] = both_ways();
        let [confined, dies_with_us] = std::thread::scope(|scope| {
            let started = scope.spawn(|| {
                sys::confine_this_thread(dir.path());
                both_ways()
            });
            started.join().unwrap()
        });
        assert_eq!(dies_with_us, confined);
        let has = |line: &str| assert!(confined.iter().any(|fact| fact == line), "{confined:#?}");
        has("NoNewPrivs:\t1");
        has("Seccomp:\t2");
        has("timerslack_ns 123456");
        has("personality 00040000");
        let changed = free.iter().filter(|fact| !confined.contains(fact)).count();
        assert!(changed >= 8, "little was taken from the thread: {free:#?} {confined:#?}");
        // The other threads, and what they start, have what they had.
        assert_eq!(both_ways(), [free.clone(), free]);
    }
}

alone! {
    fn what_landlock_forbids_the_thread() {
        // Made first, so that a thread which serves all starts would be from before.
        child(&["exit", "0"]).die_with_parent(Signal::KILL).run().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let mkdir = procwright::Command::new("mkdir").arg(dir.path().join(name));
            mkdir.die_with_parent(Signal::KILL).run().unwrap().success()
        };
        assert!(make("before"));
        let made = std::thread::scope(|scope| {
            let forbidden = scope.spawn(|| {
                sys::forbid_directories_by_landlock().then(|| make("under it"))
            });
            forbidden.join().unwrap()
        });
        let Some(made) = made else {
            return test_support::skip("what_landlock_forbids_the_thread", "there is no Landlock here");
        };
        assert!(!made, "the program has made a directory");
        assert!(make("in another thread"));
    }
}

alone! {
    fn a_thread_whose_children_are_in_another_pid_namespace() {
        let test = "a_thread_whose_children_are_in_another_pid_namespace";
        if !test_support::root_or_skip(test) { return; }
        let refused = std::thread::spawn(|| {
            if !sys::unshare_pids() {
                return None;
            }
            Some(child(&["exit", "0"]).die_with_parent(Signal::KILL).run())
        });
        let Some(refused) = refused.join().unwrap() else {
            return test_support::skip(test, "no pid namespace may be made here");
        };
        // No thread of this process can be the parent there.
        let Err(procwright::Error::Spawn { source, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((source.step, source.errno()), (Step::Thread, libc::EINVAL));
        assert!(source.hint.unwrap().contains("unshare"));
    }
}

alone! {
    fn its_thread_lives_as_long_as_the_program() {
        let before = common::Census::now();
        let spawners = || common::threads().iter().filter(|name| *name == "procwright-spaw").count();
        let children: Vec<_> = (0..5)
            .map(|_| {
                let sleeper = child(&["sleep-forever"]).die_with_parent(Signal::KILL);
                sleeper.spawn_with(None).unwrap()
            })
            .collect();
        assert_eq!(spawners(), 5);
        for (ended, child) in (1..).zip(&children) {
            child.signal(Signal::KILL).unwrap();
            child.wait(None).unwrap();
            common::eventually(|| spawners() == 5 - ended);
        }
        // One that does not start leaves none, either.
        let missing = procwright::Command::new("/no/such/program").die_with_parent(Signal::KILL);
        assert!(missing.run().is_err());
        drop(children);
        before.comes_back();
    }
}
