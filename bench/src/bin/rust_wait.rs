//! Ours from Rust: `bench-rust-wait process|set HELPERS SLOTS CASE …`.
use std::ffi::OsString;
use std::process::Child;
use std::time::Duration;

use procwright::Process;
use procwright::time::Timeout;
use procwright::wait::{Awaits, Event, WaitSet, Waitable, Want};
use procwright_bench::subject_wait::{self as wait, Many, Task, command, now_ns};

/// Waits, and says whether it has ended.
fn by_process(process: &Process, timeout: Timeout) -> bool {
    process.wait(timeout).expect("wait").is_some()
}

/// The same with a set of one.
fn by_set(process: &Process, timeout: Timeout) -> bool {
    let mut set = WaitSet::new().expect("set");
    set.add(process, Event::Exited).expect("add");
    let waited = set.wait(Want::All, timeout).expect("wait");
    waited
        .ended
        .iter()
        .any(|(_, process)| process.exit().is_some())
}

fn start(argv: &[OsString]) -> (Child, Process) {
    let child = command(argv).spawn().expect("spawn");
    let process = Process::of_child(&child).expect("open");
    (child, process)
}

/// A stranger and its place in the line.
struct Placed(usize, Process);

impl Waitable for Placed {
    fn awaits(&self) -> Awaits<'_> {
        self.1.awaits()
    }
}

struct Set(WaitSet<Placed>);

impl Many for Set {
    fn ended(&mut self, timeout: Option<Duration>) -> Vec<usize> {
        let waited = self.0.wait(Want::Any, timeout).expect("wait");
        waited.ended.iter().map(|(_, placed)| placed.0).collect()
    }
}

fn main() {
    let by: fn(&Process, Timeout) -> bool = match std::env::args().nth(1).as_deref() {
        Some("process") => by_process,
        Some("set") => by_set,
        _ => panic!("process or set"),
    };
    let task = Task::read(1);
    match task.case.as_str() {
        "one" => wait::one(&task, |argv| {
            let (mut child, process) = start(argv);
            assert!(by(&process, Timeout::NEVER), "it has ended");
            let now = now_ns();
            assert!(child.wait().expect("wait").success());
            now
        }),
        "hold" => wait::hold(&task, |argv, timeout, meter| {
            let (mut child, process) = start(argv);
            meter();
            assert!(!by(&process, timeout.into()), "nothing ends");
            meter();
            child.kill().expect("kill");
            child.wait().expect("wait");
        }),
        _ => wait::many(&task, |pids| {
            let mut set = WaitSet::new().expect("set");
            for (place, pid) in pids.iter().enumerate() {
                let process = Process::open(*pid).expect("open");
                set.add(Placed(place, process), Event::Exited).expect("add");
            }
            Set(set)
        }),
    }
}
