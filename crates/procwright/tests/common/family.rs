//! A process that is not our child: P is ours, its child C is a stranger.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use procwright::Process;
use procwright::process::{Exit, Signal};

/// `test-child reaper-on-command`, and its child.
pub(crate) struct Family {
    parent: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// The number of the stranger.
    pub(crate) child: i32,
}

impl Family {
    /// Whose child does what it is told, see `test-child obey`.
    pub(crate) fn obeying() -> Family {
        Family::start(&["obey"], Path::new("."))
    }

    /// Whose child is `test-child ARGS`; both in a directory for core files.
    pub(crate) fn start(args: &[&str], directory: &Path) -> Family {
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

    /// Whose child has done what `orders` say, the last of which makes it
    /// another program, one that says `ready PID…`: those are given too.
    pub(crate) fn of(orders: &[&str]) -> (Family, Vec<i32>) {
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

    /// The stranger.
    pub(crate) fn stranger(&self) -> Process {
        Process::open(self.child).expect("a living process")
    }

    /// The next line that one of them says.
    pub(crate) fn says(&mut self) -> String {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line).expect("a line");
        assert!(read > 0, "both are gone");
        line.trim_end().to_owned()
    }

    /// Gives an order, to P or through it to C.
    pub(crate) fn order(&mut self, line: &str) {
        let mut stdin = self.stdin.as_ref().expect("not ended");
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .expect("it listens");
    }

    /// Gives an order, and waits for the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, line: &str, answer: &str) {
        self.order(line);
        assert_eq!(self.says(), answer);
    }

    /// Lets P reap C, and tells how that had ended: what P learned.
    pub(crate) fn reap(&mut self) -> Exit {
        self.order("reap");
        // After what else they may have had to say.
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
        // That ends both, also where we are another user by now.
        self.stdin = None;
        let _ = self.parent.wait();
    }
}

/// Whether this kernel tells how a process ended that was reaped, to who holds a
/// pidfd: Linux 6.15.
pub(crate) fn remembers() -> bool {
    kernel() >= (6, 15)
}

/// The version of the kernel.
pub(crate) fn kernel() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a version");
    let mut numbers = release
        .split(['.', '-'])
        .map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Whether one child of ours may trace another; else the test is left out in
/// plain sight. (`test-child obey` lets itself be traced by anyone, where
/// asking for that is enough.)
pub(crate) fn may_trace_or_skip(test: &str) -> bool {
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
