//! Pipelines of which a stage cannot be started: nothing of the others is left, nothing has
//! been done, and the stage is named.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use test_support::alone;

use common::sys::refusals::Refusals;
use common::{Census, skip, sys};
use procwright::error::Step;
use procwright::pipeline::Error;
use procwright::{Command, Overflow, Pipeline, Sink};
use procwright_os::pipe::EndsProbe;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many stages are tried.
const LENGTHS: [usize; 3] = [2, 3, 10];

fn limit(resource: Resource, soft: u64) {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(soft, |most| soft.min(most)));
    setrlimit(resource, Rlimit { current, maximum }).unwrap();
}

/// So many stages. The first makes a directory; the others write a file once they have come to
/// the end of their input, so that one which saw an end shows.
fn stages(dir: &Path, count: usize) -> Vec<Command<'static>> {
    let first = Command::new("mkdir").arg(dir.join("first"));
    let others = (1..count).map(|place| {
        Command::new("sh")
            // Without a process of its own, which it could not have.
            .args(["-c", "while read -r line; do :; done; echo end > \"$0\""])
            .arg(dir.join(format!("saw-end-{place}")))
    });
    std::iter::once(first).chain(others).collect()
}

/// What all pipelines of a process share, and what goes only a moment after the last of them:
/// kept for a test that counts what is there.
fn shared() -> (PipeReader, PipeWriter, EndsProbe) {
    let (read, write) = std::io::pipe().unwrap();
    let probe = EndsProbe::new(read.as_fd(), write.as_fd()).unwrap();
    (read, write, probe)
}

/// Fails if a stage has done anything.
#[track_caller]
fn nothing_was_done(dir: &Path) {
    let names = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), [] as [&str; 0]);
}

/// The stage that was refused, the step and the error's number.
#[track_caller]
fn refused(stages: Vec<Command<'_>>) -> (usize, Step, i32, String) {
    let count = stages.len();
    match Pipeline::new(stages).run() {
        Err(Error::Spawn {
            stage,
            of,
            source,
            command,
        }) => {
            assert_eq!(of, count);
            (
                stage,
                source.step,
                source.errno(),
                format!("{command}: {source}"),
            )
        }
        other => panic!("{other:?}"),
    }
}

alone! {
    fn a_program_that_is_missing_at_each_place() {
        let plain = tempfile::tempdir().unwrap();
        let plain = plain.path().join("plain");
        fs::create_dir_all(plain.parent().unwrap()).unwrap();
        fs::write(&plain, "no program").unwrap();
        let no_interpreter = plain.with_file_name("no-interpreter");
        fs::write(&no_interpreter, "#!/no/such/interpreter\n").unwrap();
        fs::set_permissions(&no_interpreter, fs::Permissions::from_mode(0o755)).unwrap();
        let huge = "x".repeat(4 << 20);
        let _shared = shared();
        let faults: [(&str, Vec<&str>, i32); 5] = [
            ("/no/such/program", vec![], libc::ENOENT),
            ("no-such-program-anywhere", vec![], libc::ENOENT),
            (plain.to_str().unwrap(), vec![], libc::EACCES),
            // These are found by the exec alone, when stages behind have been started.
            (no_interpreter.to_str().unwrap(), vec![], libc::ENOENT),
            ("cat", vec![&huge], libc::E2BIG),
        ];
        let before = Census::now();
        for count in LENGTHS {
            let usual = |place: &usize| count <= 3 || [0, 5, 9].contains(place) || test_support::stress();
            for place in (0..count).filter(usual) {
                for (program, arguments, errno) in &faults {
                    let dir = tempfile::tempdir().unwrap();
                    let mut stages = stages(dir.path(), count);
                    stages[place] = Command::new(program).args(arguments);
                    let (stage, step, number, text) = refused(stages);
                    assert_eq!((stage, step, number), (place, Step::Exec, *errno), "{text}");
                    before.comes_back();
                    nothing_was_done(dir.path());
                }
            }
        }
    }
}

