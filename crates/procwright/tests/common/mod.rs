//! What the tests share: children, a watchdog, counters, processes of their own.
#![allow(dead_code)] // each test file uses a part of it

pub(crate) mod family;
#[cfg(target_arch = "x86_64")]
pub(crate) mod steps;
pub(crate) mod sys;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use procwright::{Cancel, Command, Error, Output, Reason};

/// A run of `test-child` with these arguments.
pub(crate) fn child(args: &[&str]) -> Command<'static> {
    Command::new(test_children::path()).args(args)
}

/// Whether the full numbers are to be run.
pub(crate) fn stress() -> bool {
    std::env::var_os("STRESS").is_some_and(|value| value == "1")
}

/// One number for a usual run, another for `STRESS=1`.
pub(crate) fn scaled(usual: u64, full: u64) -> u64 {
    if stress() { full } else { usual }
}

/// Says something that libtest does not capture.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Leaves a test out in plain sight; under `REQUIRE_ALL=1` that is a failure.
pub(crate) fn skip(test: &str, why: &str) {
    assert!(
        std::env::var_os("REQUIRE_ALL").is_none_or(|value| value != "1"),
        "{test} must not be skipped: {why}"
    );
    say(&format!("SKIPPED {test}: {why}"));
}

/// Whether this is root; else the test is left out in plain sight.
pub(crate) fn root_or_skip(test: &str) -> bool {
    let root = sys::effective_uid() == 0;
    if !root {
        skip(test, "needs root");
    }
    root
}

/// Aborts the process when the test has not ended in two minutes (under
/// `STRESS=1` in ten).
pub(crate) struct Watchdog(mpsc::Sender<()>);

pub(crate) fn watchdog(test: &'static str) -> Watchdog {
    let (alive, gone) = mpsc::channel::<()>();
    let patience = Duration::from_secs(scaled(120, 600));
    std::thread::Builder::new()
        .name("watchdog".into())
        .spawn(move || {
            if gone.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
                say(&format!("WATCHDOG: {test} hangs"));
                std::process::abort();
            }
        })
        .expect("a watchdog thread");
    Watchdog(alive)
}

const ALONE: &str = "PROCWRIGHT_TEST_ALONE";

/// Runs a test in a process of its own, a copy of the test executable: for
/// tests that count what their process has, or change it for good. Returns in
/// the outer process with what the copy wrote, none in the copy itself.
pub(crate) fn alone(test: &'static str, body: impl FnOnce()) -> Option<Said> {
    if std::env::var_os(ALONE).is_some_and(|name| name == test) {
        sys::alarm(scaled(120, 600) as u32);
        body();
        return None;
    }
    let mut copy = copy_of_test(test);
    copy.stdin(Stdio::null());
    let output = copy.output().expect("a copy of the test executable");
    let said = Said {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert!(
        output.status.success(),
        "{test}: {}\n{}{}",
        output.status,
        said.stdout,
        said.stderr
    );
    // None of that name: a test in a module of a file is not found by its name alone.
    assert!(said.stdout.contains("1 passed"), "{test}: {}", said.stdout);
    for line in said
        .stderr
        .lines()
        .filter(|line| line.starts_with("FIGURE") || line.starts_with("SKIPPED"))
    {
        say(line);
    }
    Some(said)
}

/// What a copy wrote.
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The command that runs one test in a copy of this executable.
pub(crate) fn copy_of_test(test: &str) -> std::process::Command {
    let mut copy = std::process::Command::new(std::env::current_exe().expect("our own path"));
    copy.args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, test);
    // A group of its own: what a test does to groups stays there.
    copy.process_group(0);
    copy
}

/// A figure for whoever runs the tests.
pub(crate) fn figure(text: &str) {
    say(&format!("FIGURE {text}"));
}

/// Defines a test that runs in a process of its own.
#[macro_export]
macro_rules! alone {
    ($(#[$meta:meta])* fn $name:ident() $body:block) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            common::alone(stringify!($name), || $body);
        }
    };
}

/// What this process has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) fds: Vec<String>,
    pub(crate) threads: Vec<String>,
    /// Zombies included.
    pub(crate) children: Vec<i32>,
}

impl Census {
    pub(crate) fn now() -> Census {
        Census {
            fds: fds(),
            threads: threads(),
            children: children(),
        }
    }

    /// Fails unless this process still has what it had.
    pub(crate) fn unchanged(&self) {
        assert_eq!(self, &Census::now());
    }

