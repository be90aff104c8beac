//! A program's state at its start: what was asked for, and nothing private of its
//! parent's.

mod common;

use std::fs;
use test_support::alone;

use common::{child, shown, sys};
use procwright::process::Signal;
use procwright::spec::Account;
use serde_json::json;

/// The signals that the child ignores, without the two that the C library reserves: the
/// process that started the tests may ignore those.
fn ignored(seen: &serde_json::Value) -> Vec<i32> {
    let all = seen["sig_ignored"].as_array().unwrap().iter();
    all.map(|signal| i32::try_from(signal.as_i64().unwrap()).unwrap())
        .filter(|signal| ![32, 33].contains(signal))
        .collect()
}

alone! {
    fn a_clean_slate() {
        sys::default_signals();
        // The Rust runtime and hosts do this for themselves ...
        sys::ignore(libc::SIGPIPE);
        sys::ignore(libc::SIGXFSZ);
        sys::handle(libc::SIGUSR2);
        sys::handle(libc::SIGRTMAX());
        sys::mask(libc::SIGUSR1, true);
        sys::mask(libc::SIGRTMIN(), true);
        // ... and the user has asked for this (nohup, a job in the background).
        sys::ignore(libc::SIGHUP);
        sys::ignore(libc::SIGINT);
        let file = fs::File::open("/dev/zero").unwrap();
        let _leaks: Vec<_> = (0..5).map(|_| sys::inheritable(&file)).collect();
        let (outer_pgid, outer_sid) = (sys::pgid(), sys::sid());
        let (umask, nice) = (sys::umask(), sys::niceness());
        let report = child(&["show"]).run().unwrap();
        let seen = shown(&report);
        assert_eq!(seen["sig_blocked"], json!([]));
        assert_eq!(ignored(&seen), [libc::SIGHUP, libc::SIGINT]);
        assert_eq!(seen["pid"], report.report.pid);
        assert_eq!(seen["ppid"], std::process::id());
        assert_eq!((&seen["pgid"], &seen["sid"]), (&json!(outer_pgid), &json!(outer_sid)));
        assert_eq!((&seen["umask"], &seen["nice"]), (&json!(umask), &json!(nice)));
        assert_eq!(seen["pdeathsig"], json!(null));
        assert_eq!(seen["nonblocking"], json!([]));
        let fds = seen["fds"].as_object().unwrap();
        assert_eq!(fds.keys().collect::<Vec<_>>(), ["0", "1", "2"], "{fds:?}");
        assert_eq!(fds["0"], "/dev/null");
        assert_ne!(fds["1"], fds["2"]);
        // This process has kept its own.
        assert_eq!((sys::umask(), sys::niceness()), (umask, nice));
    }
}

alone! {
    fn a_signal_ignored_for_itself_by_a_host_comes_back() {
        sys::default_signals();
        sys::ignore(libc::SIGCHLD);
        let output = child(&["show"]).run().unwrap();
        assert!(ignored(&serde_json::from_slice(&output.stdout).unwrap()).is_empty());
    }
}

alone! {
    fn what_was_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let nice = sys::niceness();
        let before = (sys::umask(), std::env::current_dir().unwrap(), sys::nofile());
        let seen = shown(&child(&["show"])
            .cwd(&path)
            .umask(0o137)
            .nice(3)
            .rlimit("nofile", 50, 60)
            .rlimit("RLIMIT_CORE", 0, 0)
            .run()
            .unwrap());
        assert_eq!(seen["cwd"], path.to_str().unwrap());
        assert_eq!(seen["umask"], 0o137);
        assert_eq!(seen["nice"], nice + 3);
        assert_eq!(seen["rlimit_nofile"], json!([50, 60]));
        assert_eq!(seen["rlimit_core"], json!([0, 0]));
        assert_eq!(before, (sys::umask(), std::env::current_dir().unwrap(), sys::nofile()));
    }
}

