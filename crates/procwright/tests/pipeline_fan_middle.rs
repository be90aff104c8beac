//! Several programs in the middle of a pipeline: each gets all, and the next one the lines of all.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use common::Census;
use common::pipelines::{cat, copy, judgements, shell, stopped};
use procwright::pipeline::Error;
use procwright::pipeline::Judgement::{Collateral, Failed, Forgiven, Success};
use procwright::process::Stop;
use procwright::{Command, Overflow, Pipeline, Reason, Sink, Stdin};
use test_support::{alone, watchdog};

alone! {
    fn each_gets_all_and_the_next_one_the_lines_of_all() {
        let before = Census::now();
        let numbers = || Command::new("seq").arg("200000");
        let slow = || shell("head -c 1; dd bs=777 count=100 status=none; cat");
        for overflow in [None, Some(Overflow::Block { memory: 4 << 10 }), Some(Overflow::default())] {
            let pipeline = numbers().fan([cat(), slow(), cat()]);
            let pipeline = match overflow {
                Some(overflow) => pipeline.elastic(0, overflow),
                None => pipeline,
            };
            let count = Command::new("uniq").arg("-c");
            let sorted = pipeline.pipe(Command::new("sort").arg("-n")).pipe(count);
            let output = sorted.pipe(Command::new("grep").args(["-c", "^ *3 "])).run().unwrap();
            assert!(output.success(), "{}", output.explain());
            assert_eq!(output.stdout, b"200000\n");
            for stage in 1..4 {
                let figures = output.report.stages[stage].fan.unwrap();
                assert_eq!((figures.bytes_in, figures.bytes_out), (1_288_895, 1_288_895));
            }
            assert!(output.report.stages[4].fan.is_none() && output.beside.is_empty());
            let command = output.report.command();
            assert!(command.starts_with("seq 200000 | {cat, "), "{command}");
            assert!(command.ends_with(", cat} | sort -n | uniq -c | grep -c '^ *3 '"), "{command}");
            before.comes_back();
        }
    }
}

#[test]
fn a_line_that_is_long_in_one_of_them_holds_up_no_other() {
    let _watchdog = watchdog("a_line_that_is_long_in_one_of_them_holds_up_no_other");
    // Neither the queue of the second nor its pipe has room for all that the first needs to end its
    // line: it waits for nobody all the same.
    let writes = || Command::new("seq").arg("1000000");
    let one_line = || Command::new("tr").args(["\\n", " "]);
    let output = writes()
        .fan([one_line(), cat()])
        .pipe(Command::new("wc").arg("-lc"))
        .check()
        .run()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let counts: Vec<u64> = text
        .split_whitespace()
        .map(|count| count.parse().unwrap())
        .collect();
    // The last one of them is whole without an end, or gets one.
    assert!([1_000_000, 1_000_001].contains(&counts[0]), "{text}");
    assert_eq!(counts[1], 2 * 6_888_896 + counts[0] - 1_000_000, "{text}");
    // Both at once.
    let output = writes()
        .fan([one_line(), one_line(), one_line()])
        .pipe(Command::new("wc").arg("-c"))
        .check();
    let output = output.run().unwrap();
    assert_eq!(output.stdout.trim_ascii(), b"20666690");
}

alone! {
    fn a_line_that_is_too_long_is_an_error_of_the_whole() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let end = dir.path().join("end");
        let zeros = Command::new("cat").arg("/dev/zero");
        let reads = shell(&format!("cat >/dev/null; echo > {}", end.display()));
        let result = zeros.fan([cat(), cat()]).pipe(reads).stop(Stop::kill()).run();
        let Err(Error::Io { stage, source, output, .. }) = result else { panic!("{result:?}") };
        assert_eq!(stage, Some(1), "{source}");
        assert!(source.to_string().starts_with("a line of more than 16777216 bytes"), "{source}");
        assert_eq!(output.report.reason, Reason::Cancelled);
        assert!(!end.exists());
        before.comes_back();
    }
}

#[test]
fn one_that_leaves_or_fails_ends_no_other() {
    let numbers = || Command::new("seq").arg("100000");
    let count = || Command::new("wc").arg("-l");
    let head = Command::new("head").arg("-2");
    let output = numbers().fan([head, cat()]).pipe(count()).run().unwrap();
    assert!(output.success(), "{}", output.explain());
    assert_eq!(output.stdout.trim_ascii(), b"100002");
    let dies = || shell("read x; echo $x; kill -KILL $$");
    let output = numbers().fan([cat(), dies()]).pipe(count()).run().unwrap();
    assert_eq!(
        judgements(&output.report),
        [Success, Success, Failed, Success]
    );
    assert_eq!(output.stdout.trim_ascii(), b"100001");
    // All of them.
    let output = Command::new("yes").fan([dies(), dies()]).pipe(count());
    let output = output.run().unwrap();
    assert_eq!(
        judgements(&output.report),
        [Collateral, Failed, Failed, Success]
    );
    assert_eq!(output.stdout.trim_ascii(), b"2");
}

