//! `procwright run make -j8`, stopped in the middle of eight compilers.

mod common;

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

const JOBS: usize = 8;

/// A make whose compilers all read, and get nothing.
struct Make {
    procwright: Child,
    /// Our end of each source file, which is a FIFO.
    sources: Vec<File>,
    _dir: tempfile::TempDir,
}

impl Make {
    /// Returns when every compiler has opened its file.
    fn start<const N: usize>(options: [&str; N], prepare: impl FnOnce(&mut Command)) -> Make {
        let dir = tempfile::tempdir().unwrap();
        let rule = "all: 1.o 2.o 3.o 4.o 5.o 6.o 7.o 8.o\n%.o: %.c\n\tcc -c -o $@ $<\n";
        std::fs::write(dir.path().join("Makefile"), rule).unwrap();
        let sources: Vec<_> = (1..=JOBS)
            .map(|n| dir.path().join(format!("{n}.c")))
            .collect();
        for source in &sources {
            mknodat(CWD, source, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }
        let mut command = common::procwright(options);
        command.args(["--", "make", &format!("-j{JOBS}")]);
        command.current_dir(dir.path()).env("TMPDIR", dir.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        prepare(&mut command);
        let procwright = command.spawn().unwrap();
        let open = |path: &Path| OpenOptions::new().write(true).open(path).unwrap();
        Make {
            procwright,
            sources: sources.iter().map(|path| open(path)).collect(),
            _dir: dir,
        }
    }

    /// Waits for its end; no compiler may be there then.
    #[track_caller]
    fn assert_nobody_is_left(mut self) {
        self.procwright.wait().unwrap();
        let now = rustix::time::Timespec::default();
        for (number, source) in self.sources.iter().enumerate() {
            assert!(
                is_unread(source, Some(&now)),
                "compiler {} still reads",
                number + 1
            );
        }
    }

    /// Waits for its end, and for that of every compiler. The watchdog bounds it.
    fn await_the_end_of_all(mut self) {
        self.procwright.wait().unwrap();
        for source in &self.sources {
            assert!(is_unread(source, None));
        }
    }
}

/// Returns whether a pipe loses its last reader within that time.
fn is_unread(source: &File, timeout: Option<&rustix::time::Timespec>) -> bool {
    let mut fds = [PollFd::new(source, PollFlags::empty())];
    poll(&mut fds, timeout).unwrap() == 1
}

fn is_missing(test: &str) -> bool {
    let found = ["make", "cc"].into_iter().all(|name| {
        let asked = Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        asked.is_ok()
    });
    if !found {
        common::skip(test, "there is no make, or no compiler");
    }
    !found
}

#[test]
fn a_signal_leaves_no_compiler() {
    if is_missing("a_signal_leaves_no_compiler") {
        return;
    }
    for scope in ["tree", "group"] {
        for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
            let make = Make::start(["--scope", scope], |_| {});
            common::kill(make.procwright.id().cast_signed(), signal);
            make.assert_nobody_is_left();
        }
    }
}

#[test]
fn ctrl_c_leaves_no_compiler() {
    if is_missing("ctrl_c_leaves_no_compiler") {
        return;
    }
    use std::io::Write as _;
    let (mut keyboard, slave) = common::terminal();
    let make = Make::start([], |command| {
        command.stdin(Stdio::from(slave));
        // SAFETY: both are plain system calls.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin().as_fd())?;
                Ok(())
            });
        }
    });
    keyboard.write_all(b"\x03").unwrap();
    // The terminal has sent it to each of them. cc does not wait for the compiler
    // proper, so who was not scheduled yet may end last.
    make.await_the_end_of_all();
}
