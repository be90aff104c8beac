//! Copies of the output of a child that its caller holds: who gets them, that the readers miss
//! nothing for that, and who waits for whom.

mod common;

use std::fs;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use common::{Census, child};
use procwright::process::{Exit, Stop};
use procwright::terminal::Size;
use procwright::{Child, Command, Error, Overflow, Piece, Reason, Sink, StdStream, Tap, WaitError};
use test_support::alone;

/// A writer whose bytes others see.
#[derive(Clone, Default)]
struct Copy(Arc<Mutex<Vec<u8>>>);

impl Copy {
    fn taken(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Copy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer that takes nothing before its gate is opened, by a message or by its end.
struct Gated(mpsc::Receiver<()>, Copy);

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn soon() -> Stop {
    Stop::new().with_grace(Duration::from_millis(20))
}

fn all_of(mut reader: impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    all
}

fn both_said() -> Command<'static> {
    Command::shell("echo out; echo err >&2")
}

alone! {
    fn reader_and_copy_have_the_same_and_a_wait_is_for_the_copy_too() {
        let before = Census::now();
        let copies = [Copy::default(), Copy::default()];
        let mut both = both_said()
            .tee_to(StdStream::Stdout, copies[0].clone())
            .tee_to(StdStream::Stderr, copies[1].clone())
            .spawn()
            .unwrap();
        assert_eq!(both.wait(None).unwrap(), Some(Exit::Code(0)));
        // Nothing was read yet.
        assert_eq!(copies.each_ref().map(Copy::taken), [b"out\n".to_vec(), b"err\n".to_vec()]);
        assert_eq!(all_of(both.stdout.take().unwrap()), b"out\n");
        assert_eq!(all_of(both.stderr.take().unwrap()), b"err\n");
        drop(both);
        before.comes_back();
    }
}

#[test]
fn a_copy_has_what_a_policy_drops() {
    let _dog = common::watchdog("a_copy_has_what_a_policy_drops");
    for overflow in [
        Overflow::DropOldest { memory: 65536 },
        Overflow::DropNewest { memory: 65536 },
        Overflow::default(),
    ] {
        let copy = Copy::default();
        let flood = Command::new("head")
            .args(["-c", "3000000", "/dev/zero"])
            .tee_to(StdStream::Stdout, copy.clone())
            .spawn_with(overflow)
            .unwrap();
        assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
        assert_eq!(copy.taken().len(), 3_000_000, "{overflow:?}");
    }
}

#[test]
fn copies_of_what_is_read_as_one_and_of_a_terminal() {
    let _dog = common::watchdog("copies_of_what_is_read_as_one_and_of_a_terminal");
    let copies = [Copy::default(), Copy::default()];
    let merged = both_said()
        .merged()
        .tee_to(StdStream::Stdout, copies[0].clone())
        .tee_to(StdStream::Stderr, copies[1].clone())
        .spawn()
        .unwrap();
    merged.wait(None).unwrap();
    assert_eq!(
        copies.each_ref().map(Copy::taken),
        [b"out\n".to_vec(), b"err\n".to_vec()]
    );

    let copy = Copy::default();
    let (rows, columns) = (24, 80);
    let mut terminal = child(&["echo", "x"])
        .pty(Size { rows, columns })
        .tee_to(StdStream::Stdout, copy.clone())
        .spawn()
        .unwrap();
    terminal.wait(None).unwrap();
    assert_eq!(copy.taken(), b"x\r\n");
    assert_eq!(all_of(terminal.stdout.take().unwrap()), b"x\r\n");
}

/// Sees both streams in the order of reading, and the end.
struct Both(mpsc::Sender<(StdStream, Vec<u8>)>);

impl Tap for Both {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), procwright::BoxError> {
        Ok(self.0.send((piece.stream, piece.bytes.to_vec()))?)
    }
}

#[test]
fn a_tap_of_both_gets_both() {
    let (tell, told) = mpsc::channel();
    let both = both_said().tap_both(Box::new(Both(tell))).spawn().unwrap();
    both.wait(None).unwrap();
    let mut pieces: Vec<_> = told.into_iter().collect();
    pieces.sort_by_key(|(_, bytes)| bytes.clone());
    assert_eq!(
        pieces,
        [
            (StdStream::Stderr, b"err\n".to_vec()),
            (StdStream::Stdout, b"out\n".to_vec())
        ]
    );
}

