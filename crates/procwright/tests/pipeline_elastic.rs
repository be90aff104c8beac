//! An elastic buffer between two stages: the first ends at its own speed, and all else is as
//! without.

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::pipelines::{judgements, shell};
use common::{Census, eventually};
use procwright::pipeline::Error;
use procwright::pipeline::Judgement::{Collateral, Failed, Forgiven, Success};
use procwright::process::Stop;
use procwright::{Command, Overflow, Pipeline, Reason, Sink};
use test_support::alone;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A FIFO in `dir`, at which one waits for the other.
fn gate(dir: &Path) -> String {
    let path = dir.join("gate");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    path.display().to_string()
}

/// A stage that writes so much, and another that begins to read when the first has ended.
fn burst(dir: &Path, bytes: u64) -> Pipeline<'static> {
    let gate = gate(dir);
    let first = shell(&format!("head -c {bytes} /dev/zero; echo written > {gate}"));
    first.pipe(shell(&format!("read line < {gate}; wc -c")))
}

#[test]
fn the_first_ends_before_the_second_has_read_anything() {
    let dir = tempfile::tempdir().unwrap();
    // Without a buffer each would wait for the other.
    let output = burst(dir.path(), 8 * MIB).elastic(0, Overflow::default());
    let output = output.run().unwrap();
    assert_eq!(output.stdout.trim_ascii(), b"8388608");
    assert_eq!(judgements(&output.report), [Success, Success]);
    let figures = output.report.stages[0].elastic.unwrap();
    assert_eq!((figures.bytes_in, figures.bytes_out), (8 * MIB, 8 * MIB));
    // All but what two pipes hold.
    assert!(figures.peak_bytes > 7 * MIB, "{figures:?}");
    assert!(output.report.stages[1].elastic.is_none());
}

#[test]
fn what_memory_does_not_hold_goes_to_disk() {
    let dir = tempfile::tempdir().unwrap();
    let overflow = Overflow::Spill {
        memory: 256 * KIB,
        disk: Some(64 * MIB),
    };
    let output = burst(dir.path(), 8 * MIB)
        .elastic(0, overflow)
        .run()
        .unwrap();
    assert_eq!(output.stdout.trim_ascii(), b"8388608");
    let figures = output.report.stages[0].elastic.unwrap();
    assert!(figures.spilled_bytes > 4 * MIB, "{figures:?}");
    assert_eq!((figures.lag_bytes, figures.lost_bytes), (0, 0));
}

#[test]
fn the_rule_is_as_without() {
    let elastic = |first: Command<'static>, second| {
        let pipeline = first.pipe(second).elastic(0, Overflow::default());
        judgements(&pipeline.run().unwrap().report)
    };
    let head = || Command::new("head").arg("-1");
    assert_eq!(elastic(Command::new("yes"), head()), [Forgiven, Success]);
    let cat = || Command::new("cat");
    assert_eq!(
        elastic(shell("echo half; exit 3"), cat()),
        [Failed, Success]
    );
    assert_eq!(
        elastic(shell("echo half; kill -PIPE $$"), cat()),
        [Failed, Success]
    );
    let fails = || shell("read line; exit 3");
    assert_eq!(elastic(Command::new("yes"), fails()), [Collateral, Failed]);
}

alone! {
    fn all_bytes_pass_through_many_and_nothing_is_left() {
        let before = Census::now();
        let data: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
        let cat = || Command::new("cat");
        let pipeline = Pipeline::new([cat().stdin_bytes(data.clone()), cat(), cat(), cat()]);
        let pipeline = (0..3).fold(pipeline, |pipeline, stage| {
            pipeline.elastic(stage, Overflow::Spill { memory: 64 * KIB, disk: None })
        });
        let output = pipeline.run().unwrap();
        assert!(output.success() && output.stdout == data);
        before.comes_back();
    }
}

alone! {
    fn a_full_buffer_holds_up_nobody_who_is_blamed() {
        let before = Census::now();
        let full = Overflow::Block { memory: 64 * KIB };
        let mut timeout = Duration::from_millis(200);
        // On a machine with other work `yes` may not have written in time, and its reader waits.
        loop {
            let stages = Command::new("yes").pipe(Command::new("sleep").arg("1000"));
            let result = stages.elastic(0, full).timeout(timeout).stop(Stop::kill()).run();
            let Err(Error::Stopped(output)) = result else { panic!("{result:?}") };
            assert_eq!(output.report.reason, Reason::Timeout);
            // What was not taken is told.
            let figures = output.report.stages[0].elastic.unwrap();
            assert_eq!(figures.bytes_in, figures.bytes_out + figures.lag_bytes);
            if figures.lag_bytes > 0 && judgements(&output.report)[1] == Failed {
                break;
            }
            timeout *= 2;
            assert!(timeout < Duration::from_secs(60), "{}: {figures:?}", output.explain());
        }
        before.comes_back();
    }
}

