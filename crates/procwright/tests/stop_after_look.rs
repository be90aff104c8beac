//! `Child::stop` ends what the program has left, whatever was asked about it before.

mod common;

use std::os::fd::AsFd;
use std::path::Path;
use test_support::alone;

use common::{Census, child, sys};
use procwright::process::{Exit, Scope, Signal, Stop};
use procwright::terminal::Size;
use procwright::time::Timeout;
use procwright::{Cancel, Child, Command, Overflow, Reason, Sink};

/// A way to learn that the program has ended, and its name.
type Look = (&'static str, fn(&mut Child));

/// A program that leaves a process of which something still tells, and its name.
type Trace = (&'static str, fn(&Path) -> Child);

fn looks() -> [Look; 6] {
    [
        ("nothing", |_| {}),
        ("try_wait", |child| {
            common::eventually(|| child.try_wait().is_some());
        }),
        ("wait", |child| {
            assert_eq!(child.wait(None).unwrap(), Some(Exit::Code(0)));
        }),
        ("report", |child| {
            common::eventually(|| child.report().is_some());
        }),
        ("a signal", |child| {
            common::eventually(|| child.signal(Signal::CONT).is_err());
        }),
        ("many looks", |child| {
            common::eventually(|| child.try_wait().is_some());
            for _ in 0..3 {
                assert_eq!(child.wait(None).unwrap(), Some(Exit::Code(0)));
            }
        }),
    ]
}

/// The process that a `fork-holder` has left, by the file that it wrote its number to.
fn left_by(child: &Child, pidfile: &Path) -> i32 {
    sys::wait_for_end(child.process().pidfd().unwrap().as_fd());
    let text = std::fs::read_to_string(pidfile).unwrap();
    let pid = text.trim().parse().unwrap();
    assert!(
        common::lives(pid),
        "{pid} is there when the program has ended"
    );
    pid
}

/// A program that ends at once, and leaves a process that writes nothing.
fn holder(pidfile: &Path, args: &[&str]) -> Command<'static> {
    let pidfile = pidfile.to_str().unwrap();
    child(&["fork-holder", "0", "--pidfile", pidfile]).args(args)
}

fn traces() -> Vec<Trace> {
    fn silent(command: Command<'static>) -> Child {
        command
            .stdout(Sink::Null)
            .stderr(Sink::Null)
            .spawn()
            .unwrap()
    }
    vec![
        ("a pipe", |file| holder(file, &[]).spawn().unwrap()),
        ("a bare pipe", |file| {
            holder(file, &[]).spawn_with(None).unwrap()
        }),
        ("a pipe, as an orphan's child", |file| {
            holder(file, &["--double-fork"]).spawn().unwrap()
        }),
        ("a pipe, in a session of its own", |file| {
            holder(file, &["--setsid"]).spawn().unwrap()
        }),
        ("the group", |file| {
            silent(holder(file, &[]).process_group(0))
        }),
        ("the session", |file| {
            silent(holder(file, &[]).new_session())
        }),
        ("the group, which is the scope", |file| {
            silent(holder(file, &[]).stop(Stop::new().with_scope(Scope::Group)))
        }),
    ]
}

alone! {
    fn whatever_was_asked_before() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        for (trace, spawn) in traces() {
            for (look, ask) in looks() {
                let file = dir.path().join(format!("{trace} {look}"));
                let mut child = spawn(&file);
                let left = left_by(&child, &file);
                ask(&mut child);
                assert!(common::lives(left), "{trace}, {look}: a look ends nobody");
                assert!(child.stop().is_empty(), "{trace}, {look}");
                assert!(!common::lives(left), "{trace}, {look}: {left} lives after the stop");
                assert_eq!(child.try_wait(), Some(Exit::Code(0)));
                assert!(child.stop().is_empty(), "once more does no harm");
            }
        }
        before.comes_back();
    }
}

alone! {
    fn what_a_terminal_was_left_to() {
        let dir = tempfile::tempdir().unwrap();
        for (look, ask) in looks() {
            let file = dir.path().join(look);
            // Its own session, as the holder of the terminal would be hung up.
            let mut child = holder(&file, &["--setsid"])
                .pty(Size { rows: 24, columns: 80 })
                .spawn_with(Overflow::default())
                .unwrap();
            let left = left_by(&child, &file);
            ask(&mut child);
            assert!(child.stop().is_empty());
            assert!(!common::lives(left), "{look}: {left} lives after the stop");
        }
    }
}

alone! {
    fn a_look_reaps_what_nothing_is_known_by() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        // In our group and session: the number of the program leads to nobody.
        let child = holder(&file, &[]).spawn().unwrap();
        let left = left_by(&child, &file);
        assert_eq!(child.wait(None).unwrap(), Some(Exit::Code(0)));
        assert!(!common::children().contains(&child.pid()), "it was reaped by the wait");
        assert!(child.stop().is_empty());
        assert!(!common::lives(left));
    }
}

alone! {
    fn a_look_keeps_the_number_of_a_group_that_is_left() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        for stopped in [true, false] {
            let file = dir.path().join(stopped.to_string());
            let child = holder(&file, &[])
                .process_group(0)
                .stdout(Sink::Null)
                .stderr(Sink::Null)
                .spawn()
                .unwrap();
            let left = left_by(&child, &file);
            assert_eq!(child.wait(None).unwrap(), Some(Exit::Code(0)));
            let report = child.report().unwrap();
            assert!(report.cpu_user.is_some(), "what it used is known before it is reaped");
            assert_eq!(common::state(child.pid()), Some('Z'), "nobody else gets its number");
            if stopped {
                assert!(child.stop().is_empty());
                assert!(!common::lives(left));
                assert_eq!(common::state(child.pid()), None, "the stop reaps it");
            }
            drop(child);
            if !stopped {
                assert!(common::lives(left), "to drop a child ends nobody");
                sys::kill(left, libc::SIGKILL);
            }
        }
        // The drop reaps it.
        before.comes_back();
    }
}

