//! A function of the caller's between two programs of a pipeline.

mod common;

use std::error::Error as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use common::Census;
use common::pipelines::{copy, shell};
use procwright::pipeline::Judgement::{Collateral, Failed, Forgiven, Success};
use procwright::pipeline::{
    Error, FunctionEnd, Judgement, PipelineOutput, PipelineReport, StageInput, StageOutput,
    SuccessRule,
};
use procwright::process::Stop;
use procwright::stream::{Closed, Framing, LineItem, LineReader, Patience};
use procwright::{BoxError, Cancel, Command, Foreign, Overflow, Pipeline, Reason, Stdin};
use test_support::alone;

const ECANCELED: i32 = rustix::io::Errno::CANCELED.raw_os_error();

fn judgements(report: &PipelineReport) -> Vec<Judgement> {
    report.stages.iter().map(|stage| stage.judgement).collect()
}

/// What became of the function behind the first stage.
#[track_caller]
fn function(report: &PipelineReport) -> (FunctionEnd, Judgement) {
    let function = report.stages[0].function.unwrap();
    (function.end, function.judgement)
}

#[track_caller]
fn stopped(pipeline: Pipeline<'_>) -> PipelineOutput {
    match pipeline.run() {
        Err(Error::Stopped(output)) => *output,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_reads_the_one_and_writes_to_the_other() {
    let upper = |input: &mut StageInput, output: &mut StageOutput| {
        for line in BufReader::new(input).lines() {
            writeln!(output, "{}", line?.to_uppercase())?;
        }
        Ok(())
    };
    let output = shell("printf 'pear\\napple\\n'")
        .pipe_fn(upper)
        .pipe(Command::new("sort"))
        .pipe_fn(copy)
        .pipe(Command::new("cat"))
        .check()
        .run()
        .unwrap();
    assert_eq!(output.stdout, b"APPLE\nPEAR\n");
    assert_eq!(function(&output.report), (FunctionEnd::Returned, Success));
    assert_eq!(
        output.report.stages[1].function,
        output.report.stages[0].function
    );
    assert!(output.report.stages[2].function.is_none());
}

#[test]
fn volume_comes_through_whole() {
    let output = Command::new("seq")
        .arg("1000000")
        .pipe_fn(copy)
        .pipe(Command::new("cat"))
        .run()
        .unwrap();
    let expected: String = (1..=1_000_000).map(|n| format!("{n}\n")).collect();
    assert!(output.stdout == expected.as_bytes());
    assert!(output.success());
}

/// A reader that leaves a file if it sees an end, and its file.
fn witness(dir: &tempfile::TempDir) -> (Command<'static>, std::path::PathBuf) {
    let file = dir.path().join("seen");
    let line = format!("cat > /dev/null; : > {}", file.display());
    (shell(&line), file)
}

#[test]
fn its_error_stops_all_before_the_next_sees_an_end() {
    let dir = tempfile::tempdir().unwrap();
    for panics in [false, true] {
        let (reader, seen) = witness(&dir);
        let fails = move |input: &mut StageInput, output: &mut StageOutput| {
            let mut half = [0; 5];
            input.read_exact(&mut half)?;
            output.write_all(&half)?;
            match panics {
                true => panic!("on purpose"),
                false => Err("no such word".into()),
            }
        };
        let error = shell("echo half; exec sleep 1000")
            .pipe_fn(fails)
            .pipe(reader)
            .run()
            .unwrap_err();
        let text = error.to_string();
        let Error::Foreign {
            what: Foreign::Function,
            stage: Some(0),
            output,
            ..
        } = error
        else {
            panic!("{text}")
        };
        let why = if panics {
            "the function panicked"
        } else {
            "no such word"
        };
        assert!(text.starts_with("the function for the output of ") && text.ends_with(why));
        assert_eq!(function(&output.report), (FunctionEnd::Failed, Failed));
        assert_eq!(judgements(&output.report), [Collateral, Collateral]);
        assert_eq!(output.report.reason, Reason::Cancelled);
        assert!(!output.success() && !seen.exists());
    }
}

#[test]
fn who_writes_what_nobody_reads_is_forgiven() {
    let pipeline = || {
        Command::new("yes")
            .pipe_fn(copy)
            .pipe(Command::new("head").arg("-1"))
    };
    let output = pipeline().run().unwrap();
    assert_eq!(output.stdout, b"y\n");
    assert!(output.success());
    assert_eq!(judgements(&output.report), [Forgiven, Success]);
    assert_eq!(
        function(&output.report),
        (FunctionEnd::BrokenPipe, Forgiven)
    );
    let output = pipeline().success_rule(SuccessRule::Strict).run().unwrap();
    assert!(!output.success());
    assert_eq!(function(&output.report), (FunctionEnd::BrokenPipe, Failed));
    let text = output.explain();
    assert!(
        text.contains("the function behind stage 1 of 2 wrote what nobody reads"),
        "{text}"
    );
}

#[test]
fn a_program_is_forgiven_whose_function_has_read_enough() {
    let output = Command::new("yes")
        .pipe_fn(|input, output| {
            let mut line = [0; 2];
            input.read_exact(&mut line)?;
            Ok(output.write_all(&line)?)
        })
        .pipe(Command::new("cat"))
        .run()
        .unwrap();
    assert_eq!(output.stdout, b"y\n");
    assert!(output.success(), "{}", output.explain());
    assert_eq!(judgements(&output.report), [Forgiven, Success]);
    assert_eq!(function(&output.report), (FunctionEnd::Returned, Success));
}

#[test]
fn it_is_collateral_of_the_next_that_fails() {
    let output = Command::new("yes")
        .pipe_fn(copy)
        .pipe(shell("read line; exit 3"))
        .run()
        .unwrap();
    assert_eq!(judgements(&output.report), [Collateral, Failed]);
    assert_eq!(
        function(&output.report),
        (FunctionEnd::BrokenPipe, Collateral)
    );
}

#[test]
fn a_stop_is_no_end_of_its_input() {
    let cancel = Cancel::new().unwrap();
    let (saw, seen) = channel();
    let caller = cancel.clone();
    let reads = move |input: &mut StageInput, _: &mut StageOutput| {
        let mut half = [0; 5];
        input.read_exact(&mut half)?;
        caller.cancel();
        let mut rest = Vec::new();
        let read = input.read_to_end(&mut rest);
        let again = input.read(&mut half);
        saw.send((read.map_err(|e| e.raw_os_error()), again.is_err()))?;
        Ok(())
    };
    let dir = tempfile::tempdir().unwrap();
    let (reader, file) = witness(&dir);
    let output = stopped(
        shell("echo half; exec sleep 1000")
            .pipe_fn(reads)
            .pipe(reader)
            .cancel_on(&cancel),
    );
    assert_eq!(seen.recv(), Ok((Err(Some(ECANCELED)), true)));
    assert_eq!(output.report.reason, Reason::Cancelled);
    // Also of one that takes no notice of it.
    assert_eq!(function(&output.report), (FunctionEnd::Returned, Success));
    assert!(!file.exists());
}

fn copy_by_streams(input: &mut StageInput, output: &mut StageOutput) -> Result<(), BoxError> {
    io::copy(&mut input.reader()?, &mut output.writer()?)?;
    Ok(())
}

#[test]
fn its_reader_and_writer_are_its_streams() {
    let output = Command::new("cat")
        .stdin(Stdin::Bytes(vec![7; 3 << 20].into()))
        .pipe_fn(copy_by_streams)
        .pipe(Command::new("cat"))
        .run()
        .unwrap();
    assert_eq!(output.stdout, vec![7; 3 << 20]);
    // A write that nobody reads is known to be one.
    let output = Command::new("yes")
        .pipe_fn(copy_by_streams)
        .pipe(Command::new("head").arg("-1"))
        .run()
        .unwrap();
    assert_eq!(
        function(&output.report),
        (FunctionEnd::BrokenPipe, Forgiven)
    );
}

#[test]
fn its_reader_and_writer_are_closed_with_it() {
    let (keep, kept) = channel();
    let output = Command::new("yes")
        .pipe_fn(move |input, output| {
            // A close of its own does not let the next program see an end before it returns.
            output.writer()?.close();
            keep.send((input.reader()?, output.writer()?))?;
            Ok(writeln!(output, "last")?)
        })
        .pipe(Command::new("cat"))
        .run()
        .unwrap();
    assert_eq!(output.stdout, b"last\n");
    let (mut reader, mut writer) = kept.recv().unwrap();
    assert!(Closed::is(&reader.read(&mut [0]).unwrap_err()));
    assert!(Closed::is(&writer.write(&[0]).unwrap_err()));
}

/// The most descriptors of this process that are of one pipe.
fn most_of_one_pipe() -> usize {
    let mut counts = std::collections::BTreeMap::new();
    for fd in std::fs::read_dir("/proc/self/fd").unwrap() {
        // One may have been closed meanwhile.
        if let Ok(link) = std::fs::read_link(fd.unwrap().path())
            && link.to_string_lossy().starts_with("pipe:")
        {
            *counts.entry(link).or_insert(0) += 1;
        }
    }
    counts.into_values().max().unwrap_or(0)
}

#[test]
#[cfg(target_os = "linux")]
fn a_reader_or_writer_that_was_dropped_keeps_no_descriptor() {
    let output = Command::new("echo")
        .arg("word")
        .pipe_fn(|input, output| {
            for _ in 0..200 {
                drop((input.reader()?, output.writer()?));
            }
            writeln!(output, "{}", most_of_one_pipe())?;
            copy(input, output)
        })
        .pipe(Command::new("cat"))
        .run()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (most, rest) = text.split_once('\n').unwrap();
    assert!(most.parse::<usize>().unwrap() < 100, "{most}");
    assert_eq!(rest, "word\n");
}

#[test]
fn a_stop_is_no_end_of_its_reader_nor_of_a_line() {
    let cancel = Cancel::new().unwrap();
    let (saw, seen) = channel();
    let caller = cancel.clone();
    let reads = move |input: &mut StageInput, output: &mut StageOutput| {
        let lines = LineReader::new(input.reader()?, Framing::default())?;
        let next = || lines.next_line(Patience::NEVER_ENDING);
        let first = next()?;
        caller.cancel();
        let errno = |error: io::Error| error.raw_os_error();
        let rest = [next(), next()].map(|read| read.map_err(errno));
        // Cut, which is once the programs are gone.
        while !lines.is_closed() {
            std::thread::yield_now();
        }
        let writer = output.writer()?;
        let writes = [writer.check(), (&writer).write(b"x").map(drop)];
        saw.send((
            first,
            rest,
            next().map_err(errno),
            writes.map(|one| one.map_err(errno)),
        ))?;
        Ok(())
    };
    let output = stopped(
        shell("printf 'one\\nha'; exec sleep 1000")
            .pipe_fn(reads)
            .pipe(Command::new("cat"))
            .cancel_on(&cancel),
    );
    let cut = Err(Some(ECANCELED));
    let (first, rest, then, writes) = seen.recv().unwrap();
    assert_eq!(first, Some(LineItem::from("one")));
    assert_eq!(rest, [cut.clone(), cut.clone()]);
    assert_eq!(then, cut);
    assert_eq!(writes, [Err(Some(ECANCELED)), Err(Some(ECANCELED))]);
    assert_eq!(output.report.reason, Reason::Cancelled);
}

#[test]
fn at_a_deadline_one_that_waits_comes_out_and_who_holds_it_up_is_named() {
    let output = stopped(
        Command::new("sleep")
            .arg("1000")
            .pipe_fn(copy)
            .pipe(Command::new("cat"))
            .timeout(Duration::from_millis(300)),
    );
    assert_eq!(
        function(&output.report),
        (FunctionEnd::Cancelled, Collateral)
    );
    assert_eq!(judgements(&output.report), [Failed, Collateral]);
}

#[test]
fn at_a_deadline_one_that_is_slow_is_named() {
    // Twice as long if the machine did not get there in that time.
    let mut timeout = Duration::from_millis(500);
    loop {
        let has_read = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&has_read);
        let slow = move |input: &mut StageInput, _: &mut StageOutput| {
            // A byte at a time, and `yes` fills its pipe at once.
            let mut byte = [0];
            loop {
                input.read_exact(&mut byte)?;
                theirs.store(true, Ordering::SeqCst);
            }
        };
        let pipeline = Command::new("yes").pipe_fn(slow).pipe(Command::new("cat"));
        let output = stopped(pipeline.timeout(timeout));
        timeout *= 2;
        let yes_waits = judgements(&output.report) == [Collateral, Collateral];
        if !has_read.load(Ordering::SeqCst) || !yes_waits {
            assert!(timeout < Duration::from_secs(60), "{}", output.explain());
            continue;
        }
        assert_eq!(function(&output.report), (FunctionEnd::Cancelled, Failed));
        let text = output.explain();
        assert!(
            text.contains("the function behind stage 1 of 2 held up the rest"),
            "{text}"
        );
        break;
    }
}

#[test]
fn one_that_does_not_come_out_is_left_and_named() {
    let (release, released) = channel::<()>();
    let (saw, seen) = channel();
    let stuck = move |input: &mut StageInput, _: &mut StageOutput| {
        let _ = released.recv();
        let read = input.read(&mut [0]);
        saw.send(read.map_err(|error| error.raw_os_error()))?;
        Ok(())
    };
    let output = stopped(
        Command::new("yes")
            .pipe_fn(stuck)
            .pipe(Command::new("cat"))
            .stop(Stop::kill())
            .timeout(Duration::from_millis(100)),
    );
    assert_eq!(function(&output.report), (FunctionEnd::Running, Failed));
    let text = output.explain();
    assert!(
        text.contains("the function behind stage 1 of 2 has not returned, and its thread goes on"),
        "{text}"
    );
    // Its streams are cut all the same.
    release.send(()).unwrap();
    assert_eq!(seen.recv(), Ok(Err(Some(ECANCELED))));
}

#[test]
fn it_is_not_called_if_a_program_cannot_be_started() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let was_called = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&was_called);
    let (gone, is_gone) = channel::<()>();
    let called = move |_: &mut StageInput, _: &mut StageOutput| {
        let _held = &gone;
        theirs.store(true, Ordering::SeqCst);
        Ok(())
    };
    let error = Command::new(&script)
        .pipe_fn(called)
        .pipe(Command::new("cat"))
        .run()
        .unwrap_err();
    assert!(matches!(error, Error::Spawn { stage: 0, .. }), "{error}");
    // The thread has gone, with what the function had.
    assert!(is_gone.recv().is_err());
    assert!(!was_called.load(Ordering::SeqCst));
}

