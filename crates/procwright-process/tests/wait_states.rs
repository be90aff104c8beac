//! Processes in odd states: which of them count as alive, and how they ended in the
//! end.

use std::time::{Duration, Instant};
use test_support::alone;

use procwright_os::time::Timeout;
use procwright_process::Process;
use procwright_process::wait::{Event, WaitSet, Want};
use procwright_process::{Exit, ProcessError, Signal, Unknown};
use test_support::family::Family;
use test_support::sys;

const A_WHILE: Duration = Duration::from_millis(30);

/// The process is alive, and waits for its end time out.
#[track_caller]
fn assert_alive(process: &Process) {
    let begun = Instant::now();
    assert!(process.is_alive());
    assert_eq!(process.exit(), None);
    assert_eq!(process.wait(A_WHILE).unwrap(), None);
    let mut set = WaitSet::new().unwrap();
    set.add(process, Event::Exited).unwrap();
    set.add(process, Event::Reaped).unwrap();
    assert!(set.wait(Want::Any, A_WHILE).unwrap().ended.is_empty());
    assert!(begun.elapsed() >= 2 * A_WHILE);
    assert_eq!(Process::open(process.pid()).unwrap(), *process);
}

/// Polls until the process has this state letter: no event announces it.
fn wait_for_state(pid: i32, letter: char) {
    test_support::eventually(|| test_support::state(pid) == Some(letter));
}

alone! {
    fn one_that_execs_stays_the_same() {
        for how in ["exec", "thread-exec"] {
            let mut family = Family::obeying();
            let stranger = family.stranger();
            let began = stranger.start_time().unwrap();
            let waiting = stranger.clone();
            let waiter = std::thread::spawn(move || waiting.wait(Timeout::NEVER));
            for _ in 0..5 {
                family.ask(&format!("{how} obey --print-ready"), &format!("ready {}", family.child));
                assert_alive(&stranger);
            }
            // Exact to 10 ms, plus the steps of the wall clock meanwhile.
            let differs = began.duration_since(stranger.start_time().unwrap());
            let differs = differs.unwrap_or_else(|error| error.duration());
            test_support::figure(&format!("start times told around {how} differ by {differs:?}"));
            // The exit status is the new program's.
            family.order(&format!("{how} exit 42"));
            assert_eq!(waiter.join().unwrap().unwrap(), Some(Exit::Code(42)));
            assert_eq!(family.reap(), Exit::Code(42));
        }
    }
}

alone! {
    fn one_whose_first_thread_has_ended() {
        let mut family = Family::obeying();
        let early = family.stranger();
        family.ask("leader-exit", "left");
        wait_for_state(family.child, 'Z');
        assert_alive(&early);
        assert_alive(&family.stranger());
        assert_eq!(early.name().unwrap(), "test-child");
        // The process takes signals like any other.
        early.signal(Signal::STOP).unwrap();
        assert_alive(&early);
        early.signal(Signal::CONT).unwrap();
        family.order("exit 7");
        assert_eq!(early.wait(Timeout::NEVER).unwrap(), Some(Exit::Code(7)));
        assert_eq!(family.reap(), Exit::Code(7));
        assert_eq!(early.exit(), Some(Exit::Code(7)));
    }
}

alone! {
    fn one_whose_first_thread_has_ended_is_killed() {
        let mut family = Family::obeying();
        let stranger = family.stranger();
        family.ask("leader-exit", "left");
        wait_for_state(family.child, 'Z');
        stranger.signal(Signal::KILL).unwrap();
        let told = stranger.wait(Timeout::NEVER).unwrap();
        assert_eq!(told.and_then(Exit::signal), Some(Signal::KILL));
        assert_eq!(told, Some(family.reap()));
    }
}

alone! {
    fn one_whose_threads_end_one_by_one() {
        // No exit_group(2): the status is the first thread's, 0.
        let mut family = Family::obeying();
        let stranger = family.stranger();
        family.ask("leader-exit", "left");
        wait_for_state(family.child, 'Z');
        assert_alive(&stranger);
        family.order("thread-exit 9");
        let told = stranger.wait(Timeout::NEVER).unwrap();
        assert_eq!(told, Some(family.reap()));
    }
}

