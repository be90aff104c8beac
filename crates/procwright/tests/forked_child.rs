//! Children in a fork of the process that has started them: the fork has no part in them.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use procwright::process::{Signal, Stop};
use procwright::{Child, Command};
use test_support::{alone, eventually, sys};

/// A child that ignores SIGTERM and has said so.
fn stubborn() -> Child {
    let mut child = Command::new(test_children::path())
        .args(["ignore-term", "--print-ready"])
        .spawn()
        .unwrap();
    let mut ready = [0; 5];
    child.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    assert_eq!(&ready, b"ready");
    child
}

/// What a fork says that lives as long as it should: 0.
fn in_a_fork(work: impl FnOnce() -> bool) -> i32 {
    sys::in_fork(|| {
        // Ends a fork that waits for a lock which no thread in it will release.
        sys::default(libc::SIGALRM);
        sys::alarm(120);
        i32::from(!work())
    })
}

fn patient() -> Stop {
    Stop::new().with_grace(Duration::from_secs(3600))
}

fn kill(child: &Child) {
    assert!(
        child
            .stop_with(Stop::new().with_signal(Signal::KILL))
            .is_empty()
    );
}

alone! {
    fn a_fork_leaves_it_to_its_parent() {
        let child = stubborn();
        let status = in_a_fork(|| {
            let left = child.stop_with(Stop::new().with_signal(Signal::KILL));
            !child.is_ours() && left.len() == 1 && left[0].pid == Some(child.pid()) && child.try_wait().is_none()
        });
        assert_eq!(status, 0);
        assert!(child.try_wait().is_none(), "the fork has ended it");
        kill(&child);
        assert_eq!(in_a_fork(|| child.stop().is_empty()), 0);
    }
}

alone! {
    fn a_fork_waits_for_no_stop_of_its_parents() {
        let child = stubborn();
        let (interrupt, mut end) = std::io::pipe().unwrap();
        let (begun, is_begun) = std::io::pipe().unwrap();
        thread::scope(|scope| {
            let stopping = scope.spawn(|| {
                let mut is_begun = is_begun;
                child.stop_watching(patient(), interrupt.as_fd(), || {
                    let first = is_begun.write_all(b"x").is_ok();
                    (&interrupt).read_exact(&mut [0]).unwrap();
                    match first { true => Ok(()), false => Err(()) }
                })
            });
            // Its stop is under way once it looks at the interrupt.
            end.write_all(b"x").unwrap();
            let mut begun = begun;
            begun.read_exact(&mut [0]).unwrap();
            let status = in_a_fork(|| {
                child.try_wait().is_none() && child.stop().len() == 1 && child.try_wait().is_none()
            });
            drop(begun);
            end.write_all(b"x").unwrap();
            let _ = stopping.join().unwrap();
            assert_eq!(status, 0);
        });
    }
}

alone! {
    fn a_fork_inside_a_stop_goes_on_with_nothing() {
        let child = stubborn();
        let (interrupt, mut end) = std::io::pipe().unwrap();
        end.write_all(b"x").unwrap();
        let parent = std::process::id();
        let (survivors, asked) = child.stop_watching(patient(), interrupt.as_fd(), || {
            (&interrupt).read_exact(&mut [0]).unwrap();
            let pid = test_support::forked::fork();
            if pid == 0 {
                // The fork is told to end the grace.
                return Err(());
            }
            let code = test_support::forked::wait_code(pid);
            assert_eq!(code, 0);
            assert!(child.try_wait().is_none(), "the fork has ended it");
            Err(())
        });
        if std::process::id() != parent {
            test_support::forked::exit(i32::from(survivors.len() != 1));
        }
        assert_eq!(asked, Err(()));
        assert!(survivors.is_empty());
        eventually(|| child.try_wait().is_some());
    }
}
