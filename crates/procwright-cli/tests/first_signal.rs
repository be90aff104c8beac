//! What the command does before the first signal of a stop goes out.
#![allow(clippy::disallowed_methods)] // Tests may start programs.

mod common;

use std::process::{Child, Command, Stdio};

use common::child;

/// Processes that have nothing to do with the run and are older than it.
const BYSTANDERS: usize = 20;

struct Bystanders(Vec<Child>);

impl Drop for Bystanders {
    fn drop(&mut self) {
        for bystander in &mut self.0 {
            let _ = bystander.kill();
            let _ = bystander.wait();
        }
    }
}

/// The descriptors of all processes of a machine take seconds to look at where there are
/// thousands. What is told of them must not hold the signal up.
#[test]
fn the_first_signal_waits_for_no_look_at_others() {
    let test = "the_first_signal_waits_for_no_look_at_others";
    if Command::new("strace").arg("-V").output().is_err() {
        return common::skip(test, "strace is not installed");
    }
    let words = child(["sleep-forever"]);
    let start = |_| {
        let mut bystander = Command::new(&words[0]);
        bystander
            .args(&words[1..])
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    };
    let bystanders = Bystanders((0..BYSTANDERS).map(start).collect());
    let directory = tempfile::tempdir().unwrap();
    for (scope, signal) in [("tree", "TERM"), ("group", "TERM"), ("tree", "KILL")] {
        let trace = directory.path().join(format!("{scope}-{signal}"));
        let output = Command::new("strace")
            .args(["-f", "-qq", "-s", "200", "-e"])
            .arg("trace=openat,pidfd_send_signal,kill")
            .arg("-o")
            .arg(&trace)
            .arg(env!("CARGO_BIN_EXE_procwright"))
            .args([
                "run",
                "--timeout",
                "500ms",
                "--until",
                "eof",
                "--limit",
                "1MiB",
            ])
            .args(["--scope", scope, "--stop", signal, "--"])
            .args(&words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(124), "{scope} {signal}: {words}");
        let trace = std::fs::read_to_string(&trace).unwrap();
        let first = match signal {
            "TERM" => "SIGTERM",
            _ => "SIGSTOP",
        };
        let is_first = |line: &&str| {
            let sends = line.contains("pidfd_send_signal(") || line.contains("kill(");
            !(sends && line.contains(first))
        };
        let before: Vec<_> = trace.lines().take_while(is_first).collect();
        assert!(before.len() < trace.lines().count(), "{first} was sent");
        let lists = before
            .iter()
            .filter(|line| line.contains("\"/proc\""))
            .count();
        for bystander in &bystanders.0 {
            let looks = |path: &str| {
                let path = format!("\"/proc/{}/{path}", bystander.id());
                before.iter().filter(|line| line.contains(&path)).count()
            };
            assert_eq!(looks("fd"), 0, "{scope} {signal}: a look at descriptors");
            assert!(
                looks("") <= lists,
                "{scope} {signal}: {} looks in {lists} lists",
                looks("")
            );
        }
    }
}
