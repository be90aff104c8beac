//! Several programs at the end of a pipeline, each of which gets all that the stage before them
//! writes.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::Census;
use common::pipelines::{cat, copy, judgements, shell, stopped};
use procwright::pipeline::Judgement::{Collateral, Failed, Forgiven, Ignored, Success};
use procwright::pipeline::{Error, StageMoment, SuccessRule};
use procwright::process::Stop;
use procwright::{Cancel, Command, Overflow, Pipeline, Reason, Sink, Stdin};
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

/// A program that writes this file when it sees the end of its input.
fn tells_of_an_end(path: &Path) -> Command<'static> {
    // Without a process of its own, which would be one more to stop.
    shell(&format!(
        "while read -r line; do :; done; echo end > {}",
        path.display()
    ))
}

alone! {
    fn each_gets_all_and_nothing_is_left() {
        let before = Census::now();
        let data: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        for overflow in [
            None,
            Some(Overflow::Block { memory: 4 * KIB }),
            Some(Overflow::Spill { memory: 64 * KIB, disk: None }),
        ] {
            let first = cat().stdin_bytes(data.clone());
            // Some read in pieces, with pauses for the others: the first of these a byte at a time.
            let slow = || shell("head -c 1; dd bs=777 count=100 status=none; cat");
            let pipeline = first.pipe(cat()).fan([cat(), slow(), cat(), slow(), cat()]);
            let pipeline = match overflow {
                Some(overflow) => pipeline.elastic(1, overflow),
                None => pipeline,
            };
            let output = pipeline.run().unwrap();
            assert!(output.success(), "{}", output.explain());
            for stage in 2..7 {
                assert!(output.stdout_of(stage) == data, "{stage}");
                let figures = output.report.stages[stage].fan.unwrap();
                assert_eq!((figures.bytes_in, figures.bytes_out), (4_000_000, 4_000_000));
            }
            assert!(output.stdout == data && output.beside.len() == 4);
            assert!(output.stdout_of(0).is_empty() && output.stdout_of(1).is_empty());
            assert!(output.report.stages[1].fan.is_none());
            before.comes_back();
        }
    }
}

#[test]
fn with_an_elastic_buffer_one_that_does_not_read_holds_up_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let gate = gate(dir.path());
    // The second begins to read when the first has had all.
    let first = shell(&format!("wc -c; echo read > {gate}"));
    let second = shell(&format!("read line < {gate}; wc -c"));
    let writes = Command::new("head").args(["-c", "8388608", "/dev/zero"]);
    let pipeline = writes.fan([first, second]).elastic(0, Overflow::default());
    let output = pipeline.check().run().unwrap();
    assert_eq!(output.stdout_of(1).trim_ascii(), b"8388608");
    assert_eq!(output.stdout_of(2).trim_ascii(), b"8388608");
    let figures = output.report.stages[2].fan.unwrap();
    // All but what the pipes hold.
    assert!(figures.peak_bytes > 7 * MIB, "{figures:?}");
}

alone! {
    fn without_one_it_holds_up_the_rest_and_is_named() {
        let before = Census::now();
        let mut timeout = Duration::from_millis(200);
        // On a machine with other work they may not have come that far in time.
        loop {
            let reads = || cat().stdout(Sink::Null);
            let fan = Command::new("yes").fan([reads(), Command::new("sleep").arg("1000"), reads()]);
            let output = stopped(fan.timeout(timeout).stop(Stop::kill()));
            let text = output.explain();
            assert_eq!(output.report.reason, Reason::Timeout, "{text}");
            let figures = output.report.stages[2].fan.unwrap();
            assert_eq!(figures.bytes_in, figures.bytes_out + figures.lag_bytes);
            assert!(figures.lag_bytes <= 256 * KIB, "{figures:?}");
            before.comes_back();
            if judgements(&output.report) == [Collateral, Collateral, Failed, Collateral] {
                assert!(text.contains("stage 3 of 4 held up the rest: sleep 1000"), "{text}");
                assert!(figures.refused > Duration::ZERO, "{figures:?}");
                break;
            }
            timeout *= 2;
            assert!(timeout < Duration::from_secs(60), "{text}: {figures:?}");
        }
    }
}

