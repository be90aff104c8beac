//! Processes to wait for, and the command that waits for them.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use procwright::Process;
use procwright::process::Id;
use rustix::process::Signal;

use super::{Ran, kill, subcommand};

/// A child of the test, and so a stranger to the command. Only the test reaps
/// it, when told to: until then it stays a zombie. Ended by a drop.
pub struct Target(Child);

impl Target {
    /// `test-child WORDS`, when it has said that it is ready.
    pub fn new<const N: usize>(words: [&str; N]) -> Target {
        Target::of(test_children::path(), &words)
    }

    /// One that lives until a signal ends it.
    pub fn sleeper() -> Target {
        Target::new(["sleep-forever"])
    }

    /// A target from another program file.
    pub fn of(program: impl AsRef<OsStr>, words: &[&str]) -> Target {
        let mut command = Command::new(program);
        command.args(words).arg("--print-ready");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert!(line.starts_with("ready "), "{line:?}");
        Target(child)
    }

    /// One that has ended with this code and was not reaped.
    pub fn zombie(code: &str) -> Target {
        let target = Target::new(["term-exit", code]);
        target.kill(Signal::TERM);
        target.await_end();
        target
    }

    pub fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    /// Number of the process as an argument.
    pub fn arg(&self) -> String {
        self.0.id().to_string()
    }

    pub fn id(&self) -> Id {
        Process::of_child(&self.0).unwrap().id()
    }

    pub fn kill(&self, signal: Signal) {
        kill(self.pid(), signal);
    }

    /// Returns when it is a zombie.
    pub fn await_end(&self) {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options).unwrap();
    }

    pub fn reap(&mut self) {
        self.0.wait().unwrap();
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `procwright wait`, to its end.
pub fn wait<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    let mut command = subcommand("wait");
    command.args(arguments).output().unwrap().into()
}

/// `procwright wait --verbose`, waiting or about to: it has hold of everybody.
pub struct Waiter {
    pub command: Child,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: BufReader<ChildStderr>,
    /// Messages about the mechanisms.
    pub said: String,
}

impl Waiter {
    pub fn new<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Waiter {
        let mut command = subcommand("wait");
        command.args(arguments);
        Waiter::of(command)
    }

    /// Starts a command that has its options.
    pub fn of(command: Command) -> Waiter {
        Waiter::with_stdout(command, Stdio::piped())
    }

    /// Starts a command with this stdout.
    pub fn with_stdout(mut command: Command, stdout: impl Into<Stdio>) -> Waiter {
        command.arg("--verbose");
        command.stdout(stdout).stderr(Stdio::piped());
        let mut command = command.spawn().unwrap();
        let stdout = command.stdout.take().map(BufReader::new);
        let mut stderr = BufReader::new(command.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains(" to wait for") {
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
        }
        Waiter {
            command,
            stdout,
            stderr,
            said,
        }
    }

    pub fn pid(&self) -> i32 {
        self.command.id().cast_signed()
    }

    /// The next line, without its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let stdout = self.stdout.as_mut().unwrap();
        stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits for its end; what was read before is left out.
    pub fn finish(mut self) -> Ran {
        let mut stdout = String::new();
        if let Some(mut from) = self.stdout {
            from.read_to_string(&mut stdout).unwrap();
        }
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).unwrap();
        Ran {
            status: self.command.wait().unwrap(),
            stdout,
            stderr,
        }
    }
}
