//! Programs that are joined by pipes: what each stage's end means for the whole.

mod common;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use common::pipelines::{judgements, shell};
use common::{Census, child, eventually};
use procwright::pipeline::{Error, Judgement, PipelineOutput, SuccessRule};
use procwright::process::{Exit, Signal, Stop};
use procwright::{
    BoxError, Cancel, Command, Demand, Limit, Moment, Pipeline, Reason, Sink, Stdin, Watch,
};
use test_support::{alone, in_time, scaled};

use Judgement::{Collateral, Failed, Forgiven, Ignored, Success};

fn program(words: &str) -> Command<'static> {
    let mut words = words.split(' ');
    Command::new(words.next().unwrap()).args(words)
}

fn statuses(output: &PipelineOutput) -> Vec<Exit> {
    let stages = output.report.stages.iter();
    stages.map(|stage| stage.report.status).collect()
}

fn killed_by(signal: Signal) -> Exit {
    Exit::Signal {
        signal,
        core: false,
    }
}

/// The result of one that had to be stopped.
#[track_caller]
fn stopped(result: Result<PipelineOutput, Error>) -> PipelineOutput {
    match result {
        Err(Error::Stopped(output)) => *output,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_pass_from_the_first_to_the_last() {
    let data: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    for between in [0, 1, 8] {
        let cats = (0..between).map(|_| Command::new("cat"));
        let first = child(&["cat"]).stdin_bytes(data.clone());
        let pipeline = Pipeline::new([first]);
        let pipeline = cats.fold(pipeline, Pipeline::pipe);
        let output = pipeline.pipe(Command::new("cat")).run().unwrap();
        assert!(output.success() && output.stdout == data);
        assert_eq!(output.report.stages.len(), between + 2);
        assert!(statuses(&output).iter().all(|status| status.success()));
    }
}

#[test]
fn one_stage_is_a_run() {
    let output = Pipeline::new([child(&["echo", "alone"])]).run().unwrap();
    assert_eq!(
        (&output.stdout[..], output.success()),
        (&b"alone\n"[..], true)
    );
}

#[test]
fn a_reader_that_has_read_enough_is_no_alarm() {
    for _ in 0..scaled(100, 10_000) {
        let output = program("yes").pipe(program("head -1")).run().unwrap();
        assert_eq!(output.stdout, b"y\n");
        assert_eq!(judgements(&output.report), [Forgiven, Success]);
        assert_eq!(statuses(&output), [killed_by(Signal::PIPE), Exit::Code(0)]);
        assert!(output.success());
    }
}

#[test]
fn forgiveness_passes_on() {
    let stages = [
        program("yes"),
        program("cat"),
        program("cat"),
        program("head -1"),
    ];
    let output = Pipeline::new(stages).run().unwrap();
    assert_eq!(
        judgements(&output.report),
        [Forgiven, Forgiven, Forgiven, Success]
    );
    assert!(output.success());
}

#[test]
fn every_status_counts() {
    let cases: [(&str, &str, [Judgement; 2]); 5] = [
        ("false", "cat", [Failed, Success]),
        ("echo x; exit 3", "cat", [Failed, Success]),
        // What it wrote before the end of its reader was enough of it.
        ("kill -KILL $$", "cat", [Failed, Success]),
        ("true", "exit 3", [Success, Failed]),
        ("exit 4", "cat; exit 3", [Failed, Failed]),
    ];
    for (first, second, expected) in cases {
        let output = shell(first).pipe(shell(second)).run().unwrap();
        assert_eq!(judgements(&output.report), expected, "{first} | {second}");
        assert!(!output.success());
    }
}

#[test]
fn a_writer_whose_reader_has_failed_is_collateral() {
    let output = program("yes")
        .pipe(shell("read line; exit 3"))
        .run()
        .unwrap();
    assert_eq!(judgements(&output.report), [Collateral, Failed]);
    let text = output.explain();
    assert!(
        text.contains("stage 2 of 2: /bin/sh -c 'read line; exit 3' exited with code 3"),
        "{text}"
    );
    assert!(
        text.contains("stage 1 of 2: yes was killed by SIGPIPE, since the next one had failed"),
        "{text}"
    );
}

#[test]
fn what_handles_a_broken_pipe_is_forgiven_by_its_words() {
    // As a shell whose last program died of SIGPIPE, and as programs that catch the error.
    let forgiven = [
        "yes; exit $?",
        "trap '' PIPE; while echo y 2>&-; do :; done; echo 'tool: write: Broken pipe' >&2; exit 2",
        "trap '' PIPE; while echo y 2>&-; do :; done; echo 'Error: write EPIPE' >&2; exit 1",
    ];
    for line in forgiven {
        let output = shell(line).pipe(program("head -1")).run().unwrap();
        assert_eq!(
            judgements(&output.report),
            [Forgiven, Success],
            "{line}: {output:?}"
        );
    }
    let counts = "trap '' PIPE; while echo y 2>&-; do :; done; echo 'disk full' >&2; exit 1";
    let output = shell(counts).pipe(program("head -1")).run().unwrap();
    assert_eq!(judgements(&output.report), [Failed, Success]);
}

/// A FIFO in `dir`, at which one waits for the other.
fn gate(dir: &tempfile::TempDir) -> String {
    let path = dir.path().join("gate");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    path.display().to_string()
}

#[test]
fn a_writer_that_left_before_its_reader_is_not_forgiven() {
    let dies = "echo half; kill -PIPE $$";
    let lies = "echo half; echo 'Broken pipe' >&2; exit 1";
    let ends = "echo half; exit 141";
    // A reader that ends with its input is gone when the end of the writer is looked at.
    for _ in 0..scaled(30, 1_000) {
        for writer in [dies, lies, ends] {
            let output = shell(writer).pipe(program("cat")).run().unwrap();
            assert_eq!(judgements(&output.report), [Failed, Success], "{writer}");
        }
    }
    // One that is held at a gate may be there still.
    let dir = tempfile::tempdir().unwrap();
    let gate = gate(&dir);
    for writer in [dies, lies, ends] {
        let reader = shell(&format!("cat; read line < {gate}"));
        let output = std::thread::scope(|scope| {
            // Waits for the reader, which has read all then.
            scope.spawn(|| std::fs::write(&gate, "go\n").unwrap());
            shell(writer).pipe(reader).run().unwrap()
        });
        assert_eq!(judgements(&output.report), [Failed, Success], "{writer}");
    }
    // One that has closed its input before the writer goes on.
    let writer = shell(&format!("read line < {gate}; kill -PIPE $$"));
    let reader = shell(&format!("exec <&-; echo go > {gate}"));
    let output = writer.pipe(reader).run().unwrap();
    assert_eq!(judgements(&output.report), [Forgiven, Success]);
}

#[test]
fn a_stage_that_is_killed_in_the_middle_is_to_blame() {
    let stages = [
        program("yes"),
        shell("head -c 100; kill -KILL $$"),
        program("cat"),
    ];
    let output = Pipeline::new(stages).run().unwrap();
    assert_eq!(judgements(&output.report), [Collateral, Failed, Success]);
    assert_eq!(statuses(&output)[1], killed_by(Signal::KILL));
    assert_eq!(
        output.report.outcome(),
        "failed: stage 2 of 3 killed by SIGKILL"
    );
}

#[test]
fn rules_and_codes() {
    let yes_head = || program("yes").pipe(program("head -1"));
    let output = yes_head().success_rule(SuccessRule::Strict).run().unwrap();
    assert_eq!(judgements(&output.report), [Failed, Success]);
    let last = program("false")
        .pipe(program("true"))
        .success_rule(SuccessRule::Last);
    let output = last.run().unwrap();
    assert_eq!(judgements(&output.report), [Ignored, Success]);
    assert!(output.success());
    let last = program("true")
        .pipe(program("false"))
        .success_rule(SuccessRule::Last);
    assert!(!last.run().unwrap().success());
    let nothing = || {
        program("echo a")
            .pipe(program("grep b"))
            .pipe(program("cat"))
    };
    assert_eq!(
        judgements(&nothing().run().unwrap().report),
        [Success, Failed, Success]
    );
    let output = nothing().ok_codes(1, [1]).check().run().unwrap();
    assert_eq!(judgements(&output.report), [Success; 3]);
    // A code of another stage is no help.
    assert!(!nothing().ok_codes(0, [1]).run().unwrap().success());
    match nothing().check().run() {
        Err(Error::Failed(output)) => {
            assert_eq!(output.report.failed().next().unwrap().0, 1);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_stderr_is_its_own() {
    let stages = [
        shell("echo one >&2; exit 1"),
        shell("echo two >&2; cat; exit 2").limit(Limit {
            bytes: 4,
            beyond: procwright::Beyond::HeadAndTail,
        }),
        shell("echo three >&2; cat"),
    ];
    let output = Pipeline::new(stages).run().unwrap();
    assert_eq!(output.stderr, [&b"one\n"[..], b"two\n", b"three\n"]);
    let text = output.explain();
    assert!(text.contains("the end of stderr:\n      one"), "{text}");
    assert!(!text.contains("      three"), "{text}");
    // Both streams of a stage may go into its pipe.
    let both = shell("echo out; echo err >&2").stderr(Sink::Merged);
    let output = both.pipe(program("cat")).run().unwrap();
    assert_eq!(output.stdout, b"out\nerr\n");
}

#[test]
fn the_one_that_holds_up_the_rest_is_named() {
    let soon = Duration::from_millis(300);
    let kill = Stop::kill();
    // The one in the middle neither reads nor writes.
    let (limit, output) = in_time(soon, |limit| {
        let stages = [program("yes"), program("sleep 1000"), program("cat")];
        let output = stopped(Pipeline::new(stages).timeout(limit).stop(kill).run());
        assert_eq!(output.report.reason, Reason::Timeout);
        // The first has filled its pipe by then.
        let is_held_up = judgements(&output.report) == [Collateral, Failed, Collateral];
        is_held_up.then_some((limit.as_secs_f64(), output))
    });
    let text = output.explain();
    assert!(
        text.contains("stage 2 of 3 held up the rest: sleep 1000"),
        "{text}"
    );
    assert!(
        text.starts_with(&format!("yes | sleep 1000 | cat timed out after {limit} s")),
        "{text}"
    );
    // One that never writes holds up those that wait for it.
    let stages = [program("sleep 1000"), program("cat"), program("cat")];
    let output = stopped(Pipeline::new(stages).timeout(soon).stop(kill).run());
    assert_eq!(judgements(&output.report), [Failed, Collateral, Collateral]);
    // One that ignores the error of its writes goes on for ever, and its reader has ended well.
    let output = in_time(soon, |limit| {
        let immortal = shell("trap '' PIPE; while :; do echo y; sleep 0.01; done 2>&-");
        let run = immortal.pipe(program("head -1")).timeout(limit).stop(kill);
        let output = stopped(run.run());
        let is_over = statuses(&output)[1] == Exit::Code(0);
        is_over.then_some(output)
    });
    assert_eq!(judgements(&output.report), [Failed, Success]);
    assert_eq!(output.stdout, b"y\n");
    assert_eq!(output.report.stages[1].report.reason, Reason::Finished);
}

#[test]
fn silence_and_limits_of_a_stage_stop_all() {
    let soon = Duration::from_millis(300);
    let silent = program("sleep 1000").pipe(program("cat"));
    let output = stopped(silent.idle_timeout(soon).run());
    assert_eq!(output.report.reason, Reason::IdleTimeout);
    // What a stage says on stderr is no silence: it talks for longer than the limit. A machine
    // that stands still for so long is given another chance.
    let limit = Duration::from_secs(1);
    let talks = || {
        let talks = shell("i=0; while [ $i -lt 13 ]; do i=$((i+1)); echo $i >&2; sleep 0.1; done");
        let output = talks.pipe(program("cat")).idle_timeout(limit).run();
        let output = output.ok().filter(PipelineOutput::success)?;
        Some(output.report.duration)
    };
    let duration = (0..10).find_map(|_| talks()).expect("stderr is a sound");
    assert!(duration > limit);
    // Too much of one.
    let too_much = program("yes").pipe(program("cat").limit(Limit {
        bytes: 1000,
        beyond: procwright::Beyond::Fail,
    }));
    let output = stopped(too_much.run());
    assert_eq!(output.report.reason, Reason::OutputLimit);
    assert_eq!(judgements(&output.report)[1], Failed);
    // The time of one.
    let own = program("yes").pipe(program("sleep 1000").timeout(soon));
    let output = stopped(own.run());
    assert_eq!(judgements(&output.report), [Collateral, Failed]);
    assert!(output.report.outcome().starts_with("timed out after 0.3 s"));
    // Which is not that of the other.
    let reasons = output.report.stages.iter().map(|one| one.report.reason);
    assert!(reasons.eq([Reason::Cancelled, Reason::Timeout]));
}

#[test]
fn a_cancel_stops_all() {
    let cancel = Cancel::new().unwrap();
    let other = cancel.clone();
    let says = child(&["sleep-forever", "--print-ready"]).on_stderr_line(|_| Ok(()));
    let last = program("cat").on_stdout_line(move |line| {
        assert!(line.starts_with(b"ready "));
        other.cancel();
        Ok(())
    });
    let output = stopped(says.pipe(last).cancel_on(&cancel).run());
    assert_eq!(output.report.reason, Reason::Cancelled);
    assert_eq!(judgements(&output.report)[0], Collateral);
    let refused = program("true")
        .pipe(program("true"))
        .cancel_on(&cancel)
        .run();
    assert!(
        matches!(refused, Err(Error::Cancelled { .. })),
        "{refused:?}"
    );
}

#[test]
fn callbacks_of_stages_are_called_and_their_errors_stop_all() {
    let fails = program("cat").on_stdout_line(|_| Err("no more".into()));
    let result = program("yes").pipe(fails).run();
    match result {
        Err(Error::Foreign {
            stage,
            source,
            output,
            ..
        }) => {
            assert_eq!((stage, source.to_string()), (Some(1), "no more".to_owned()));
            assert_eq!(output.report.reason, Reason::Cancelled);
        }
        other => panic!("{other:?}"),
    }
    let producer = program("cat").stdin_iter([Ok(b"a".as_slice().into()), Err("broken".into())]);
    let result = producer.pipe(program("cat")).run();
    match result {
        Err(Error::Foreign { stage, .. }) => assert_eq!(stage, Some(0)),
        other => panic!("{other:?}"),
    }
}

/// Stops all at the first byte, and without grace at the second.
struct Bell(std::io::PipeReader);

impl Watch for Bell {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn ready(&mut self, moment: Moment<'_>) -> Result<Demand, BoxError> {
        use std::io::Read as _;
        self.0.read_exact(&mut [0])?;
        Ok(match moment.stopping {
            false => Demand::Stop,
            true => Demand::Kill,
        })
    }
}

#[test]
fn a_watch_ends_the_whole_and_its_grace() {
    use std::io::Write as _;
    let (bell, mut ring) = std::io::pipe().unwrap();
    ring.write_all(b"12").unwrap();
    let never = Stop::new().with_grace(Duration::from_secs(1000));
    let ignores = || child(&["ignore-term", "--print-ready"]);
    let output = stopped(
        Pipeline::new([ignores(), child(&["ignore-term"])])
            .stop(never)
            .watch(Bell(bell))
            .run(),
    );
    assert_eq!(output.report.reason, Reason::Cancelled);
    for stage in &output.report.stages {
        assert!(matches!(stage.report.status, Exit::Signal { .. }));
    }
}

#[test]
fn what_stages_leave_behind_is_stopped_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let leaves = shell(&format!(
        "sleep 1000 >/dev/null 2>&1 & echo $! > {}; echo ready; wait",
        pid.display()
    ));
    let cancel = Cancel::new().unwrap();
    let other = cancel.clone();
    let last = program("cat").on_stdout_line(move |_| {
        other.cancel();
        Ok(())
    });
    stopped(leaves.pipe(last).cancel_on(&cancel).run());
    let left: i32 = std::fs::read_to_string(pid)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    eventually(|| !test_support::lives(left));
}

#[test]
fn a_stop_is_no_end_of_input() {
    let dir = tempfile::tempdir().unwrap();
    let committed = dir.path().join("committed");
    let loads = format!(
        "read line; echo $line; read line; echo all > {}",
        committed.display()
    );
    // It takes a while to signal those of one tree, its program first.
    let many = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); sleep 1000 >/dev/null 2>&1 & done; \
                echo ready; wait";
    for _ in 0..scaled(10, 100) {
        let cancel = Cancel::new().unwrap();
        let other = cancel.clone();
        let loader = shell(&loads).on_stdout_line(move |_| {
            other.cancel();
            Ok(())
        });
        let output = stopped(shell(many).pipe(loader).cancel_on(&cancel).run());
        assert_eq!(statuses(&output)[1], killed_by(Signal::TERM));
        assert!(!committed.exists(), "half of the input was taken for all");
    }
}

#[test]
fn the_heir_of_a_stage_that_is_over_is_found_by_its_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let leaves = format!("sleep 4321 2>/dev/null & echo $! > {}", pid.display());
    let run = || {
        let pipeline = shell(&leaves).pipe(program("cat"));
        stopped(pipeline.timeout(Duration::from_millis(500)).run())
    };
    let is_over =
        |output: &PipelineOutput| output.report.stages[0].report.reason == Reason::Finished;
    // On a busy machine the first may not be over when the time is.
    let output = (0..20).map(|_| run()).find(is_over).unwrap();
    let left = std::fs::read_to_string(pid).unwrap();
    let left: i32 = left.trim().parse().unwrap();
    eventually(|| !test_support::lives(left));
    let text = output.explain();
    assert!(text.contains(&format!("sleep (pid {left})")), "{text}");
}

#[test]
fn values_are_refused_by_the_stage_that_has_them() {
    let cat = || program("cat");
    let refused = |pipeline: Pipeline<'_>, stage: Option<usize>, what: &str| match pipeline.run() {
        Err(Error::Invalid { stage: of, source }) => {
            assert_eq!(of, stage, "{source}");
            assert!(source.to_string().starts_with(what), "{source}");
        }
        other => panic!("{what}: {other:?}"),
    };
    refused(Pipeline::new([]), None, "stages");
    refused(cat().pipe(cat().stdin_bytes("x")), Some(1), "stdin");
    refused(cat().pipe(cat().stdin(Stdin::Inherit)), Some(1), "stdin");
    refused(cat().stdout(Sink::Null).pipe(cat()), Some(0), "stdout");
    refused(cat().pipe(cat()).ok_codes(2, [1]), None, "ok_codes");
    refused(cat().pipe(Command::new("")), Some(1), "argv");
    let size = procwright::terminal::Size {
        rows: 24,
        columns: 80,
    };
    refused(cat().pipe(cat().pty(size)), Some(1), "pty");
    refused(cat().input_wanted().pipe(cat()), Some(0), "input_wanted");
    refused(
        cat().adopts_orphans().pipe(cat()),
        Some(0),
        "adopts_orphans",
    );
    refused(
        cat().on_stdout_line(|_| Ok(())).pipe(cat()),
        Some(0),
        "a callback",
    );
    let silent = || cat().stderr(Sink::Null);
    let nothing = silent().pipe(silent().stdout(Sink::Null));
    refused(
        nothing.idle_timeout(Duration::from_secs(1)),
        None,
        "idle_timeout",
    );
}

alone! {
    fn nothing_is_held_while_stages_run_and_nothing_is_left() {
        let before = Census::now();
        let ends = |_: &()| {
            let fds = test_support::fds();
            // Two captured outputs at the most, and neither end of a joint.
            fds.iter().filter(|fd| fd.contains("pipe:")).count()
        };
        let at_most = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let seen = Arc::clone(&at_most);
        let piped_before = ends(&());
        let last = program("cat").stderr(Sink::Null).on_stdout_line(move |_| {
            seen.fetch_max(ends(&()), std::sync::atomic::Ordering::SeqCst);
            Ok(())
        });
        let quiet = |words| program(words).stderr(Sink::Null);
        let stages = [quiet("yes"), quiet("cat"), quiet("head -3")];
        let output = Pipeline::new(stages).pipe(last).run().unwrap();
        assert!(output.success());
        let piped = at_most.load(std::sync::atomic::Ordering::SeqCst) - piped_before;
        assert_eq!(piped, 1, "stdout of the last stage");
        before.comes_back();
    }
}
