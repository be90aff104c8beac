//! Stops of children that had a terminal, whose number the kernel gives to the next one.

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use procwright::Command;
use procwright::process::Stop;
use procwright::stream::Reader;
use procwright::terminal::Size;
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

const SIZE: Size = Size {
    rows: 24,
    columns: 80,
};

/// A terminal of this name, once whoever has it has let go of it: its two ends.
fn terminal(name: &str) -> (OwnedFd, File) {
    let number = |name: &str| name.rsplit('/').next().unwrap().parse::<u32>().unwrap();
    // The lowest that is free is given away first.
    let mut lower = Vec::new();
    loop {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        unlockpt(&master).unwrap();
        let got = ptsname(&master, Vec::new()).unwrap();
        let got = got.to_str().unwrap();
        if got == name {
            let slave = File::options().read(true).write(true).open(Path::new(name));
            return (master, slave.unwrap());
        }
        if number(got) < number(name) {
            lower.push(master);
        }
        std::thread::yield_now();
    }
}

/// A process that is nobody's child here and has this terminal: its number.
fn stranger_at(slave: &File) -> i32 {
    let mut shell = std::process::Command::new("sh")
        .args(["-c", "trap '' HUP; sleep 1000 >/dev/null & echo $!"])
        .stdout(Stdio::piped())
        .stderr(slave.try_clone().unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = shell.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    shell.wait().unwrap();
    line.trim().parse().unwrap()
}

/// What a child says in a line of its own.
fn said(stdout: &mut BufReader<Reader>) -> String {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    line.trim().to_owned()
}

#[test]
fn who_gets_the_number_of_an_ended_terminal_is_left_alone() {
    let _dog = common::watchdog("who_gets_the_number_of_an_ended_terminal_is_left_alone");
    let mut child = Command::shell("tty <&2").pty(SIZE).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let name = said(&mut stdout);
    assert_eq!(stdout.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert_eq!(child.wait(None).unwrap().unwrap().code(), Some(0));
    let (_master, slave) = terminal(&name);
    let stranger = stranger_at(&slave);
    assert!(child.stop().is_empty());
    assert!(
        common::lives(stranger),
        "it was ended by a stop that is not its own"
    );
    common::sys::kill(stranger, libc::SIGKILL);
}

#[test]
fn who_gets_it_while_the_stop_goes_on_is_left_alone() {
    let _dog = common::watchdog("who_gets_it_while_the_stop_goes_on_is_left_alone");
    // The terminal ends with the shell, by the first signal. What the shell has started is
    // there until it is killed; it may be in the shell's session still, which is hung up.
    let line = "trap '' TERM HUP; setsid sleep 1000 </dev/null >/dev/null 2>&1 & \
                trap - TERM HUP; tty <&2; echo $!; wait";
    let stop = Stop::new().with_grace(Duration::from_secs(3600));
    let mut child = Command::shell(line).pty(SIZE).stop(stop).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let name = said(&mut stdout);
    let ignores: i32 = said(&mut stdout).parse().unwrap();
    std::thread::scope(|threads| {
        let stopped = threads.spawn(|| child.stop());
        assert_eq!(stdout.read_to_end(&mut Vec::new()).unwrap(), 0);
        let (_master, slave) = terminal(&name);
        let stranger = stranger_at(&slave);
        assert!(!stopped.is_finished(), "{ignores} ignores the first signal");
        // Its end has the stop look for whoever else there is.
        common::sys::kill(ignores, libc::SIGKILL);
        assert!(stopped.join().unwrap().is_empty());
        assert!(
            common::lives(stranger),
            "it was ended by a stop that is not its own"
        );
        common::sys::kill(stranger, libc::SIGKILL);
    });
}
