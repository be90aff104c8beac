//! A `WaitSet` in other event loops: its descriptor is readable while a wait would
//! return at once.

use std::io::Write;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use test_support::alone;

use procwright_process::Cancel;
use procwright_process::Exit;
use procwright_process::Process;
use procwright_process::wait::{Event, Key, Outcome, WaitSet, Want};
use test_support::sys;

fn obedient_child() -> Child {
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

/// Living children of this process, and a set of them.
fn children_in_a_set(count: usize) -> (Vec<Child>, WaitSet<Process>) {
    let children: Vec<Child> = (0..count).map(|_| obedient_child()).collect();
    let mut set = WaitSet::new().unwrap();
    for child in &children {
        set.add(Process::of_child(child).unwrap(), Event::Exited)
            .unwrap();
    }
    (children, set)
}

/// Waits by another set until all in this one have ended, of which this one learns nothing.
/// The number of those that have.
fn until_all_have_ended(set: &WaitSet<Process>) -> usize {
    let mut all = WaitSet::new().unwrap();
    for (_, process) in set {
        all.add(process.clone(), Event::Exited).unwrap();
    }
    all.wait(Want::All, None).unwrap().ended.len()
}

/// Takes one ended process out of the set; the others come with the next calls.
fn take_one_ended(set: &mut WaitSet<Process>) -> Vec<(Key, Process)> {
    set.wait(Want::First(1), Duration::ZERO).unwrap().ended
}

alone! {
    fn poll() {
        let (mut children, mut set) = children_in_a_set(3);
        assert!(!sys::readable(set.as_fd()));
        order_to_end(&mut children[1], 4);
        sys::wait_for_end(set.as_fd());
        let ended = take_one_ended(&mut set);
        assert_eq!(ended[0].1.exit(), Some(Exit::Code(4)));
        assert!(!sys::readable(set.as_fd()));
        // Another set can wait for this one among other things.
        let inner = Inner(set);
        let mut outer = WaitSet::<Box<dyn procwright_process::wait::Waitable + '_>>::new().unwrap();
        outer.add(Box::new(&inner), Event::Exited).unwrap();
        outer.add(Box::new(Process::of_child(&children[2]).unwrap()), Event::Exited).unwrap();
        assert_eq!(outer.wait(Want::Any, Duration::from_millis(10)).unwrap().outcome, Outcome::TimedOut);
        order_to_end(&mut children[0], 5);
        assert_eq!(outer.wait(Want::Any, None).unwrap().ended.len(), 1);
        drop(outer);
        let mut set = inner.0;
        assert_eq!(take_one_ended(&mut set)[0].1.exit(), Some(Exit::Code(5)));
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

struct Inner(WaitSet<Process>);

impl procwright_process::wait::Waitable for Inner {
    fn awaits(&self) -> procwright_process::wait::Awaits<'_> {
        procwright_process::wait::Awaits::readable(self.0.as_fd())
    }
}

alone! {
    fn readable_once_cancelled() {
        let (children, mut set) = children_in_a_set(1);
        let cancel = Cancel::new().unwrap();
        set.cancel_on(cancel.clone()).unwrap();
        assert!(!sys::readable(set.as_fd()));
        cancel.cancel();
        assert!(sys::readable(set.as_fd()));
        assert_eq!(set.wait(Want::Any, Duration::ZERO).unwrap().outcome, Outcome::Cancelled);
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

alone! {
    fn tokio() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let (mut children, set) = children_in_a_set(5);
        let ended = runtime.block_on(async {
            // SAFETY: the set keeps its descriptor until it is dropped, and
            // AsyncFd, which owns the set, leaves the loop before that.
            let set = unsafe { tokio::io::unix::AsyncFd::register_with_interest(set, tokio::io::Interest::READABLE) };
            let mut set = set.unwrap();
            for (code, child) in children.iter_mut().enumerate() {
                order_to_end(child, code as i32);
            }
            let mut ended = Vec::new();
            while !set.get_ref().is_empty() {
                let mut ready = set.readable_mut().await.unwrap();
                let more = ready.get_inner_mut().wait(Want::Any, Duration::ZERO).unwrap().ended;
                // Edge-triggered: an event is reported once, and again only for
                // something new.
                ready.clear_ready();
                ended.extend(more);
            }
            ended
        });
        let mut codes: Vec<_> = ended.iter().map(|(_, process)| process.exit().unwrap().code().unwrap()).collect();
        codes.sort_unstable();
        assert_eq!(codes, [0, 1, 2, 3, 4]);
        for mut child in children { child.wait().unwrap(); }
    }
}

alone! {
    fn async_io() {
        let (mut children, mut set) = children_in_a_set(5);
        let ended = async_io::block_on(async {
            // A duplicate of the descriptor, so that the set stays usable.
            let ready = set.as_fd().try_clone_to_owned().unwrap();
            let ready = async_io::Async::new_nonblocking(ready).unwrap();
            for (code, child) in children.iter_mut().enumerate() {
                order_to_end(child, code as i32);
            }
            let mut ended = Vec::new();
            while !set.is_empty() {
                ready.readable().await.unwrap();
                ended.extend(set.wait(Want::Any, Duration::ZERO).unwrap().ended);
            }
            ended
        });
        let mut codes: Vec<_> = ended.iter().map(|(_, process)| process.exit().unwrap().code().unwrap()).collect();
        codes.sort_unstable();
        assert_eq!(codes, [0, 1, 2, 3, 4]);
        for mut child in children { child.wait().unwrap(); }
    }
}

// A process that has ended and was not handed out keeps the descriptor readable: a loop
// that looks only when it is readable must hear of every process.

alone! {
    fn readable_while_something_is_left() {
        let (mut children, mut set) = children_in_a_set(3);
        for child in &mut children {
            order_to_end(child, 0);
        }
        for left in (0..3).rev() {
            sys::wait_for_end(set.as_fd());
            assert_eq!(take_one_ended(&mut set).len(), 1);
            assert_eq!(set.len(), left);
        }
        assert!(!sys::readable(set.as_fd()), "nothing is left");
        for mut child in children { child.wait().unwrap(); }
    }
}

alone! {
    fn readable_while_there_is_a_surplus() {
        // All three have ended and were noticed; two were not handed out. A loop that
        // looks only when the descriptor is readable must hear of them.
        let (mut children, mut set) = children_in_a_set(3);
        for child in &mut children {
            order_to_end(child, 0);
        }
        assert_eq!(until_all_have_ended(&set), 3);
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
        let (mut children, mut set) = children_in_a_set(2);
        for child in &mut children {
            order_to_end(child, 0);
        }
        until_all_have_ended(&set);
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
