//! `procwright wait --name`.

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::target::{Target, Waiter, wait};
use rustix::process::Signal;
use tempfile::TempDir;

/// A program under a name that no other process has.
struct Renamed {
    _directory: TempDir,
    path: PathBuf,
    name: String,
}

impl Renamed {
    /// A hard link: a copy would have to be written, and a file that another
    /// test's child still has open for writing cannot be executed.
    fn new(program: &Path, name: &str) -> Renamed {
        let name = format!("{name}{}", std::process::id());
        let directory = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        let path = directory.path().join(&name);
        std::fs::hard_link(program, &path).unwrap();
        Renamed {
            _directory: directory,
            path,
            name,
        }
    }

    fn child(name: &str) -> Renamed {
        Renamed::new(&test_children::path(), name)
    }

    fn sleeper(&self) -> Target {
        Target::of(&self.path, &["sleep-forever"])
    }
}

#[test]
fn everybody_of_that_name() {
    // The second is cut in what the process goes by, but not in its file.
    for name in ["pwn", "a-name-of-more-than-15-bytes-"] {
        let program = Renamed::child(name);
        let (a, b) = (program.sleeper(), program.sleeper());
        let mut waiter = Waiter::new(["--name", &program.name]);
        assert!(waiter.said.contains(" 2 to wait for"), "{}", waiter.said);
        for target in [a, b] {
            target.kill(Signal::TERM);
            let goes_by = &program.name[..program.name.len().min(15)];
            let start = format!("{} {goes_by} killed by SIGTERM after ", target.pid());
            let line = waiter.line();
            assert!(line.starts_with(&start), "{line}");
        }
        let ran = waiter.finish();
        assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), ""));
    }
}

#[test]
fn a_name_that_is_not_its_files() {
    let program = Renamed::child("pwo");
    let other = format!("pwl{}", std::process::id());
    let link = program.path.with_file_name(&other);
    std::os::unix::fs::symlink(&program.path, &link).unwrap();
    // The process has the name of the link, its file the other name.
    let target = Target::of(&link, &["sleep-forever"]);
    let waiter = Waiter::new(["--name", &program.name, "--name", &other, &target.arg()]);
    assert!(waiter.said.contains(" 1 to wait for"), "{}", waiter.said);
    target.kill(Signal::TERM);
    assert_eq!(waiter.finish().stdout.lines().count(), 1);
}

#[test]
fn only_the_whole_name_counts() {
    let program = Renamed::child("pwp");
    let _target = program.sleeper();
    for name in [&program.name[..program.name.len() - 1], "pwp", ""] {
        let ran = wait(["--name", name]);
        assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), ""), "{name}");
        let said = format!("procwright: no process has the name {name:?}\n");
        assert_eq!(ran.stderr, said);
    }
}

#[test]
fn nobody_of_that_name_is_nothing_to_wait_for() {
    let ran = wait(["--quiet", "--name", "pw-no-such-process"]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    let target = Target::zombie("6");
    let ran = wait(["--name", "pw-no-such-process", &target.arg()]);
    assert_eq!((ran.code(), ran.stdout.lines().count()), (Some(0), 1));
    let hint = "procwright: no process has the name \"pw-no-such-process\"\n  hint: ";
    assert!(ran.stderr.starts_with(hint), "{}", ran.stderr);
}

#[test]
fn fewer_than_the_first_so_many_is_told() {
    let program = Renamed::child("pwf");
    let target = program.sleeper();
    let waiter = Waiter::new(["--first", "2", "--name", &program.name]);
    let said = "procwright: --first 2, but there are no more than 1 in all\n";
    assert!(waiter.said.starts_with(said), "{}", waiter.said);
    target.kill(Signal::TERM);
    let ran = waiter.finish();
    assert_eq!((ran.code(), ran.stdout.lines().count()), (Some(0), 1));
}

#[test]
fn who_has_ended_is_waited_for_only_until_the_reap() {
    let program = Renamed::child("pwz");
    let mut target = Target::of(&program.path, &["term-exit", "3"]);
    target.kill(Signal::TERM);
    target.await_end();
    let ran = wait(["--name", &program.name]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), ""));
    let waiter = Waiter::new(["--event", "reaped", "--name", &program.name]);
    assert!(waiter.said.contains(" 1 to wait for"), "{}", waiter.said);
    target.reap();
    assert_eq!(waiter.finish().code(), Some(0));
}

#[test]
fn the_name_told_is_that_at_the_end() {
    // A job has the name of its shell until its exec.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "read line; exec \"$0\" exit 3"]);
    shell.arg(test_children::path()).stdin(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let waiter = Waiter::new([shell.id().to_string()]);
    writeln!(shell.stdin.take().unwrap()).unwrap();
    let ran = waiter.finish();
    let start = format!("{} test-child exited with code 3 after ", shell.id());
    assert!(ran.stdout.starts_with(&start), "{}", ran.stdout);
    shell.wait().unwrap();
}

#[test]
fn it_does_not_wait_for_itself() {
    let procwright = Renamed::new(Path::new(env!("CARGO_BIN_EXE_procwright")), "pws");
    let mut command = Command::new(&procwright.path);
    command.args(["wait", "--name", &procwright.name]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("no process has the name"), "{stderr}");
    // The command does not wait for itself by its number either, got by an exec.
    let path = procwright.path.to_str().unwrap();
    let mut shell = Command::new("/bin/sh");
    let output = shell
        .args(["-c", &format!("exec '{path}' wait $$")])
        .output();
    assert_eq!(output.unwrap().status.code(), Some(125));
}
