//! Who has ended and was not handed out keeps the descriptor of a `WaitSet`
//! readable: a loop that only looks when it is must hear of everybody.

mod common;

use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::sys;
use procwright::Process;
use procwright::wait::{Event, Key, WaitSet, Want};

fn obedient() -> Child {
    Command::new(test_children::path())
        .arg("obey")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap()
}

fn order_to_end(child: &mut Child, code: i32) {
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(format!("exit {code}\n").as_bytes())
        .unwrap();
}

/// Children of ours that live, and a set of them.
fn family(count: usize) -> (Vec<Child>, WaitSet<Process>) {
    let children: Vec<Child> = (0..count).map(|_| obedient()).collect();
    let mut set = WaitSet::new().unwrap();
    for child in &children {
        set.add(Process::of_child(child).unwrap(), Event::Exited)
            .unwrap();
    }
    (children, set)
}

/// Hands out what has ended: one, and the others the next time.
fn take(set: &mut WaitSet<Process>) -> Vec<(Key, Process)> {
    set.wait(Want::First(1), Duration::ZERO).unwrap().ended
}

alone! {
    fn readable_while_something_is_left() {
        let (mut children, mut set) = family(3);
        for child in &mut children {
            order_to_end(child, 0);
        }
        for left in (0..3).rev() {
            sys::wait_for_end(set.as_fd());
            assert_eq!(take(&mut set).len(), 1);
            assert_eq!(set.len(), left);
        }
        assert!(!sys::readable(set.as_fd()), "nothing is left");
        for mut child in children { child.wait().unwrap(); }
    }
}

alone! {
    fn readable_while_there_is_a_surplus() {
        // All three have ended and were noticed; two were not handed out. A loop
        // that only looks when this is readable must hear of them.
        let (mut children, mut set) = family(3);
        for child in &mut children {
            order_to_end(child, 0);
        }
        // A wait for all of them in another set: all have ended.
        let mut all = WaitSet::new().unwrap();
        for (_, process) in &set {
            all.add(process.clone(), Event::Exited).unwrap();
        }
        assert_eq!(all.wait(Want::All, None).unwrap().ended.len(), 3);
        assert_eq!(set.wait(Want::First(1), Duration::ZERO).unwrap().ended.len(), 1);
        assert_eq!(set.len(), 2);
        assert!(sys::readable(set.as_fd()), "two have ended and can be had at once");
        assert_eq!(set.wait(Want::First(1), Duration::ZERO).unwrap().ended.len(), 1);
        assert!(sys::readable(set.as_fd()), "one has ended and can be had at once");
        assert_eq!(set.wait(Want::Any, Duration::ZERO).unwrap().ended.len(), 1);
        assert!(!sys::readable(set.as_fd()));
        for mut child in children { child.wait().unwrap(); }
    }
}

alone! {
    fn no_more_readable_once_the_surplus_is_taken_out() {
        let (mut children, mut set) = family(2);
        for child in &mut children {
            order_to_end(child, 0);
        }
        let mut all = WaitSet::new().unwrap();
        for (_, process) in &set {
            all.add(process.clone(), Event::Exited).unwrap();
        }
        all.wait(Want::All, None).unwrap();
        assert!(set.wait(Want::First(0), Duration::ZERO).unwrap().ended.is_empty());
        assert!(sys::readable(set.as_fd()));
        let keys: Vec<Key> = set.iter().map(|(key, _)| key).collect();
        for key in keys {
            assert!(set.remove(key).is_some());
        }
        assert!(!sys::readable(set.as_fd()), "nothing is left");
        for mut child in children { child.wait().unwrap(); }
    }
}
