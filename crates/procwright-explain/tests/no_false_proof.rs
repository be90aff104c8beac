//! No deadlock is said to be proven among processes that go on: on a busy machine with 2,000
//! pipes, and over the tests of this repository while they run.
//!
//! A *scan* is one examination, of two looks. A *sample* is one process that a scan was asked
//! about and has judged. `SCANS=n` makes so many scans, and `PACKAGES="a b"` has the tests of these
//! packages run meanwhile.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use procwright_explain::{Diagnosis, Finding, Verdict, examine, examine_own};
use rustix::process::{Signal, set_parent_process_death_signal};
use test_support::{figure, say, scaled, stress, watchdog};

/// Processes that exchange bytes over pipes, and come and go.
struct Traffic(Child);

impl Traffic {
    fn start(places: u64, options: &[&str]) -> Traffic {
        let mut traffic = Command::new(test_children::path());
        traffic.arg("traffic").arg(places.to_string());
        traffic.args(["--no-limit", "--print-ready"]).args(options);
        // SAFETY: one system call, which allocates nothing.
        unsafe {
            // It never ends, and must not go on beyond its test.
            traffic.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let mut child = traffic
            .stdout(Stdio::piped())
            .spawn()
            .expect("a test child");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its stdout");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert!(line.starts_with("ready "), "{line:?}");
        Traffic(child)
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        // All others die with it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the scans of a test have seen.
#[derive(Default)]
struct Seen {
    scans: u64,
    samples: usize,
    /// The most pipes and processes that one scan has seen.
    pipes: usize,
    processes: usize,
}

impl Seen {
    fn add(&mut self, diagnosis: &Diagnosis) {
        self.scans += 1;
        self.samples += diagnosis.counts.asked;
        self.pipes = self.pipes.max(diagnosis.counts.pipes);
        self.processes = self.processes.max(diagnosis.counts.processes);
    }

    fn tell(&self, of: &str, proven: &str) {
        figure(&format!(
            "{of}: {} scans, {} samples, up to {} processes and {} pipes at a time; {proven}",
            self.scans, self.samples, self.processes, self.pipes
        ));
    }
}

fn scans(usual: u64, full: u64) -> u64 {
    let given = std::env::var("SCANS").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(scaled(usual, full))
}

fn proven(diagnosis: &Diagnosis) -> impl Iterator<Item = &Finding> {
    let findings = diagnosis.findings.iter();
    findings.filter(|finding| finding.verdict == Verdict::Proven)
}

/// Whether a finding names processes of such traffic, of this test or of another.
fn is_traffic(diagnosis: &Diagnosis, finding: &Finding) -> bool {
    diagnosis.processes.iter().any(|one| {
        let command = one.command.as_deref().unwrap_or_default();
        finding.processes.contains(&one.pid) && command.contains(" traffic ")
    })
}

#[test]
fn nothing_is_proven_of_traffic_that_flows() {
    // Some 20 pipes and 5 processes in each place.
    let traffic = Traffic::start(scaled(8, 100), &[]);
    let (all, mut seen) = (scans(20, 10_000), Seen::default());
    let mut watched = None;
    for number in 0..all {
        if number % 100 == 0 {
            watched = Some(watchdog("nothing_is_proven_of_traffic_that_flows"));
        }
        // Two looks without a pause between them are the hardest.
        let between = Duration::from_millis([0, 1, 0, 20][number as usize % 4]);
        let diagnosis = match number % 5 {
            0 => examine_own(between),
            _ => examine(&[traffic.pid()], between),
        };
        let diagnosis = diagnosis.expect("a diagnosis");
        seen.add(&diagnosis);
        let wrong = proven(&diagnosis).find(|finding| is_traffic(&diagnosis, finding));
        if let Some(finding) = wrong {
            panic!("scan {number}: {finding:?}\n{}", diagnosis.text(false));
        }
    }
    drop(watched);
    if stress() {
        seen.tell("traffic that flows", "none proven");
    }
}

/// What the test above looks for is there to be found: a word that is lost is told.
#[test]
fn traffic_that_has_lost_its_word_is_told() {
    let _watchdog = watchdog("traffic_that_has_lost_its_word_is_told");
    let traffic = Traffic::start(2, &["--lose"]);
    loop {
        let diagnosis = examine(&[traffic.pid()], Duration::from_millis(20)).expect("it is there");
        let mut told = diagnosis.findings.iter();
        // Where somebody may not be looked at it is not proven.
        let is_doubted = |finding: &Finding| {
            finding.verdict == Verdict::Possible && !diagnosis.unseen.is_empty()
        };
        let is_told = |finding: &Finding| finding.verdict == Verdict::Proven || is_doubted(finding);
        if told.any(|finding| is_told(finding) && is_traffic(&diagnosis, finding)) {
            return;
        }
    }
}

/// Looks at `cargo test` and all that it starts, again until there were enough scans. Some of these
/// tests make deadlocks. Whether one that was proven is one is asked again: those in it never go
/// on, so that it is proven later as well, or they were killed.
#[test]
fn nothing_false_is_proven_of_the_tests_of_this_repository() {
    if !stress() {
        return;
    }
    let (all, mut seen) = (scans(0, 10_000), Seen::default());
    let (mut lasting, mut ended) = (0, 0);
    let packages = std::env::var("PACKAGES");
    let packages = packages
        .as_deref()
        .unwrap_or("procwright procwright-process procwright-cli");
    for package in packages.split_whitespace().cycle() {
        if seen.scans >= all {
            break;
        }
        let mut tests = Command::new(env!("CARGO"));
        tests.args(["test", "-q", "--no-fail-fast", "--tests", "-p", package]);
        tests.env_remove("STRESS").env_remove("SCANS");
        tests
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut tests = tests.spawn().expect("cargo");
        let pid = tests.id().cast_signed();
        let mut watched = None;
        while tests.try_wait().expect("a status").is_none() {
            if seen.scans % 100 == 0 {
                watched = Some(watchdog("nothing_false_is_proven_of_the_tests"));
            }
            let between = Duration::from_millis(seen.scans % 3 * 10);
            // Those that are asked about by name may have ended meanwhile.
            let Ok(diagnosis) = examine(&[pid], between) else {
                continue;
            };
            seen.add(&diagnosis);
            for finding in proven(&diagnosis) {
                match lasts(finding) {
                    Some(true) => lasting += 1,
                    None => ended += 1,
                    Some(false) => panic!("{finding:?}\n{}", diagnosis.text(false)),
                }
                say(&format!("proven: {}", finding.sentence));
            }
        }
        drop(watched);
    }
    let proven = format!("{lasting} proven that last, {ended} whose processes were killed");
    seen.tell("the tests of this repository", &proven);
}

/// Whether those in a deadlock are proven to be in it later as well; `None` if one of them has
/// ended. Once alone may be a look at one that is being killed.
fn lasts(finding: &Finding) -> Option<bool> {
    for _ in 0..50 {
        let again = examine(&finding.processes, Duration::from_millis(50)).ok()?;
        // Who has ended since is a zombie, or was not there at the second look.
        let has_ended = |pid: &i32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            status.map_or(true, |stat| stat.contains(") Z "))
        };
        if finding.processes.iter().any(has_ended) {
            return None;
        }
        if proven(&again).any(|one| one.processes == finding.processes) {
            return Some(true);
        }
    }
    Some(false)
}