alone! {
    fn descriptors_that_run_out_at_each_step() {
        let _third = fs::File::open("/dev/null").unwrap();
        let _shared = shared();
        let next = fs::File::open("/dev/null").unwrap().as_raw_fd() as u64;
        for count in LENGTHS {
            let before = Census::now();
            let mut refusals = 0;
            // Of ten every third step, but under STRESS each.
            let step = if count <= 3 || test_support::stress() { 1 } else { 3 };
            for more in (0..).step_by(step) {
                assert!(more < 200, "{count} stages do not start");
                let dir = tempfile::tempdir().unwrap();
                let stages = stages(dir.path(), count);
                limit(Resource::Nofile, next + more);
                let result = Pipeline::new(stages).run();
                limit(Resource::Nofile, 500);
                before.comes_back();
                match result {
                    Ok(output) => {
                        assert!(output.success(), "{}", output.explain());
                        assert!(dir.path().join("first").is_dir());
                        break;
                    }
                    Err(Error::Spawn { source, .. }) => {
                        assert_eq!(source.errno(), libc::EMFILE, "{source}");
                        refusals += 1;
                        nothing_was_done(dir.path());
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
            assert!(refusals * step >= 3 * count, "{count}: {refusals}");
        }
    }
}

alone! {
    fn processes_that_run_out_at_each_step() {
        if !test_support::root_or_skip("processes_that_run_out_at_each_step") { return; }
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o777)).unwrap();
        // A user whom nobody else is: the limit counts all processes of a user.
        sys::become_user(200_000 + std::process::id());
        let _shared = shared();
        let tasks = || fs::read_dir("/proc/self/task").unwrap().count() as u64;
        let own = tasks();
        for count in LENGTHS {
            let before = Census::now();
            for more in 0..count as u64 {
                let dir = tempfile::tempdir_in(base.path()).unwrap();
                let stages = stages(dir.path(), count);
                limit(Resource::Nproc, own + more);
                let refusal = refused(stages);
                limit(Resource::Nproc, 10_000);
                let (stage, step, errno, text) = refusal;
                assert_eq!((step, errno), (Step::Clone, libc::EAGAIN), "{text}");
                // The last one is started first.
                assert_eq!(stage, count - 1 - more as usize, "{text}");
                before.comes_back();
                // One that is about to end counts against the limit.
                common::eventually(|| tasks() == own);
                nothing_was_done(dir.path());
            }
        }
    }
}

alone! {
    fn memory_that_runs_out() {
        let dir = tempfile::tempdir().unwrap();
        let before = Census::now();
        sys::deny(&[libc::SYS_clone, libc::SYS_clone3, libc::SYS_vfork], libc::ENOMEM);
        for count in LENGTHS {
            let (stage, step, errno, text) = refused(stages(dir.path(), count));
            assert_eq!((stage, step, errno), (count - 1, Step::Clone, libc::ENOMEM), "{text}");
            before.nothing_more();
            nothing_was_done(dir.path());
        }
    }
}

/// The system calls that a start makes, and the loop behind it, but for memory, as a process
/// that gets none ends at once, and waits.
const CALLS: &[i64] = &[
    libc::SYS_pipe2,
    libc::SYS_fcntl,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_inotify_add_watch,
    libc::SYS_eventfd2,
    libc::SYS_openat,
    libc::SYS_pidfd_open,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_dup3,
    libc::SYS_setsid,
    libc::SYS_close_range,
    libc::SYS_execve,
];

/// Has a call fail in the start of a pipeline: the first, or that after `step` more, and so on,
/// until none is left to fail. Each time there is all or nothing. How often there was nothing.
fn all_or_nothing_at_each_call(
    refusals: &Refusals,
    errno: i32,
    step: usize,
    pipeline: impl Fn(&Path) -> Pipeline<'static>,
) -> usize {
    let before = Census::now();
    let mut nothing = 0;
    for at in (0..).step_by(step) {
        let dir = tempfile::tempdir().unwrap();
        let pipeline = pipeline(dir.path());
        refusals.refuse(at, errno);
        let result = pipeline.run();
        let refused = refusals.end();
        before.comes_back();
        match result {
            // It was for a convenience, such as a probe.
            Ok(output) => {
                assert!(output.success(), "{refused:?}: {}", output.explain());
                assert!(dir.path().join("first").is_dir());
            }
            Err(Error::Spawn {
                stage,
                of,
                source,
                command,
            }) => {
                let text = format!("{refused:?}: {command}: {source}");
                assert!(stage < of && !command.is_empty(), "{text}");
                // The C library has a number of its own for a thread that cannot be had.
                let of_thread = source.step == Step::Thread && source.errno() == libc::EAGAIN;
                assert!(source.errno() == errno || of_thread, "{text}");
                nothing_was_done(dir.path());
                nothing += 1;
            }
            // All had been started: reading or waiting was refused.
            Err(Error::Io { .. }) => {}
            Err(other) => panic!("{refused:?}: {other:?}"),
        }
        if refused.is_none() {
            break;
        }
    }
    nothing
}

/// Stages that need a thread each for a callback and for stdin, too.
fn busy_stages(dir: &Path, count: usize) -> Pipeline<'static> {
    let mut stages = stages(dir, count);
    let last = stages.pop().unwrap().on_stdout_line(|_| Ok(()));
    let first = stages.remove(0).stdin_iter([Ok(b"x".as_slice().into())]);
    Pipeline::new(std::iter::once(first).chain(stages)).pipe(last)
}

