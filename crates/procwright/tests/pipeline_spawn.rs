//! Pipelines that a caller holds while they go on.
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::sys::refusals::Refusals;
use common::{Census, figure, scaled, sys, timed};
use procwright::pipeline::{Error, Judgement, PipelineChild, SuccessRule};
use procwright::process::{Signal, Stop};
use procwright::stream::{Reader, Stalled};
use procwright::{
    Beyond, Cancel, Command, Limit, Overflow, Pipeline, Reason, Sink, StdStream, Stdin, Until,
};
use test_support::{alone, skip};

use Judgement::{Failed, Forgiven, Success};

fn cat() -> Command<'static> {
    Command::new("cat")
}

/// So many stages that pass on what they read, the first from its caller.
fn cats(count: usize) -> Pipeline<'static> {
    let first = cat().stdin(Stdin::Pipe);
    Pipeline::new(std::iter::once(first).chain((1..count).map(|_| cat())))
}

/// Programs of which the second says that it is ready, and that go on for ever.
fn endless() -> Pipeline<'static> {
    Command::new("sleep")
        .arg("100000")
        .pipe(Command::shell("echo ready; exec cat"))
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line
}

fn all(mut from: Reader) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}

/// A time to sleep that nobody else names.
fn nap() -> String {
    format!("1000{}", std::process::id())
}

fn await_ready(child: &mut PipelineChild) {
    let stdout = child.stdout.clone().unwrap();
    assert_eq!(line(&mut BufReader::with_capacity(6, stdout)), "ready\n");
}

alone! {
    fn a_conversation_line_by_line() {
        let before = Census::now();
        let mut child = cats(2).spawn().unwrap();
        assert_eq!(child.pids().len(), 2);
        assert_eq!(child.command_line(), "cat | cat");
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        for number in 0..scaled(200, 20_000) {
            writeln!(stdin, "{number}").unwrap();
            assert_eq!(line(&mut stdout), format!("{number}\n"));
        }
        assert!(child.report().is_none() && child.wait(Duration::ZERO).unwrap().is_none());
        drop(stdin);
        assert_eq!(line(&mut stdout), "");
        let report = child.wait(None).unwrap().unwrap();
        assert!(report.success(), "{}", report.summary());
        assert_eq!(report.stages[0].report.pid, child.pids()[0]);
        assert!(report.stages[1].report.stdout_info.as_ref().unwrap().bytes > 0);
        drop((child, stdout));
        before.comes_back();
    }
}

alone! {
    fn it_is_judged_as_one_that_is_run() {
        let run = |pipeline: Pipeline<'static>| {
            let mut child = pipeline.spawn().unwrap();
            child.communicate("").map(|output| {
                let stages = output.report.stages.iter().map(|stage| stage.judgement);
                (stages.collect::<Vec<_>>(), output.stdout, output.stderr)
            })
        };
        let yes = || Command::new("yes").pipe(Command::new("head").arg("-1"));
        assert_eq!(
            run(yes()).unwrap(),
            (vec![Forgiven, Success], b"y\n".to_vec(), vec![vec![], vec![]])
        );
        let (strict, ..) = run(yes().success_rule(SuccessRule::Strict)).unwrap();
        assert_eq!(strict, [Failed, Success]);
        // It goes by words on stderr, of which the reader has all.
        let tells = Command::shell(
            "trap '' PIPE; while echo line 2>/dev/null; do :; done; echo 'write: Broken pipe' >&2; exit 3",
        );
        let told = run(Pipeline::new([tells, Command::new("head").arg("-1")])).unwrap();
        assert_eq!(told.0, [Forgiven, Success]);
        assert_eq!(told.2[0], b"write: Broken pipe\n");
        let fails = Command::shell("echo half; echo why >&2; exit 3").pipe(cat()).check();
        let Err(Error::Failed(output)) = run(fails) else { panic!("it has failed") };
        assert_eq!((&output.stdout[..], &output.stderr[0][..]), (&b"half\n"[..], &b"why\n"[..]));
        assert!(output.explain().contains("why"), "{}", output.explain());
    }
}