#[test]
fn one_that_leaves_or_dies_is_no_matter_for_the_others() {
    let seq = || Command::new("seq").arg("1000000");
    let count = || Command::new("wc").arg("-l");
    let head = Command::new("head").arg("-1");
    let output = seq().fan([head, count()]).run().unwrap();
    assert_eq!(judgements(&output.report), [Success, Success, Success]);
    assert_eq!(output.beside, [b"1\n"]);
    assert_eq!(output.stdout.trim_ascii(), b"1000000");
    let left = output.report.stages[1].fan.unwrap();
    assert!(left.bytes_out < 6_888_896, "{left:?}");

    let dies = shell("read line; kill -KILL $$");
    let output = seq().fan([count(), dies]).run().unwrap();
    assert_eq!(judgements(&output.report), [Success, Success, Failed]);
    assert_eq!(output.beside[0].trim_ascii(), b"1000000");
    assert_eq!(
        output.report.outcome(),
        "failed: stage 3 of 3 killed by SIGKILL"
    );
    assert!(
        output.explain().starts_with("seq 1000000 | {wc -l, "),
        "{}",
        output.explain()
    );
}

#[test]
fn the_writer_can_write_no_more_when_all_have_left() {
    let yes = || Command::new("yes");
    let head = |count: &str| Command::new("head").arg(count);
    let fails = || shell("read line; exit 3");
    let of = |pipeline: Pipeline<'_>| judgements(&pipeline.run().unwrap().report);

    let enough = || yes().fan([head("-1"), head("-100000"), head("-1")]);
    assert_eq!(of(enough()), [Forgiven, Success, Success, Success]);
    let strict = enough().success_rule(SuccessRule::Strict);
    assert_eq!(of(strict), [Failed, Success, Success, Success]);
    let chain = yes().pipe(cat()).fan([head("-1"), head("-2")]);
    assert_eq!(of(chain), [Forgiven, Forgiven, Success, Success]);

    let output = yes().fan([head("-1"), fails()]).run().unwrap();
    let text = output.explain();
    let judged = judgements(&output.report);
    assert_eq!(judged, [Collateral, Success, Failed], "{text}");
    assert!(text.contains("stage 3 of 3: "), "{text}");
    let why = "yes was killed by SIGPIPE, since all that read it had ended, and not all well";
    assert!(text.contains(why), "{text}");
}

#[test]
fn a_signal_of_another_is_not_forgiven() {
    let output = shell("echo half; kill -PIPE $$").fan([cat(), cat()]).run();
    let output = output.unwrap();
    assert_eq!(judgements(&output.report), [Failed, Success, Success]);
    assert_eq!(
        (output.stdout, output.beside),
        (b"half\n".into(), vec![b"half\n".into()])
    );
}

#[test]
fn by_the_last_rule_each_of_them_is_the_last() {
    let last = |pipeline: Pipeline<'_>| {
        let output = pipeline.success_rule(SuccessRule::Last).run().unwrap();
        (output.success(), judgements(&output.report))
    };
    let fails = || shell("cat; exit 3");
    let (success, judged) = last(shell("exit 3").fan([cat(), cat()]));
    assert_eq!((success, judged), (true, vec![Ignored, Success, Success]));
    let (success, judged) = last(shell("exit 3").fan([fails(), cat()]));
    assert_eq!((success, judged), (false, vec![Ignored, Failed, Success]));
    let allowed = shell("exit 0").fan([cat(), fails()]).ok_codes(2, [3]);
    assert!(allowed.run().unwrap().success());
}

