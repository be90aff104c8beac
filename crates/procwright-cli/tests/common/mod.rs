//! Helpers for the tests of the command.
#![allow(dead_code, unreachable_pub)] // Each test file uses its part.
#![allow(clippy::print_stderr, clippy::disallowed_methods)] // Tests may sleep and speak.

pub mod bash;
pub mod hang;
pub mod log;
pub mod outer;
pub mod rows;
pub mod seen;
pub mod target;

use std::io::{BufRead, BufReader, PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
#[allow(unused_imports)] // Each test file uses its part.
pub use test_support::skip; // The crate also resets inherited signals.

/// Seconds after which a file whose tests have not ended hangs, in a usual run and under
/// `STRESS=1`; nothing else looks at the clock.
const WATCHDOG: [u64; 2] = [600, 1800];

/// `procwright run` with these options, ready to be started.
pub fn procwright<I, S>(options: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<std::ffi::OsStr>,
{
    let mut command = subcommand("run");
    command.args(options);
    command
}

/// `procwright NAME`, without a stdin.
pub fn subcommand(name: &str) -> Command {
    watchdog();
    let mut command = Command::new(env!("CARGO_BIN_EXE_procwright"));
    command.arg(name);
    command.stdin(Stdio::null());
    command
}

/// Has this process end if its tests hang.
pub fn watchdog() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if WATCHED.swap(true, Ordering::Relaxed) {
        return;
    }
    std::thread::spawn(|| {
        let [usual, stress] = WATCHDOG;
        std::thread::sleep(Duration::from_secs(test_support::scaled(usual, stress)));
        eprintln!("the tests of this file hang");
        std::process::abort();
    });
}

/// The words of a test program.
pub fn child<const N: usize>(words: [&str; N]) -> Vec<String> {
    let program = test_children::path().to_str().unwrap().to_owned();
    let words = words.into_iter().map(str::to_owned);
    std::iter::once(program).chain(words).collect()
}

/// A new terminal: our end, and the one that programs get.
pub fn terminal() -> (std::fs::File, OwnedFd) {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    // Close-on-exec, or the programs of other tests would have it too.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty()).unwrap();
    (master.into(), slave)
}

/// A new FIFO, open for both so that neither side waits for the other.
pub fn fifo(path: &std::path::Path) -> std::fs::File {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from(0o600), 0).unwrap();
    let mut options = std::fs::File::options();
    options.read(true).write(true).open(path).unwrap()
}

/// Runs a command whose last program is `test-child show`, with stdout in a file, and finds that
/// it succeeds without a word and that the program has the file itself.
pub fn assert_stdout_is_its_own(command: &mut Command) {
    let file = tempfile::NamedTempFile::new().unwrap();
    command
        .stdout(file.reopen().unwrap())
        .stderr(Stdio::piped());
    let output = command.output().unwrap();
    assert_eq!(
        (output.status.code(), &output.stderr[..]),
        (Some(0), &b""[..])
    );
    let shown = std::fs::read_to_string(file.path()).unwrap();
    assert!(
        shown.contains(&format!("\"1\":\"{}\"", file.path().display())),
        "{shown}"
    );
}

/// A time as an option has it.
pub fn option(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// Output and status of a run.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs `procwright run OPTIONS -- WORDS` to its end.
pub fn run<const N: usize>(options: [&str; N], words: &[String]) -> Ran {
    let mut command = procwright(options);
    command.arg("--").args(words).output().unwrap().into()
}

/// A run under way whose program has said `ready`.
pub struct Started {
    pub procwright: Child,
    pub stdout: BufReader<ChildStdout>,
    /// The pids that the program announced.
    pub pids: Vec<i32>,
}

impl Started {
    /// Starts a program that is given `--print-ready`.
    pub fn new<const N: usize>(options: [&str; N], words: &[String]) -> Started {
        let mut command = procwright(options);
        command.arg("--").args(words).arg("--print-ready");
        Started::of(command)
    }

    /// Starts what is ready to be.
    pub fn of(command: Command) -> Started {
        Started::in_time(command).expect("a ready line")
    }

    /// Starts what has a limit of time; none if that came before its program was ready.
    pub fn in_time(mut command: Command) -> Option<Started> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut procwright = command.spawn().unwrap();
        let mut stdout = BufReader::new(procwright.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        if line.is_empty() {
            procwright.wait().unwrap();
            return None;
        }
        let pids = line
            .strip_prefix("ready ")
            .unwrap_or_else(|| panic!("no ready line: {line:?}"))
            .split_ascii_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        Some(Started {
            procwright,
            stdout,
            pids,
        })
    }

    /// Sends a signal to procwright alone.
    pub fn kill(&self, signal: Signal) {
        kill(self.procwright.id().cast_signed(), signal);
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Ran {
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let mut stderr = String::new();
        let mut from = self.procwright.stderr.take().unwrap();
        from.read_to_string(&mut stderr).unwrap();
        Ran {
            status: self.procwright.wait().unwrap(),
            stdout,
            stderr,
        }
    }
}

pub fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Closes the end of a pipe from which a program's output is read, and waits until nobody has it.
///
/// A child that another test forks has a copy until its exec: a write before that would succeed.
pub fn close_reader<R>(reader: R, writer: &PipeWriter) {
    drop(reader);
    let mut unread = [PollFd::new(writer, PollFlags::empty())];
    while !unread[0].revents().contains(PollFlags::ERR) {
        let _ = poll(&mut unread, None);
    }
}

/// Returns whether there is neither a process nor a zombie of this number.
pub fn is_gone(pid: i32) -> bool {
    test_kill_process(Pid::from_raw(pid).unwrap()).is_err()
}

/// Fails if one of them is there.
#[track_caller]
pub fn assert_gone(pids: &[i32]) {
    let left: Vec<_> = pids.iter().filter(|pid| !is_gone(**pid)).collect();
    assert!(left.is_empty(), "still there: {left:?} of {pids:?}");
}

/// Waits until a process is gone. The watchdog bounds it.
pub fn wait_gone(pid: i32) {
    while !is_gone(pid) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a process has ended, reaped or not.
pub fn wait_gone_or_zombie(pid: i32) {
    let path = format!("/proc/{pid}/stat");
    while std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::sleep(Duration::from_millis(5));
    }
}