alone! {
    fn a_stage_that_ends_early_ends_those_before_it() {
        let first = Command::shell("trap '' PIPE; while echo line; do :; done 2>/dev/null; echo over >&2")
            .stdin(Stdin::Pipe);
        let mut child = first.pipe(Command::new("head").arg("-1")).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        assert_eq!((line(&mut stdout), line(&mut stdout)), ("line\n".into(), String::new()));
        assert_eq!(all(child.stderr[0].take().unwrap()), b"over\n");
        assert!(child.wait(None).unwrap().unwrap().success());
        // Nobody is there to read.
        let error = child.stdin.take().unwrap().write_all(b"x").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
}

alone! {
    fn a_slow_reader_of_much() {
        let size = scaled(64 << 20, 1 << 30);
        let produce = || Command::new("head").args(["-c", &size.to_string(), "/dev/zero"]).pipe(cat());
        let slow = |overflow| {
            let mut child = produce().spawn_with(overflow).unwrap();
            let mut stdout = child.stdout.take().unwrap();
            let (mut read, mut buffer) = (0, vec![0; 1 << 20]);
            let base = common::reset_peak();
            // Nobody reads until the programs wait, or what they wrote is on disk.
            common::eventually(|| {
                let figures = stdout.figures().unwrap();
                figures.spilled_bytes > 0 || figures.refused > Duration::ZERO
            });
            loop {
                match stdout.read(&mut buffer).unwrap() {
                    0 => break,
                    n => read += n as u64,
                }
            }
            assert_eq!(read, size);
            assert!(child.wait(None).unwrap().unwrap().success());
            let grown = common::status_bytes("VmHWM").saturating_sub(base);
            assert!(grown < 64 << 20, "{grown}");
            grown
        };
        let blocks = slow(Overflow::Block { memory: 1 << 20 });
        let spills = slow(Overflow::default());
        figure(&format!("{} MiB read slowly: memory grew by {} KiB, or {} KiB with the disk",
            size >> 20, blocks >> 10, spills >> 10));
        // One that nobody reads ends by itself, as its output is kept.
        let mut child = produce().spawn().unwrap();
        assert!(child.wait(None).unwrap().unwrap().success());
        let figures = child.stdout.as_ref().unwrap().figures().unwrap();
        assert_eq!(figures.lag_bytes, size);
        assert_eq!(all(child.stdout.take().unwrap()).len() as u64, size);
    }
}

alone! {
    fn a_wait_says_who_does_not_read() {
        let much = Command::new("head").args(["-c", "10000000", "/dev/zero"]);
        let last = cat().stall_after(Duration::from_millis(20));
        let mut child = much.pipe(last).spawn_with(Overflow::Block { memory: 65536 }).unwrap();
        let Err(Error::Stalled(stalled)) = child.wait(None) else { panic!("who has read it?") };
        assert_eq!((&stalled.command[..], stalled.streams[0].name), ("cat", "stdout"));
        // That nobody wants it is an answer, too.
        drop(child.stdout.take());
        let report = child.wait(None).unwrap().unwrap();
        assert_eq!(report.reason, Reason::Finished);
        assert_eq!(report.stages[1].report.status.signal(), Some(Signal::PIPE));
    }
}

alone! {
    fn a_write_says_who_does_not_read_whichever_stage_it_holds_up() {
        let soon = Duration::from_millis(20);
        for place in 0..3 {
            let mut stages = [cat(), cat(), cat()];
            stages[place] = Command::shell("head -c 1000000 /dev/zero >&2; exec cat");
            let stages = stages.map(|stage| stage.stall_after(soon));
            let [first, second, third] = stages;
            let stages = first.stdin(Stdin::Pipe).pipe(second).pipe(third);
            let mut child = stages.spawn_with(Overflow::Block { memory: 65536 }).unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let error = stdin.write_all(&[0; 4_000_000]).unwrap_err();
            let stalled = Stalled::of(&error).unwrap();
            let told = (stalled.streams[0].name, stalled.writing, stalled.command.contains("head"));
            assert_eq!(told, ("stderr", true, true), "{stalled}");
            child.kill().unwrap();
        }
    }
}

alone! {
    fn a_talk_that_stalls_is_taken_up() {
        let before = Census::now();
        let soon = Duration::from_millis(20);
        let first = Command::shell("head -c 1000000 /dev/zero >&2; exec cat").stdin(Stdin::Pipe);
        let stages = first.stall_after(soon).pipe(cat());
        let mut child = stages.spawn_with(Overflow::Block { memory: 65536 }).unwrap();
        let stderr = child.stderr[0].take().unwrap();
        let input = vec![b'x'; 1_000_000];
        for input in [&input[..], b"y", b""] {
            match child.communicate(input.to_vec()) {
                Err(Error::Stalled(stalled)) => assert_eq!(stalled.streams[0].name, "stderr"),
                other => panic!("who has read it? {other:?}"),
            }
        }
        let reads = std::thread::spawn(move || all(stderr));
        let output = child.communicate("z").unwrap();
        assert_eq!(output.stdout, [&input[..], b"yz"].concat());
        assert!(output.success() && reads.join().unwrap().len() == 1_000_000);
        drop(child);
        before.comes_back();
    }
}

alone! {
    fn a_reader_that_is_closed_is_the_end_of_the_pipe() {
        let mut child = Command::new("yes").pipe(cat()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 2]).unwrap();
        drop(stdout);
        child.wait(None).unwrap().unwrap();
        assert_eq!(child.report().unwrap().stages[1].report.status.signal(), Some(Signal::PIPE));
        // One that has nothing to say yet has its pipe closed as well.
        let mut child = cats(2).spawn().unwrap();
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().unwrap();
        common::eventually(|| stdin.write_all(b"x\n").is_err());
        child.wait(None).unwrap().unwrap();
    }
}