#[test]
fn it_stands_between_two_programs_and_alone() {
    let cat = || Command::new("cat");
    for (pipeline, words) in [
        (cat().pipe_fn(copy), "not between two programs"),
        (
            Pipeline::new([]).pipe_fn(copy).pipe(cat()),
            "not between two programs",
        ),
        (
            cat().pipe_fn(copy).pipe_fn(copy).pipe(cat()),
            "another function before it",
        ),
        (
            cat()
                .pipe_fn(copy)
                .pipe(cat())
                .elastic(0, Overflow::default()),
            "elastic buffer",
        ),
    ] {
        match pipeline.run() {
            Err(Error::Invalid {
                stage: None,
                source,
            }) => assert!(source.to_string().contains(words), "{source}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn one_that_is_spawned_is_talked_to_through_it() {
    let first = Command::new("cat").stdin(Stdin::Pipe);
    let reversed = |input: &mut StageInput, output: &mut StageOutput| {
        for line in BufReader::new(input).lines() {
            let line: String = line?.chars().rev().collect();
            writeln!(output, "{line}")?;
        }
        Ok(())
    };
    let mut child = first
        .pipe_fn(reversed)
        .pipe(Command::new("cat"))
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for (said, heard) in [("pear\n", "raep\n"), ("fig\n", "gif\n")] {
        stdin.write_all(said.as_bytes()).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, heard);
    }
    drop(stdin);
    let report = child.wait(None).unwrap().unwrap();
    assert!(report.success());
    assert_eq!(function(report), (FunctionEnd::Returned, Success));
}

#[test]
fn its_error_comes_out_of_one_that_is_spawned() {
    let mut child = Command::new("yes")
        .pipe_fn(|_, _| Err(io::Error::other("no such word").into()))
        .pipe(Command::new("cat"))
        .spawn()
        .unwrap();
    let error = child.communicate(&b""[..]).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Foreign {
                what: Foreign::Function,
                stage: Some(0),
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.source().unwrap().to_string(), "no such word");
}

alone! {
    fn nothing_is_left_of_many() {
        let round = |n: usize| {
            let fails = n.is_multiple_of(3);
            let function = move |input: &mut StageInput, output: &mut StageOutput| match fails {
                true => Err("on purpose".into()),
                false => copy(input, output),
            };
            let last = if n.is_multiple_of(2) { "head -1" } else { "cat" };
            let ran = shell("echo one; echo two").pipe_fn(function).pipe(shell(last)).run();
            assert_eq!(ran.is_err(), fails);
        };
        let before = Census::now();
        (0..300).for_each(round);
        before.comes_back();
    }
}