alone! {
    fn sessions_and_groups() {
        let (outer_pgid, outer_sid) = (sys::pgid(), sys::sid());
        let seen = shown(&child(&["show"]).new_session().run().unwrap());
        assert_eq!((&seen["sid"], &seen["pgid"]), (&seen["pid"], &seen["pid"]));
        let seen = shown(&child(&["show"]).process_group(0).run().unwrap());
        assert_eq!((&seen["sid"], &seen["pgid"]), (&json!(outer_sid), &seen["pid"]));
        let seen = shown(&child(&["show"]).process_group(outer_pgid).run().unwrap());
        assert_eq!(seen["pgid"], outer_pgid);
        let stop = procwright::process::Stop::new().with_scope(procwright::process::Scope::Group);
        let seen = shown(&child(&["show"]).stop(stop).run().unwrap());
        assert_eq!(seen["pgid"], seen["pid"]);
    }
}

alone! {
    fn death_signals() {
        let seen = shown(&child(&["show"]).die_with_parent(Signal::TERM).run().unwrap());
        assert_eq!(seen["pdeathsig"], libc::SIGTERM);
        assert_eq!(seen["ppid"], std::process::id());
        assert_eq!(seen["sig_blocked"], json!([]));
    }
}

alone! {
    fn credentials() {
        if !common::root_or_skip("credentials") { return; }
        let all = shown(&child(&["show"])
            .user(Account::Id(65534))
            .group(Account::Id(65533))
            .extra_groups(vec![Account::Id(7), Account::Name("root".into())])
            .die_with_parent(Signal::KILL)
            .run()
            .unwrap());
        for key in ["uid", "euid"] { assert_eq!(all[key], 65534); }
        for key in ["gid", "egid"] { assert_eq!(all[key], 65533); }
        let mut groups: Vec<u64> = all["groups"].as_array().unwrap().iter().map(|g| g.as_u64().unwrap()).collect();
        groups.sort_unstable();
        assert_eq!(groups, [0, 7]);
        // A change of credentials cancels the request; so the request comes after it.
        assert_eq!(all["pdeathsig"], libc::SIGKILL);
        let user = shown(&child(&["show"]).user(Account::Name("nobody".into())).run().unwrap());
        assert_eq!((&user["uid"], &user["gid"]), (&json!(65534), &json!(0)));
        let none = shown(&child(&["show"]).extra_groups(Vec::new()).run().unwrap());
        assert_eq!((&none["groups"], &none["uid"]), (&json!([]), &json!(0)));
        // Only the child was changed.
        assert_eq!((sys::uid(), sys::effective_uid()), (0, 0));
    }
}

alone! {
    fn a_handler_of_the_parent_never_runs_in_the_child() {
        // A handler that ran in the child, which shares our memory until exec, would
        // count here: signals come all the time.
        use std::sync::atomic::{AtomicBool, Ordering};
        static OVER: AtomicBool = AtomicBool::new(false);
        sys::handle(libc::SIGUSR2);
        let pid = i32::try_from(std::process::id()).unwrap();
        let storm = std::thread::spawn(move || {
            while !OVER.load(Ordering::Relaxed) {
                sys::kill(pid, libc::SIGUSR2);
            }
        });
        for round in 0..common::scaled(100, 2000) {
            let text = round.to_string();
            let output = child(&["echo", &text]).stdin_bytes("x").run().unwrap();
            assert_eq!(output.stdout, format!("{text}\n").as_bytes());
        }
        OVER.store(true, Ordering::Relaxed);
        storm.join().unwrap();
    }
}

alone! {
    fn ignored_by_request() {
        sys::default_signals();
        sys::ignore(libc::SIGXFSZ);
        let asked = [Signal::PIPE, Signal::CHLD, Signal::USR1];
        let seen = shown(&child(&["show"]).ignored_signals(asked).run().unwrap());
        assert_eq!(ignored(&seen), [libc::SIGUSR1, libc::SIGPIPE, libc::SIGCHLD]);
        let refused = child(&["show"]).ignored_signals([Signal::STOP]).run().unwrap_err();
        assert!(refused.to_string().contains("SIGSTOP"), "{refused}");
    }
}
