//! Several programs at the start of a pipeline, whose lines the next one gets.

mod common;

use std::time::Duration;

use common::Census;
use common::pipelines::{cat, copy, judgements, shell, stopped};
use procwright::pipeline::Error;
use procwright::pipeline::Judgement::{Collateral, Failed, Forgiven, Success};
use procwright::process::Stop;
use procwright::{Command, Overflow, Pipeline, Reason, Sink, Stdin};
use test_support::alone;

fn fan<'a>(programs: impl IntoIterator<Item = Command<'a>>) -> Pipeline<'a> {
    Pipeline::new([]).fan(programs)
}

alone! {
    fn each_line_comes_whole_and_once() {
        let before = Census::now();
        // Programs that write in blocks, in the middle of lines.
        let writers = ["a", "b", "c", "d"].map(|name| {
            let form = format!("{name}%.0f {}", "x".repeat(30));
            Command::new("seq").args(["-f", &form, "50000"])
        });
        let output = fan(writers).pipe(cat()).check().run().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut counts = [0_u32; 4];
        for line in text.lines() {
            let (first, rest) = line.split_at(1);
            let count = &mut counts[usize::from(first.as_bytes()[0] - b'a')];
            *count += 1;
            assert_eq!(rest, format!("{count} {}", "x".repeat(30)));
        }
        assert_eq!(counts, [50_000; 4]);
        before.comes_back();
    }
}

#[test]
fn each_writer_is_judged_and_reads_what_is_its_own() {
    let reads = cat().stdin_bytes("pear\n");
    let output = fan([reads, shell("echo fig; exit 3"), shell("printf nut")]);
    let output = output.pipe(Command::new("sort")).run().unwrap();
    assert_eq!(
        judgements(&output.report),
        [Success, Failed, Success, Success]
    );
    assert_eq!(output.stdout, b"fig\nnut\npear\n");
    let text = output.explain();
    assert!(text.starts_with("{cat, "), "{text}");
    assert!(
        text.contains("} | sort failed: stage 2 of 4 exited with code 3"),
        "{text}"
    );
}

#[test]
fn all_are_forgiven_if_the_reader_has_read_enough() {
    let yes = || Command::new("yes");
    let of = |reader| judgements(&fan([yes(), yes()]).pipe(reader).run().unwrap().report);
    let head = Command::new("head").arg("-1");
    assert_eq!(of(head), [Forgiven, Forgiven, Success]);
    assert_eq!(
        of(shell("read x; exit 3")),
        [Collateral, Collateral, Failed]
    );
    // One that has ended before is as it was, and a signal of another is one.
    let output = fan([shell("echo x"), shell("echo y; kill -PIPE $$")]).pipe(cat());
    let output = output.run().unwrap();
    assert_eq!(judgements(&output.report), [Success, Failed, Success]);
}

alone! {
    fn the_one_that_holds_up_the_rest_is_named() {
        let before = Census::now();
        let mut timeout = Duration::from_millis(200);
        loop {
            let writes = || shell("echo x");
            let hangs = Command::new("sleep").arg("1000");
            let pipeline = fan([writes(), hangs, writes()]).pipe(cat());
            let output = stopped(pipeline.timeout(timeout).stop(Stop::kill()));
            let text = output.explain();
            assert_eq!(output.report.reason, Reason::Timeout, "{text}");
            before.comes_back();
            if judgements(&output.report) == [Success, Failed, Success, Collateral] {
                assert!(text.contains("stage 2 of 4 held up the rest: sleep 1000"), "{text}");
                assert_eq!(output.stdout, b"x\nx\n");
                break;
            }
            timeout *= 2;
            assert!(timeout < Duration::from_secs(60), "{text}");
        }
    }
}

alone! {
    fn what_a_writer_has_left_behind_is_stopped() {
        let before = Census::now();
        let leaves = || shell("sleep 1000 2>/dev/null & exit 0").stderr(Sink::Null);
        let hangs = Command::new("sleep").arg("2000");
        let pipeline = fan([leaves(), hangs, leaves()]).pipe(cat());
        let output = stopped(pipeline.timeout(Duration::from_millis(200)));
        assert_eq!(output.report.reason, Reason::Timeout, "{}", output.explain());
        before.comes_back();
    }
}

alone! {
    fn none_sees_an_end_of_a_stop() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let end = dir.path().join("end");
        let reads = shell(&format!("while read -r x; do :; done; echo > {}", end.display()));
        let yes = || Command::new("yes");
        let output = stopped(fan([yes(), yes()]).pipe(reads).timeout(Duration::from_millis(100)));
        assert_eq!(output.report.reason, Reason::Timeout, "{}", output.explain());
        assert!(!end.exists());
        before.comes_back();
    }
}

#[test]
fn a_fan_at_both_ends() {
    let writes = || Command::new("seq").arg("100000");
    let count = || Command::new("wc").arg("-l");
    let pipeline = fan([writes(), writes()])
        .pipe(cat())
        .fan([count(), count()]);
    let output = pipeline.elastic(2, Overflow::default()).run().unwrap();
    assert!(output.success(), "{}", output.explain());
    assert_eq!(output.stdout_of(3).trim_ascii(), b"200000");
    assert_eq!(output.stdout_of(4).trim_ascii(), b"200000");
    let command = "{seq 100000, seq 100000} | cat | {wc -l, wc -l}";
    assert_eq!(output.report.command(), command);
}

#[test]
fn what_it_cannot_be() {
    let two = || fan([cat(), cat()]);
    for (pipeline, starts) in [
        (two(), "fan is all that there is"),
        (two().fan([cat(), cat()]), "fan has another before it"),
        (
            two().pipe_fn(copy).pipe(cat()),
            "pipe_fn has a fan before it",
        ),
        (
            two().pipe(cat()).function(0, copy),
            "pipe_fn is not between two programs",
        ),
        (
            two().pipe(cat()).elastic(1, Overflow::default()),
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
    match fan([cat().stdin(Stdin::Pipe), cat()]).pipe(cat()).spawn() {
        Err(Error::Invalid { stage, source }) => {
            assert_eq!(stage, Some(0));
            assert!(source.to_string().starts_with("stdin "), "{source}");
        }
        other => panic!("{other:?}"),
    }
    let mut child = fan([shell("echo x"), shell("echo x")])
        .pipe(cat())
        .spawn()
        .unwrap();
    assert_eq!(child.communicate("").unwrap().stdout, b"x\nx\n");
}
