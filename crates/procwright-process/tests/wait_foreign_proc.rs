//! A `/proc` of another pid namespace: `unshare --pid` without `--mount-proc`. Its
//! numbers are those of other processes.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;
use test_support::alone;

use procwright_process::Process;
use procwright_process::wait::Event;
use procwright_process::{Exit, Signal, named};
use test_support::sys;

/// Runs `body` as the first process of a pid namespace that has its parent's
/// `/proc`.
fn with_foreign_proc(test: &str, body: impl FnOnce()) {
    if !test_support::root_or_skip(test) {
        return;
    }
    if !sys::unshare_pids() {
        test_support::skip(test, "no pid namespace may be made here");
        return;
    }
    let status = sys::in_fork(|| {
        assert_eq!(std::process::id(), 1);
        body();
        0
    });
    assert_eq!(status, 0, "it failed in the namespace");
}

fn set_next_pid(pid: i32) {
    std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
}

alone! {
    fn the_status_of_a_namesake_is_not_its_own() {
        // Outside, a zombie that exited with code 7.
        let zombie = sys::fork_exiting(7);
        test_support::eventually(|| test_support::state(zombie) == Some('Z'));
        with_foreign_proc("the_status_of_a_namesake_is_not_its_own", || {
            // Inside, another process's child with the same number, which lives.
            let (mut done, end) = std::io::pipe().unwrap();
            set_next_pid(zombie - 1);
            let parent = sys::fork_pausing_after(|| {
                set_next_pid(zombie);
                let child = sys::fork_pausing();
                (&end).write_all(&child.to_ne_bytes()).unwrap();
            });
            drop(end);
            let mut child = [0; 4];
            done.read_exact(&mut child).unwrap();
            let child = i32::from_ne_bytes(child);
            assert_eq!(child, zombie);
            let process = Process::open(child).unwrap();
            assert!(process.is_alive());
            assert!(process.name().is_err() && process.start_time().is_err());
            process.signal(Signal::KILL).unwrap();
            let exit = process.wait(None).unwrap().unwrap();
            assert_ne!(exit, Exit::Code(7), "that is the namesake's");
            assert_eq!(process.wait_for(Event::Reaped, Duration::from_millis(5)).unwrap(), None);
            sys::kill(parent, libc::SIGKILL);
        });
        sys::reap(zombie);
    }
}

alone! {
    fn nobody_is_found_by_the_name_of_a_namesake() {
        let mut outer = std::process::Command::new(test_children::path())
            .arg("sleep-forever")
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let pid = outer.id().cast_signed();
        with_foreign_proc("nobody_is_found_by_the_name_of_a_namesake", || {
            set_next_pid(pid);
            assert_eq!(sys::fork_pausing(), pid);
            // The process outside has another name.
            assert!(named("test-child").is_err());
        });
        outer.kill().unwrap();
        outer.wait().unwrap();
    }
}

alone! {
    fn a_pidfd_of_a_process_outside_names_nobody_here() {
        let outer = sys::fork_pausing();
        let pidfd = sys::pidfd(outer).unwrap();
        with_foreign_proc("a_pidfd_of_a_process_outside_names_nobody_here", || {
            // The pidfd's number is of use outside only.
            let copy = || pidfd.as_fd().try_clone_to_owned().unwrap();
            let error = Process::from_pidfd(copy()).unwrap_err();
            assert!(error.to_string().contains("namespace"), "{error}");
            sys::mount_proc();
            let error = Process::from_pidfd(copy()).unwrap_err();
            assert!(error.to_string().contains("namespace"), "{error}");
        });
        sys::kill(outer, libc::SIGKILL);
        sys::reap(outer);
        assert!(Process::from_pidfd(pidfd).is_err());
    }
}
