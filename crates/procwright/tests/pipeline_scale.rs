//! Long pipelines, many at once, and many in a row: the results are right, each order of closes
//! is known, and nothing grows.
#![cfg(target_os = "linux")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Census, eventually, fds, figure, scaled, timed};
use procwright::pipeline::Judgement::{Failed, Forgiven, Success};
use procwright::pipeline::{Judgement, PipelineOutput};
use procwright::{Command, Pipeline, Sink};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use test_support::alone;

/// Lets this process have as many descriptors as it may; returns their number.
fn all_descriptors() -> u64 {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = maximum.or(Some(1 << 20));
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    current.unwrap()
}

fn quiet(program: &str) -> Command<'static> {
    Command::new(program).stderr(Sink::Null)
}

fn judgements(output: &PipelineOutput) -> Vec<Judgement> {
    let stages = output.report.stages.iter();
    stages.map(|stage| stage.judgement).collect()
}

/// The instances of inotify of this process. A user has 128 of them, by default.
fn instances() -> usize {
    fds().iter().filter(|fd| fd.contains("inotify")).count()
}

alone! {
    fn a_thousand_stages() {
        // More than a user has instances of inotify, in any case.
        let wanted = scaled(150, 1_000);
        let count = wanted.min(all_descriptors() / 8) as usize;
        let before = Census::now();
        let data = vec![7; 1 << 20];
        // One that would be forgiven if it were not known that its reader left after it.
        let dies = count - 3;
        let stages = (1..count).map(|place| match place == dies {
            true => Command::shell("cat; kill -PIPE $$").stderr(Sink::Null),
            false => quiet("cat"),
        });
        let first = quiet("cat").stdin_bytes(data.clone());
        let pipeline = Pipeline::new(std::iter::once(first).chain(stages));
        let (output, took) = timed(|| pipeline.run().unwrap());
        assert!(output.stdout == data);
        for (place, judgement) in judgements(&output).into_iter().enumerate() {
            let expected = if place == dies { Failed } else { Success };
            assert_eq!(judgement, expected, "{place}");
        }
        before.comes_back();
        figure(&format!("{count} stages, 1 MiB: {took:?}"));
    }
}

alone! {
    fn a_thousand_at_once() {
        // Each has two processes, its output and a descriptor for each, and one for its joint.
        let count = scaled(40, 1_000).min(all_descriptors() / 16) as usize;
        let before = Census::now();
        let (gate, open) = std::io::pipe().unwrap();
        let begun = Arc::new(AtomicUsize::new(0));
        let all: Vec<_> = (0..count).map(|number| {
            let gate = gate.try_clone().unwrap();
            let begun = Arc::clone(&begun);
            std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
                let says = Command::shell("echo begun; read line <&3; kill -PIPE $$")
                    .stderr(Sink::Null)
                    .pass_fd(gate, 3);
                let hears = quiet("cat").on_stdout_line(move |_| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    Ok(())
                });
                let output = says.pipe(hears).run().unwrap();
                assert_eq!(judgements(&output), [Failed, Success], "{number}");
            }).unwrap()
        }).collect();
        drop(gate);
        eventually(|| {
            let begun = begun.load(Ordering::SeqCst);
            begun == count || all.iter().any(|thread| thread.is_finished())
        });
        assert_eq!(instances(), 1);
        let at_once = fds().len() - before.fds.len();
        drop(open);
        for thread in all { thread.join().unwrap(); }
        before.comes_back();
        figure(&format!("{count} pipelines of two at once: {at_once} descriptors"));
    }
}

alone! {
    fn many_in_a_row() {
        let rounds = scaled(300, 20_000);
        let one = || {
            let output = quiet("yes").pipe(quiet("head").arg("-1")).run().unwrap();
            assert_eq!(output.stdout, b"y\n");
            assert_eq!(judgements(&output), [Forgiven, Success]);
        };
        // The first warm up the allocator.
        let before = Census::now();
        for _ in 0..100 { one(); }
        let base = common::reset_peak();
        let ((), took) = timed(|| for round in 0..rounds {
            one();
            if round % 50 == 0 {
                let now = Census::now();
                assert_eq!(now.children, before.children);
                // What they share, and the thread that closes it when none comes for a while.
                assert!(now.fds.len() <= before.fds.len() + 3, "{now:?}");
                assert!(now.threads.len() <= before.threads.len() + 1, "{now:?}");
            }
        });
        let grown = common::status_bytes("VmRSS").saturating_sub(base);
        before.comes_back();
        figure(&format!("{rounds} pipelines in a row in {took:?}, memory grew by {} KiB", grown >> 10));
        assert!(grown < 2 << 20, "{grown}");
    }
}