alone! {
    fn a_stop_ends_all_and_none_sees_an_end_of_it() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let ends = ["a", "b", "c"].map(|name| dir.path().join(name));
        for elastic in [false, true] {
            let readers = ends.iter().map(|end| tells_of_an_end(end));
            let pipeline = Command::new("yes").pipe(cat()).fan(readers);
            let pipeline = match elastic {
                true => pipeline.elastic(1, Overflow::Spill { memory: MIB, disk: Some(MIB) }),
                false => pipeline,
            };
            let cancel = Cancel::new().unwrap();
            let theirs = cancel.clone();
            // All run by then, and some bytes have come.
            let hook = move |stages: &[StageMoment<'_>]| {
                if stages.len() == 5 {
                    theirs.cancel();
                }
            };
            let pipeline = pipeline.cancel_on(&cancel).every(Duration::from_millis(30), hook);
            let output = stopped(pipeline);
            assert_eq!(output.report.reason, Reason::Cancelled);
            let of_all = output.report.stages.iter().map(|one| one.report.reason);
            assert!(of_all.eq([Reason::Cancelled; 5]), "{}", output.explain());
            for end in &ends {
                assert!(!end.exists(), "{}", end.display());
            }
            // It has a descriptor of its own.
            drop(cancel);
            before.comes_back();
        }
    }
}

alone! {
    fn what_cannot_be_kept_for_one_stops_all_before_they_see_an_end() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let ends = ["a", "b"].map(|name| dir.path().join(name));
        // A shell reads a byte at a time, and `yes` fills the queue at once.
        let readers = ends.iter().map(|end| tells_of_an_end(end));
        let few = Overflow::Fail { memory: 64 * KIB };
        let fan = Command::new("yes").fan(readers.chain([cat().stdout(Sink::Null)]));
        let result = fan.elastic(0, few).stop(Stop::kill()).run();
        let Err(Error::Io { stage, source, output, .. }) = result else { panic!("{result:?}") };
        assert_eq!(stage, Some(0), "{source}");
        assert!(source.to_string().contains("more came than may be kept"), "{source}");
        assert_eq!(output.report.reason, Reason::Cancelled);
        assert!(!ends[0].exists() && !ends[1].exists());
        before.comes_back();
    }
}

alone! {
    fn what_cannot_be_kept_for_one_that_waits_for_another_stops_both() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let gate = gate(dir.path());
        // The second reads nothing before the first is at the end of its input, which is kept from
        // that once the queue of the second is full.
        let first = shell(&format!("cat >/dev/null; echo x > {gate}"));
        let second = shell(&format!("read x < {gate}; exec cat >/dev/null"));
        let few = Overflow::Fail { memory: 64 * KIB };
        let fan = Command::new("yes").fan([first, second]).elastic(0, few);
        let result = fan.stop(Stop::kill()).run();
        let Err(Error::Io { stage, source, .. }) = result else { panic!("{result:?}") };
        assert_eq!(stage, Some(0), "{source}");
        assert!(source.to_string().contains("more came than may be kept"), "{source}");
        before.comes_back();
    }
}

alone! {
    fn what_a_stage_has_left_behind_is_stopped_with_them() {
        let before = Census::now();
        let mut timeout = Duration::from_millis(200);
        loop {
            // The first ends at once, and leaves one with the end to write; the second ends, and
            // leaves one with the end to read.
            let writes = shell("sleep 1000 2>/dev/null & exit 0").stderr(Sink::Null);
            let leaves = shell("exec 3<&0; (exec sleep 2000) <&3 3<&- >/dev/null 2>&1 & exit 0");
            let output = stopped(writes.fan([leaves, cat()]).timeout(timeout));
            let text = output.explain();
            assert_eq!(output.report.reason, Reason::Timeout, "{text}");
            before.comes_back();
            let ended = |stage: usize| output.report.stages[stage].report.status.success();
            if ended(0) && ended(1) && text.matches("sleep (pid ").count() >= 2 {
                break;
            }
            timeout *= 2;
            assert!(timeout < Duration::from_secs(60), "{text}");
        }
    }
}

