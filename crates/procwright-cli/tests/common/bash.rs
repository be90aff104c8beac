//! An interactive bash at a terminal of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::termios::{Termios, Winsize, tcgetattr, tcgetpgrp, tcsetwinsize};

use super::terminal;

const PROMPT: &str = "=prompt=> ";

/// A bash on a terminal, which echoes input: text that a test waits for must not
/// stand in a line that it types. A drop ends the shell and its jobs.
pub struct Bash {
    shell: Child,
    master: File,
    /// Text that came so far.
    pub text: String,
    /// How far it has been looked at.
    seen: usize,
    /// Directory for files of the test.
    pub directory: tempfile::TempDir,
}

impl Bash {
    /// One that has shown its first prompt. `$run` is `procwright run`, `$child`
    /// the test program.
    pub fn start() -> Bash {
        let (master, slave) = terminal();
        // No line that is typed is wrapped.
        let size = Winsize {
            ws_col: 500,
            ws_row: 24,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).unwrap();
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-i"]);
        command
            .env("PS1", PROMPT)
            .env("TERM", "xterm")
            .env("LC_ALL", "C");
        command.env("run", format!("{} run", env!("CARGO_BIN_EXE_procwright")));
        command.env("child", test_children::path());
        // Else every prompt begins with an escape sequence.
        let directory = tempfile::tempdir().unwrap();
        let inputrc = directory.path().join("inputrc");
        std::fs::write(&inputrc, "set enable-bracketed-paste off\n").unwrap();
        command.env("INPUTRC", inputrc).env("HISTFILE", "/dev/null");
        command.stdin(slave.try_clone().unwrap());
        command.stdout(slave.try_clone().unwrap()).stderr(slave);
        // SAFETY: both are plain system calls.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin().as_fd())?;
                Ok(())
            });
        }
        super::watchdog();
        let mut bash = Bash {
            shell: command.spawn().unwrap(),
            master,
            text: String::new(),
            seen: 0,
            directory,
        };
        drop(command);
        bash.prompt();
        bash
    }

    /// Types a line.
    pub fn line(&mut self, line: &str) {
        self.press(format!("{line}\r").as_bytes());
    }

    pub fn press(&mut self, keys: &[u8]) {
        self.master.write_all(keys).unwrap();
    }

    /// Reads until there is `needle`, and returns what came before it.
    #[track_caller]
    pub fn until(&mut self, needle: &str) -> String {
        let mut buffer = [0; 4096];
        loop {
            if let Some(at) = self.text[self.seen..].find(needle) {
                let before = self.text[self.seen..self.seen + at].to_owned();
                self.seen += at + needle.len();
                return before;
            }
            // EIO when no process has the other end.
            match self.master.read(&mut buffer) {
                Ok(0) | Err(_) => panic!("{needle:?} never came: {:?}", self.text),
                Ok(n) => self.text += &String::from_utf8_lossy(&buffer[..n]),
            }
        }
    }

    /// Reads until there is one of these, and returns which comes first.
    #[track_caller]
    pub fn until_one_of(&mut self, needles: [&str; 2]) -> usize {
        let mut buffer = [0; 4096];
        loop {
            let rest = &self.text[self.seen..];
            let found = needles.map(|needle| rest.find(needle));
            let first = (0..2).filter(|one| found[*one].is_some());
            if let Some(first) = first.min_by_key(|one| found[*one]) {
                self.until(needles[first]);
                return first;
            }
            match self.master.read(&mut buffer) {
                Ok(0) | Err(_) => panic!("{needles:?} never came: {:?}", self.text),
                Ok(n) => self.text += &String::from_utf8_lossy(&buffer[..n]),
            }
        }
    }

    /// Reads until the next prompt.
    #[track_caller]
    pub fn prompt(&mut self) -> String {
        self.until(PROMPT)
    }

    /// Runs a line to the next prompt and returns what it wrote.
    #[track_caller]
    pub fn run(&mut self, line: &str) -> String {
        self.line(line);
        self.until("\n");
        self.prompt()
    }

    /// The pids that the program announces.
    #[track_caller]
    pub fn ready(&mut self) -> Vec<i32> {
        // The echo of `--print-ready` is passed over.
        while self.until("ready ").ends_with("--print-") {}
        let pids = self.until("\n");
        pids.split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect()
    }

    /// Does what `fg` does with the job called so, and waits until keys go to
    /// it: the shell says its name first.
    #[track_caller]
    pub fn fg(&mut self, name: &str) {
        self.line("fg");
        self.until("fg\r\n");
        self.until(&format!("{name}\r\n"));
        let shell = self.pid();
        while tcgetpgrp(&self.master).unwrap().as_raw_nonzero().get() == shell {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// Modes of the terminal.
    pub fn modes(&self) -> Termios {
        tcgetattr(&self.master).unwrap()
    }

    /// Waits for the end of the shell.
    pub fn end(&mut self) {
        self.shell.wait().unwrap();
    }

    pub fn pid(&self) -> i32 {
        self.shell.id().cast_signed()
    }

    /// The one child of the shell that there is, waiting for it.
    pub fn job(&self) -> i32 {
        child_of(self.pid())
    }
}

impl Drop for Bash {
    fn drop(&mut self) {
        // The terminal hangs up when the shell, which has the other end, is gone.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// The one child of a process; waits until there is one.
pub fn child_of(pid: i32) -> i32 {
    loop {
        if let Some(child) = try_child_of(pid) {
            return child;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// The one child of a process, if there is one now.
pub fn try_child_of(pid: i32) -> Option<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.ok()?.trim().parse().ok()
}

/// Waits until a process is in one of these states.
pub fn await_state(pid: i32, states: &[char]) {
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        let stat = stat.unwrap_or_else(|error| panic!("{pid}: {error}"));
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        if states.contains(&state.unwrap()) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