#[test]
fn all_before_one_that_has_read_enough_are_forgiven() {
    let of = |reader| {
        let output = Command::new("yes").fan([cat(), cat()]).pipe(reader).run();
        judgements(&output.unwrap().report)
    };
    let head = Command::new("head").arg("-1");
    assert_eq!(of(head), [Forgiven, Forgiven, Forgiven, Success]);
    let fails = shell("read x; exit 3");
    assert_eq!(of(fails), [Collateral, Collateral, Collateral, Failed]);
}

alone! {
    fn the_one_that_holds_up_the_rest_is_named() {
        let before = Census::now();
        let sleep = || Command::new("sleep").arg("1000");
        let yes = || Command::new("yes");
        let quiet = || cat().stdout(Sink::Null);
        for (make, expected) in [
            // One that does not read, with what it holds up.
            (
                (|sleep, yes, quiet| yes.fan([cat(), sleep]).pipe(quiet)) as fn(_, Command<'static>, _) -> Pipeline<'static>,
                [Collateral, Collateral, Failed, Collateral],
            ),
            // The one behind them.
            (|sleep, yes, _| yes.fan([cat(), cat()]).pipe(sleep), [Collateral, Collateral, Collateral, Failed]),
            // The one before them.
            (|sleep: Command<'static>, _, quiet| sleep.fan([cat(), cat()]).pipe(quiet), [Failed, Collateral, Collateral, Collateral]),
        ] {
            let mut timeout = Duration::from_millis(200);
            loop {
                let pipeline = make(sleep(), yes(), quiet()).timeout(timeout).stop(Stop::kill());
                let output = stopped(pipeline);
                let text = output.explain();
                assert_eq!(output.report.reason, Reason::Timeout, "{text}");
                before.comes_back();
                if judgements(&output.report) == expected {
                    break;
                }
                timeout *= 2;
                assert!(timeout < Duration::from_secs(60), "{text}");
            }
        }
    }
}

alone! {
    fn a_stop_ends_all_and_none_sees_an_end_of_it() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let ends = ["a", "b", "c"].map(|name| dir.path().join(name));
        let reads = |place: usize| {
            let end = ends[place].display();
            shell(&format!("while read -r x; do echo $x; done; echo > {end}"))
        };
        let pipeline = Command::new("yes").fan([reads(0), reads(1)]).pipe(reads(2).stdout(Sink::Null));
        let output = stopped(pipeline.timeout(Duration::from_millis(200)));
        assert_eq!(output.report.reason, Reason::Timeout, "{}", output.explain());
        for end in &ends {
            assert!(!end.exists(), "{}", end.display());
        }
        before.comes_back();
    }
}

alone! {
    fn several_places_and_functions_between_them() {
        let before = Census::now();
        let two = || [cat(), cat()];
        let pipeline = Pipeline::new([]).fan(two().map(|one| one.stdin_bytes("x\n"))).pipe(cat());
        let pipeline = pipeline.pipe_fn(copy).pipe(cat()).fan(two()).pipe(cat()).fan(two());
        let output = pipeline.check().run().unwrap();
        assert_eq!(output.stdout, b"x\nx\nx\nx\n");
        assert_eq!(output.stdout_of(7), output.stdout);
        assert_eq!(output.report.command(), "{cat, cat} | cat | cat | {cat, cat} | cat | {cat, cat}");
        before.comes_back();
    }
}

#[test]
fn one_that_is_held_is_talked_to() {
    let upper = || Command::new("sed").args(["-u", "s/.*/\\U&/"]);
    let same = || Command::new("sed").arg("-u").arg("");
    let first = cat().stdin(Stdin::Pipe);
    let mut child = first.fan([upper(), same()]).pipe(cat()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        writeln!(stdin, "pear").unwrap();
        let mut heard = [String::new(), String::new()];
        for line in &mut heard {
            stdout.read_line(line).unwrap();
        }
        heard.sort_unstable();
        assert_eq!(heard, ["PEAR\n", "pear\n"]);
    }
    drop(stdin);
    assert!(child.wait(None).unwrap().unwrap().success());
}

#[test]
fn what_it_cannot_be() {
    let two = || cat().fan([cat(), cat()]);
    for (pipeline, starts) in [
        (
            two().pipe_fn(copy).pipe(cat()),
            "pipe_fn has a fan before it",
        ),
        (
            cat().pipe_fn(copy).fan([cat(), cat()]).pipe(cat()),
            "pipe_fn has a fan behind it",
        ),
        (
            two().pipe(cat()).function(1, copy),
            "pipe_fn is not between two programs",
        ),
        (
            two().fan([cat(), cat()]).pipe(cat()),
            "fan has another before it",
        ),
        (
            two().pipe(cat()).elastic(2, Overflow::default()),
            "elastic is behind stage 2 of 4, which is one of a fan",
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
    let own = cat().stdout(Sink::Null);
    for (pipeline, place) in [
        (cat().fan([own, cat()]).pipe(cat()), 1),
        (
            cat().fan([cat(), cat().stdin(Stdin::Inherit)]).pipe(cat()),
            2,
        ),
    ] {
        match pipeline.run() {
            Err(Error::Invalid { stage, .. }) => assert_eq!(stage, Some(place)),
            other => panic!("{other:?}"),
        }
    }
}
