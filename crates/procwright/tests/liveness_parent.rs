//! A program that watches the process that has started it, and the reverse.
#![allow(clippy::print_stdout)] // it plays a program that says something

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::time::Duration;
use test_support::alone;

use common::sys;
use procwright::liveness::{Error, Mechanism, Monitor, Names, State};
use procwright::process::Signal;
use procwright::spec::Account;
use procwright::{Command, Sink};

/// Environment variable with the program's role.
const ROLE: &str = "PROCWRIGHT_TEST_ROLE";

/// Numbers of the program's descriptors from its parent.
const NUMBERS: [i32; 2] = [20, 21];

/// Plays the role of this process, if it was started as a program here.
fn role() -> bool {
    let Ok(role) = std::env::var(ROLE) else {
        return false;
    };
    match role.as_str() {
        // Asks for the first time only after its parent has ended.
        "late" => {
            println!("SAID here");
            let parent = std::env::var("PROCWRIGHT_PARENT").unwrap();
            let parent = parent.split_once(':').unwrap().0.to_owned();
            common::eventually(|| std::os::unix::process::parent_id().to_string() != parent);
        }
        "closed" => NUMBERS.iter().for_each(sys::close),
        // The numbers belong to other files by now.
        "replaced" => NUMBERS.iter().for_each(|number| {
            sys::replace(File::open("/dev/null").unwrap().as_raw_fd(), *number);
        }),
        "starts" => {
            let exe = std::env::current_exe().unwrap();
            let mut next = std::process::Command::new(exe);
            next.args(std::env::args().skip(1)).env(ROLE, "watch");
            next.status().unwrap();
            return true;
        }
        "becomes" => {
            let exe = std::env::current_exe().unwrap();
            let mut next = std::process::Command::new(exe);
            next.args(std::env::args().skip(1)).env(ROLE, "watch");
            panic!("{}", next.exec());
        }
        _ => {}
    }
    watch();
    if role == "replaced" {
        for number in NUMBERS {
            let file = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
            assert_eq!(file.to_str(), Some("/dev/null"));
        }
    }
    true
}