#[test]
fn a_copy_goes_into_a_file_which_a_program_that_does_not_start_leaves_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("copy");
    fs::write(&path, "of before").unwrap();
    let missing = Command::new("/no/such/program").tee_to_file(None, &path);
    assert!(matches!(missing.spawn(), Err(Error::Spawn { .. })));
    let missing = Command::new("/no/such/program").tee_to_file(None, &path);
    assert!(matches!(missing.run(), Err(Error::Spawn { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "of before");

    let both = both_said().tee_to_file(None, &path).spawn().unwrap();
    both.wait(None).unwrap();
    let mut lines: Vec<_> = fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(lines, ["err", "out"]);

    let one = both_said().tee_to_file(Some(StdStream::Stderr), &path);
    one.spawn().unwrap().wait(None).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "err\n");

    let silent = child(&["exit", "0"]).tee_to_file(None, &path);
    silent.spawn().unwrap().wait(None).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "");

    let nowhere = child(&["exit", "0"])
        .tee_to_file(None, "/no/such/file")
        .spawn();
    let Err(Error::Spawn { source, .. }) = nowhere else {
        panic!("it was made")
    };
    assert_eq!(source.errno(), libc::ENOENT);
}

#[test]
fn all_is_kept_in_files_and_the_report_says_where() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full");
    let both = both_said().keep_full(&path).spawn().unwrap();
    both.wait(None).unwrap();
    let beside = directory.path().join("full.stderr");
    assert_eq!(fs::read_to_string(&path).unwrap(), "out\n");
    assert_eq!(fs::read_to_string(&beside).unwrap(), "err\n");
    let report = both.report().unwrap();
    let infos = [report.stdout_info, report.stderr_info].map(Option::unwrap);
    assert_eq!(
        infos.each_ref().map(|info| info.kept_at.clone()),
        [Some(path), Some(beside)]
    );
    assert!(infos.iter().all(|info| info.kept_error.is_none()));

    let full = child(&["echo", "x"])
        .stderr(Sink::Null)
        .keep_full("/dev/full")
        .spawn()
        .unwrap();
    // That is no failure of the child's.
    assert_eq!(full.wait(None).unwrap(), Some(Exit::Code(0)));
    let info = full.report().unwrap().stdout_info.unwrap();
    let error = info.kept_error.unwrap();
    assert!(error.ends_with("; 2 bytes are missing"), "{error}");
}

