//! A person's terminal, with a command in front of it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, Winsize,
    tcgetattr, tcsetattr, tcsetwinsize,
};

/// Time between two looks at whether the command has ended.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// A person's terminal, and the command that controls it.
pub struct Outer {
    pub command: Child,
    master: File,
    /// Kept open, so that its modes can be looked at when all others are gone.
    slave: OwnedFd,
    before: Vec<u64>,
    /// Text that was shown.
    pub text: String,
}

impl Outer {
    /// Starts a command with all three of its descriptors on a new terminal.
    pub fn new(command: Command) -> Outer {
        Outer::sized(command, 33, 77)
    }

    /// As [`new`](Outer::new), on a terminal of this size.
    pub fn sized(mut command: Command, rows: u16, columns: u16) -> Outer {
        let (master, slave) = super::terminal();
        resize(&master, rows, columns);
        // Modes that no terminal has by default.
        let mut modes = tcgetattr(&slave).unwrap();
        modes.input_modes |= InputModes::IUTF8 | InputModes::IXANY;
        modes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
        modes.special_codes[SpecialCodeIndex::VERASE] = 8;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        tcsetattr(&slave, OptionalActions::Now, &modes).unwrap();
        for stream in [Command::stdin, Command::stdout, Command::stderr] {
            stream(&mut command, slave.try_clone().unwrap());
        }
        // SAFETY: both are plain system calls.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin().as_fd())?;
                Ok(())
            });
        }
        let before = fingerprint(&tcgetattr(&slave).unwrap());
        let child = command.spawn().unwrap();
        drop(command);
        Outer {
            command: child,
            before,
            master,
            slave,
            text: String::new(),
        }
    }

    /// `procwright run` with these words.
    pub fn run<const N: usize>(words: [&str; N]) -> Outer {
        Outer::new(super::procwright(words))
    }

    /// Reads until it shows this.
    pub fn wait_for(&mut self, what: &str) {
        assert!(self.shows(what), "no {what:?} in {:?}", self.text);
    }

    /// Reads until it shows this, or the command has ended without.
    pub fn shows(&mut self, what: &str) -> bool {
        while !self.text.contains(what) {
            if !self.read_more() {
                return false;
            }
        }
        true
    }

    /// Reads until it shows this behind something else: a shell's prompt, say, after
    /// the end of a program, which takes all keys until then.
    pub fn wait_behind(&mut self, first: &str, what: &str) {
        self.wait_for(first);
        let behind = |text: &str| text.rsplit_once(first).unwrap().1.contains(what);
        while !behind(&self.text) {
            assert!(
                self.read_more(),
                "no {what:?} behind {first:?} in {:?}",
                self.text
            );
        }
    }

    /// Reads whatever comes next: false if the command has ended, and nothing does. The terminal
    /// is kept open here, so that it has no end to read.
    pub fn read_more(&mut self) -> bool {
        loop {
            // Looked at before the terminal: what it has said comes before its end.
            let has_ended = self.command.try_wait().unwrap().is_some();
            if self.is_readable(PAUSE) {
                let mut piece = [0; 4096];
                let n = self.master.read(&mut piece).unwrap();
                self.text += &String::from_utf8_lossy(&piece[..n]);
                return true;
            }
            if has_ended {
                return false;
            }
        }
    }

    fn is_readable(&self, pause: Timespec) -> bool {
        let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
        poll(&mut fds, Some(&pause)).unwrap() > 0
    }

    pub fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        resize(&self.master, rows, columns);
    }

    /// Has the terminal take no output any more, as Ctrl-S does.
    pub fn stop_output(&self) {
        rustix::termios::tcflow(&self.slave, rustix::termios::Action::OOff).unwrap();
    }

    pub fn modes(&self) -> Termios {
        tcgetattr(&self.slave).unwrap()
    }

    pub fn set_modes(&self, modes: &Termios) {
        tcsetattr(&self.slave, OptionalActions::Now, modes).unwrap();
    }

    pub fn is_raw(&self) -> bool {
        let modes = self.modes();
        !modes.local_modes.contains(LocalModes::ICANON)
            && !modes.output_modes.contains(OutputModes::OPOST)
    }

    /// Returns whether all modes are those from before.
    pub fn is_as_before(&self) -> bool {
        fingerprint(&self.modes()) == self.before
    }

    pub fn kill(&self, signal: Signal) {
        super::kill(self.command.id().cast_signed(), signal);
    }

    /// The processes that have the terminal open, but for this one.
    pub fn holders(&self) -> Vec<i32> {
        let name = rustix::termios::ttyname(&self.slave, Vec::new()).unwrap();
        let name = std::path::Path::new(name.to_str().unwrap()).to_owned();
        let mut all = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
                continue;
            };
            let Ok(fds) = std::fs::read_dir(entry.path().join("fd")) else {
                continue;
            };
            let mut links = fds
                .flatten()
                .filter_map(|fd| std::fs::read_link(fd.path()).ok());
            if links.any(|link| link == name) && pid != std::process::id().cast_signed() {
                all.push(pid);
            }
        }
        all
    }

    /// Waits for the end of the command, reads what is there and says how it ended. The
    /// terminal is read meanwhile: a command that writes would block.
    pub fn finish(&mut self) -> ExitStatus {
        while self.read_more() {}
        self.command.wait().unwrap()
    }

    pub fn code(&mut self) -> Option<i32> {
        self.finish().code()
    }

    pub fn signal(&mut self) -> Option<i32> {
        self.finish().signal()
    }
}

fn resize(terminal: impl AsFd, rows: u16, columns: u16) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap();
}

fn fingerprint(modes: &Termios) -> Vec<u64> {
    let mut all = vec![
        modes.input_modes.bits().into(),
        modes.output_modes.bits().into(),
        modes.control_modes.bits().into(),
        modes.local_modes.bits().into(),
        modes.input_speed().into(),
        modes.output_speed().into(),
    ];
    for code in [
        SpecialCodeIndex::VINTR,
        SpecialCodeIndex::VQUIT,
        SpecialCodeIndex::VERASE,
        SpecialCodeIndex::VKILL,
        SpecialCodeIndex::VEOF,
        SpecialCodeIndex::VTIME,
        SpecialCodeIndex::VMIN,
        SpecialCodeIndex::VSTART,
        SpecialCodeIndex::VSTOP,
        SpecialCodeIndex::VSUSP,
        SpecialCodeIndex::VEOL,
    ] {
        all.push(modes.special_codes[code].into());
    }
    all
}