alone! {
    fn the_status_of_a_process_that_outlived_its_first_thread() {
        // The status is asked for only after the reap: from the kernel's memory.
        let mut family = Family::obeying();
        let stranger = family.stranger();
        family.ask("leader-exit", "left");
        wait_for_state(family.child, 'Z');
        family.order("exit 7");
        let truth = family.reap();
        assert_eq!(truth, Exit::Code(7));
        assert!(stranger.wait_for(Event::Reaped, Timeout::NEVER).unwrap().is_some());
        let told = stranger.exit().unwrap();
        assert!(told == truth || matches!(told, Exit::Unknown(_)), "told {told:?} of {truth:?}");
        test_support::figure(&format!("told {told:?} of one that outlived its first thread"));
    }
}

alone! {
    fn the_status_of_one_that_outlived_its_first_thread_and_that_the_kernel_reaped() {
        let mut family = Family::obeying();
        let stranger = family.stranger();
        family.ask("ignore", "ignoring");
        family.ask("leader-exit", "left");
        wait_for_state(family.child, 'Z');
        family.order("exit 7");
        assert!(stranger.wait_for(Event::Reaped, Timeout::NEVER).unwrap().is_some());
        let told = stranger.exit().unwrap();
        assert!(told == Exit::Code(7) || matches!(told, Exit::Unknown(_)), "told {told:?}");
        test_support::figure(&format!("told {told:?} of a process that outlived its first thread"));
    }
}

alone! {
    fn one_that_is_stopped() {
        let mut family = Family::obeying();
        let stranger = family.stranger();
        stranger.signal(Signal::STOP).unwrap();
        wait_for_state(family.child, 'T');
        assert_alive(&stranger);
        assert_alive(&family.stranger());
        stranger.signal(Signal::CONT).unwrap();
        family.order("exit 3");
        assert_eq!(stranger.wait(Timeout::NEVER).unwrap(), Some(Exit::Code(3)));
        assert_eq!(family.reap(), Exit::Code(3));
        // Killed while stopped.
        let mut family = Family::obeying();
        let stranger = family.stranger();
        stranger.signal(Signal::STOP).unwrap();
        wait_for_state(family.child, 'T');
        stranger.signal(Signal::KILL).unwrap();
        let told = stranger.wait(Timeout::NEVER).unwrap();
        assert_eq!(told, Some(family.reap()));
    }
}

alone! {
    fn one_whose_child_shares_its_memory() {
        // The only thread sleeps uninterruptibly until the child execs or ends.
        let mut family = Family::obeying();
        let stranger = family.stranger();
        family.ask("vfork", "vforked");
        wait_for_state(family.child, 'D');
        assert_alive(&stranger);
        let child = test_support::sys::first_child(family.child);
        let shared = Process::open(child).unwrap();
        assert_alive(&shared);
        family.order("go on");
        assert!(shared.wait_for(Event::Reaped, Timeout::NEVER).unwrap().is_some());
        assert_alive(&stranger);
        family.order("exit 5");
        assert_eq!(stranger.wait(Timeout::NEVER).unwrap(), Some(Exit::Code(5)));
    }
}

alone! {
    fn one_that_is_traced() {
        if !test_support::family::may_trace_or_skip("one_that_is_traced") { return; }
        let mut family = Family::obeying();
        let mut tracer = Family::obeying();
        let stranger = family.stranger();
        tracer.ask(&format!("trace {}", family.child), "traced");
        assert_eq!(test_support::state(family.child), Some('t'));
        assert_alive(&stranger);
        assert_alive(&family.stranger());
        tracer.ask(&format!("untrace {}", family.child), "untraced");
        assert_alive(&stranger);
        family.order("exit 4");
        assert_eq!(stranger.wait(Timeout::NEVER).unwrap(), Some(Exit::Code(4)));
        assert_eq!(family.reap(), Exit::Code(4));
    }
}

alone! {
    fn one_that_is_traced_to_its_end() {
        if !test_support::family::may_trace_or_skip("one_that_is_traced_to_its_end") { return; }
        for (order, truth) in [("exit 6", Some(6)), ("signal 15", None)] {
            let mut family = Family::obeying();
            let mut tracer = Family::obeying();
            let stranger = family.stranger();
            tracer.ask(&format!("trace {}", family.child), "traced");
            tracer.ask(&format!("pass {}", family.child), "passing");
            assert_alive(&stranger);
            family.order(order);
            // The tracer's wait(2) does not reap.
            assert_eq!(tracer.says(), "passed");
            let told = stranger.wait(Timeout::NEVER).unwrap().unwrap();
            assert_eq!(told.code(), truth);
            assert_eq!(stranger.wait_for(Event::Reaped, A_WHILE).unwrap(), None);
            assert_eq!(family.reap(), told);
            assert_eq!(stranger.wait_for(Event::Reaped, Timeout::NEVER).unwrap(), Some(told));
        }
    }
}

