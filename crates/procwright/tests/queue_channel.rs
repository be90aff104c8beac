//! A queue between a child and its parent.
#![allow(clippy::print_stdout)] // it plays a program that says something

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use test_support::alone;

use common::{Census, sys};
use procwright::liveness::Monitor;
use procwright::process::{Exit, Signal};
use procwright::queue::{Channel, Error, Options, Receiver, Sender};
use procwright::{Child, Command, Sink, Stdin};

/// Environment variable with the program's role.
const ROLE: &str = "PROCWRIGHT_TEST_ROLE";

/// Numbers that the program may use for the descriptors of the channel and of its
/// parent's liveness.
const NUMBERS: std::ops::Range<i32> = 20..26;

const MANY: u64 = 10_000;

/// Plays the role of this process, if it was started as a program here.
fn role() -> bool {
    let Ok(role) = std::env::var(ROLE) else {
        return false;
    };
    match role.as_str() {
        "sends" => {
            let mut sender = Sender::of_parent().unwrap();
            let _ = Monitor::of_parent();
            no_other_has_them();
            not_again(&Sender::of_parent().unwrap_err(), "was taken before");
            not_again(
                &Receiver::of_parent().unwrap_err(),
                "this process is to send",
            );
            for number in 0..MANY {
                sender.send(&number.to_le_bytes()).unwrap();
            }
        }
        "sends for ever" => {
            let mut sender = Sender::of_parent().unwrap();
            let error = loop {
                if let Err(error) = sender.send(b"again") {
                    break error;
                }
            };
            println!("SAID {error:?}");
        }
        "receives" => {
            let mut receiver = Receiver::of_parent().unwrap();
            no_other_has_them();
            not_again(&Receiver::of_parent().unwrap_err(), "was taken before");
            not_again(
                &Sender::of_parent().unwrap_err(),
                "this process is to receive",
            );
            println!("SAID here");
            let mut count = 0_u64;
            let error = loop {
                match receiver.recv() {
                    Ok(message) => assert_eq!(message, count.to_le_bytes()),
                    Err(error) => break error,
                }
                count += 1;
            };
            println!("SAID {count} {error:?}");
        }
        "receives much" => {
            let mut receiver = Options::new().limit(1 << 30).of_parent().unwrap();
            let message = receiver.recv_view().unwrap();
            println!("SAID {}", message.len());
        }
        "waits" => {
            println!("SAID here");
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        "closed" => {
            NUMBERS.for_each(|number| sys::close(&number));
            not_again(
                &Sender::of_parent().unwrap_err(),
                "was closed since the start",
            );
            println!("SAID here");
        }
        "replaced" => {
            let null = File::open("/dev/null").unwrap();
            NUMBERS.for_each(|number| sys::replace(null.as_raw_fd(), number));
            not_again(
                &Sender::of_parent().unwrap_err(),
                "was closed since the start",
            );
            for number in NUMBERS {
                let file = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
                assert_eq!(file.to_str(), Some("/dev/null"));
            }
            println!("SAID here");
        }
        "starts" => {
            let exe = std::env::current_exe().unwrap();
            let mut next = std::process::Command::new(exe);
            next.args(std::env::args().skip(1)).env(ROLE, "grandchild");
            assert!(next.status().unwrap().success());
            Sender::of_parent().unwrap().send(b"mine").unwrap();
        }
        "grandchild" => {
            let told = "which was started by it or by one of its descendants";
            not_again(&Sender::of_parent().unwrap_err(), told);
            not_again(&Receiver::of_parent().unwrap_err(), told);
        }
        "forks" => {
            let status = sys::in_fork(|| {
                let error = Sender::of_parent().unwrap_err();
                i32::from(!matches!(error, Error::NoParent(_)))
            });
            assert_eq!(status, 0);
            Sender::of_parent().unwrap().send(b"mine").unwrap();
        }
        other => panic!("{other:?}"),
    }
    true
}

/// A program that this one starts inherits no descriptor of the channel.
fn no_other_has_them() {
    for number in NUMBERS {
        if let Ok(info) = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")) {
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = i32::from_str_radix(flags.unwrap().trim(), 8).unwrap();
            assert_ne!(flags & libc::O_CLOEXEC, 0, "{number}");
        }
    }
}

fn not_again(error: &Error, why: &str) {
    assert!(matches!(error, Error::NoParent(_)), "{error:?}");
    assert!(error.to_string().contains(why), "{error}");
    assert!(error.to_string().contains("Command::channel()"), "{error}");
}