fn watch() {
    let parent = match Monitor::of_parent() {
        Ok(parent) => parent,
        Err(Error::NoParent(why)) => {
            println!("SAID none: {why}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let again = Monitor::of_parent().unwrap();
    let guarantee = parent.guarantee();
    println!("SAID {:?} {:?}", guarantee.names, guarantee.mechanism);
    // A program that this one starts inherits none of it.
    for number in NUMBERS {
        if let Ok(info) = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")) {
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = i32::from_str_radix(flags.unwrap().trim(), 8).unwrap();
            println!("SAID {number} {}", flags & libc::O_CLOEXEC != 0);
        }
    }
    println!("SAID {:?}", parent.wait(None).unwrap());
    assert!(!parent.alive());
    assert_eq!(again.wait(None), Some(State::Died));
    // A fork of the program is no child in this sense.
    let status = sys::in_fork(|| match Monitor::of_parent() {
        Err(Error::NoParent(_)) => 0,
        _ => 1,
    });
    assert_eq!(status, 0);
}

/// A program in this role that prints into the pipe.
fn program(test: &str, role: &str, out: &PipeWriter) -> Command<'static> {
    let copy = common::copy_of_test(test);
    let mut command = Command::new(copy.get_program()).args(copy.get_args());
    for (key, value) in copy.get_envs() {
        command = command.env(key, value.unwrap());
    }
    command
        .env(ROLE, role)
        .stdout(Sink::Fd(out.as_fd().try_clone_to_owned().unwrap().into()))
        .stderr(Sink::Inherit)
        .liveness()
}

/// A process that starts `command` and then does nothing more.
fn parent(command: impl FnOnce() -> Command<'static>) -> i32 {
    sys::fork_pausing_after(|| std::mem::forget(command().spawn().unwrap()))
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

    fn rest(&mut self) {
        let mut line = String::new();
        while self.0.read_line(&mut line).unwrap() > 0 {}
        assert!(line.contains("1 passed"), "{line}");
    }
}

fn words() -> (Words, PipeWriter) {
    let (ours, theirs) = std::io::pipe().unwrap();
    (Words(BufReader::new(ours)), theirs)
}

fn end(parent: i32) {
    sys::kill(parent, libc::SIGKILL);
    sys::reap(parent);
}

/// Starts the role with a token; the program sees the end of its parent.
fn with_a_token(test: &str, role: &str, change: fn(Command<'static>) -> Command<'static>) {
    let (mut words, out) = words();
    let parent = parent(|| change(program(test, role, &out)));
    drop(out);
    assert_eq!(words.next(), "Image RobustWord");
    assert_eq!(words.next(), "20 true");
    assert_eq!(words.next(), "21 true");
    end(parent);
    assert_eq!(words.next(), "Died");
    words.rest();
}

alone! {
    fn a_program_sees_its_parent_die() {
        if role() { return }
        with_a_token("a_program_sees_its_parent_die", "watch", |command| command);
    }
}

alone! {
    fn also_one_that_was_started_by_the_thread_that_never_ends() {
        if role() { return }
        let test = "also_one_that_was_started_by_the_thread_that_never_ends";
        // SIGCONT does no harm: another signal would end the program before it sees
        // anything.
        with_a_token(test, "watch", |command| command.die_with_parent(Signal::CONT));
    }
}

alone! {
    fn also_one_of_another_user() {
        if role() { return }
        let test = "also_one_of_another_user";
        if common::root_or_skip(test) {
            with_a_token(test, "watch", |command| command.user(Account::Id(0)));
        }
    }
}

alone! {
    fn also_one_that_became_another_program_first() {
        if role() { return }
        with_a_token("also_one_that_became_another_program_first", "becomes", |command| command);
    }
}

alone! {
    fn a_parent_that_has_ended_before_it_is_asked_for() {
        if role() { return }
        let (mut words, out) = words();
        let test = "a_parent_that_has_ended_before_it_is_asked_for";
        let parent = parent(|| program(test, "late", &out));
        drop(out);
        assert_eq!(words.next(), "here");
        end(parent);
        assert_eq!(words.next(), "Image RobustWord");
        words.next();
        words.next();
        assert_eq!(words.next(), "Died");
        words.rest();
    }
}

/// Starts the role without a token; the program sees the end all the same.
fn without_a_token(test: &str, role: &str, before: fn()) {
    let (mut words, out) = words();
    let parent = parent(|| {
        before();
        program(test, role, &out)
    });
    drop(out);
    assert_eq!(words.next(), "Process Watcher");
    if role == "replaced" {
        assert_eq!([words.next(), words.next()], ["20 false", "21 false"]);
    }
    end(parent);
    assert_eq!(words.next(), "Died");
    words.rest();
}

alone! {
    fn descriptors_that_were_closed() {
        if role() { return }
        without_a_token("descriptors_that_were_closed", "closed", || {});
    }
}

alone! {
    fn descriptors_that_are_others_by_now() {
        if role() { return }
        without_a_token("descriptors_that_are_others_by_now", "replaced", || {});
    }
}

alone! {
    fn where_there_are_no_tokens() {
        if role() { return }
        without_a_token("where_there_are_no_tokens", "watch", || {
            sys::deny(&[libc::SYS_memfd_create], libc::ENOSYS);
        });
    }
}

alone! {
    fn who_inherits_the_variable_has_no_parent() {
        if role() { return }
        let (mut words, out) = words();
        let parent = parent(|| program("who_inherits_the_variable_has_no_parent", "starts", &out));
        drop(out);
        let said = words.next();
        assert!(said.starts_with("none: PROCWRIGHT_PARENT was told to process "), "{said}");
        end(parent);
        words.rest();
    }
}

alone! {
    fn who_was_not_started_so_has_no_parent() {
        let error = Monitor::of_parent().unwrap_err();
        assert!(matches!(error, Error::NoParent(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("PROCWRIGHT_PARENT") && text.contains("liveness=True"), "{text}");
        for lie in ["", "1", "x y z", "1:2 20:1 21:1 0 99999999999", "1:2 20 21 0 1"] {
            sys::set_variable("PROCWRIGHT_PARENT", lie.as_ref());
            let error = Monitor::of_parent().unwrap_err();
            assert!(error.to_string().contains("says nothing"), "{lie}: {error}");
        }
        sys::set_variable("PROCWRIGHT_PARENT", format!("-1 {}", std::process::id()).as_ref());
        let error = Monitor::of_parent().unwrap_err();
        assert!(error.to_string().contains("no process"), "{error}");
        // Descriptors that are not open, and a parent that does not exist.
        let lie = format!("{}:1 20:1 21:1 {:024} {}", i32::MAX, 0, std::process::id());
        sys::set_variable("PROCWRIGHT_PARENT", lie.as_ref());
        let error = Monitor::of_parent().unwrap_err();
        assert!(error.to_string().contains("has ended"), "{error}");
    }
}

alone! {
    fn numbers_that_the_caller_uses_are_left_alone() {
        let null = || File::open("/dev/null").unwrap();
        let show = common::child(&["show"]).pass_fd(null(), 20).pass_fd(null(), 22).liveness();
        let seen = common::shown(&show.run().unwrap());
        let fds = seen["fds"].as_object().unwrap();
        assert_eq!(fds.keys().collect::<Vec<_>>(), ["0", "1", "2", "20", "21", "22", "23"]);
        for (number, ours) in [("20", false), ("21", true), ("22", false), ("23", true)] {
            assert_eq!(fds[number] != "/dev/null", ours, "{fds:?}");
        }
    }
}

alone! {
    fn a_child_can_be_watched() {
        let child = common::child(&["sleep-forever"]).stdout(Sink::Null).spawn().unwrap();
        let monitor = child.monitor().unwrap();
        assert_eq!(monitor.guarantee().names, Names::Process);
        assert_eq!(monitor.guarantee().mechanism, Mechanism::Watcher);
        assert_eq!(monitor.wait(Duration::from_millis(5)), None);
        assert_eq!(monitor.confirm(), State::Alive);
        child.signal(Signal::KILL).unwrap();
        sys::wait_for_end(child.process().pidfd().unwrap());
        // The kernel knows, whatever the watcher has been told yet.
        assert_eq!(monitor.confirm(), State::Died);
        assert_eq!(monitor.wait(None), Some(State::Died));
        child.wait(None).unwrap();
    }
}
