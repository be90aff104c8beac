//! Hosts that make it hard: SIGCHLD ignored, children stolen, system calls denied,
//! SIGPIPE at its default.

mod common;

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use test_support::alone;

use common::{Census, child, shown, stopped_when_ready, sys};
use procwright::process::{Exit, Signal, Stop, Unknown};
use procwright::{Command, Error, Process, Until};
use procwright_os::robust::{FACTS, ThreadWord};
use serde_json::json;

fn is(status: Exit, expected: Exit) -> bool {
    // Kernels before 6.15 do not remember the status, which then must not be guessed.
    status == expected || (status == Exit::Unknown(Unknown::ReapedElsewhere) && !remembers())
}

/// Whether this kernel tells a reaped child's status to the holder of a pidfd.
fn remembers() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map(|n| n.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (6, 15)
}

fn signalled(signal: Signal) -> Exit {
    Exit::Signal {
        signal,
        core: false,
    }
}

alone! {
    fn sigchld_is_ignored() {
        sys::ignore(libc::SIGCHLD);
        let before = Census::now();
        for code in [0, 1, 77, 255] {
            let output = child(&["exit", &code.to_string()]).run().unwrap();
            assert!(is(output.status(), Exit::Code(code)), "{:?}", output.status());
            assert_eq!(output.report.cpu_user, None);
        }
        let output = child(&["signal-self", "TERM"]).run().unwrap();
        assert!(is(output.status(), signalled(Signal::TERM)), "{:?}", output.status());
        assert!(matches!(Command::new("/no/such/program").run(), Err(Error::Spawn { .. })));
        assert!(matches!(child(&["show"]).cwd("/no/such").run(), Err(Error::Spawn { .. })));
        let output = stopped_when_ready(child(&["leader-term-child-ignore", "--print-ready"])
            .stop(Stop::new().with_grace(Duration::from_millis(10))), |_| {});
        assert!(is(output.status(), signalled(Signal::TERM)), "{:?}", output.status());
        assert!(output.report.survivors.is_empty());
        let output = child(&["flood", "--out", "1M"]).run().unwrap();
        assert_eq!(output.stdout.len(), 1 << 20);
        before.comes_back();
    }
}

alone! {
    fn somebody_reaps_every_child() {
        static OVER: AtomicBool = AtomicBool::new(false);
        static STOLEN: AtomicU64 = AtomicU64::new(0);
        let thief = std::thread::spawn(|| {
            while !OVER.load(Ordering::Relaxed) {
                if sys::reap_any() {
                    STOLEN.fetch_add(1, Ordering::Relaxed);
                } else {
                    std::thread::yield_now();
                }
            }
        });
        let before = Census::now();
        for round in 0..common::scaled(200, 5000) {
            let code = i32::try_from(round % 256).unwrap();
            let until = if round % 2 == 0 { Until::Eof } else { Until::Exit };
            let output = child(&["exit", &code.to_string()]).until(until).run().unwrap();
            assert!(is(output.status(), Exit::Code(code)), "{round}: {:?}", output.status());
        }
        for _ in 0..20 {
            assert!(matches!(Command::new("/no/such/program").run(), Err(Error::Spawn { .. })));
            let output = stopped_when_ready(child(&["ignore-term", "--print-ready"])
                .stop(Stop::new().with_grace(Duration::from_millis(1))), |_| {});
            assert!(is(output.status(), signalled(Signal::KILL)), "{:?}", output.status());
            assert!(output.report.survivors.is_empty());
        }
        before.comes_back();
        OVER.store(true, Ordering::Relaxed);
        thief.join().unwrap();
        assert!(STOLEN.load(Ordering::Relaxed) > 0, "nothing was stolen: this test shows nothing");
    }
}

