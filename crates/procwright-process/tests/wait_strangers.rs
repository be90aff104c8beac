//! Processes that are not children: when they ended, when they were reaped, and how;
//! never by a guess.

use std::time::{Duration, Instant};
use test_support::alone;

use procwright_os::time::Timeout;
use procwright_process::Process;
use procwright_process::wait::{Event, Outcome, WaitSet, Want};
use procwright_process::{Exit, Signal, Unknown};
use test_support::family::{Family, remembers};
use test_support::{Census, sys};

const NOBODY: u32 = 65534;
const A_WHILE: Duration = Duration::from_millis(40);

/// Waits in vain, at least for `A_WHILE`.
#[track_caller]
fn assert_wait_in_vain(process: &Process, event: Event) {
    let begun = Instant::now();
    assert_eq!(process.wait_for(event, A_WHILE).unwrap(), None);
    assert!(begun.elapsed() >= A_WHILE);
    let begun = Instant::now();
    let mut set = WaitSet::new().unwrap();
    set.add(process, event).unwrap();
    let waited = set.wait(Want::All, A_WHILE).unwrap();
    assert_eq!((waited.ended.len(), waited.outcome), (0, Outcome::TimedOut));
    assert!(begun.elapsed() >= A_WHILE);
}

/// Expects the true status where the kernel remembers it, and "unknown" elsewhere.
#[track_caller]
fn assert_exit_if_remembered(process: &Process, truth: Exit) {
    match process.exit() {
        Some(Exit::Unknown(Unknown::NotTold)) if !remembers() => {}
        told => assert_eq!(told, Some(truth)),
    }
}

fn after(signal: Signal) -> Exit {
    Exit::Signal {
        signal,
        core: false,
    }
}

alone! {
    fn exited_and_reaped_are_two_events() {
        let before = Census::now();
        for code in [0, 1, 3, 77, 255] {
            let mut family = Family::obeying();
            let stranger = family.stranger();
            assert_wait_in_vain(&stranger, Event::Exited);
            assert_wait_in_vain(&stranger, Event::Reaped);
            assert!(stranger.is_alive());
            assert_eq!(stranger.exit(), None);

            family.order(&format!("exit {code}"));
            // A zombie of this user shows its status.
            assert_eq!(stranger.wait(Timeout::NEVER).unwrap(), Some(Exit::Code(code)));
            assert!(!stranger.is_alive());
            // The zombie keeps its number and its name until it is reaped.
            assert_eq!(stranger.name().unwrap(), "test-child");
            assert_eq!(Process::open_id(stranger.id()).unwrap(), stranger);
            let late = family.stranger();
            assert_wait_in_vain(&stranger, Event::Reaped);
            assert_wait_in_vain(&late, Event::Reaped);

            // The status is asked for by a thread that waits, and by a handle that was
            // opened late.
            let waiting = stranger.clone();
            let waiter = std::thread::spawn(move || waiting.wait_for(Event::Reaped, Timeout::NEVER));
            assert_eq!(family.reap(), Exit::Code(code));
            assert_eq!(waiter.join().unwrap().unwrap(), Some(Exit::Code(code)));
            assert!(late.wait_for(Event::Reaped, Timeout::NEVER).unwrap().is_some());
            assert_exit_if_remembered(&late, Exit::Code(code));
            assert!(stranger.name().is_err() && late.name().is_err());
            assert!(Process::open_id(stranger.id()).is_err());
        }
        before.comes_back();
    }
}

alone! {
    fn signals_and_cores() {
        let directory = tempfile::tempdir().unwrap();
        let mut dumped = 0;
        for signal in [Signal::KILL, Signal::TERM, Signal::USR1, Signal::ABRT, Signal::SEGV, Signal::QUIT] {
            // Asked for before the reap ...
            let mut family = Family::start(&["obey"], directory.path());
            let (early, late) = (family.stranger(), family.stranger());
            family.order(&format!("signal {}", signal.number()));
            let told = early.wait(Timeout::NEVER).unwrap();
            let truth = family.reap();
            assert_eq!(told, Some(truth));
            assert_eq!(truth.signal(), Some(signal));
            dumped += u32::from(matches!(truth, Exit::Signal { core: true, .. }));
            // ... and by a handle that had not asked before.
            assert_exit_if_remembered(&late, truth);
        }
        if dumped == 0 {
            test_support::skip("signals_and_cores", "no core is dumped here (ulimit -Hc, core_pattern): the flag was not seen set");
        }
    }
}