alone! {
    fn the_tracer_is_killed() {
        if !test_support::family::may_trace_or_skip("the_tracer_is_killed") { return; }
        let mut family = Family::obeying();
        let mut tracer = Family::obeying();
        let stranger = family.stranger();
        tracer.ask(&format!("trace {}", family.child), "traced");
        tracer.stranger().signal(Signal::KILL).unwrap();
        tracer.reap();
        assert_alive(&stranger);
        family.order("exit 8");
        assert_eq!(stranger.wait(Timeout::NEVER).unwrap(), Some(Exit::Code(8)));
    }
}

alone! {
    fn a_stranger_that_is_a_zombie_already() {
        let mut family = Family::obeying();
        family.order("exit 11");
        wait_for_state(family.child, 'Z');
        let stranger = family.stranger();
        assert!(!stranger.is_alive());
        assert_eq!(stranger.exit(), Some(Exit::Code(11)));
        assert_eq!(stranger.wait(Duration::ZERO).unwrap(), Some(Exit::Code(11)));
        assert!(stranger.signal(Signal::KILL).is_err());
        assert!(stranger.stop(Default::default()).is_err());
        assert!(stranger.exe().is_err());
        assert_eq!(stranger.wait_for(Event::Reaped, A_WHILE).unwrap(), None);
        assert_eq!(family.reap(), Exit::Code(11));
    }
}

alone! {
    fn ourselves() {
        let us = Process::open(std::process::id() as i32).unwrap();
        assert_alive(&us);
        assert_eq!(us.exe().unwrap(), std::env::current_exe().unwrap());
        us.signal(Signal::CONT).unwrap();
        // A fork sees the same, though the process is no relative of it.
        let status = sys::in_fork(move || {
            i32::from(!us.is_alive() || us.wait(A_WHILE).is_err() || us.exit().is_some())
        });
        assert_eq!(status, 0);
        // The reverse: a parent's handle of its own child, used in a fork.
        let mut family = Family::obeying();
        let stranger = family.stranger();
        let status = sys::in_fork(move || i32::from(stranger.wait(A_WHILE).ok() != Some(None)));
        assert_eq!(status, 0);
        family.order("exit 1");
        assert_eq!(family.reap(), Exit::Code(1));
    }
}

alone! {
    fn our_own_child_is_left_to_us() {
        for code in [0, 9] {
            let mut child = std::process::Command::new(test_children::path())
                .args(["exit", &code.to_string()]).spawn().unwrap();
            let process = Process::of_child(&child).unwrap();
            assert_eq!(process.wait(Timeout::NEVER).unwrap(), Some(Exit::Code(code)));
            assert_eq!(process.wait_for(Event::Reaped, A_WHILE).unwrap(), None);
            assert_eq!(process.exit(), Some(Exit::Code(code)));
            assert_ne!(process.exit(), Some(Exit::Unknown(Unknown::NotReaped)));
            assert_eq!(child.wait().unwrap().code(), Some(code));
            assert_eq!(process.wait_for(Event::Reaped, Timeout::NEVER).unwrap(), Some(Exit::Code(code)));
        }
    }
}

alone! {
    fn one_that_execs_from_other_threads_is_never_shown_dead() {
        sys::deny(&[libc::SYS_pidfd_open], libc::ENOSYS);
        let mut family = Family::obeying();
        let process = family.stranger();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    assert!(process.is_alive(), "it is between two programs");
                }
            });
            for _ in 0..test_support::scaled(600, 10_000) {
                family.order("thread-exec obey");
            }
            family.order("thread-exec obey --print-ready");
            assert!(family.says().starts_with("ready"));
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            looks.join().unwrap();
        });
    }
}

alone! {
    fn a_thread_is_no_process() {
        let number = sys::thread_id();
        assert!(number > std::process::id().cast_signed(), "another thread");
        let is_gone = || matches!(Process::open(number), Err(ProcessError::Gone(_)));
        assert!(is_gone());
        sys::deny(&[libc::SYS_pidfd_open], libc::ENOSYS);
        assert!(is_gone());
        let error = sys::kill(number, 0);
        assert!(error, "the number is one that a signal would find");
    }
}
