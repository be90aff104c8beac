//! The command as process 1, as it is in a container: the kernel has no default action
//! for a signal there, and orphans are its own to reap.
#![allow(clippy::disallowed_methods)] // Tests may sleep.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use common::bash::try_child_of;
use common::{child, kill, skip, wait_gone_or_zombie};
use rustix::process::Signal;

/// A command that is process 1 of a namespace of its own.
struct Init {
    /// unshare(1), which exits as the command does.
    outer: Child,
    stdout: BufReader<ChildStdout>,
    /// Its number out here; 0 if it had ended before anybody looked.
    pid: i32,
}

/// `unshare` with what makes a new process 1; None where that is not permitted.
fn unshare(test: &str) -> Option<Command> {
    common::watchdog();
    let root = rustix::process::geteuid().is_root();
    let mut all = ["--pid", "--fork", "--kill-child", "--mount-proc"].to_vec();
    if !root {
        all.extend(["--user", "--map-root-user"]);
    }
    let tried = Command::new("unshare").args(&all).arg("true").output();
    if !tried.is_ok_and(|output| output.status.success()) {
        skip(test, "no pid namespace can be made");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(&all);
    Some(command)
}

impl Init {
    /// Starts `procwright WORDS`; None where that cannot be.
    fn start(test: &str, words: &[String], stdin: Stdio) -> Option<Init> {
        Init::with_stderr(test, words, stdin, Stdio::inherit())
    }

    /// Starts a shell line that becomes `$procwright`.
    fn shell(test: &str, line: &str, stdin: Stdio) -> Option<Init> {
        let mut command = unshare(test)?;
        command.env("procwright", env!("CARGO_BIN_EXE_procwright"));
        command.args(["sh", "-c", line]).stdin(stdin);
        Some(Init::of(command))
    }

    fn with_stderr(test: &str, words: &[String], stdin: Stdio, stderr: Stdio) -> Option<Init> {
        let mut command = unshare(test)?;
        command.arg(env!("CARGO_BIN_EXE_procwright")).args(words);
        command.stdin(stdin).stderr(stderr);
        Some(Init::of(command))
    }

    fn of(mut command: Command) -> Init {
        command.stdout(Stdio::piped());
        let mut outer = command.spawn().unwrap();
        let stdout = BufReader::new(outer.stdout.take().unwrap());
        // It is a copy of unshare, or a shell, until its exec; and it may have ended.
        let is_there = |pid: &i32| {
            let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
            exe.is_ok_and(|exe| exe.ends_with("procwright"))
        };
        let pid = loop {
            if let Some(pid) = try_child_of(outer.id().cast_signed()).filter(is_there) {
                break pid;
            }
            if outer.try_wait().unwrap().is_some() {
                break 0;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        Init { outer, stdout, pid }
    }

    /// `procwright run OPTIONS -- WORDS --print-ready`, when its program has said so.
    fn run(test: &str, options: &[&str], words: &[String]) -> Option<Init> {
        let options = options.iter().map(|option| (*option).to_owned());
        let all: Vec<String> = ["run".to_owned()]
            .into_iter()
            .chain(options)
            .chain(["--".to_owned()])
            .chain(words.iter().cloned())
            .collect();
        let mut init = Init::start(test, &all, Stdio::null())?;
        assert!(init.line().starts_with("ready "));
        Some(init)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    fn code(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        self.outer.wait().unwrap().code()
    }

    fn children(&self) -> Vec<i32> {
        let path = format!("/proc/{0}/task/{0}/children", self.pid);
        let text = std::fs::read_to_string(path).unwrap();
        text.split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect()
    }
}

fn ready(words: &[&str]) -> Vec<String> {
    let mut all = child([]);
    all.extend(words.iter().map(|word| (*word).to_owned()));
    all.push("--print-ready".to_owned());
    all
}

#[test]
fn a_signal_stops_the_program_and_is_the_exit_code() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        for options in [&[][..], &["--until", "eof"], &["--scope", "group"]] {
            let test = "a_signal_stops_the_program_and_is_the_exit_code";
            let Some(init) = Init::run(test, options, &ready(&["sleep-forever"])) else {
                return;
            };
            let program = init.children()[0];
            kill(init.pid, signal);
            assert_eq!(init.code(), Some(128 + signal.as_raw()), "{options:?}");
            wait_gone_or_zombie(program);
        }
    }
}

#[test]
fn a_program_that_sigint_ends_is_the_exit_code() {
    let test = "a_program_that_sigint_ends_is_the_exit_code";
    let Some(init) = Init::run(test, &[], &ready(&["sleep-forever"])) else {
        return;
    };
    kill(init.children()[0], Signal::INT);
    assert_eq!(init.code(), Some(130));
}

#[test]
fn other_signals_are_passed_on_to_the_program() {
    // Whoever stops a container signals process 1 alone, and never its group.
    for signal in [Signal::USR1, Signal::USR2, Signal::ALARM] {
        let test = "other_signals_are_passed_on_to_the_program";
        let Some(init) = Init::run(test, &[], &ready(&["sleep-forever"])) else {
            return;
        };
        kill(init.pid, signal);
        assert_eq!(init.code(), Some(128 + signal.as_raw()));
    }
}

#[test]
fn orphans_are_reaped_while_the_program_runs() {
    let test = "orphans_are_reaped_while_the_program_runs";
    // Each subshell leaves a process behind that ends later.
    let script = "for i in 1 2 3 4 5 6 7 8; do (sleep 0.2 & ); done; echo ready $$; read line";
    let words = ["run", "--", "sh", "-c", script].map(str::to_owned);
    let (stdin, _open) = std::io::pipe().unwrap();
    let Some(mut init) = Init::start(test, &words, stdin.into()) else {
        return;
    };
    assert!(init.line().starts_with("ready "));
    while init.children().len() > 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(init.pid, Signal::TERM);
    assert_eq!(init.code(), Some(143));
}

#[test]
fn orphans_are_reaped_while_the_commands_of_a_map_run() {
    let test = "orphans_are_reaped_while_the_commands_of_a_map_run";
    // Each leaves a process behind that ends at once, and waits until it is no zombie any more.
    let script = "sh -c 'true & echo $! >$0' $0; read orphan <$0; \
                  while [ -e /proc/$orphan ]; do sleep 0.01; done; echo $0";
    let folder = tempfile::tempdir().unwrap();
    let files = ["a", "b", "c", "d"].map(|name| format!("{}/{name}", folder.path().display()));
    // A watchdog, and no measure of speed.
    let words = [
        "map",
        "-j2",
        "--ordered",
        "--deadline",
        "100",
        "sh",
        "-c",
        script,
        ":::",
    ];
    let words: Vec<_> = words
        .map(str::to_owned)
        .into_iter()
        .chain(files.clone())
        .collect();
    let Some(mut init) = Init::start(test, &words, Stdio::null()) else {
        return;
    };
    let mut said = String::new();
    init.stdout.read_to_string(&mut said).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), files);
    assert_eq!(init.code(), Some(0));
}

