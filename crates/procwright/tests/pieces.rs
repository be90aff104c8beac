//! Taps that get both streams in the order of reading, taps in place of the relay, and
//! callbacks by the clock.

mod common;

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use common::child;
use procwright::{BoxError, Command, Error, Foreign, Piece, Sink, StdStream, Tap};

type Seen = Arc<Mutex<Vec<(Option<StdStream>, SystemTime, Vec<u8>)>>>;

/// A tap that notes the pieces, and reports each to `told`.
struct Notes {
    seen: Seen,
    told: Option<mpsc::Sender<()>>,
}

impl Notes {
    fn new() -> (Seen, Box<Notes>) {
        let seen = Seen::default();
        let notes = Notes {
            seen: Arc::clone(&seen),
            told: None,
        };
        (seen, Box::new(notes))
    }
}

impl Tap for Notes {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        let noted = (Some(piece.stream), piece.read_at, piece.bytes.to_vec());
        self.seen.lock().unwrap().push(noted);
        if let Some(told) = &self.told {
            let _ = told.send(());
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), BoxError> {
        self.seen
            .lock()
            .unwrap()
            .push((None, SystemTime::now(), Vec::new()));
        Ok(())
    }
}

/// A program that prints a word on each stream in turn, and goes on when the piece has
/// been seen.
fn in_turn(
    words: usize,
    configure: impl FnOnce(Command<'static>, Box<dyn Tap>) -> Command<'static>,
) -> Seen {
    let words =
        (0..words).flat_map(|i| [format!("{}:{i}\\n", ["out", "err"][i % 2]), "ack".into()]);
    let command = Command::new(test_children::path()).arg("says").args(words);
    let (told, acks) = mpsc::channel();
    let (seen, mut notes) = Notes::new();
    notes.told = Some(told);
    let acks = acks.into_iter().map(|()| Ok(Bytes::from_static(b"\n")));
    let output = configure(command.stdin_iter(acks), notes).run().unwrap();
    assert!(output.success(), "{output:?}");
    seen
}

fn is_in_turn(seen: &Seen, words: usize) {
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), words + 1);
    for (i, (stream, _, bytes)) in seen[..words].iter().enumerate() {
        assert_eq!(
            (*stream, &bytes[..]),
            (Some(StdStream::BOTH[i % 2]), format!("{i}\n").as_bytes())
        );
    }
    assert_eq!(seen[words].0, None, "one end for both");
}

#[test]
fn both_streams_come_in_the_order_of_reading() {
    let _dog = common::watchdog("both_streams_come_in_the_order_of_reading");
    let before = SystemTime::now();
    let seen = in_turn(40, |command, notes| command.tap_both(notes));
    is_in_turn(&seen, 40);
    let seen = seen.lock().unwrap();
    assert!(seen[0].1 >= before && seen.is_sorted_by_key(|(_, at, _)| *at));
}

#[test]
fn what_stands_for_the_relay_gets_both() {
    let _dog = common::watchdog("what_stands_for_the_relay_gets_both");
    let seen = in_turn(40, |command, notes| {
        let relayed = command.stdout(Sink::Relay).stderr(Sink::Relay);
        relayed.relay_with(notes)
    });
    is_in_turn(&seen, 40);
}

