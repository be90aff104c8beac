//! Whole commands that wait: `bench-wait-command tail|procwright|waitpid PROGRAM
//! HELPERS SLOTS CASE …`.
//!
//! A latency here ends when the command itself has ended: what a script that
//! runs it sees.
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use procwright_bench::subject_wait::{self as wait, Task, Use, command, now_ns};

/// The exit code of ours when time is up.
const TIMED_OUT: i32 = 3;

struct Tool {
    kind: String,
    program: PathBuf,
}

impl Tool {
    fn command(&self, words: &[&str], pids: &[i32]) -> Command {
        let mut command = Command::new(&self.program);
        match self.kind.as_str() {
            "tail" => {
                command.args(pids.iter().map(|pid| format!("--pid={pid}")));
                command.args(["-f", "/dev/null"]);
            }
            "procwright" => {
                command.arg("wait").args(words);
                command.args(pids.iter().map(ToString::to_string));
            }
            _ => {
                command.args(pids.iter().map(ToString::to_string));
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn spawn(&self, words: &[&str], pids: &[i32]) -> Child {
        self.command(words, pids).spawn().expect("the command")
    }

    /// Ours, to the end of a timeout; wall time and what it used.
    fn to_timeout(&self, seconds: u64, pids: &[i32]) -> (Duration, Use) {
        let (before, started) = (Use::children(), Instant::now());
        let timeout = seconds.to_string();
        let mut child = self.spawn(&["--all", "--timeout", &timeout], pids);
        expect(child.wait().expect("wait"), TIMED_OUT);
        (started.elapsed(), Use::children().since(before))
    }
}

fn expect(status: ExitStatus, code: i32) {
    assert!(
        status.code() == Some(code),
        "the command ended with {:?}, signal {:?}",
        status.code(),
        status.signal()
    );
}

fn main() {
    let mut words = std::env::args().skip(1);
    let tool = Tool {
        kind: words.next().expect("a kind"),
        program: words.next().expect("a program").into(),
    };
    let task = Task::read(2);
    match task.case.as_str() {
        "one" => wait::one(&task, |argv| {
            let mut child = command(argv).spawn().expect("spawn");
            let pid = child.id() as i32;
            let mut waiting = tool.spawn(&[], &[pid]);
            // A poller takes a zombie for alive, so somebody must reap. Not
            // before it has ended, and it costs the command no time.
            assert!(child.wait().expect("wait").success());
            expect(waiting.wait().expect("wait"), 0);
            now_ns()
        }),
        "hold" => hold(&tool, &task),
        "idle" => idle(&tool, &task),
        "among" => among(&tool, &task),
        "mass" => mass(&tool, &task),
        other => panic!("no case {other}"),
    }
}

fn hold(tool: &Tool, task: &Task) {
    let seconds = task.number(0);
    let mut child = command(&task.lasting(seconds)).spawn().expect("spawn");
    let timeout = (seconds + 30).to_string();
    let mut waiting = tool.spawn(&["--timeout", &timeout], &[child.id() as i32]);
    let before = settle(&waiting);
    pass(Duration::from_secs(seconds));
    let after = used_by(&waiting);
    assert!(waiting.try_wait().expect("wait").is_none(), "it ended");
    for child in [&mut waiting, &mut child] {
        child.kill().expect("kill");
        child.wait().expect("wait");
    }
    wait::print_use(after.since(before));
}

/// A wait of no time is the set-up, the middle one of three; what a longer one
/// uses more, its cost.
fn idle(tool: &Tool, task: &Task) {
    let strangers = task.hold(task.number(0));
    let mut bases: Vec<_> = (0..3)
        .map(|_| tool.to_timeout(0, &strangers.pids))
        .collect();
    bases.sort_by(|a, b| a.1.cpu_ms.total_cmp(&b.1.cpu_ms));
    let (setup, base) = bases[1];
    let (_, whole) = tool.to_timeout(task.number(1), &strangers.pids);
    let used = whole.since(base);
    let setup_us = setup.as_secs_f64() * 1e6 / strangers.pids.len() as f64;
    wait::print(&format!(
        r#"{{"setup_us": {setup_us:.3}, "cpu_ms": {:.3}, "switches": {}}}"#,
        used.cpu_ms, used.switches
    ));
}

/// One command after another, each for those that are left.
fn among(tool: &Tool, task: &Task) {
    let mut strangers = task.hold(task.number(0));
    let wanted = task.number(1) as usize;
    let mut left: Vec<usize> = (0..strangers.pids.len()).collect();
    let (mut seen, mut ended) = (Vec::new(), 0);
    let mut told = false;
    while ended < wanted {
        let pids: Vec<i32> = left.iter().map(|place| strangers.pids[*place]).collect();
        let mut waiting = tool.spawn(&["--any"], &pids);
        if !told {
            settle(&waiting);
            strangers.end_each(task.number(1), task.number(2));
            told = true;
        }
        // It fails for a number that nobody has: one ended while it started. That
        // is no latency, and on a machine that keeps up does not happen.
        let saw = waiting.wait().expect("wait").success();
        let now = now_ns();
        left.retain(|place| {
            let late = task.ended_us(*place, now);
            ended += usize::from(late.is_some());
            if saw {
                seen.extend(late);
            }
            late.is_none()
        });
    }
    assert!(
        seen.len() * 2 > wanted,
        "most ended while the command started"
    );
    wait::print_latencies(&seen);
}

fn mass(tool: &Tool, task: &Task) {
    let mut strangers = task.hold(task.number(0));
    let mut waiting = tool.spawn(&["--all"], &strangers.pids);
    settle(&waiting);
    let before = Use::children();
    strangers.end_all();
    expect(waiting.wait().expect("wait"), 0);
    let now = now_ns();
    let used = Use::children().since(before);
    let count = strangers.pids.len() as f64;
    wait::print(&format!(
        r#"{{"exit_us": {:.3}, "cpu_us": {:.3}}}"#,
        task.late_us(0, now) / count,
        used.cpu_ms * 1e3 / count
    ));
}

/// Until it has done nothing for 200 ms: then it has started and waits.
fn settle(child: &Child) -> Use {
    let mut before = used_by(child);
    loop {
        pass(Duration::from_millis(200));
        let now = used_by(child);
        // A poller never rests; but its start-up is over.
        if now.switches - before.switches <= 1 && now.cpu_ms - before.cpu_ms < 1.0 {
            return now;
        }
        before = now;
    }
}

#[expect(clippy::disallowed_methods, reason = "time itself is waited for")]
fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// From `/proc`, for it lives: all its threads.
fn used_by(child: &Child) -> Use {
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id()));
    let threads = threads.expect("the command has ended");
    let mut used = Use::default();
    for thread in threads {
        let thread = thread.expect("the command has ended").path();
        let read = |file| std::fs::read_to_string(thread.join(file)).expect("a thread has ended");
        // Nanoseconds, where `stat` counts in hundredths of a second.
        let schedstat = read("schedstat");
        let ran = schedstat.split_whitespace().next();
        let ran: f64 = ran.and_then(|ns| ns.parse().ok()).expect("schedstat");
        used.cpu_ms += ran / 1e6;
        let status = read("status");
        let switches = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let switches: Option<i64> = switches.and_then(|n| n.trim().parse().ok());
        used.switches += switches.expect("switches");
    }
    used
}
