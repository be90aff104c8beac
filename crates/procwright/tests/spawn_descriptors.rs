//! Descriptors that a program gets, and starts when there are none left.

mod common;

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use test_support::alone;

use common::{Census, child, eventually, shown, sys};
use procwright::process::{Exit, ProcessError, Signal, Stop};
use procwright::wait::{Event, Want};
use procwright::{Cancel, Command, Error, Sink, Stdin, WaitSet};
use serde_json::Value;

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        let dir = self.0.path().canonicalize().unwrap();
        dir.join(name).to_str().unwrap().to_owned()
    }

    fn open(&self, name: &str) -> OwnedFd {
        File::create(self.path(name)).unwrap().into()
    }
}

/// Passes files by their numbers here and in the program, and checks that each arrives
/// where it belongs, and nothing else does.
#[track_caller]
fn passes(mut command: Command<'static>, files: &Files, moves: &[(i32, i32)]) {
    for (from, to) in moves {
        let name = format!("{from}to{to}");
        let file = files.open(&name);
        let file = if file.as_raw_fd() == *from {
            file
        } else {
            sys::copy_at(&file, *from)
        };
        command = command.pass_fd(file, *to);
    }
    let seen = shown(&command.run().unwrap());
    let fds = seen["fds"].as_object().unwrap();
    for (from, to) in moves {
        let expected = files.path(&format!("{from}to{to}"));
        assert_eq!(
            fds.get(&to.to_string()),
            Some(&Value::from(expected)),
            "{moves:?}: {fds:?}"
        );
    }
    assert_eq!(fds.len(), 3 + moves.len(), "{moves:?}: {fds:?}");
}

alone! {
    fn numbers_may_swap_and_overlap() {
        let files = Files::new();
        // The low numbers are free here; the pipes of the run take the ones above.
        for moves in [
            &[(3, 3)][..],
            &[(3, 4), (4, 3)],
            &[(3, 4), (4, 5), (5, 3)],
            &[(3, 5), (4, 6), (5, 7)],
            &[(5, 4), (4, 3)],
            // The run's own pipes have these numbers here.
            &[(3, 4), (5, 6), (7, 8), (9, 10)],
            &[(3, 12), (12, 11), (11, 10), (10, 9)],
            &[(30, 3), (31, 4), (32, 5), (33, 6), (34, 7), (35, 8)],
            &[(40, 900), (900, 40)],
        ] {
            passes(child(&["show"]), &files, moves);
            passes(child(&["show"]).stdin_bytes("x").die_with_parent(Signal::KILL), &files, moves);
        }
    }
}

alone! {
    fn one_file_under_several_numbers() {
        let files = Files::new();
        let file = Arc::new(files.open("it"));
        let number = file.as_raw_fd();
        let mut spec = procwright::Spec::new([test_children::path().into_os_string(), "show".into()]);
        spec.pass_fds = vec![(Arc::clone(&file), number), (Arc::clone(&file), number + 1), (file, 20)];
        let seen = shown(&Command::from_spec(spec).run().unwrap());
        for number in [number, number + 1, 20] {
            assert_eq!(seen["fds"][number.to_string()], files.path("it"));
        }
        assert_eq!(seen["fds"].as_object().unwrap().len(), 6);
    }
}

alone! {
    fn standard_streams_from_descriptors() {
        let files = Files::new();
        std::fs::write(files.path("in"), "input").unwrap();
        let input = Arc::new(OwnedFd::from(File::open(files.path("in")).unwrap()));
        let output = Arc::new(files.open("out"));
        let error = Arc::new(files.open("err"));
        child(&["cat"])
            .stdin(Stdin::Fd(input))
            .stdout(Sink::Fd(Arc::clone(&output)))
            .stderr(Sink::Fd(error))
            .run()
            .unwrap();
        assert_eq!(std::fs::read(files.path("out")).unwrap(), b"input");
        // One file for both streams, which stays open here.
        child(&["flood", "--out", "10", "--err", "10"])
            .stdout(Sink::Fd(Arc::clone(&output)))
            .stderr(Sink::Fd(Arc::clone(&output)))
            .run()
            .unwrap();
        File::from(output.try_clone().unwrap()).write_all(b"end").unwrap();
        let all = std::fs::read(files.path("out")).unwrap();
        assert_eq!((all.len(), &all[25..]), (28, &b"end"[..]));
    }
}