alone! {
    fn a_stop_in_the_middle_leaves_nothing() {
        let before = Census::now();
        for ends in [PipelineChild::stop, PipelineChild::kill] {
            let family = Command::shell("sleep $0 & echo ready; exec cat").arg(nap());
            let mut child = cats(2).pipe(family).spawn().unwrap();
            await_ready(&mut child);
            let report = ends(&child).unwrap();
            assert_eq!(report.reason, Reason::Cancelled);
            assert!(report.stages.iter().all(|stage| stage.report.survivors.is_empty()));
            assert_eq!(ends(&child).unwrap().reason, Reason::Cancelled, "once more");
            drop(child);
            before.comes_back();
        }
        common::eventually(|| common::with_argument(&nap()).is_empty());
    }
}

alone! {
    fn a_stop_that_goes_on_is_told_of_unless_it_was_asked_for() {
        let says = "trap 'echo stopping' TERM; echo ready; while :; do sleep 1000 & wait; done";
        let grace = Duration::from_secs(1_000_000);
        for is_asked_for in [false, true] {
            let cancel = Cancel::new().unwrap();
            let stages = Command::new("sleep").arg("1000").pipe(Command::shell(says));
            let stages = stages.cancel_on(&cancel).stop(Stop::new().with_grace(grace));
            let mut child = stages.spawn().unwrap();
            let mut stdout = BufReader::new(child.stdout.take().unwrap());
            assert_eq!(line(&mut stdout), "ready\n");
            assert!(!child.is_stopping());
            match is_asked_for {
                true => child.begin_stop(false),
                false => cancel.cancel(),
            }
            assert_eq!(line(&mut stdout), "stopping\n");
            assert_eq!(child.is_stopping(), !is_asked_for);
            assert!(child.report().is_none());
            child.kill().unwrap();
            assert!(!child.is_stopping());
        }
    }
}

alone! {
    fn a_stop_when_a_buffer_alone_is_left() {
        let before = Census::now();
        let first = Command::new("head").args(["-c", "1000000", "/dev/zero"]);
        // What it leaves behind has the end to read, and does not.
        let last = Command::shell("exec 3<&0; sleep $0 <&3 >/dev/null 2>&1 & exit 0").arg(nap());
        let child = first.pipe(last).elastic(0, Overflow::default()).spawn().unwrap();
        let has_ended = |pid: &i32| common::state(*pid).is_none_or(|state| state == 'Z');
        common::eventually(|| child.pids().iter().all(has_ended));
        assert!(child.wait(Duration::from_millis(20)).unwrap().is_none());
        assert_eq!(child.stop().unwrap().reason, Reason::Cancelled);
        drop(child);
        before.comes_back();
    }
}

