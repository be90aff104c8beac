//! Real programs on a terminal: which of them wait for input, and which only seem to.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

use std::path::Path;

use procwright::terminal::Size;
use procwright::{Child, Command, Stdin};
use procwright_explain::input_wait;
use test_support::{scaled, skip, stress, watchdog};

/// Starts a line of a shell on a terminal of its own, unless there is no such program.
fn start(program: &str, line: &str) -> Option<Child> {
    let has = |dir: &str| Path::new(dir).join(program).exists();
    if !std::env::var("PATH").is_ok_and(|path| path.split(':').any(has)) {
        skip("programs on a terminal", &format!("no {program}"));
        return None;
    }
    let command = Command::shell(line).pty(Size::default()).stdin(Stdin::Pipe);
    let command = command.env("TERM", "xterm");
    Some(command.spawn().expect("it starts"))
}

#[test]
fn none_of_those_that_wait_is_missed() {
    let _watchdog = watchdog("input_wanted_programs");
    let each = [
        ("cat", "exec cat"),
        ("bash", "exec bash -c 'read -p \"Go on? \" answer'"),
        ("python3", "exec python3 -c 'input(\"Go on? \")'"),
        (
            "python3",
            "python3 -c 'import getpass; getpass.getpass()'; true",
        ),
        ("head", "head -n 1 | tail -n 1; true"),
    ];
    // How these wait is up to their releases, and to what is installed beside them.
    let interactive = [
        ("bash", "exec bash --norc -i"),
        ("python3", "exec python3 -q -i"),
        ("node", "exec node"),
        ("less", "exec less /etc/passwd"),
        ("vi", "exec vi /nonexistent/file"),
        ("gdb", "exec gdb -q -nx"),
        ("git", "exec git -c credential.helper= credential fill"),
    ];
    let interactive = interactive.into_iter().filter(|_| stress());
    for (program, line) in each.into_iter().chain(interactive) {
        let Some(child) = start(program, line) else {
            continue;
        };
        // Nothing announces that it has begun.
        while input_wait(child.pid(), None)
            .expect("it is there")
            .is_none()
        {}
        for sample in 0..scaled(5, 1000) {
            let seen = input_wait(child.pid(), None).expect("it is there");
            assert!(
                seen.is_some_and(|one| one.waiting.terminal),
                "{line}: {sample}"
            );
        }
    }
}

#[test]
fn none_of_the_others_is_said_to_wait() {
    let _watchdog = watchdog("input_wanted_programs");
    let each = [
        ("sleep", "exec sleep 600"),
        ("sleep", "sleep 600 & wait"),
        ("cat", "sleep 600 | cat"),
        ("sh", "while :; do :; done"),
        ("sh", "while :; do sleep 0.001; done"),
        (
            "cat",
            "while :; do echo x; sleep 0.002; done | cat > /dev/null",
        ),
        ("timeout", "timeout 600 sleep 600"),
        (
            "python3",
            "exec python3 -c 'import select,sys\nwhile 1: select.select([sys.stdin],[],[],0.01)'",
        ),
        (
            "python3",
            "exec python3 -c 'import socket\na, b = socket.socketpair()\na.recv(1)'",
        ),
        ("git", "while :; do git --version > /dev/null; done"),
    ];
    let traced = [("gdb", "exec gdb -q -nx -batch -ex run --args sleep 600")];
    let traced = traced.into_iter().filter(|_| stress());
    for (program, line) in each.into_iter().chain(traced) {
        let Some(child) = start(program, line) else {
            continue;
        };
        for sample in 0..scaled(20, 1000) {
            let seen = input_wait(child.pid(), None).expect("it is there");
            assert!(seen.is_none(), "{line}: {sample}: {seen:?}");
        }
    }
}