alone! {
    fn the_number_is_a_strangers() {
        for_each_stop_among_pids_of_our_own("the_number_is_a_strangers", |scope, signal| {
            let stop = Stop::new().with_scope(scope).with_signal(signal);
            // Bare pipes, since a thread of ours would take a number.
            let command = child(&["exit", "0"]).process_group(0).stop(stop);
            let program = command.spawn_with(None).unwrap();
            assert_eq!(program.wait(Timeout::NEVER).unwrap(), Some(Exit::Code(0)));
            let number = program.pid();
            assert_eq!(common::state(number), None, "nobody is left, so it was reaped");
            // Straight away: the stranger may well have been started in one tick with it.
            let stranger = fork_with_number(number);
            sys::lead_a_group(stranger);
            assert!(program.stop().is_empty());
            end_unharmed(stranger, scope, signal);
        });
    }
}

alone! {
    fn a_limit_leaves_a_stranger_with_the_number() {
        let test = "a_limit_leaves_a_stranger_with_the_number";
        for_each_stop_among_pids_of_our_own(test, |scope, signal| {
            let stop = Stop::new().with_scope(scope).with_signal(signal);
            let cancel = Cancel::new().unwrap();
            // The program ends at once, and another process holds its output.
            let command = child(&["fork-holder", "0", "--print-ready", "--setsid"]);
            let mut program = command.stop(stop).cancel_on(&cancel).spawn().unwrap();
            let mut stdout = program.stdout.take().unwrap();
            let [holder] = common::ready_line(&mut stdout)[..] else { panic!() };
            assert_eq!(program.wait(Timeout::NEVER).unwrap(), Some(Exit::Code(0)));
            let number = program.pid();
            assert_eq!(common::state(number), None, "it leads nobody, so it was reaped");
            let stranger = fork_with_number(number);
            sys::lead_a_group(stranger);
            cancel.cancel();
            // The stop ends the output, whoever holds it.
            std::io::Read::read_to_end(&mut stdout, &mut Vec::new()).unwrap();
            program.wait(Timeout::NEVER).unwrap();
            let report = program.report().unwrap();
            assert_eq!(report.reason, Reason::Cancelled);
            assert!(report.survivors.iter().all(|one| one.pid != Some(stranger)));
            assert_eq!(common::lives(holder), scope != Scope::Tree, "{scope:?} {signal}");
            sys::kill(holder, libc::SIGKILL);
            end_unharmed(stranger, scope, signal);
        });
    }
}

alone! {
    // Also of one that ends by its own exit code then.
    fn who_waits_while_another_stops_is_told_of_the_stop() {
        let line = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done";
        let mut program = Command::new("sh").args(["-c", line]).spawn().unwrap();
        let mut stdout = program.stdout.take().unwrap();
        std::io::Read::read_exact(&mut stdout, &mut [0; 6]).unwrap();
        let report = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                program.wait(Timeout::NEVER).unwrap();
                program.report().unwrap()
            });
            program.stop();
            waiting.join().unwrap()
        });
        let told = (report.reason, report.status, report.success());
        assert_eq!(told, (Reason::Cancelled, Exit::Code(0), false));
        assert_eq!(program.report().unwrap().reason, Reason::Cancelled);
    }
}

alone! {
    // It has finished, whatever is then done about what it left behind.
    fn a_stop_behind_the_end_changes_no_reason() {
        let dir = tempfile::tempdir().unwrap();
        for (look, ask) in looks() {
            let mut program = holder(&dir.path().join(look), &[]).spawn().unwrap();
            let left = left_by(&program, &dir.path().join(look));
            ask(&mut program);
            assert!(program.stop().is_empty() && !common::lives(left));
            let report = program.report().unwrap();
            assert_eq!((report.reason, report.success()), (Reason::Finished, true), "{look}");
        }
    }
}

/// Tries every scope with a signal that can be refused and with one that cannot, in a namespace
/// of numbers where nobody else takes any.
fn for_each_stop_among_pids_of_our_own(test: &'static str, try_one: fn(Scope, Signal)) {
    if !test_support::root_or_skip(test) {
        return;
    }
    if !sys::unshare_pids() {
        return test_support::skip(test, "no pid namespace may be made here");
    }
    let status = sys::in_fork(|| {
        sys::mount_proc();
        for scope in [Scope::Process, Scope::Group, Scope::Tree] {
            for signal in [Signal::TERM, Signal::KILL] {
                try_one(scope, signal);
            }
        }
        0
    });
    assert_eq!(status, 0, "it failed in the namespace");
}

/// Forks a process with this number. A thread of ours may take it first, and then ends.
fn fork_with_number(number: i32) -> i32 {
    loop {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).unwrap();
        let forked = sys::fork_pausing();
        if forked == number {
            return forked;
        }
        sys::kill(forked, libc::SIGKILL);
        sys::reap(forked);
    }
}

/// Ends a process that no stop has touched.
fn end_unharmed(stranger: i32, scope: Scope, signal: Signal) {
    assert!(
        common::lives(stranger),
        "{scope:?} {signal}: a stranger was ended"
    );
    assert_ne!(common::state(stranger), Some('T'), "and none was stopped");
    sys::kill(stranger, libc::SIGKILL);
    sys::reap(stranger);
}