#[test]
fn a_signal_ends_a_map_that_is_process_1() {
    let test = "a_signal_ends_a_map_that_is_process_1";
    let script = "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.1; done";
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let words = ["map", "-j1", "--live", "sh", "-c", script, ":::", "a"].map(str::to_owned);
        let Some(mut init) = Init::start(test, &words, Stdio::null()) else {
            return;
        };
        assert_eq!(init.line(), "ready\n");
        kill(init.pid, signal);
        // The map has stopped its commands, each by its own stop.
        assert_eq!(init.line(), "told\n");
        assert_eq!(init.code(), Some(128 + signal.as_raw()));
    }
}

/// Shell lines that become each of the subcommands that have no program of their own. The
/// queue is in this directory.
fn waiting(queues: &Path) -> [String; 3] {
    let queues = queues.display();
    [
        "exec $procwright buffer".to_owned(),
        "sleep 1000 & exec $procwright wait $!".to_owned(),
        format!("export PROCWRIGHT_QUEUE_DIR={queues}/own; exec $procwright queue recv name"),
    ]
}

#[test]
fn subcommands_without_a_program_end_by_a_signal_too() {
    let test = "subcommands_without_a_program_end_by_a_signal_too";
    let queues = tempfile::tempdir().unwrap();
    for line in waiting(queues.path()) {
        for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
            let (stdin, _open) = std::io::pipe().unwrap();
            let Some(mut init) = Init::shell(test, &line, stdin.into()) else {
                return;
            };
            // A signal that comes before the command's first instruction is lost, as with
            // every process 1.
            while init.outer.try_wait().unwrap().is_none() {
                let _ = rustix::process::kill_process(
                    rustix::process::Pid::from_raw(init.pid).unwrap(),
                    signal,
                );
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(init.code(), Some(128 + signal.as_raw()), "{line}");
        }
    }
}

#[test]
fn subcommands_without_a_program_reap_orphans() {
    let test = "subcommands_without_a_program_reap_orphans";
    if !rustix::process::geteuid().is_root() {
        return skip(test, "only root enters a namespace");
    }
    let queues = tempfile::tempdir().unwrap();
    for line in waiting(queues.path()) {
        let (stdin, _open) = std::io::pipe().unwrap();
        let Some(init) = Init::shell(test, &line, stdin.into()) else {
            return;
        };
        let into = init.pid.to_string();
        let mut enter = Command::new("nsenter");
        enter.args(["--pid", "--target", &into, "sh", "-c", "(sleep 0.2 & )"]);
        assert!(enter.status().unwrap().success());
        // Reaped but for the process that is waited for.
        let own = usize::from(line.contains(" wait "));
        while init.children().len() > own {
            std::thread::sleep(Duration::from_millis(5));
        }
        kill(init.pid, Signal::TERM);
        assert_eq!(init.code(), Some(143));
    }
}

#[test]
fn a_reader_that_goes_away_is_the_exit_code() {
    let test = "a_reader_that_goes_away_is_the_exit_code";
    let Some(mut init) = Init::start(test, &["buffer".to_owned()], {
        let (stdin, mut writer) = std::io::pipe().unwrap();
        std::thread::spawn(move || {
            use std::io::Write;
            while writer.write_all(&[b'x'; 4096]).is_ok() {}
        });
        stdin.into()
    }) else {
        return;
    };
    let mut some = [0; 16];
    init.stdout.read_exact(&mut some).unwrap();
    // The reader is gone.
    let Init {
        mut outer, stdout, ..
    } = init;
    drop(stdout);
    assert_eq!(outer.wait().unwrap().code(), Some(128 + 13));
}

#[test]
fn a_stderr_without_a_reader_holds_up_no_signal() {
    let test = "a_stderr_without_a_reader_holds_up_no_signal";
    let (_reader, mut writer) = std::io::pipe().unwrap();
    let room = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    std::io::Write::write_all(&mut writer, &vec![b'x'; room]).unwrap();
    let words = ["run", "--timeout", "100ms", "--", "sleep", "1000"].map(str::to_owned);
    let stderr = Stdio::from(OwnedFd::from(writer));
    let Some(mut init) = Init::with_stderr(test, &words, Stdio::null(), stderr) else {
        return;
    };
    while init.outer.try_wait().unwrap().is_none() {
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_raw(init.pid).unwrap(),
            Signal::TERM,
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(init.code(), Some(143));
}
