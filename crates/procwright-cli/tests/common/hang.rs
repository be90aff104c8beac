//! Programs that hang.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use super::watchdog;

/// A program that is killed at the end.
pub struct Background(pub Child);

impl Background {
    pub fn start(words: &[&str], set: impl FnOnce(&mut Command)) -> Background {
        watchdog();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        set(&mut command);
        Background(command.spawn().unwrap())
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell that reads from a pipe of which it has both ends, once it has begun to.
pub fn self_made_deadlock(set: impl FnOnce(&mut Command)) -> (Background, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    // Older than its pipe by more than the clock of start times tells.
    // A handler of SIGINT, as Python has, could write to it.
    let code = "import os, signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); \
                time.sleep(0.1); r, w = os.pipe(); print(flush=True); os.read(r, 1)";
    let mut program = Background::start(&["python3", "-c", code], |command| {
        command.current_dir("/").stdout(Stdio::piped());
        set(command);
    });
    // What comes before it, such as a script that looks for Python, waits for pipes too.
    let stdout = program.0.stdout.as_mut().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    wait_until_in("pipe_read", program.0.id().cast_signed());
    (program, dir)
}

/// A shell whose child, of the number that is told beside it, reads from a pipe of which it has
/// both ends, and will until somebody kills it; the shell has something else to do then.
pub fn deadlock_below_a_shell() -> (Background, i32) {
    // It ends with the shell (PR_SET_PDEATHSIG): nothing else would end it after a test.
    let code = "import ctypes, os, signal, time; ctypes.CDLL(None).prctl(1, signal.SIGKILL); \
                signal.signal(signal.SIGINT, signal.SIG_DFL); \
                time.sleep(0.1); r, w = os.pipe(); print(os.getpid(), flush=True); os.read(r, 1)";
    let line = format!("python3 -c '{code}'; exec sleep 1000");
    let mut shell = Background::start(&["sh", "-c", &line], |command| {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
    });
    let mut told = String::new();
    let stdout = shell.0.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut told).unwrap();
    let pid = told.trim().parse().unwrap();
    wait_until_in("pipe_read", pid);
    (shell, pid)
}

/// Waits until a process sleeps in this place of the kernel.
pub fn wait_until_in(place: &str, pid: i32) {
    let wchan = format!("/proc/{pid}/wchan");
    while !std::fs::read_to_string(&wchan).unwrap().ends_with(place) {
        std::thread::yield_now();
    }
}