#[test]
fn limits_and_outputs_are_those_of_each() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("copy");
    let lines = test_support::shared(0);
    let counts = Arc::clone(&lines);
    let to_file = cat().stdout(Sink::File {
        path: path.clone(),
        append: false,
    });
    let counted = cat().stdout(Sink::Capture).on_stdout_line(move |_| {
        *counts.lock().unwrap() += 1;
        Ok(())
    });
    let output = Command::new("seq")
        .arg("1000")
        .fan([to_file, counted, cat()]);
    let output = output.idle_timeout(Duration::from_secs(60)).run().unwrap();
    assert!(output.success(), "{}", output.explain());
    assert_eq!(fs::read(&path).unwrap(), output.stdout);
    assert!(output.stdout_of(1).is_empty());
    assert_eq!(*lines.lock().unwrap(), 1000);

    // A limit that one of them reaches stops all.
    let slow = Command::new("sleep")
        .arg("1000")
        .timeout(Duration::from_millis(50));
    let output = stopped(Command::new("yes").fan([cat().stdout(Sink::Null), slow]));
    assert_eq!(judgements(&output.report), [Collateral, Collateral, Failed]);
}

#[test]
fn one_that_is_spawned_has_the_stdout_of_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("copy");
    let to_file = || {
        cat().stdout(Sink::File {
            path: path.clone(),
            append: false,
        })
    };
    let mut child = cat()
        .stdin(Stdin::Pipe)
        .fan([to_file(), cat()])
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdin.write_all(b"pear\n").unwrap();
    let mut line = [0; 5];
    stdout.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"pear\n");
    drop(stdin);
    let report = child.wait(None).unwrap().unwrap();
    assert!(report.success() && report.stages.len() == 3);
    assert_eq!(fs::read(&path).unwrap(), b"pear\n");

    let mut child = cat()
        .stdin(Stdin::Pipe)
        .fan([to_file(), cat()])
        .spawn()
        .unwrap();
    let output = child.communicate("apple\n").unwrap();
    assert_eq!(output.stdout_of(2), b"apple\n");
    assert!(output.stdout_of(1).is_empty());

    match cat().fan([cat(), cat()]).spawn() {
        Err(Error::Invalid { stage, source }) => {
            assert_eq!(stage, Some(1));
            assert!(source.to_string().starts_with("stdout "), "{source}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_fan_cannot_be() {
    let none: [Command<'static>; 0] = [];
    for (pipeline, starts) in [
        (cat().fan(none), "fan has no program"),
        (
            Pipeline::new([]).fan([cat(), cat()]),
            "fan is all that there is",
        ),
        (
            cat().fan([cat(), cat()]).fan([cat(), cat()]),
            "fan has another before it",
        ),
        (
            cat().fan([cat(), cat()]).pipe_fn(copy),
            "pipe_fn is not between two programs",
        ),
        (
            cat().pipe_fn(copy).fan([cat(), cat()]),
            "pipe_fn has a fan behind it",
        ),
        (
            cat().fan([cat(), cat()]).function(1, copy),
            "pipe_fn is not between two programs",
        ),
        (
            cat().fan([cat(), cat()]).elastic(1, Overflow::default()),
            "elastic is behind stage 1 of 3",
        ),
    ] {
        match pipeline.run() {
            Err(Error::Invalid {
                stage: None,
                source,
            }) => {
                assert!(source.to_string().starts_with(starts), "{source}");
            }
            other => panic!("{other:?}"),
        }
    }
    // One program is a stage like any other.
    let output = shell("echo x").fan([cat()]).run().unwrap();
    assert_eq!(
        (output.stdout.as_slice(), output.beside.len()),
        (&b"x\n"[..], 0)
    );
    assert!(output.report.stages[1].fan.is_none());
}