alone! {
    fn limits_of_the_whole_hold_while_nobody_waits() {
        let soon = Stop::new().with_grace(Duration::from_millis(20));
        let limit = Duration::from_millis(50);
        let child = endless().timeout(limit).stop(soon).spawn().unwrap();
        common::eventually(|| child.report().is_some());
        assert_eq!(child.report().unwrap().reason, Reason::Timeout);
        let child = endless().idle_timeout(limit).stop(soon).spawn().unwrap();
        assert_eq!(child.wait(None).unwrap().unwrap().reason, Reason::IdleTimeout);
        let cancel = Cancel::new().unwrap();
        let mut child = endless().cancel_on(&cancel).spawn().unwrap();
        cancel.cancel();
        let Err(Error::Stopped(output)) = child.communicate("") else { panic!("it was cancelled") };
        assert_eq!(output.report.reason, Reason::Cancelled);
        // Also while a stage waits for a reader, whose queue is full.
        let full = Command::new("yes").pipe(cat()).timeout(limit).stop(soon);
        let child = full.spawn_with(Overflow::Block { memory: 65536 }).unwrap();
        common::eventually(|| child.report().is_some());
        let report = child.report().unwrap();
        assert_eq!(report.reason, Reason::Timeout);
        let too_much = Command::new("yes").pipe(cat().limit(Limit { bytes: 1000, beyond: Beyond::Fail })).stop(soon);
        let mut child = too_much.spawn().unwrap();
        assert_eq!(child.wait(None).unwrap().unwrap().reason, Reason::OutputLimit);
        assert_eq!(all(child.stdout.take().unwrap()).len(), 1000);
    }
}

alone! {
    fn what_was_said_before_the_exit_is_read_after_it() {
        // More than the queue holds, and a process that is left behind with the pipe.
        let says = Command::shell("head -c 100000 /dev/zero; sleep $0 & exit 0")
            .arg(nap())
            .until(Until::Exit);
        let queue = Overflow::Block { memory: 65536 };
        let mut child = cat().pipe(says).spawn_with(queue).unwrap();
        let read = all(child.stdout.take().unwrap());
        assert_eq!(read.len(), 100_000);
        assert!(child.wait(None).unwrap().unwrap().success());
        // It may not have become `sleep` yet.
        common::eventually(|| {
            let left = common::with_argument(&nap());
            let pids = left.iter().filter_map(|pid| rustix::process::Pid::from_raw(*pid));
            for pid in pids {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            left.is_empty()
        });
    }
}

alone! {
    fn one_that_is_dropped_goes_on() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let told = dir.path().join("told");
        let mut child = cats(2)
            .pipe(Command::shell("echo ready; exec cat > \"$0\"").arg(&told))
            .spawn()
            .unwrap();
        await_ready(&mut child);
        let mut stdin = child.stdin.take().unwrap();
        drop(child);
        stdin.write_all(b"still here\n").unwrap();
        drop(stdin);
        before.comes_back();
        assert_eq!(std::fs::read(&told).unwrap(), b"still here\n");
    }
}

alone! {
    fn a_stage_that_cannot_be_started_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let before = Census::now();
        for program in ["/no/such/program", script.to_str().unwrap()] {
            for place in 0..3 {
                let mut stages = [cat().stdin(Stdin::Pipe), cat(), cat()];
                let stdin = if place == 0 { Stdin::Pipe } else { Stdin::Null };
                stages[place] = Command::new(program).stdin(stdin);
                match Pipeline::new(stages).spawn() {
                    Err(Error::Spawn { stage, of: 3, source, .. }) => {
                        assert_eq!((stage, source.errno()), (place, libc::ENOENT), "{source}");
                    }
                    other => panic!("{other:?}"),
                }
                before.comes_back();
            }
        }
    }
}

#[test]
fn what_is_for_others_is_refused_by_name() {
    let invalid = |pipeline: Pipeline<'_>| match pipeline.spawn() {
        Err(Error::Invalid { stage, source }) => (stage, source.to_string()),
        other => panic!("{other:?}"),
    };
    let (stage, text) = invalid(cat().pipe(cat().on_stdout_line(|_| Ok(()))));
    assert!(stage == Some(1) && text.contains("callback"), "{text}");
    let (stage, text) = invalid(cat().pipe(cat().stdin(Stdin::Pipe)));
    assert!(stage == Some(1) && text.contains("stdin"), "{text}");
    let every = cat().pipe(cat()).every(Duration::from_secs(1), |_| ());
    let (stage, text) = invalid(every);
    assert!(stage.is_none() && text.contains("every"), "{text}");
    let (stage, text) = invalid(cat().pipe(cat().merged()));
    assert!(stage == Some(1) && text.contains("merged"), "{text}");
    let (stage, text) = invalid(cat().pipe(cat().input_wanted().on_stream_event(|_| ())));
    assert!(stage == Some(1) && text.contains("input_wanted"), "{text}");
    let (stage, text) = invalid(
        cat()
            .stdout(Sink::Null)
            .stderr(Sink::Null)
            .detach()
            .pipe(cat()),
    );
    assert!(stage == Some(0) && text.contains("detach"), "{text}");
}

