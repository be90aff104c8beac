//! Whose the processes of a group are: that of one child may have been joined by another,
//! and where nothing can be listed it is all that a stop reaches.

mod common;

use std::io::Read;
use std::time::Duration;
use test_support::alone;

use common::sys;
use procwright::process::{Scope, Stop};
use procwright::{Child, Command, Sink};

const GRACE: Duration = Duration::from_millis(30);

fn stop(scope: Scope) -> Stop {
    Stop::new().with_grace(GRACE).with_scope(scope)
}

/// A child of bash's that has run the script, whose last line is the pid of somebody that
/// it has started.
fn started(script: &str, group: i32) -> (Child, i32) {
    let command = Command::new("bash").args(["-c", script]);
    let mut child = command
        .process_group(group)
        .stderr(Sink::Null)
        .spawn()
        .unwrap();
    let mut line = Vec::new();
    let mut stdout = child.stdout.take().unwrap();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "{line:?}");
        line.push(byte[0]);
    }
    let pid = String::from_utf8(line).unwrap().trim().parse().unwrap();
    child.stdout = Some(stdout);
    (child, pid)
}

/// Waits, and ends a process that nobody is to have ended.
fn end(pid: i32, what: &str) {
    assert!(common::lives(pid), "{what} was ended");
    sys::end(pid);
}

const ALONE: &str = "echo 0; exec sleep 60";
const WAITS: &str = "sleep 60 & echo $!; wait";
/// Leaves somebody who holds none of its pipes.
const LEAVES: &str = "sleep 60 </dev/null >/dev/null 2>&1 & echo $!; wait";

#[test]
fn a_group_whose_maker_is_gone_is_not_the_one_that_joined_it() {
    for scope in [Scope::Tree, Scope::Group] {
        // Nobody is left in the group who is older than those that join it.
        let (a, _) = started(ALONE, 0);
        let group = a.pid();
        let (b, of_b) = started(WAITS, group);
        let (c, of_c) = started(WAITS, group);
        a.signal(procwright::process::Signal::KILL).unwrap();
        a.wait(None).unwrap();
        drop(a);
        assert_eq!(b.stop_with(stop(scope)), [], "{scope:?}");
        assert!(
            common::lives(c.pid()),
            "{scope:?}: a child of ours was ended with another"
        );
        assert_eq!(common::lives(of_b), scope == Scope::Group);
        assert_eq!(c.stop_with(stop(Scope::Tree)), []);
        assert!(!common::lives(of_c));
        if scope == Scope::Group {
            end(of_b, "one that the scope left out");
        }
    }
}

#[test]
fn who_joins_a_group_is_not_stopped_with_its_maker() {
    for scope in [Scope::Tree, Scope::Group] {
        let (a, of_a) = started(WAITS, 0);
        let (b, of_b) = started(WAITS, a.pid());
        assert_eq!(a.stop_with(stop(scope)), [], "{scope:?}");
        assert!(!common::lives(of_a));
        assert!(
            common::lives(b.pid()) && common::lives(of_b),
            "{scope:?}: b was ended with a"
        );
        assert_eq!(b.stop_with(stop(Scope::Tree)), []);
        assert!(!common::lives(of_b));
    }
}

#[test]
fn an_orphan_in_a_group_of_two_is_left_and_told_of() {
    for scope in [Scope::Tree, Scope::Group] {
        let (a, of_a) = started(WAITS, 0);
        let (b, of_b) = started(LEAVES, a.pid());
        b.signal(procwright::process::Signal::KILL).unwrap();
        b.wait(None).unwrap();
        let survivors = a.stop_with(stop(scope));
        assert!(!common::lives(of_a));
        let told: Vec<_> = survivors.iter().map(|one| (one.pid, one.state)).collect();
        assert_eq!(told, [(Some(of_b), '?')], "{scope:?}");
        end(of_b, "the orphan of another child");
    }
}

alone! {
    fn without_proc_the_tree_is_a_group_of_its_own_and_this_is_told() {
        let name = "without_proc_the_tree_is_a_group_of_its_own_and_this_is_told";
        if !test_support::root_or_skip(name) {
            return;
        }
        if !sys::mount_memory(std::path::Path::new("/proc"), 1 << 20) {
            test_support::skip(name, "nothing may be mounted here");
            return;
        }
        // Its child ignores the signal, and is an orphan when the leader has obeyed.
        let deaf = "(trap '' TERM; exec sleep 60) </dev/null >/dev/null 2>&1 & echo $!; wait";
        for scope in [Scope::Tree, Scope::Group] {
            let command = Command::new("bash").args(["-c", deaf]).stop(stop(scope));
            let mut child = command.spawn().unwrap();
            let mut line = [0; 32];
            let read = child.stdout.as_mut().unwrap().read(&mut line).unwrap();
            let deaf: i32 = std::str::from_utf8(&line[..read]).unwrap().trim().parse().unwrap();
            let survivors = child.stop();
            let [hidden] = &survivors[..] else { panic!("{survivors:?}") };
            assert_eq!((hidden.pid, hidden.state), (None, '?'));
            assert!(hidden.to_string().contains("without /proc"), "{hidden}");
            // Killed, it is a zombie until somebody reaps it.
            test_support::eventually(|| !sys::kill(deaf, 0));
        }
        let run = Command::new("sleep").arg("60").timeout(GRACE).stop(stop(Scope::Tree)).run();
        let Err(procwright::Error::Stopped(output)) = run else { panic!("{run:?}") };
        assert_eq!(output.report.survivors.len(), 1);
        let text = output.report.explain(b"");
        assert!(text.contains("cannot be seen without /proc"), "{text}");
        // The program alone can be told of.
        let run = Command::new("sleep").arg("60").timeout(GRACE).stop(stop(Scope::Process)).run();
        let Err(procwright::Error::Stopped(output)) = run else { panic!("{run:?}") };
        assert_eq!(output.report.survivors, []);
    }
}
