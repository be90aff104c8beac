//! A command on a terminal of its own, and what stands there.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};

use rustix::termios::{Winsize, tcsetwinsize};

use super::terminal;

/// A command whose stdout and stderr are a terminal, its own.
pub struct Seen {
    pub command: Child,
    pub master: File,
    /// Text that came so far.
    pub text: String,
}

/// A terminal so many columns wide.
fn sized(columns: u16) -> (File, OwnedFd) {
    let (master, slave) = terminal();
    let size = Winsize {
        ws_col: columns,
        ws_row: 24,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size).unwrap();
    (master, slave)
}

impl Seen {
    /// Starts a command whose three streams are the terminal.
    pub fn new(mut command: Command, columns: u16) -> Seen {
        let (master, slave) = sized(columns);
        command.stdin(slave.try_clone().unwrap());
        command.stdout(slave.try_clone().unwrap());
        Seen::start(command, master, slave)
    }

    /// Starts a command whose stdout and stderr are the terminal.
    pub fn out(mut command: Command, columns: u16) -> Seen {
        let (master, slave) = sized(columns);
        command.stdout(slave.try_clone().unwrap());
        Seen::start(command, master, slave)
    }

    /// Starts a command whose stderr is the terminal.
    pub fn err(command: Command, columns: u16) -> Seen {
        let (master, slave) = sized(columns);
        Seen::start(command, master, slave)
    }

    fn start(mut command: Command, master: File, slave: OwnedFd) -> Seen {
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm");
        }
        command.stderr(slave);
        // SAFETY: both are plain system calls.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stderr().as_fd())?;
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        // The command has the other end of the terminal open, which would keep the
        // master from an end.
        drop(command);
        Seen {
            command: child,
            master,
            text: String::new(),
        }
    }

    /// Reads until there is `needle`; false if it never comes.
    pub fn until(&mut self, needle: &str) -> bool {
        while !self.text.contains(needle) {
            if !self.more() {
                return false;
            }
        }
        true
    }

    /// Reads what comes next; false if there is no more.
    pub fn more(&mut self) -> bool {
        let mut buffer = [0; 1024];
        // EIO when no process has the other end.
        match self.master.read(&mut buffer) {
            Ok(0) | Err(_) => false,
            Ok(n) => {
                self.text += std::str::from_utf8(&buffer[..n]).unwrap();
                true
            }
        }
    }

    /// Waits for the end: the exit code, and the signal that ended the command.
    pub fn end(&mut self) -> (Option<i32>, Option<i32>) {
        while self.until("never written") {}
        let status = self.command.wait().unwrap();
        (status.code(), status.signal())
    }

    /// Lines that the terminal shows.
    pub fn screen(&self) -> Vec<String> {
        let mut lines = vec![Vec::new()];
        let mut column = 0;
        let mut rest = self.text.chars();
        while let Some(c) = rest.next() {
            let line = lines.last_mut().unwrap();
            match c {
                '\r' => column = 0,
                '\n' => lines.push(Vec::new()),
                '\x1b' => {
                    assert_eq!(rest.by_ref().take(2).collect::<String>(), "[K");
                    line.truncate(column);
                }
                c => {
                    line.resize(column.max(line.len()), ' ');
                    line.splice(column..(column + 1).min(line.len()), [c]);
                    column += 1;
                }
            }
        }
        let lines = lines.iter().map(|line| line.iter().collect());
        lines.collect()
    }
}
