//! Hosts that make it hard: SIGCHLD ignored, children stolen, system calls denied,
//! SIGPIPE at its default.

mod common;

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use test_support::alone;

use common::{Census, child, shown, stopped_when_ready, sys};
use procwright::process::{Exit, Signal, Stop, Unknown};
use procwright::{Command, Error, Until};
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