alone! {
    fn a_parent_without_standard_streams() {
        let files = Files::new();
        let plain;
        let fed;
        let inherits;
        let merged;
        let swapped;
        let counts;
        {
            let closed = sys::NoStandard::close();
            let before = Census::now();
            // The pipes of the run get 0, 1 and 2 here.
            plain = child(&["show"]).run();
            fed = child(&["cat"]).stdin_bytes("through").run();
            inherits = child(&["show"]).stdin_inherit().stderr(Sink::Inherit).run();
            merged = child(&["flood", "--out", "5", "--err", "5", "--alternate"]).stderr(Sink::Merged).run();
            // Files with the numbers 0, 1, 2 get other ones.
            let moved: Vec<OwnedFd> = ["a", "b", "c"].map(|name| files.open(name)).into();
            let numbers: Vec<i32> = moved.iter().map(AsRawFd::as_raw_fd).collect();
            let mut command = child(&["show"]);
            for (fd, to) in moved.into_iter().zip([4, 3, 5]) {
                command = command.pass_fd(fd, to);
            }
            swapped = (numbers, command.run());
            counts = (before, Census::now());
            drop(closed);
        }
        let seen = shown(&plain.unwrap());
        assert_eq!(seen["fds"].as_object().unwrap().keys().collect::<Vec<_>>(), ["0", "1", "2"]);
        assert_eq!(seen["fds"]["0"], "/dev/null");
        assert_eq!(fed.unwrap().stdout, b"through");
        let seen = shown(&inherits.unwrap());
        assert_eq!(seen["fds"].as_object().unwrap().keys().collect::<Vec<_>>(), ["1"]);
        assert_eq!(merged.unwrap().stdout.len(), 10);
        assert_eq!(swapped.0, [0, 1, 2]);
        let seen = shown(&swapped.1.unwrap());
        for (name, number) in [("a", "4"), ("b", "3"), ("c", "5")] {
            assert_eq!(seen["fds"][number], files.path(name), "{seen}");
        }
        assert_eq!(seen["fds"].as_object().unwrap().len(), 6);
        assert_eq!(counts.0, counts.1);
    }
}

/// The ways to run that need descriptors, each with a name.
fn ways(dir: &std::path::Path) -> Vec<(&'static str, Command<'static>)> {
    let quick = Stop::kill();
    let file = Sink::File {
        path: dir.join("out"),
        append: false,
    };
    vec![
        ("plain", child(&["echo", "x"])),
        ("fed", child(&["cat"]).stdin_bytes("x\n")),
        ("merged", child(&["echo", "x"]).stderr(Sink::Merged)),
        (
            "file",
            child(&["echo", "x"])
                .stdin(Stdin::File("/dev/null".into()))
                .stdout(file),
        ),
        ("lines", child(&["echo", "x"]).on_stdout_line(|_| Ok(()))),
        ("iterator", child(&["cat"]).stdin_iter([Ok("x\n".into())])),
        ("full", child(&["echo", "x"]).keep_full(dir.join("full"))),
        ("swapped", {
            let fds: Vec<OwnedFd> = (0..2)
                .map(|_| File::open("/dev/null").unwrap().into())
                .collect();
            let numbers: Vec<i32> = fds.iter().map(AsRawFd::as_raw_fd).collect();
            let to = [numbers[1], numbers[0]];
            fds.into_iter()
                .zip(to)
                .fold(child(&["echo", "x"]), |command, (fd, to)| {
                    command.pass_fd(fd, to)
                })
        }),
        (
            "dies with us",
            child(&["echo", "x"]).die_with_parent(Signal::KILL),
        ),
        ("both", child(&["flood", "--out", "4M", "--err", "4M"])),
        (
            "stopped",
            child(&["sleep-forever"])
                .timeout(std::time::Duration::from_millis(1))
                .stop(quick)
                .stopped_is_ok(),
        ),
        (
            "until exit",
            child(&["echo", "x"]).until(procwright::Until::Exit),
        ),
    ]
}