fn stops_work() {
    let before = Census::now();
    for args in [
        &["ignore-term", "--print-ready"][..],
        &["leader-term-child-ignore", "--print-ready"],
        &["setsid-grandchild", "--ignore-term", "--print-ready"],
        &["stopped-member", "--print-ready"],
        &["fork-tree", "2", "3", "--ignore-term", "--print-ready"],
    ] {
        let pids = common::shared(Vec::new());
        let theirs = pids.clone();
        let output = stopped_when_ready(
            child(args).stop(Stop::new().with_grace(Duration::from_millis(20))),
            move |ready| theirs.lock().unwrap().extend_from_slice(ready),
        );
        assert!(
            output.report.survivors.is_empty(),
            "{args:?}: {:?}",
            output.report.survivors
        );
        let left: Vec<i32> = pids
            .lock()
            .unwrap()
            .iter()
            .copied()
            .filter(|pid| common::lives(*pid))
            .collect();
        assert!(left.is_empty(), "{args:?} leaves {left:?}");
    }
    for code in 0..50 {
        let output = child(&["exit", &code.to_string()]).run().unwrap();
        assert_eq!(output.status().code(), Some(code));
    }
    before.comes_back();
}

alone! {
    fn pidfd_open_is_not_known() {
        sys::deny(&[libc::SYS_pidfd_open], libc::ENOSYS);
        assert!(sys::pidfd(1).is_none());
        stops_work();
    }
}

alone! {
    fn pidfd_open_is_not_permitted() {
        sys::deny(&[libc::SYS_pidfd_open], libc::EPERM);
        assert!(sys::pidfd(1).is_none());
        stops_work();
    }
}

alone! {
    fn pidfd_send_signal_is_denied() {
        sys::deny(&[libc::SYS_pidfd_send_signal], libc::EPERM);
        stops_work();
    }
}

alone! {
    fn neither_pidfd_call_is_known() {
        sys::deny(&[libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal], libc::ENOSYS);
        stops_work();
    }
}

/// The status of a child is learnt, and no zombie left, where it cannot be waited for by
/// its descriptor; whatever a filter says to that, ECHILD for one.
fn ends_are_learnt() {
    stops_work();
    let before = Census::now();
    for code in [0, 1, 77] {
        let output = child(&["exit", &code.to_string()]).run().unwrap();
        assert_eq!(output.status(), Exit::Code(code));
        assert!(output.report.cpu_user.is_some());
    }
    let held = child(&["exit", "7"]).spawn().unwrap();
    assert_eq!(held.wait(None).unwrap(), Some(Exit::Code(7)));
    drop(held);
    // A group that its leader leaves: the leader's end is noted before it is reaped.
    let left = child(&["fork-holder", "0"])
        .process_group(0)
        .spawn()
        .unwrap();
    assert_eq!(left.wait(None).unwrap(), Some(Exit::Code(0)));
    assert_eq!(left.stop(), []);
    drop(left);
    // Dropped while it runs, a child is reaped in the background.
    drop(child(&["sleep", "0.05"]).spawn().unwrap());
    before.comes_back();
}

alone! {
    fn waits_by_descriptor_are_not_permitted() {
        sys::deny_wait_by_descriptor(libc::EPERM);
        ends_are_learnt();
    }
}

alone! {
    fn waits_by_descriptor_are_not_known() {
        sys::deny_wait_by_descriptor(libc::EINVAL);
        ends_are_learnt();
    }
}

alone! {
    fn waits_by_descriptor_find_no_child() {
        sys::deny_wait_by_descriptor(libc::ECHILD);
        ends_are_learnt();
    }
}

alone! {
    fn waits_by_descriptor_are_refused_where_somebody_reaps_every_child() {
        sys::deny_wait_by_descriptor(libc::EPERM);
        sys::ignore(libc::SIGCHLD);
        let before = Census::now();
        for code in [0, 1, 77] {
            let output = child(&["exit", &code.to_string()]).run().unwrap();
            assert!(is(output.status(), Exit::Code(code)), "{:?}", output.status());
        }
        before.comes_back();
    }
}

