//! Pipelines of which a stage cannot be started: nothing of the others is left, nothing has
//! been done, and the stage is named.

mod common;

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use test_support::alone;

use common::{Census, sys};
use procwright::error::Step;
use procwright::pipeline::Error;
use procwright::{Command, Pipeline};
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