fn descriptors_run_out() {
    let dir = tempfile::tempdir().unwrap();
    // Counted before any run: a thread of one may end some time after it.
    let threads = Census::now().threads.len();
    let mut started = std::collections::BTreeMap::<&str, i32>::new();
    for free in 0..=16_i32 {
        for (name, command) in ways(dir.path()) {
            let before = Census::now();
            let limit = sys::nofile();
            sys::set_nofile(100);
            let mut fill: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
            fill.truncate(fill.len() - usize::try_from(free).unwrap());
            let result = command.run();
            sys::set_nofile(limit);
            drop(fill);
            match result {
                Ok(output) => {
                    started.entry(name).or_insert(free);
                    if name == "both" {
                        assert_eq!(
                            (output.stdout.len(), output.stderr.len()),
                            (4 << 20, 4 << 20)
                        );
                    } else if name != "stopped" {
                        assert!(output.success(), "{name} with {free}: {:?}", output.report);
                        assert_eq!(
                            output.stdout,
                            if name == "file" { &b""[..] } else { b"x\n" },
                            "{name} with {free}"
                        );
                    }
                }
                Err(Error::Spawn { source, .. }) => {
                    assert_eq!(source.errno(), libc::EMFILE, "{name} with {free}: {source}");
                    assert!(
                        !started.contains_key(name),
                        "{name} with {free}, but not with fewer"
                    );
                }
                Err(error) => panic!("{name} with {free}: {error}"),
            }
            // A thread of the run closes what it has before it ends.
            common::eventually(|| Census::now().threads.len() == threads);
            // The command's own descriptors, if it had any, are closed by now.
            let own = if name == "swapped" { 2 } else { 0 };
            let now = Census::now();
            assert_eq!(
                (now.fds.len(), now.children),
                (before.fds.len() - own, before.children),
                "{name} with {free}"
            );
        }
    }
    common::figure(&format!("free descriptors that are enough: {started:?}"));
    assert_eq!(started.len(), ways(dir.path()).len(), "{started:?}");
}

alone! {
    fn descriptors_run_out_at_every_step() {
        descriptors_run_out();
    }
}

alone! {
    fn descriptors_run_out_where_close_range_is_denied() {
        sys::deny(&[libc::SYS_close_range], libc::ENOSYS);
        descriptors_run_out();
    }
}

alone! {
    fn a_cancel_takes_one_descriptor_and_gives_it_back() {
        let before = Census::now();
        let cancel = Cancel::new().unwrap();
        assert_eq!(Census::now().fds.len(), before.fds.len() + 1);
        drop(cancel);
        before.unchanged();
    }
}

alone! {
    fn who_is_over_has_no_descriptor() {
        let streamless = || {
            let command = child(&["exit", "3"]).stdin(Stdin::Null);
            command.stdout(Sink::Null).stderr(Sink::Null).spawn().unwrap()
        };
        let ended = Some(Exit::Code(3));
        assert_eq!(streamless().wait(None).unwrap(), ended);
        let before = Census::now();
        let (waited, asked, stopped) = (streamless(), streamless(), streamless());
        let kept = asked.process();
        assert!(kept.pidfd().is_some());
        assert_eq!(waited.wait(None).unwrap(), ended);
        eventually(|| asked.try_wait() == ended);
        sys::wait_for_end(stopped.process().pidfd().unwrap().as_fd());
        assert_eq!(stopped.stop(), []);
        // That of the handle which was kept is its own.
        assert!(kept.pidfd().is_some() && kept == asked.process());
        drop(kept);
        before.comes_back();
        for child in [&waited, &asked, &stopped] {
            let process = child.process();
            assert!(process.pidfd().is_none() && !process.is_alive());
            assert_eq!([process.exit(), process.wait(None).unwrap(), child.try_wait()], [ended; 3]);
            assert!(matches!(process.signal(Signal::TERM), Err(ProcessError::Gone(_))));
            assert!(matches!(child.signal(Signal::TERM), Err(ProcessError::Gone(_))));
            assert!(matches!(process.name(), Err(ProcessError::Gone(_))));
            assert_eq!(child.stop(), []);
            assert!(!child.monitor().unwrap().alive());
            let mut set = WaitSet::new().unwrap();
            set.add(child, Event::Exited).unwrap();
            assert_eq!(set.wait(Want::All, None).unwrap().ended.len(), 1);
        }
    }
}

alone! {
    fn in_a_set_a_child_keeps_its_descriptor() {
        let child = child(&["exit", "3"]).stdout(Sink::Null).stderr(Sink::Null).spawn().unwrap();
        let mut set = WaitSet::new().unwrap();
        set.add(&child, Event::Exited).unwrap();
        assert_eq!(child.wait(None).unwrap(), Some(Exit::Code(3)));
        assert!(child.process().pidfd().is_none());
        // The set takes out what it has put in.
        assert_eq!(set.wait(Want::All, None).unwrap().ended.len(), 1);
        assert_eq!(set.wait(Want::All, Duration::ZERO).unwrap().ended.len(), 0);
    }
}