#[test]
fn a_copy_that_fails_is_told_once_and_the_child_goes_on() {
    struct Fails;
    impl Write for Fails {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("no room"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let _dog = common::watchdog("a_copy_that_fails_is_told_once_and_the_child_goes_on");
    let mut echo = child(&["flood", "--out", "1000000"])
        .tee_to(StdStream::Stdout, Fails)
        .spawn()
        .unwrap();
    let told = echo.wait(None).unwrap_err();
    assert!(
        matches!(&told, WaitError::Copy(error) if error.to_string() == "no room"),
        "{told}"
    );
    assert_eq!(echo.wait(None).unwrap(), Some(Exit::Code(0)));
    assert_eq!(all_of(echo.stdout.take().unwrap()).len(), 1_000_000);
    let info = echo.report().unwrap().stdout_info.unwrap();
    assert_eq!(info.undelivered_bytes, 1_000_000);
}

#[test]
fn a_copy_that_is_slow_holds_up_the_program_and_loses_nothing() {
    let _dog = common::watchdog("a_copy_that_is_slow_holds_up_the_program_and_loses_nothing");
    const BYTES: usize = 40 << 20;
    let (open, gate) = mpsc::channel();
    let copy = Copy::default();
    let flood = child(&["flood", "--out", &BYTES.to_string()])
        .tee_to(StdStream::Stdout, Gated(gate, copy.clone()))
        .spawn()
        .unwrap();
    // More than a queue to a consumer takes is written, so it cannot end.
    assert_eq!(flood.wait(Duration::from_millis(200)).unwrap(), None);
    drop(open);
    assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
    assert_eq!(copy.taken().len(), BYTES);
    let blocked = flood.report().unwrap().stdout_info.unwrap().blocked;
    assert!(
        blocked.is_none_or(|blocked| blocked > Duration::ZERO),
        "{blocked:?}"
    );
}

#[test]
fn a_limit_does_not_wait_for_a_copy_that_is_stuck() {
    let _dog = common::watchdog("a_limit_does_not_wait_for_a_copy_that_is_stuck");
    for args in [
        &["echo", "x"][..],
        &["flood-forever"],
        &["flood", "--out", "40000000"],
    ] {
        let (open, gate) = mpsc::channel();
        let mut stuck = child(args)
            .tee_to(StdStream::Stdout, Gated(gate, Copy::default()))
            .timeout(Duration::from_millis(300))
            .stop(soon())
            .stall_after(None)
            .spawn()
            .unwrap();
        assert!(stuck.wait(None).unwrap().is_some());
        let report = stuck.report().unwrap();
        assert_eq!(report.reason, Reason::Timeout, "{args:?}");
        // Its reader comes to the end as well.
        let read = all_of(stuck.stdout.take().unwrap()).len() as u64;
        let info = stuck.report().unwrap().stdout_info.unwrap();
        assert_eq!(
            (info.bytes, info.undelivered_bytes),
            (read, read),
            "{args:?}"
        );
        drop(open);
    }
}

#[test]
fn who_holds_the_output_is_not_waited_for() {
    let _dog = common::watchdog("who_holds_the_output_is_not_waited_for");
    let copy = Copy::default();
    let mut left = child(&["fork-holder", "0", "--print-ready"])
        .tee_to(StdStream::Stdout, copy.clone())
        .spawn()
        .unwrap();
    let [holder] = common::ready_line(left.stdout.as_mut().unwrap())[..] else {
        panic!()
    };
    // However short the waits are.
    let mut waited = None;
    while waited.is_none() {
        waited = left.wait(Duration::from_millis(50)).unwrap();
    }
    assert_eq!(waited, Some(Exit::Code(0)));
    assert!(common::lives(holder));
    assert!(copy.taken().starts_with(b"ready "));
    left.stop();
}

#[test]
fn a_wait_whose_time_is_over_before_the_copy_has_all_says_so() {
    let (open, gate) = mpsc::channel();
    let copy = Copy::default();
    let echo = child(&["echo", "x"])
        .tee_to(StdStream::Stdout, Gated(gate, copy.clone()))
        .spawn()
        .unwrap();
    assert_eq!(echo.process().wait(None).unwrap(), Some(Exit::Code(0)));
    assert_eq!(echo.wait(Duration::ZERO).unwrap(), None);
    assert_eq!(echo.wait(Duration::from_millis(20)).unwrap(), None);
    drop(open);
    assert_eq!(echo.wait(None).unwrap(), Some(Exit::Code(0)));
    assert_eq!(copy.taken(), b"x\n");
}

#[test]
fn a_copy_may_ask_for_its_own_child() {
    struct Asks(mpsc::Receiver<Arc<Child>>, mpsc::Sender<Option<Exit>>);
    impl Write for Asks {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let child = self.0.recv().unwrap();
            self.1.send(child.wait(None).unwrap()).unwrap();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let _dog = common::watchdog("a_copy_may_ask_for_its_own_child");
    let (give, given) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let echo = child(&["echo", "x"]).tee_to(StdStream::Stdout, Asks(given, tell));
    give.send(Arc::new(echo.spawn().unwrap())).unwrap();
    assert_eq!(told.recv().unwrap(), Some(Exit::Code(0)));
}

#[test]
fn what_cannot_be_copied_is_refused() {
    let refused = |command: Command<'_>, overflow: Option<Overflow>, words: &str| {
        let Err(Error::Invalid(error)) = command.spawn_with(overflow) else {
            panic!("not refused: {words}");
        };
        assert!(error.to_string().contains(words), "{error}");
    };
    let bare = "needs the streams to be read ahead, and they are bare pipes";
    let ahead = Some(Overflow::default());
    let to_nobody = || child(&["exit", "0"]).tee_to(StdStream::Stdout, io::sink());
    refused(to_nobody(), None, bare);
    refused(child(&["exit", "0"]).keep_full("/x"), None, bare);
    refused(child(&["exit", "0"]).tee_to_file(None, "/x"), None, bare);
    refused(
        to_nobody().stdout(Sink::Null),
        ahead,
        "of stdout needs that stream captured",
    );
    refused(
        child(&["exit", "0"]).on_stdout_line(|_| Ok(())),
        ahead,
        "a callback is for run()",
    );
}

alone! {
    fn who_is_dropped_is_copied_to_its_end() {
        let before = Census::now();
        let copy = Copy::default();
        let mut both = both_said().tee_to(StdStream::Stdout, copy.clone()).spawn().unwrap();
        let stdout = both.stdout.take();
        drop(both);
        assert_eq!(all_of(stdout.unwrap()), b"out\n");
        before.comes_back();
        assert_eq!(copy.taken(), b"out\n");
    }
}
