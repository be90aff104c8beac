//! Processes that are not children of this one: P is the child, and P's child C is the
//! stranger.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use procwright_process::Process;
use procwright_process::{Exit, Signal};

/// A child P, `test-child reaper-on-command`, with its child C.
pub struct Family {
    parent: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Pid of the stranger C.
    pub child: i32,
}

impl Family {
    /// A family whose C obeys orders, see `test-child obey`.
    pub fn obeying() -> Family {
        Family::start(&["obey"], Path::new("."))
    }

    /// A family whose C is `test-child ARGS`; both run in `directory`, which gets core
    /// files.
    pub fn start(args: &[&str], directory: &Path) -> Family {
        let mut parent = std::process::Command::new(test_children::path())
            .arg("reaper-on-command")
            .args(args)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a helper");
        let stdin = parent.stdin.take();
        let stdout = BufReader::new(parent.stdout.take().expect("its stdout"));
        let mut family = Family {
            parent,
            stdin,
            stdout,
            child: 0,
        };
        let ready = family.says();
        let pids = super::ready_pids(ready.as_bytes());
        assert_eq!(pids[0] as u32, family.parent.id());
        family.child = pids[1];
        family
    }

    /// A family whose C has carried out `orders`; the last of them makes C another
    /// program, which prints `ready PID…`. Returns these pids too.
    pub fn of(orders: &[&str]) -> (Family, Vec<i32>) {
        let mut family = Family::obeying();
        for order in orders {
            family.order(order);
        }
        loop {
            let said = family.says();
            if said.starts_with("ready ") {
                let pids = super::ready_pids(said.as_bytes());
                assert_eq!(pids[0], family.child);
                return (family, pids);
            }
        }
    }

    /// A handle of the stranger C.
    pub fn stranger(&self) -> Process {
        Process::open(self.child).expect("a living process")
    }

    /// The next line that P or C prints.
    pub fn says(&mut self) -> String {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line).expect("a line");
        assert!(read > 0, "both are gone");
        line.trim_end().to_owned()
    }

    /// Gives an order to P, or through P to C.
    pub fn order(&mut self, line: &str) {
        let mut stdin = self.stdin.as_ref().expect("not ended");
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .expect("it listens");
    }

    /// Gives an order, and waits for the answer.
    #[track_caller]
    pub fn ask(&mut self, line: &str, answer: &str) {
        self.order(line);
        assert_eq!(self.says(), answer);
    }

    /// Makes P reap C; returns how C ended, as P learned it.
    pub fn reap(&mut self) -> Exit {
        self.order("reap");
        // Other lines of P and C may come first.
        let said = std::iter::repeat_with(|| self.says()).find(|said| said.starts_with("reaped"));
        let said = said.expect("an answer");
        let words: Vec<&str> = said.split(' ').collect();
        let number = |text: &str| text.parse::<i32>().expect("a number");
        match words[..] {
            ["reaped", "code", code] => Exit::Code(number(code)),
            ["reaped", "signal", signal, ref core @ ..] => Exit::Signal {
                signal: Signal::new(number(signal)).expect("a signal"),
                core: core == ["core"],
            },
            _ => panic!("it said {said:?}"),
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // The end of stdin ends both, even if this process is another user by now.
        self.stdin = None;
        let _ = self.parent.wait();
    }
}

/// Whether this kernel tells the holder of a pidfd how a reaped process ended: Linux
/// 6.15.
pub fn remembers() -> bool {
    kernel() >= (6, 15)
}

/// The version of the kernel.
pub fn kernel() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a version");
    let mut numbers = release
        .split(['.', '-'])
        .map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Whether one child of this process may trace another; otherwise the test is left out
/// in plain sight. (`test-child obey` permits any process to trace it, where its
/// permission suffices.)
pub fn may_trace_or_skip(test: &str) -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let may = match scope.as_deref().map(str::trim) {
        Ok("2") => super::sys::effective_uid() == 0,
        Ok("3") => false,
        _ => true,
    };
    if !may {
        super::skip(test, "nobody may be traced here (yama/ptrace_scope)");
    }
    may
}
