//! Peer: iceoryx2's process monitor: `bench-iceoryx2 check BATCHES BATCH_US`.
#[path = "../../../src/subject_liveness.rs"]
#[allow(dead_code)]
mod subject;

// The crate wants a logger to be linked in.
extern crate iceoryx2_bb_loggers;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use iceoryx2_bb_posix::process_state::{
    FilePath, ProcessGuardBuilder, ProcessMonitor, ProcessState, SemanticString,
};
use subject::{Check, measure};

/// Another process holds the guard: of its own a process asks a table.
fn hold(path: &str) {
    let path = FilePath::new(path.as_bytes()).expect("a path");
    let guard = ProcessGuardBuilder::new().create(&path).expect("a guard");
    writeln!(std::io::stdout(), "held").expect("stdout");
    let _ = std::io::stdin().read(&mut [0]);
    drop(guard);
}

fn check(batches: usize, batch_us: u64) {
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    let path = place.join(format!("procwright-bench-iceoryx2-{}", std::process::id()));
    let path = path.to_str().expect("a path in letters");
    let mut holder = Command::new(std::env::current_exe().expect("our own path"))
        .args(["hold", path])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the holder");
    let mut line = String::new();
    let out = holder.stdout.take().expect("piped");
    BufReader::new(out)
        .read_line(&mut line)
        .expect("the holder");
    let path = FilePath::new(path.as_bytes()).expect("a path");
    let monitor = ProcessMonitor::new(&path).expect("a monitor");
    let alive = || {
        monitor
            .state()
            .is_ok_and(|state| state == ProcessState::Alive)
    };
    measure(
        vec![Check::new("iceoryx2 ProcessMonitor", alive)],
        batches,
        batch_us,
    );
    drop(holder.stdin.take());
    holder.wait().expect("the holder");
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["hold", path] => hold(path),
        ["check", batches, batch_us] => {
            check(
                batches.parse().expect("a number"),
                batch_us.parse().expect("a number"),
            );
        }
        _ => panic!("check BATCHES BATCH_US"),
    }
}