#[test]
fn the_time_is_that_of_the_read() {
    let _dog = common::watchdog("the_time_is_that_of_the_read");
    /// A tap whose first piece takes longer than the program takes to print the second.
    struct Slow(Seen, mpsc::Receiver<()>);
    impl Tap for Slow {
        fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
            if self.0.lock().unwrap().is_empty() {
                let _ = self.1.recv();
            }
            let noted = (Some(piece.stream), piece.read_at, Vec::new());
            self.0.lock().unwrap().push(noted);
            Ok(())
        }
    }
    let (seen, other) = Notes::new();
    let slow = Seen::default();
    let (go, waits) = mpsc::channel();
    let (told, acks) = mpsc::channel();
    let mut pieces = 0;
    let acks = acks.into_iter().map(move |()| {
        pieces += 1;
        if pieces == 2 {
            let _ = go.send(());
        }
        Ok(Bytes::from_static(b"\n"))
    });
    let other = Box::new(Notes {
        told: Some(told),
        ..*other
    });
    child(&["says", "out:1", "ack", "err:2", "ack"])
        .stdin_iter(acks)
        .tap_both(Box::new(Slow(Arc::clone(&slow), waits)))
        .tap_both(other)
        .run()
        .unwrap();
    let times = |seen: &Seen| -> Vec<_> {
        let seen = seen.lock().unwrap();
        seen.iter()
            .filter(|(stream, ..)| stream.is_some())
            .map(|(stream, at, _)| (*stream, *at))
            .collect()
    };
    assert_eq!(times(&slow), times(&seen));
}

/// A relay whose stdout is gone.
struct HalfGone(Seen);

impl Tap for HalfGone {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        if piece.stream == StdStream::Stdout {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        }
        let noted = (Some(piece.stream), piece.read_at, piece.bytes.to_vec());
        self.0.lock().unwrap().push(noted);
        Ok(())
    }
}

#[test]
fn a_broken_stream_is_closed_and_the_other_goes_on() {
    let _dog = common::watchdog("a_broken_stream_is_closed_and_the_other_goes_on");
    // The shell goes on after its writer of stdout has died.
    let line = "yes; echo \"$?\" >&2; echo more >&2";
    let seen = Seen::default();
    let output = Command::shell(line)
        .stdout(Sink::Relay)
        .stderr(Sink::Relay)
        .relay_with(Box::new(HalfGone(Arc::clone(&seen))))
        .run()
        .unwrap();
    assert!(output.success());
    let seen = seen.lock().unwrap();
    let bytes: Vec<u8> = seen
        .iter()
        .flat_map(|(_, _, bytes)| bytes.clone())
        .collect();
    assert_eq!(String::from_utf8_lossy(&bytes), "141\nmore\n");
    let info = output.report.stdout_info.as_ref().unwrap();
    assert!(info.undelivered_bytes > 0);
    assert_eq!(
        output
            .report
            .stderr_info
            .as_ref()
            .unwrap()
            .undelivered_bytes,
        0
    );
}

#[test]
fn another_error_of_the_relay_stops_the_run() {
    let _dog = common::watchdog("another_error_of_the_relay_stops_the_run");
    struct Fails;
    impl Tap for Fails {
        fn piece(&mut self, _: Piece<'_>) -> Result<(), BoxError> {
            Err("enough".into())
        }
    }
    let result = child(&["flood-forever"])
        .stdout(Sink::Relay)
        .relay_with(Box::new(Fails))
        .run();
    let Err(Error::Foreign {
        what: Foreign::Relay,
        source,
        ..
    }) = result
    else {
        panic!("{result:?}");
    };
    assert_eq!(source.to_string(), "enough");
}

#[test]
fn a_held_stream_goes_on_when_the_other_has_been_let_in() {
    let _dog = common::watchdog("a_held_stream_goes_on_when_the_other_has_been_let_in");
    // Both streams flood one queue that is full again and again. The lost wake-up was:
    // 1. stream A finds no room and is told to wait; 2. stream B finds room meanwhile;
    // 3. stream A is never woken.
    struct Counts(Arc<Mutex<[u64; 2]>>);
    impl Tap for Counts {
        fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
            self.0.lock().unwrap()[piece.stream as usize] += piece.bytes.len() as u64;
            Ok(())
        }
    }
    let counted = Arc::new(Mutex::new([0; 2]));
    child(&["flood", "--out", "200M", "--err", "200M"])
        .stdout(Sink::Relay)
        .stderr(Sink::Relay)
        .relay_with(Box::new(Counts(Arc::clone(&counted))))
        .run()
        .unwrap();
    assert_eq!(*counted.lock().unwrap(), [200 << 20; 2]);
}