    /// Fails if this process has anything that it had not. (A command's own
    /// descriptors go with it.)
    pub(crate) fn nothing_more(&self) {
        let now = Census::now();
        assert!(
            now.fds.iter().all(|fd| self.fds.contains(fd)),
            "{self:?}\n{now:?}"
        );
        assert_eq!(
            (&now.threads, &now.children),
            (&self.threads, &self.children)
        );
    }

    /// Waits until this process has what it had: for threads that end on their
    /// own some time after the run. A watchdog ends it.
    pub(crate) fn comes_back(&self) {
        eventually(|| *self == Census::now());
    }
}

/// Numbers that look like chance, for a seed the same each time; neighbouring seeds give
/// numbers that have nothing to do with each other. SplitMix64, by Steele, Lea and Flood.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 33) % sides
    }

    /// A place in something of that length.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        self.roll(length as u64) as usize
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.place(all.len())])
    }
}

/// Numbers of 31 bits of a [`Dice`].
pub(crate) fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut dice = Dice(seed);
    move || dice.roll(1 << 31)
}

/// Looks again and again, for what nothing tells of. A watchdog ends it.
pub(crate) fn eventually(mut happened: impl FnMut() -> bool) {
    while !happened() {
        std::thread::yield_now();
    }
}

/// All open descriptors, `number -> target`.
pub(crate) fn fds() -> Vec<String> {
    let numbers: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .expect("/proc/self/fd")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a number")
        })
        .collect();
    let mut fds: Vec<String> = numbers
        .into_iter()
        // The directory's own is closed by now.
        .filter_map(|number| {
            let target = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
            Some(format!("{number} -> {}", target.display()))
        })
        .collect();
    fds.sort();
    fds
}

pub(crate) fn threads() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir("/proc/self/task")
        .expect("/proc/self/task")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect();
    names.sort();
    names
}

/// How often the threads of this name have gone to sleep. There are so many of them
/// when this returns, and all sleep: whoever was to wake up, and was told so, has.
pub(crate) fn sleeps_of(name: &str, count: usize) -> u64 {
    loop {
        let tasks = std::fs::read_dir("/proc/self/task").expect("/proc/self/task");
        let sleeps: Vec<Option<u64>> = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok())
            .filter(|status| field(status, "Name:") == Some(name))
            .map(|status| {
                let asleep = field(&status, "State:")?.starts_with('S');
                let count = field(&status, "voluntary_ctxt_switches:")?;
                asleep.then(|| count.parse().expect("a number"))
            })
            .collect();
        let all: Option<Vec<u64>> = sleeps.into_iter().collect();
        if let Some(all) = all.filter(|all| all.len() == count) {
            return all.into_iter().sum();
        }
        std::thread::yield_now();
    }
}

fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = status.lines();
    Some(lines.find_map(|line| line.strip_prefix(key))?.trim())
}

/// The same, once that does not change any more while some time is passed.
pub(crate) fn settled(name: &str, count: usize, pass: impl Fn(Duration)) -> u64 {
    let mut before = sleeps_of(name, count);
    loop {
        pass(Duration::from_millis(100));
        let now = sleeps_of(name, count);
        if now == before {
            return now;
        }
        before = now;
    }
}

/// The threads that sleep in a poll, but for the first and `except`, and how often
/// each has been switched from.
pub(crate) fn polling_threads(except: i32) -> Vec<(String, String)> {
    let own = std::process::id().to_string();
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc/self/task");
    let mut threads: Vec<(String, String)> = tasks
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| !path.ends_with(&own) && !path.ends_with(except.to_string()))
        .filter_map(|path| {
            let call = std::fs::read_to_string(path.join("syscall")).ok()?;
            let number: i64 = call.split(' ').next()?.parse().ok()?;
            let status = std::fs::read_to_string(path.join("status")).ok()?;
            let switches: Vec<&str> = status
                .lines()
                .filter(|line| line.contains("ctxt_switches"))
                .collect();
            sys::is_waiting_call(number).then(|| (path.display().to_string(), switches.join(" ")))
        })
        .collect();
    threads.sort();
    threads
}