alone! {
    fn any_call_that_fails() {
        let Some(refusals) = Refusals::of(CALLS) else {
            return skip("any_call_that_fails", "no filter may be set here");
        };
        let _shared = shared();
        let errnos = [libc::EMFILE, libc::ENOMEM, libc::ENOENT, libc::EACCES];
        // Each call and each number is tried under STRESS alone, which takes minutes.
        let some: [(usize, usize, &[i32]); 3] =
            [(2, 5, &errnos), (3, 11, &errnos[..2]), (10, 41, &errnos[1..2])];
        for (count, step, errnos_of) in some {
            let (step, errnos) = if test_support::stress() { (1, &errnos[..]) } else { (step, errnos_of) };
            let pipeline = |dir: &Path| busy_stages(dir, count);
            let nothing = errnos.iter().map(|errno| {
                all_or_nothing_at_each_call(&refusals, *errno, step, pipeline)
            });
            let nothing: Vec<usize> = nothing.collect();
            assert!(nothing.iter().sum::<usize>() > 0, "{count}: {nothing:?}");
            test_support::figure(&format!("{count} stages: nothing was started {nothing:?} times"));
        }
    }
}

alone! {
    fn any_call_that_fails_with_a_buffer() {
        let Some(refusals) = Refusals::of(CALLS) else {
            return skip("any_call_that_fails_with_a_buffer", "no filter may be set here");
        };
        let _shared = shared();
        for errno in [libc::EMFILE, libc::ENOMEM] {
            let step = if test_support::stress() { 1 } else { 13 };
            let pipeline = |dir: &Path| {
                let elastic = Pipeline::new(stages(dir, 3)).elastic(0, Overflow::default());
                elastic.elastic(1, Overflow::default())
            };
            let nothing = all_or_nothing_at_each_call(&refusals, errno, step, pipeline);
            assert!(nothing > 1, "{nothing}");
        }
    }
}

alone! {
    fn any_call_that_fails_with_a_fan() {
        let Some(refusals) = Refusals::of(CALLS) else {
            return skip("any_call_that_fails_with_a_fan", "no filter may be set here");
        };
        let _shared = shared();
        for errno in [libc::EMFILE, libc::ENOMEM] {
            let step = if test_support::stress() { 1 } else { 13 };
            let pipeline = |dir: &Path| {
                let mut stages = stages(dir, 5);
                let fan = stages.split_off(2);
                let between = stages.split_off(1);
                // With one that does nothing beside it.
                let sources = stages.into_iter().chain([Command::new("true")]);
                let pipeline = Pipeline::new([]).fan(sources);
                let pipeline = between.into_iter().fold(pipeline, Pipeline::pipe);
                pipeline.fan(fan).elastic(2, Overflow::default())
            };
            let nothing = all_or_nothing_at_each_call(&refusals, errno, step, pipeline);
            assert!(nothing > 1, "{nothing}");
        }
    }
}

alone! {
    fn a_program_of_a_fan_that_is_missing() {
        let no_interpreter = tempfile::tempdir().unwrap();
        let no_interpreter = no_interpreter.path().join("no-interpreter");
        fs::create_dir_all(no_interpreter.parent().unwrap()).unwrap();
        fs::write(&no_interpreter, "#!/no/such/interpreter\n").unwrap();
        fs::set_permissions(&no_interpreter, fs::Permissions::from_mode(0o755)).unwrap();
        let _shared = shared();
        let before = Census::now();
        for place in 0..5 {
            // The second is found by the exec alone, when stages behind have been started.
            for program in [Path::new("/no/such/program"), &no_interpreter] {
                let dir = tempfile::tempdir().unwrap();
                let mut stages = stages(dir.path(), 5);
                stages[place] = Command::new(program);
                let fan = stages.split_off(2);
                match Pipeline::new(stages).fan(fan).run() {
                    Err(Error::Spawn { stage, of, source, .. }) => {
                        let errno = source.errno();
                        assert_eq!((stage, of, errno), (place, 5, libc::ENOENT), "{source}");
                    }
                    other => panic!("{other:?}"),
                }
                before.comes_back();
                nothing_was_done(dir.path());
            }
        }
    }
}

alone! {
    fn what_the_set_up_of_a_stage_asks_for_and_is_not_there() {
        let _shared = shared();
        let base = tempfile::tempdir().unwrap();
        let missing = base.path().join("missing");
        let plain = base.path().join("plain");
        fs::write(&plain, "").unwrap();
        let before = Census::now();
        for (count, place) in [(2, 0), (2, 1), (3, 1), (10, 5)] {
            for fault in 0..4 {
                let dir = tempfile::tempdir().unwrap();
                let mut stages = stages(dir.path(), count);
                let stage = stages.remove(place);
                let (stage, errno) = match fault {
                    0 => (stage.cwd(&missing), libc::ENOENT),
                    1 => (stage.cwd(&plain), libc::ENOTDIR),
                    2 => (stage.stderr(Sink::File { path: missing.join("x"), append: false }), libc::ENOENT),
                    _ => (stage.stderr(Sink::File { path: base.path().into(), append: false }), libc::EISDIR),
                };
                stages.insert(place, stage);
                let (stage, _, number, text) = refused(stages);
                assert_eq!((stage, number), (place, errno), "{text}");
                before.comes_back();
                nothing_was_done(dir.path());
            }
        }
    }
}