/// Makes a pid namespace for the next child of this thread, which is to be its process 1,
/// and has the library do what it tries in a child of its own. The namespace is as it was.
fn namespace_stays_empty(test: &str, act: impl FnOnce()) {
    if !sys::unshare_pids() {
        return test_support::skip(test, "no pid namespace can be made");
    }
    act();
    let children = [sys::fork_pausing(), sys::fork_pausing()];
    let numbers = children.map(|child| {
        let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("NSpid:"))
            .unwrap();
        line.split_whitespace().next_back().unwrap().to_owned()
    });
    assert_eq!(numbers, ["1", "2"]);
    children.into_iter().rev().for_each(sys::kill_and_reap);
}

alone! {
    fn calls_are_not_tried_in_a_new_pid_namespace() {
        sys::deny(&[libc::SYS_swapoff], libc::EPERM);
        namespace_stays_empty("calls_are_not_tried_in_a_new_pid_namespace", || {
            let own = Process::open(std::process::id().cast_signed()).unwrap();
            assert!(own.is_alive());
        });
    }
}

alone! {
    fn the_kernels_walk_is_not_tried_in_a_new_pid_namespace() {
        namespace_stays_empty("the_kernels_walk_is_not_tried_in_a_new_pid_namespace", || {
            // Whether the kernel marks the words of a thread is not known then.
            assert!(ThreadWord::hold(&[0; FACTS]).is_err());
        });
    }
}

fn nothing_leaks() {
    let file = File::open("/dev/zero").unwrap();
    let leaks: Vec<_> = (0..300).map(|_| sys::inheritable(&file)).collect();
    let passed = File::open("/dev/null").unwrap();
    let seen = shown(&child(&["show"]).pass_fd(passed, 77).run().unwrap());
    let fds = seen["fds"].as_object().unwrap();
    assert_eq!(fds.len(), 4, "{fds:?}");
    assert_eq!(fds["77"], json!("/dev/null"));
    drop(leaks);
}

alone! {
    fn close_range_is_not_known() {
        sys::deny(&[libc::SYS_close_range], libc::ENOSYS);
        nothing_leaks();
    }
}

alone! {
    fn close_range_is_not_permitted() {
        sys::deny(&[libc::SYS_close_range], libc::EPERM);
        nothing_leaks();
    }
}

alone! {
    fn epoll_is_denied() {
        sys::deny(&[libc::SYS_epoll_create1, libc::SYS_epoll_ctl], libc::EPERM);
        let output = child(&["flood", "--out", "8M", "--err", "8M", "--chunk", "4096"]).run().unwrap();
        let pattern = test_children::Pattern::new(test_children::Stream::Stdout, 1 << 16);
        assert_eq!(output.stdout.len(), 8 << 20);
        assert_eq!(pattern.mismatch(0, &output.stdout), None);
        stops_work();
    }
}

alone! {
    fn sigpipe_kills_the_host() {
        // Command-line programs put the default back like this.
        sys::default(libc::SIGPIPE);
        let before = Census::now();
        let big = vec![7_u8; 1 << 20];
        for _ in 0..50 {
            let output = child(&["close-stdin-exit", "5"]).stdin_bytes(big.clone()).run().unwrap();
            assert_eq!(output.status().code(), Some(5));
        }
        let output = child(&["close-stdin-exit", "6"])
            .stdin_iter(std::iter::repeat_with(|| Ok("x".repeat(100_000).into())))
            .run()
            .unwrap();
        assert_eq!(output.status().code(), Some(6));
        before.comes_back();
        // The calling thread still has its own mask.
        let seen = shown(&child(&["show"]).run().unwrap());
        assert_eq!(seen["sig_blocked"], json!([]));
        let blocked = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = blocked.lines().find(|line| line.starts_with("SigBlk")).unwrap();
        assert!(line.ends_with("0000000000000000"), "{line}");
        let pending = blocked.lines().find(|line| line.starts_with("SigPnd")).unwrap();
        assert!(pending.ends_with("0000000000000000"), "{pending}");
    }
}