pub(crate) fn children() -> Vec<i32> {
    let mut children: Vec<i32> = std::fs::read_dir("/proc/self/task")
        .expect("/proc/self/task")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("children")).ok())
        .flat_map(|line| {
            line.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect();
    children.sort_unstable();
    children
}

/// A value of /proc/self/status in bytes.
pub(crate) fn status_bytes(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc/self/status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .expect("the key");
    let kib: u64 = line
        .trim()
        .trim_end_matches("kB")
        .trim()
        .parse()
        .expect("a number");
    kib * 1024
}

/// Starts the counting of peak memory anew, and says what is occupied now.
pub(crate) fn reset_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("/proc/self/clear_refs");
    status_bytes("VmHWM")
}

/// The letter of a process's state, none if there is no such process.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..].trim_start().chars().next()
}

/// Whether a process lives; a zombie does not.
pub(crate) fn lives(pid: i32) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Whether the descriptors of every process can be looked at; a sandbox may
/// hide some, even from root.
pub(crate) fn sees_everyone() -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc");
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| lives(*pid))
        .all(|pid| match std::fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(fds) => fds.flatten().all(|fd| {
                std::fs::read_link(fd.path())
                    .err()
                    .is_none_or(|error| error.kind() == std::io::ErrorKind::NotFound)
            }),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        })
}

/// All living processes whose command line has `text` as an argument.
pub(crate) fn with_argument(text: &str) -> Vec<i32> {
    std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.split(|b| *b == 0).any(|arg| arg == text.as_bytes()))
        })
        .filter(|pid| lives(*pid))
        .collect()
}

/// The pids of a line `ready PID…`.
pub(crate) fn ready_pids(text: &[u8]) -> Vec<i32> {
    let text = String::from_utf8_lossy(text);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("ready "))
        .unwrap_or_else(|| panic!("no ready line in {text:?}"));
    line.split_whitespace()
        .map(|pid| pid.parse().expect("a pid"))
        .collect()
}

/// The pids of the line `ready PID…` that somebody writes next.
pub(crate) fn ready_line(from: &mut impl std::io::Read) -> Vec<i32> {
    use std::io::BufRead;
    let mut line = String::new();
    let mut from = std::io::BufReader::with_capacity(1, from);
    from.read_line(&mut line).expect("a line");
    ready_pids(line.as_bytes())
}

/// Runs `command`, calls `then` when its program says that it is ready, and
/// cancels the run. The stopped run's output.
pub(crate) fn stopped_when_ready(
    command: Command<'_>,
    mut then: impl FnMut(&[i32]) + Send + 'static,
) -> Output {
    let cancel = Cancel::new().expect("a descriptor");
    let from_callback = cancel.clone();
    let result = command
        .cancel_on(&cancel)
        .on_stdout_line(move |line| {
            if line.starts_with(b"ready ") {
                then(&ready_pids(line));
                from_callback.cancel();
            }
            Ok(())
        })
        .run();
    let output = stopped(result);
    assert_eq!(output.report.reason, Reason::Cancelled);
    output
}

/// The output of a run that had to be stopped.
pub(crate) fn stopped(result: Result<Output, Error>) -> Output {
    match result {
        Err(Error::Stopped(output)) => *output,
        Err(error) => panic!("failed in another way: {error}"),
        Ok(output) => panic!("was not stopped: {:?}", output.report),
    }
}

/// Measures how long something took at least.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let result = work();
    (result, begun.elapsed())
}

/// A helper in the background that says `ready …` on stdout; killed on drop.
pub(crate) struct Background {
    child: std::process::Child,
    pub(crate) ready: Vec<i64>,
}

impl Background {
    pub(crate) fn start(args: &[&str]) -> Background {
        use std::io::BufRead;
        let mut child = std::process::Command::new(test_children::path())
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a helper");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("its stdout");
        std::io::BufReader::new(stdout)
            .read_line(&mut line)
            .expect("a line");
        let ready = line
            .strip_prefix("ready ")
            .unwrap_or_else(|| panic!("{args:?} said {line:?}"))
            .split_whitespace()
            .map(|number| number.parse().expect("a number"))
            .collect();
        Background { child, ready }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Collects from callbacks.
pub(crate) type Shared<T> = Arc<Mutex<T>>;

pub(crate) fn shared<T>(value: T) -> Shared<T> {
    Arc::new(Mutex::new(value))
}

pub(crate) fn os(text: &str) -> OsString {
    text.into()
}

/// What `test-child show` said.
pub(crate) fn shown(output: &Output) -> serde_json::Value {
    assert!(
        output.success(),
        "{}",
        output.report.explain(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}