alone! {
    fn a_fork_has_no_part_in_it() {
        let mut child = cats(2).spawn().unwrap();
        let in_fork = sys::in_fork(|| {
            sys::default(libc::SIGALRM);
            sys::alarm(120);
            let is_forked = |result: Result<_, Error>| matches!(result, Err(Error::Forked { .. }));
            let mine = child.is_ours() || child.report().is_some();
            let waits = is_forked(child.wait(None).map(drop)) && is_forked(child.stop().map(drop));
            i32::from(mine || !waits)
        });
        assert_eq!(in_fork, 0);
        // It holds no end of it open, and has stopped nothing.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"said\n").unwrap();
        drop(stdin);
        let output = child.communicate("").unwrap();
        assert_eq!((&output.stdout[..], output.success()), (&b"said\n"[..], true));
    }
}

alone! {
    fn any_call_that_fails_leaves_nothing() {
        let calls = [
            libc::SYS_eventfd2,
            libc::SYS_pipe2,
            libc::SYS_clone3,
            libc::SYS_clone,
            libc::SYS_openat,
            libc::SYS_fcntl,
            libc::SYS_ioctl,
            libc::SYS_epoll_create1,
            libc::SYS_dup3,
        ];
        let Some(refusals) = Refusals::of(&calls) else {
            return skip("any_call_that_fails_leaves_nothing", "no filter may be set here");
        };
        let before = Census::now();
        let mut nothing = 0;
        for at in 0.. {
            let pipeline = cats(2).elastic(0, Overflow::default());
            refusals.refuse(at, libc::EMFILE);
            let spawned = pipeline.spawn();
            let refused = refusals.end();
            match spawned {
                // It was for a convenience, such as a probe.
                Ok(mut child) => match child.communicate("through\n") {
                    Ok(output) => assert_eq!(output.stdout, b"through\n"),
                    other => panic!("{refused:?}: {other:?}"),
                },
                Err(Error::Spawn { .. }) => {
                    nothing += 1;
                    let left = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
                    assert_eq!(left.map(drop), Err(rustix::io::Errno::CHILD), "{refused:?}");
                }
                Err(other) => panic!("{refused:?}: {other:?}"),
            }
            before.comes_back();
            if refused.is_none() {
                break;
            }
        }
        assert!(nothing > 2, "{nothing}");
    }
}

alone! {
    fn copies_are_made_beside_its_readers() {
        let (theirs, mut copy) = UnixStream::pair().unwrap();
        let listens = cat().tee_to(StdStream::Stdout, theirs);
        let output = cats(2).pipe(listens).spawn().unwrap().communicate("copied\n").unwrap();
        assert_eq!(output.stdout, b"copied\n");
        let mut copied = String::new();
        copy.read_to_string(&mut copied).unwrap();
        assert_eq!(copied, "copied\n");
    }
}

alone! {
    fn many_in_a_row_leave_no_thread_and_no_descriptor() {
        let rounds = scaled(100, 20_000);
        let one = || {
            let output = cats(2).spawn().unwrap().communicate("through\n").unwrap();
            assert_eq!(output.stdout, b"through\n");
        };
        let before = Census::now();
        one();
        let ((), took) = timed(|| (1..rounds).for_each(|_| one()));
        before.comes_back();
        // While it goes on: one thread for all stages.
        let held: Vec<PipelineChild> = (0..20).map(|_| cats(3).spawn().unwrap()).collect();
        let now = Census::now();
        let threads = now.threads.iter().filter(|name| name.contains("procwright-pipe")).count();
        assert_eq!(threads, held.len());
        figure(&format!("{rounds} in a row in {took:?}; one of three stages takes {} descriptors",
            (now.fds.len() - before.fds.len()) / held.len()));
        drop(held);
        before.comes_back();
    }
}