alone! {
    fn another_users() {
        // Root's processes, asked about by user nobody. Without root, the questions are
        // about this user's own processes, which are answered earlier.
        let root = sys::effective_uid() == 0;
        let mut families: Vec<_> = ["exit 0", "exit 3", "exit 255", "signal 9"]
            .into_iter()
            .map(|order| (Family::obeying(), order))
            .collect();
        if root {
            sys::become_user(NOBODY);
        }
        for (family, order) in &mut families {
            let stranger = family.stranger();
            assert_wait_in_vain(&stranger, Event::Exited);
            if root {
                let error = stranger.signal(Signal::TERM).unwrap_err();
                assert_eq!(error.errno(), libc::EPERM, "{error}");
                let error = stranger.exe().unwrap_err();
                assert_eq!(error.errno(), libc::EACCES, "{error}");
            }
            assert!(stranger.is_alive());
            assert_eq!(stranger.name().unwrap(), "test-child");
            family.order(order);
            let told = stranger.wait(Timeout::NEVER).unwrap();
            if root {
                // Not "exit code 0", above all.
                assert_eq!(told, Some(Exit::Unknown(Unknown::NotReaped)), "{order}");
                // A handle that was opened late gets this answer too.
                assert_eq!(family.stranger().exit(), Some(Exit::Unknown(Unknown::NotReaped)), "{order}");
            }
            assert_wait_in_vain(&stranger, Event::Reaped);
            // No call waits long for a status that may never be told.
            Process::linger([&stranger]);
            let truth = family.reap();
            assert!(stranger.wait_for(Event::Reaped, Timeout::NEVER).unwrap().is_some());
            // The status is unknown for a time, and not for ever.
            assert_exit_if_remembered(&stranger, truth);
            assert_eq!(format!("{truth:?}"), match *order {
                "signal 9" => format!("{:?}", after(Signal::KILL)),
                _ => format!("Code({})", &order[5..]),
            });
        }
    }
}

alone! {
    fn reaped_by_the_kernel() {
        let mut family = Family::obeying();
        let stranger = family.stranger();
        family.ask("ignore", "ignoring");
        family.order("exit 7");
        // The process was never a zombie: exited and reaped at once.
        assert!(stranger.wait_for(Event::Reaped, Timeout::NEVER).unwrap().is_some());
        assert_exit_if_remembered(&stranger, Exit::Code(7));
    }
}

alone! {
    fn the_parent_dies_first() {
        // Init reaps the orphan; or the subreaper that adopts it, possibly this test's
        // host.
        let before = Census::now();
        let family = Family::obeying();
        let stranger = family.stranger();
        drop(family); // kills and reaps it
        assert!(stranger.wait_for(Event::Reaped, Timeout::NEVER).unwrap().is_some());
        assert_exit_if_remembered(&stranger, after(Signal::KILL));
        drop(stranger);
        before.comes_back();
    }
}

alone! {
    fn a_stranger_without_proc() {
        // The pidfd is all that is needed to wait and, since Linux 6.15, to know the
        // status.
        let mut family = Family::obeying();
        let stranger = family.stranger();
        sys::deny(&[libc::SYS_open, libc::SYS_openat, libc::SYS_openat2, libc::SYS_readlinkat, libc::SYS_readlink], libc::EACCES);
        assert!(std::fs::File::open("/proc/self/stat").is_err());
        assert_wait_in_vain(&stranger, Event::Exited);
        let again = family.stranger();
        assert_eq!(again.id(), stranger.id());
        family.order("exit 0");
        let told = stranger.wait(Timeout::NEVER).unwrap();
        assert_eq!(told, Some(Exit::Unknown(Unknown::NotReaped)));
        family.reap();
        assert!(stranger.wait_for(Event::Reaped, Timeout::NEVER).unwrap().is_some());
        assert_exit_if_remembered(&stranger, Exit::Code(0));
        assert_exit_if_remembered(&again, Exit::Code(0));
    }
}

alone! {
    fn numbers_that_no_process_has() {
        for pid in [0, -1, i32::MIN] {
            assert_eq!(Process::open(pid).unwrap_err().errno(), 0);
        }
        // Above the largest possible pid (2^22).
        for pid in [1 << 22, i32::MAX] {
            assert_eq!(Process::open(pid).unwrap_err().errno(), libc::ESRCH);
        }
        // A thread is not a process.
        let (told, tell) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
        let thread = std::thread::spawn(move || {
            told.0.send(sys::thread_id()).unwrap();
            let _ = tell.1.recv();
        });
        let id = told.1.recv().unwrap();
        let opened = Process::open(id);
        drop(tell.0);
        thread.join().unwrap();
        assert_eq!(opened.unwrap_err().errno(), libc::ESRCH);
        // A process that was reaped.
        let mut over = std::process::Command::new(test_children::path()).args(["exit", "0"]).spawn().unwrap();
        let pid = over.id() as i32;
        over.wait().unwrap();
        assert_eq!(Process::open(pid).unwrap_err().errno(), libc::ESRCH);
        // Another child ends normally.
        let status = std::process::Command::new(test_children::path()).args(["exit", "0"]).status();
        assert!(status.unwrap().success());
    }
}