#[test]
fn the_clock_tells_how_far_it_is() {
    let _dog = common::watchdog("the_clock_tells_how_far_it_is");
    let period = Duration::from_millis(20);
    let (say, said) = mpsc::channel();
    let moments = RefCell::new(Vec::new());
    let started = Instant::now();
    // The program ends once the clock's callback has run three times.
    child(&["says", "out:12345", "err:67", "ack"])
        .stdin_iter(said.into_iter().map(|()| Ok(Bytes::from_static(b"\n"))))
        .every(period, |moment| {
            moments
                .borrow_mut()
                .push((moment.pid, moment.stopping, started.elapsed()));
            let has = |flow: Option<procwright::Flow>, bytes| flow.unwrap().bytes == bytes;
            if has(moment.stdout, 5) && has(moment.stderr, 2) && moments.borrow().len() >= 3 {
                let _ = say.send(());
            }
        })
        .run()
        .unwrap();
    let moments = moments.into_inner();
    assert!(moments.len() >= 3);
    for (i, (pid, stopping, at)) in moments.iter().enumerate() {
        assert!(*at >= period * (i as u32 + 1), "{moments:?}");
        assert!(*pid > 0 && !stopping);
    }
}

#[test]
fn the_time_blocked_is_told_while_it_lasts() {
    let _dog = common::watchdog("the_time_blocked_is_told_while_it_lasts");
    /// A tap that takes no piece more until it is released.
    struct Waits(mpsc::Receiver<()>);
    impl Tap for Waits {
        fn piece(&mut self, _: Piece<'_>) -> Result<(), BoxError> {
            let _ = self.0.recv();
            Ok(())
        }
    }
    let (go, waits) = mpsc::channel();
    let mut go = Some(go);
    child(&["flood", "--out", "40M"])
        .tap_both(Box::new(Waits(waits)))
        .every(Duration::from_millis(10), |moment| {
            if moment.stdout.unwrap().blocked.unwrap() > Duration::from_millis(50) {
                go = None;
            }
        })
        .run()
        .unwrap();
    assert!(go.is_none());
}

#[test]
fn what_cannot_be_is_refused() {
    let (_, notes) = Notes::new();
    let result = child(&["exit", "0"]).relay_with(notes).run();
    assert!(
        matches!(&result, Err(Error::Invalid(invalid)) if invalid.what() == "relay_with"),
        "{result:?}"
    );
    let (_, notes) = Notes::new();
    let inherits = child(&["exit", "0"]).stdout(Sink::Null).stderr(Sink::Null);
    assert!(matches!(
        inherits.tap_both(notes).run(),
        Err(Error::Invalid(_))
    ));
    let spawned = child(&["exit", "0"])
        .every(Duration::from_secs(1), |_| {})
        .spawn();
    assert!(matches!(spawned, Err(Error::Invalid(_))));
}

/// A tap that waits in its first piece, and is dropped at the end of its thread.
struct Stuck {
    pieces: mpsc::Sender<()>,
    release: mpsc::Receiver<()>,
}

impl Tap for Stuck {
    fn piece(&mut self, _: Piece<'_>) -> Result<(), BoxError> {
        self.pieces.send(())?;
        let _ = self.release.recv();
        Ok(())
    }
}

#[test]
fn what_was_given_up_is_not_passed_on_later() {
    let _dog = common::watchdog("what_was_given_up_is_not_passed_on_later");
    let (told, release) = common::in_time(Duration::from_millis(300), |limit| {
        let (pieces, told) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let relay = Stuck {
            pieces,
            release: released,
        };
        let output = Command::new("cat")
            .arg("/dev/zero")
            .stdout(Sink::Relay)
            .relay_with(Box::new(relay))
            .timeout(limit)
            .stopped_is_ok()
            .run()
            .unwrap();
        let info = output.report.stdout_info.as_ref().unwrap();
        (info.undelivered_bytes > 1024 * 1024).then_some((told, release))
    });
    assert_eq!(told.try_iter().count(), 1);
    drop(release);
    // The channel closes when the thread has ended.
    assert_eq!(told.iter().count(), 0);
}
