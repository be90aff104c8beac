//! Nothing is proven that is not so while processes and pipes come and go, and what is
//! there is neither disturbed nor missed.
#![allow(missing_docs)]

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use procwright_explain::{Examination, Verdict, WaitKind, examine, examine_own, waiting_for};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use test_support::{eventually, scaled, watchdog};

/// Cats that pass a byte around in a ring, so that at any moment almost all of them wait for
/// each other: a deadlock but for the byte.
struct Ring {
    children: Vec<Child>,
    /// Ends that change nothing but who is known to have made the pipes.
    _ends: Vec<std::io::PipeReader>,
}

impl Ring {
    fn start(length: usize) -> Ring {
        let pipes: Vec<_> = (0..length)
            .map(|_| std::io::pipe().expect("a pipe"))
            .collect();
        let mut first = pipes[0].1.try_clone().expect("a write end");
        let children = (0..length)
            .map(|number| {
                let (read, _) = &pipes[number];
                let (_, write) = &pipes[(number + 1) % length];
                let mut cat = Command::new(test_children::path());
                // SAFETY: one system call, which allocates nothing.
                unsafe {
                    // A ring goes round for ever: not beyond its test, however that ends.
                    cat.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
                }
                cat.arg("cat")
                    .stdin(read.try_clone().expect("a read end"))
                    .stdout(write.try_clone().expect("a write end"))
                    .spawn()
                    .expect("a test child")
            })
            .collect();
        first.write_all(b"x").expect("a byte");
        Ring {
            children,
            _ends: pipes.into_iter().map(|(read, _)| read).collect(),
        }
    }
}

impl Ring {
    fn pids(&self) -> Vec<i32> {
        let children = self.children.iter();
        children.map(|child| child.id() as i32).collect()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Talks to one cat after the other, each of which begins and ends meanwhile.
fn talk(stop: &AtomicBool) -> usize {
    let mut talks = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut child = Command::new(test_children::path())
            .arg("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a test child");
        let mut stdin = child.stdin.take().expect("its stdin");
        let mut stdout = child.stdout.take().expect("its stdout");
        for _ in 0..20 {
            stdin.write_all(b"word").expect("a reader");
            let mut word = [0; 4];
            stdout.read_exact(&mut word).expect("a word");
        }
        drop(stdin);
        // Whoever had its pipes open besides would hold this up.
        assert_eq!(stdout.read_to_end(&mut Vec::new()).expect("the end"), 0);
        assert!(child.wait().expect("its end").success());
        talks += 1;
    }
    talks
}

#[test]
fn nothing_is_proven_while_a_byte_goes_round() {
    let _watchdog = watchdog("nothing_is_proven_while_a_byte_goes_round");
    let looks = scaled(30, 20_000);
    let stop = AtomicBool::new(false);
    // Who has made the ring's pipes is known if he is older than they are, by more than the
    // clock of start times tells.
    let begun = Instant::now();
    eventually(|| begun.elapsed() > Duration::from_millis(100));
    let rings: Vec<Ring> = [2, 3, 4].into_iter().map(Ring::start).collect();
    std::thread::scope(|scope| {
        let talker = scope.spawn(|| talk(&stop));
        for number in 0..looks {
            // Two looks without a pause between them are the hardest.
            let between = Duration::from_millis(number % 3);
            let ring = &rings[number as usize / 2 % rings.len()];
            let diagnosis = match number % 2 {
                0 => examine_own(between),
                // At most looks it is a circle; else the others are outlines.
                _ => examine(&ring.pids(), between),
            };
            let diagnosis = diagnosis.expect("a diagnosis");
            // Whatever else hangs on this machine is none of this test's.
            let ours = |finding: &&procwright_explain::Finding| {
                let mut pids = rings.iter().flat_map(Ring::pids);
                let own = std::process::id() as i32;
                finding.verdict == Verdict::Proven
                    && (finding.processes.contains(&own)
                        || pids.any(|pid| finding.processes.contains(&pid)))
            };
            let proven = diagnosis.findings.iter().find(ours);
            if let Some(finding) = proven {
                stop.store(true, Ordering::Relaxed);
                panic!("look {number}: {finding:?}\n{}", diagnosis.text(false));
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(talker.join().expect("a talker") > 0);
    });
}

/// Whoever was asked about goes on at the first look and is stopped at the second. Who waits for
/// it was no part of the first.
#[test]
fn what_comes_up_between_the_looks_is_told_with_all_that_wait_for_it() {
    let _watchdog = watchdog("what_comes_up_between_the_looks_is_told_with_all_that_wait_for_it");
    let cat = |stdin: Stdio| {
        Command::new(test_children::path())
            .arg("cat")
            .stdin(stdin)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a test child")
    };
    let mut writer = cat(Stdio::piped());
    let output = writer.stdout.take().expect("its stdout");
    let mut reader = cat(output.into());
    let (asked, behind) = (writer.id() as i32, reader.id() as i32);
    let waits = |pid| waiting_for(pid).is_ok_and(|waiting| waiting.kind == WaitKind::Input);
    eventually(|| waits(asked) && waits(behind));
    let begun = Examination::begin(&[asked]).expect("a look");
    let pid = Pid::from_raw(asked).expect("a number");
    kill_process(pid, Signal::STOP).expect("a stop");
    let state = format!("/proc/{asked}/stat");
    eventually(|| std::fs::read_to_string(&state).is_ok_and(|stat| stat.contains(") T ")));
    let diagnosis = begun.finish().expect("a diagnosis");
    for child in [&mut writer, &mut reader] {
        child.kill().expect("its end");
        child.wait().expect("its end");
    }
    let stopped = diagnosis.findings.first().expect("a finding");
    assert_eq!(stopped.verdict, Verdict::Stopped, "{diagnosis:?}");
    assert_eq!(stopped.processes, [asked]);
    assert!(stopped.behind.contains(&behind), "{diagnosis:?}");
}
