//! Starts where threads, processes or descriptors are missing: either the program runs and
//! all that it needs of us is there, or it was never started and the error says which step
//! was refused.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use test_support::alone;

use common::{Census, sys};
use procwright::error::{SpawnError, Step};
use procwright::process::Signal;
use procwright::{BoxError, Command, Error, Sink, Stdin};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Sets a soft limit, at most the hard one.
fn limit(resource: Resource, soft: u64) {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(soft, |most| soft.min(most)));
    setrlimit(resource, Rlimit { current, maximum }).unwrap();
}

/// How often the producer of stdin and the callbacks were called.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Calls {
    fn count(self: &Arc<Calls>) -> impl FnMut() + Send + use<> {
        let calls = Arc::clone(self);
        move || {
            calls.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A start, of a program that makes a directory: its name, and how it went.
type Start = (&'static str, fn(&Path, &Arc<Calls>) -> Result<(), Error>);

/// The program: `mkdir` with a list of directories from stdin would need a shell, so it
/// reads nothing.
fn mkdir(directory: &Path) -> Command<'static> {
    Command::new("mkdir").arg(directory)
}

/// Once its input ends, so does `cat`.
fn input(
    calls: &Arc<Calls>,
) -> impl Iterator<Item = Result<bytes::Bytes, BoxError>> + Send + use<> {
    let mut count = calls.count();
    (0..3).map(move |_| {
        count();
        Ok(bytes::Bytes::from_static(b"input"))
    })
}

fn run(command: Command<'_>) -> Result<(), Error> {
    let output = command.run()?;
    assert!(output.success(), "{:?}", output.report);
    Ok(())
}

fn spawn(command: Command<'_>) -> Result<(), Error> {
    let child = command.spawn()?;
    assert!(child.wait(None).unwrap().unwrap().success());
    Ok(())
}

fn starts() -> Vec<Start> {
    vec![
        ("run", |at, _| run(mkdir(at))),
        ("run, relayed", |at, _| {
            run(mkdir(at).stdout(Sink::Relay).stderr(Sink::Relay))
        }),
        ("run, lines", |at, calls| {
            let (mut out, mut err) = (calls.count(), calls.count());
            let lines = mkdir(at).arg("--verbose").on_stdout_line(move |_| {
                out();
                Ok(())
            });
            run(lines.on_stderr_line(move |_| {
                err();
                Ok(())
            }))
        }),
        ("run, producer", |at, calls| {
            run(mkdir(at).stdin_iter(input(calls)))
        }),
        ("run, bytes", |at, _| {
            run(mkdir(at).stdin_bytes(vec![b'x'; 1 << 20]))
        }),
        ("run, full file", |at, _| {
            run(mkdir(at).keep_full(at.with_extension("full")))
        }),
        ("run, pty", |at, _| {
            let size = procwright::terminal::Size {
                rows: 24,
                columns: 80,
            };
            run(mkdir(at).pty(size))
        }),
        ("run, dies with us", |at, _| {
            run(mkdir(at).die_with_parent(Signal::KILL))
        }),
        ("spawn", |at, _| spawn(mkdir(at))),
        ("spawn, full file", |at, _| {
            spawn(mkdir(at).keep_full(at.with_extension("full")))
        }),
        ("spawn, copy in a file", |at, _| {
            spawn(mkdir(at).tee_to_file(None, at.with_extension("copy")))
        }),
        ("spawn, pipe", |at, _| spawn(mkdir(at).stdin(Stdin::Pipe))),
        ("spawn, merged", |at, _| spawn(mkdir(at).merged())),
        ("spawn, producer", |at, calls| {
            spawn(mkdir(at).stdin_iter(input(calls)))
        }),
        ("spawn, bytes", |at, _| {
            spawn(mkdir(at).stdin_bytes(vec![b'x'; 1 << 20]))
        }),
        ("spawn, pty", |at, _| {
            let size = procwright::terminal::Size {
                rows: 24,
                columns: 80,
            };
            spawn(mkdir(at).pty(size).stdin(Stdin::Pipe))
        }),
        ("spawn, dies with us", |at, _| {
            spawn(mkdir(at).die_with_parent(Signal::KILL))
        }),
    ]
}

/// The threads of this process, those that are about to end included.
fn tasks() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// Tries every start with one more of what is missing each time, until it is there. Gives
/// the errors on the way.
fn until_it_starts(
    directory: &Path,
    mut set_limit: impl FnMut(u64),
    unlimited: u64,
) -> Vec<(&'static str, SpawnError)> {
    let mut errors = Vec::new();
    let threads = tasks();
    for (name, start) in starts() {
        let before = Census::now();
        for more in 0.. {
            assert!(more < 64, "{name} does not start");
            let at = directory.join(format!("{name} {more}"));
            let calls = Arc::new(Calls::default());
            set_limit(more);
            let started = start(&at, &calls);
            set_limit(unlimited);
            // Threads of a start that was given up, and the pump's, end by themselves. Then
            // nobody is left who could call, or who counts against the limit: one that is
            // about to end does.
            before.comes_back();
            common::eventually(|| tasks() == threads);
            let Err(error) = started else {
                assert!(at.is_dir(), "{name}: the program did its work");
                break;
            };
            let Error::Spawn { source, .. } = error else {
                panic!("{name}, {more}: {error:?}");
            };
            assert!(
                !at.exists(),
                "{name}, {more}: it was started, in spite of {source}"
            );
            assert_eq!(
                calls.0.load(Ordering::SeqCst),
                0,
                "{name}, {more}: a callback was called"
            );
            errors.push((name, source));
        }
    }
    errors
}

alone! {
    fn threads_and_processes() {
        if !test_support::root_or_skip("threads_and_processes") { return; }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        // A user whom nobody else is: the limit counts all threads of a user.
        sys::become_user(100_000 + std::process::id());
        let threads = tasks() as u64;
        let errors = until_it_starts(dir.path(), |more| limit(Resource::Nproc, threads + more), 10_000);
        for (name, error) in &errors {
            assert_eq!(error.errno(), libc::EAGAIN, "{name}: {error}");
            assert!(matches!(error.step, Step::Thread | Step::Clone), "{name}: {error}");
            assert!(error.hint.as_ref().unwrap().contains("RLIMIT_NPROC"), "{name}: {error}");
        }
        for (name, threads) in [
            ("run", 0),
            ("run, lines", 2),
            ("run, producer", 1),
            ("run, dies with us", 1),
            ("spawn", 1),
            ("spawn, producer", 2),
            ("spawn, bytes", 2),
        ] {
            let steps = errors.iter().filter(|(of, _)| *of == name).map(|(_, error)| error.step);
            let mut wanted = vec![Step::Thread; threads];
            wanted.push(Step::Clone);
            assert_eq!(steps.collect::<Vec<_>>(), wanted, "{name}");
        }
    }
}

alone! {
    fn descriptors() {
        let dir = tempfile::tempdir().unwrap();
        // A limit below 4 is another error.
        let _third = fs::File::open("/dev/null").unwrap();
        // The number that the next descriptor gets, and so the first limit that forbids it.
        let next = {
            use std::os::fd::AsRawFd;
            fs::File::open("/dev/null").unwrap().as_raw_fd() as u64
        };
        let errors = until_it_starts(dir.path(), |more| limit(Resource::Nofile, next + more), 500);
        assert!(errors.len() > 30, "{errors:?}");
        for (name, error) in &errors {
            assert_eq!(error.errno(), libc::EMFILE, "{name}: {error}");
            assert!(error.hint.as_ref().unwrap().contains("RLIMIT_NOFILE"), "{name}: {error}");
        }
    }
}