alone! {
    fn a_reader_sees_no_end_of_what_was_cut_short() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let end = dir.path().join("saw-end");
        let reads = shell(&format!("while read -r line; do :; done; echo end > {}", end.display()));
        // A shell reads a byte at a time, and `yes` fills the buffer at once.
        let few = Overflow::Fail { memory: 64 * KIB };
        let result = Command::new("yes").pipe(reads).elastic(0, few).stop(Stop::kill()).run();
        let Err(Error::Io { stage, source, output, .. }) = result else { panic!("{result:?}") };
        assert_eq!(stage, Some(0), "{source}");
        assert!(source.to_string().contains("more came than may be kept"), "{source}");
        assert_eq!(output.report.reason, Reason::Cancelled);
        assert!(!end.exists());
        before.comes_back();
    }
}

#[test]
fn it_is_over_when_the_buffer_has_passed_on_all() {
    let dir = tempfile::tempdir().unwrap();
    let (gate, copy) = (gate(dir.path()), dir.path().join("copy"));
    let writes = shell("head -c 8000000 /dev/zero");
    // The program ends at once. What it leaves behind reads once all else is over.
    let leaves = format!(
        "exec 3<&0; (read line < {gate}; cat <&3 > {}) 3<&3 & exit 0",
        copy.display()
    );
    let pipeline = writes
        .stderr(Sink::Null)
        .pipe(shell(&leaves).stdout(Sink::Null).stderr(Sink::Null));
    let output = std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&gate, "go\n").unwrap());
        pipeline.elastic(0, Overflow::default()).run().unwrap()
    });
    let figures = output.report.stages[0].elastic.unwrap();
    assert_eq!((figures.bytes_out, figures.lag_bytes), (8_000_000, 0));
    eventually(|| fs::metadata(&copy).is_ok_and(|copy| copy.len() == 8_000_000));
}

alone! {
    fn what_a_stage_has_left_with_the_buffer_is_stopped_and_named() {
        let before = Census::now();
        let mut timeout = Duration::from_millis(200);
        // On a machine with other work they may not have begun in time.
        loop {
            let writes = shell("head -c 800000 /dev/zero");
            // The programs end at once. What the second leaves behind would read, and does not.
            let leaves = shell("exec 3<&0; (exec sleep 1000) <&3 3<&- >/dev/null 2>&1 & exit 0");
            let pipeline = writes.pipe(leaves).elastic(0, Overflow::default());
            let result = pipeline.timeout(timeout).run();
            let Err(Error::Stopped(output)) = result else { panic!("{result:?}") };
            let text = output.explain();
            assert_eq!(output.report.reason, Reason::Timeout, "{text}");
            before.comes_back();
            let have_ended = output.report.stages.iter().all(|one| one.report.status.success());
            if have_ended && text.contains("sleep (pid ") {
                break;
            }
            timeout *= 2;
            assert!(timeout < Duration::from_secs(60), "{text}");
        }
    }
}

#[test]
fn a_buffer_is_between_two_stages() {
    let cat = || Command::new("cat");
    for (pipeline, stage) in [
        (cat().pipe(cat()), 1),
        (cat().pipe(cat()), 7),
        (Pipeline::new([cat()]), 0),
    ] {
        match pipeline.elastic(stage, Overflow::default()).run() {
            Err(Error::Invalid {
                stage: None,
                source,
            }) => {
                assert!(source.to_string().starts_with("elastic "), "{source}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_clock_tells_what_passes_where_a_buffer_counts_it() {
    let dir = tempfile::tempdir().unwrap();
    let gate = gate(dir.path());
    let first = shell(&format!("head -c 100000 /dev/zero; read line < {gate}"));
    let mut told = Vec::new();
    let output = first
        .pipe(shell("head -c 100000 | wc -c; exec cat"))
        .pipe(shell("exec cat"))
        .elastic(0, Overflow::Block { memory: MIB })
        .every(Duration::from_millis(10), |stages| {
            let counts = stages.iter().map(|stage| {
                let passed = stage.elastic.map(|figures| figures.bytes_out);
                let stdout = stage.program.stdout.map(|flow| flow.bytes);
                (passed, stdout, stage.program.running)
            });
            let counts: Vec<_> = counts.collect();
            // The first goes on until it was seen that all it wrote has been taken.
            let all = [
                (Some(100_000), None, true),
                (None, None, true),
                (None, Some(7), true),
            ];
            if counts == all && told.is_empty() {
                told = counts;
                fs::write(&gate, "go on\n").unwrap();
            }
        })
        .run()
        .unwrap();
    assert_eq!(output.stdout, b"100000\n");
    assert_eq!(told.len(), 3);
}