/// A program in this role, started by way of `before`.
fn program(before: &[&str], test: &str, role: &str) -> Command<'static> {
    let copy = common::copy_of_test(test);
    let exe = copy.get_program().to_owned();
    let mut command = match before.split_first() {
        Some((first, rest)) => Command::new(*first).args(rest).arg(exe),
        None => Command::new(exe),
    };
    command = command.args(copy.get_args());
    for (key, value) in copy.get_envs() {
        command = command.env(key, value.unwrap());
    }
    command
        .env(ROLE, role)
        .stdout(Sink::Null)
        .stderr(Sink::Inherit)
}

struct Words(BufReader<PipeReader>);

impl Words {
    fn next(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "it said no more");
            // The program's test harness prints as well.
            if let Some((_, said)) = line.split_once("SAID ") {
                return said.trim_end().to_owned();
            }
        }
    }
}

fn words() -> (Words, PipeWriter) {
    let (ours, theirs) = std::io::pipe().unwrap();
    (Words(BufReader::new(ours)), theirs)
}

/// Prints the program's words into the pipe.
fn saying(command: Command<'static>, out: &PipeWriter) -> Command<'static> {
    command.stdout(Sink::Fd(out.as_fd().try_clone_to_owned().unwrap().into()))
}

fn ends_well(child: &Child) {
    assert_eq!(child.wait(None).unwrap(), Some(Exit::Code(0)));
}

fn receives_all(mut child: Child) {
    let mut receiver = child.receiver().unwrap();
    for number in 0..MANY {
        assert_eq!(receiver.recv().unwrap(), number.to_le_bytes());
    }
    assert!(matches!(receiver.recv(), Err(Error::Closed)));
    ends_well(&child);
    let error = child.receiver().unwrap_err();
    assert!(error.to_string().contains("taken before"), "{error}");
    let error = child.sender(None).unwrap_err();
    assert!(error.to_string().contains("take its receiver()"), "{error}");
}

alone! {
    fn a_child_sends() {
        if role() { return }
        let before = Census::now();
        let test = "a_child_sends";
        // Started through other programs as well, which exec it.
        for way in [&[][..], &["env"], &["nice", "-n", "1"], &["env", "nice", "env", "A=b"]] {
            let command = program(way, test, "sends").channel(Channel::FromChild);
            receives_all(command.spawn().unwrap());
        }
        let command = program(&[], test, "sends").channel(Channel::FromChild);
        // Along with the parent's liveness, and descriptors of the caller's.
        let null = || File::open("/dev/null").unwrap();
        let command = command.liveness().pass_fd(null(), 30).die_with_parent(Signal::CONT);
        receives_all(command.spawn().unwrap());
        // The thread and the descriptors of this process's own token stay for good.
        let token = |name: &String| name.contains("memfd") || name.contains("procwright");
        let strip = |mut census: Census| {
            census.fds.retain(|name| !token(name));
            census.threads.retain(|name| !token(name));
            census
        };
        common::eventually(|| strip(before.clone()) == strip(Census::now()));
    }
}

alone! {
    fn descriptors_come_back() {
        if role() { return }
        let one = |role, channel| {
            let mut child = program(&[], "descriptors_come_back", role).channel(channel).spawn()?;
            match channel {
                Channel::FromChild => drop(child.receiver()?.recv()?),
                Channel::ToChild => child.sender(None)?.send(&0_u64.to_le_bytes())?,
            }
            ends_well(&child);
            Ok::<(), Box<dyn std::error::Error>>(())
        };
        let all = || {
            // A program that is told of the close ends well too.
            one("receives", Channel::ToChild).unwrap();
            one("forks", Channel::FromChild).unwrap();
            // A program that does not exist, and a child whose channel is not used.
            let no_program = Command::new("/no/such/program").channel(Channel::FromChild).spawn();
            assert!(no_program.is_err());
            for channel in [Channel::FromChild, Channel::ToChild] {
                let child = program(&[], "descriptors_come_back", "waits").channel(channel);
                ends_well(&child.spawn().unwrap());
            }
        };
        // The census before the first run: the thread that empties pipes ends after
        // some idle time, and may be ending between two runs.
        let before = Census::now();
        all();
        all();
        before.comes_back();
    }
}

alone! {
    fn a_child_receives() {
        if role() { return }
        for way in [&[][..], &["env"], &["nice", "-n", "1"]] {
            let (mut words, out) = words();
            let command = saying(program(way, "a_child_receives", "receives"), &out);
            let mut child = command.channel(Channel::ToChild).spawn().unwrap();
            let mut sender = child.sender(None).unwrap();
            assert_eq!(words.next(), "here");
            for number in 0..MANY {
                sender.send(&number.to_le_bytes()).unwrap();
            }
            let error = child.sender(None).unwrap_err();
            assert!(error.to_string().contains("taken before"), "{error}");
            let error = child.receiver().unwrap_err();
            assert!(error.to_string().contains("take its sender()"), "{error}");
            drop(sender);
            assert_eq!(words.next(), format!("{MANY} Closed"));
            ends_well(&child);
        }
    }
}

alone! {
    fn a_queue_of_its_own_shape() {
        if role() { return }
        let long = vec![1; 100 << 20];
        let test = "a_queue_of_its_own_shape";
        let (mut words, out) = words();
        let command = saying(program(&[], test, "receives much"), &out);
        let mut child = command.channel(Channel::ToChild).spawn().unwrap();
        child.sender(None).unwrap().send(&long).unwrap();
        assert_eq!(words.next(), long.len().to_string());
        ends_well(&child);
        let lanes = Options::new().lanes(1);
        let command = program(&[], test, "sends").channel_with(Channel::FromChild, lanes);
        let mut child = command.spawn().unwrap();
        let mut receiver = child.receiver().unwrap();
        receiver.recv().unwrap();
        // The child has the only lane.
        assert!(matches!(receiver.sender(), Err(Error::NoLane(1))));
        let error = program(&[], test, "sends")
            .channel_with(Channel::FromChild, Options::new().lanes(0))
            .spawn()
            .unwrap_err();
        assert!(matches!(error, procwright::Error::Invalid(_)), "{error:?}");
    }
}

alone! {
    fn a_child_that_is_killed() {
        if role() { return }
        let test = "a_child_that_is_killed";
        let mut child = program(&[], test, "sends for ever").channel(Channel::FromChild).spawn().unwrap();
        let mut receiver = child.receiver().unwrap();
        receiver.recv().unwrap();
        child.signal(Signal::KILL).unwrap();
        let error = loop {
            match receiver.recv() {
                Ok(message) => assert_eq!(message, b"again"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Closed), "{error:?}");
        child.wait(None).unwrap();
        let (mut words, out) = words();
        let command = saying(program(&[], test, "receives"), &out).channel(Channel::ToChild);
        let mut child = command.spawn().unwrap();
        let mut sender = child.sender(None).unwrap();
        assert_eq!(words.next(), "here");
        sender.send(&0_u64.to_le_bytes()).unwrap();
        child.signal(Signal::KILL).unwrap();
        child.wait(None).unwrap();
        assert!(matches!(sender.send(b"x"), Err(Error::ReceiverDead)));
    }
}

alone! {
    fn a_parent_that_is_killed() {
        if role() { return }
        let test = "a_parent_that_is_killed";
        let (mut words, out) = words();
        let start = |role, channel, ready: fn(&mut Child)| {
            sys::fork_pausing_after(|| {
                let mut child = saying(program(&[], test, role), &out).channel(channel).spawn().unwrap();
                ready(&mut child);
                (&out).write_all(b"SAID ready\n").unwrap();
                std::mem::forget(child);
            })
        };
        let parent = start("sends for ever", Channel::FromChild, |child| {
            let mut receiver = child.receiver().unwrap();
            receiver.recv().unwrap();
            std::mem::forget(receiver);
        });
        assert_eq!(words.next(), "ready");
        sys::kill(parent, libc::SIGKILL);
        sys::reap(parent);
        assert_eq!(words.next(), "ReceiverDead");
        let parent = start("receives", Channel::ToChild, |child| {
            let mut sender = child.sender(None).unwrap();
            sender.send(&0_u64.to_le_bytes()).unwrap();
            std::mem::forget(sender);
        });
        // The two lines come in either order.
        let said = [words.next(), words.next()];
        assert!(said.contains(&"here".to_owned()) && said.contains(&"ready".to_owned()));
        sys::kill(parent, libc::SIGKILL);
        sys::reap(parent);
        assert_eq!(words.next(), "1 Closed");
        // The parent is killed before the child has asked for its end of the channel.
        let parent = start("receives", Channel::ToChild, |_| {});
        // The two lines come in either order.
        let said = [words.next(), words.next()];
        assert!(said.contains(&"here".to_owned()) && said.contains(&"ready".to_owned()));
        sys::kill(parent, libc::SIGKILL);
        sys::reap(parent);
        assert_eq!(words.next(), "0 Closed");
    }
}

alone! {
    fn a_child_that_never_makes_its_end() {
        if role() { return }
        let test = "a_child_that_never_makes_its_end";
        let (mut words, out) = words();
        let command = saying(program(&[], test, "waits"), &out).stdin(Stdin::Pipe);
        let mut child = command.channel(Channel::ToChild).spawn().unwrap();
        assert_eq!(words.next(), "here");
        for _ in 0..2 {
            let waited = child.sender(Duration::from_millis(5));
            assert!(matches!(waited, Err(Error::TimedOut)), "{waited:?}");
        }
        drop(child.stdin.take());
        let error = child.sender(None).unwrap_err();
        assert!(matches!(error, Error::NoChannel(_)), "{error:?}");
        // Either text is true at its end.
        let told = ["has ended before", "has closed it before"];
        assert!(told.iter().any(|told| error.to_string().contains(told)), "{error}");
        ends_well(&child);
        let error = child.sender(None).unwrap_err();
        assert!(matches!(error, Error::NoChannel(_)), "{error:?}");
        // The child never makes its sender: the queue is closed, and the child may go
        // on.
        let command = program(&[], test, "waits").channel(Channel::FromChild);
        let mut child = command.spawn().unwrap();
        assert!(matches!(child.receiver().unwrap().recv(), Err(Error::Closed)));
        ends_well(&child);
    }
}

alone! {
    fn descriptors_that_were_closed_or_are_others_by_now() {
        if role() { return }
        for role in ["closed", "replaced"] {
            let (mut words, out) = words();
            let test = "descriptors_that_were_closed_or_are_others_by_now";
            let command = saying(program(&[], test, role), &out).channel(Channel::FromChild);
            let mut child = command.spawn().unwrap();
            assert_eq!(words.next(), "here");
            assert!(matches!(child.receiver().unwrap().recv(), Err(Error::Closed)));
            ends_well(&child);
        }
    }
}

alone! {
    fn who_inherits_the_variable_has_no_channel() {
        if role() { return }
        for role in ["starts", "forks"] {
            let command = program(&[], "who_inherits_the_variable_has_no_channel", role);
            let mut child = command.channel(Channel::FromChild).spawn().unwrap();
            let mut receiver = child.receiver().unwrap();
            assert_eq!(receiver.recv().unwrap(), b"mine");
            assert!(matches!(receiver.recv(), Err(Error::Closed)));
            ends_well(&child);
        }
    }
}

alone! {
    fn without_one() {
        let mut child = common::child(&["cat"]).spawn().unwrap();
        for error in [child.receiver().unwrap_err(), child.sender(None).unwrap_err()] {
            assert!(error.to_string().contains("was started without one"), "{error}");
        }
        ends_well(&child);
        not_again(&Sender::of_parent().unwrap_err(), "there is no variable");
        not_again(&Receiver::of_parent().unwrap_err(), "there is no variable");
        let own = std::process::id();
        for (lie, why) in [
            ("x".to_owned(), "says nothing"),
            (format!("receiver 20 21 x {own}"), "says nothing"),
            (format!("nobody 20:1 x {own}"), "the parent receives"),
            (format!("sender 20:1 x {own}"), "another version"),
            (format!("sender 20:1 pwc1 {own}"), "was closed since the start"),
            (format!("sender pwc1 {own}"), "tells of 0 descriptors"),
        ] {
            sys::set_variable("PROCWRIGHT_CHANNEL", lie.as_ref());
            // A sender in this process is the peer that a receiver's parent would be.
            let error = Receiver::of_parent().unwrap_err();
            assert!(error.to_string().contains(why) || lie.starts_with("nobody"), "{lie}: {error}");
        }
        let error = common::child(&["cat"]).channel(Channel::FromChild).run().unwrap_err();
        assert!(error.to_string().contains("is for spawn()"), "{error}");
    }
}

alone! {
    fn numbers_that_the_caller_uses_are_left_alone() {
        let null = || File::open("/dev/null").unwrap();
        let show = common::child(&["show"]).pass_fd(null(), 21).channel(Channel::ToChild).liveness();
        let mut child = show.spawn().unwrap();
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        let seen: serde_json::Value = serde_json::from_str(&said).unwrap();
        let fds = seen["fds"].as_object().unwrap();
        assert_eq!(fds.keys().collect::<Vec<_>>(), ["0", "1", "2", "20", "21", "22", "23"]);
        assert_eq!(fds["21"], "/dev/null");
        assert!(fds["23"].as_str().unwrap().starts_with("socket:"), "{fds:?}");
        ends_well(&child);
    }
}

alone! {
    /// The program's limit leaves no free numbers: the start fails, and the error says
    /// so.
    fn where_there_is_no_number_left() {
        sys::set_nofile(20);
        let fill: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        let error = common::child(&["cat"]).channel(Channel::FromChild).spawn().unwrap_err();
        assert!(matches!(error, procwright::Error::Spawn { .. }), "{error:?}");
        drop(fill);
    }
}
