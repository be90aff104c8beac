//! A child's whole input and output, exchanged at once.

mod common;

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::time::Duration;
use test_support::alone;

use common::{Census, child};
use procwright::process::Exit;
use procwright::stream::{Closed, Patience, Stalled};
use procwright::{Overflow, Sink, Stdin};
use test_children::{Pattern, Stream};

const POLICIES: [Option<Overflow>; 4] = [
    None,
    Some(Overflow::Block { memory: 64 << 10 }),
    Some(Overflow::Spill {
        memory: 64 << 10,
        disk: None,
    }),
    Some(Overflow::Spill {
        memory: 16 << 20,
        disk: None,
    }),
];

fn input() -> Vec<u8> {
    (0..4 << 20).map(|i| (i % 251) as u8).collect()
}

alone! {
    fn more_than_the_pipes_hold_goes_both_ways() {
        let before = Census::now();
        for overflow in POLICIES {
            let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            let mut talk = cat.communicate(input());
            talk.proceed(None).unwrap();
            assert!(talk.is_done() && talk.unwritten() == 0 && talk.dropped() == [0, 0]);
            assert!(talk.into_outputs()[0] == input());
            assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
        }
        before.comes_back();
    }
}

alone! {
    fn it_goes_on_after_timeouts_and_interrupts() {
        for overflow in POLICIES {
            let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            let mut talk = cat.communicate(input());
            let (ring, bell) = std::io::pipe().unwrap();
            drop(bell);
            let rung = Patience::NEVER_ENDING.or_readable(ring.as_fd());
            let (mut timeouts, mut interrupts) = (0, 0);
            loop {
                let interrupted = timeouts > interrupts;
                let result = match interrupted {
                    true => talk.proceed(rung),
                    false => talk.proceed(Duration::ZERO),
                };
                match result.map_err(|error| error.kind()) {
                    Ok(()) => break,
                    Err(ErrorKind::Interrupted) => interrupts += 1,
                    Err(ErrorKind::TimedOut) => timeouts += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            assert!(timeouts > 1 && interrupts > 1);
            assert!(talk.into_outputs()[0] == input());
            cat.wait(None).unwrap();
        }
    }
}

alone! {
    fn both_outputs_are_read() {
        for overflow in POLICIES {
            let mut flood = child(&["flood", "--out", "2M", "--err", "3M"]).spawn_with(overflow).unwrap();
            let mut talk = flood.communicate(Vec::new());
            talk.proceed(None).unwrap();
            let streams = [(Stream::Stdout, 2 << 20), (Stream::Stderr, 3 << 20)];
            for ((stream, length), data) in streams.into_iter().zip(talk.into_outputs()) {
                assert_eq!(data.len(), length);
                assert_eq!(Pattern::new(stream, length).mismatch(0, &data), None);
            }
            flood.wait(None).unwrap();
        }
    }
}

alone! {
    fn a_child_that_does_not_read_is_no_error() {
        let mut deaf = child(&["close-stdin-exit", "3"]).stdin(Stdin::Pipe).spawn().unwrap();
        let mut talk = deaf.communicate(input());
        talk.proceed(None).unwrap();
        assert!(talk.unwritten() > 0);
        assert_eq!(deaf.wait(None).unwrap(), Some(Exit::Code(3)));
    }
}

alone! {
    fn nothing_to_do_is_done() {
        let mut none = child(&["exit", "0"]).stdout(Sink::Null).stderr(Sink::Null).spawn().unwrap();
        let mut talk = none.communicate("ignored");
        talk.proceed(Duration::ZERO).unwrap();
        assert_eq!(talk.into_outputs(), [Vec::<u8>::new(), Vec::new()]);
        none.wait(None).unwrap();
    }
}

alone! {
    fn drops_are_counted() {
        let overflow = Overflow::DropOldest { memory: 64 << 10 };
        let mut flood = child(&["flood", "--out", "1M"]).spawn_with(overflow).unwrap();
        flood.wait(None).unwrap();
        let mut talk = flood.communicate(Vec::new());
        talk.proceed(None).unwrap();
        let dropped = talk.dropped()[0];
        assert!(dropped > 0);
        assert_eq!(talk.outputs()[0].len() as u64 + dropped, 1 << 20);
    }
}

alone! {
    fn what_somebody_else_closes_does_not_keep_the_rest_from_being_read() {
        for overflow in POLICIES {
            let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            let stdin = cat.stdin.clone().unwrap();
            let mut talk = cat.communicate(input());
            let error = talk.proceed(Duration::ZERO).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            stdin.close();
            let error = talk.proceed(None).unwrap_err();
            assert!(Closed::is(&error), "{error}");
            talk.proceed(None).unwrap();
            let written = input().len() - talk.unwritten();
            assert!(written > 0 && talk.unwritten() > 0);
            assert!(talk.into_outputs()[0] == input()[..written]);
            assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
        }
    }
}

alone! {
    fn an_output_that_somebody_else_does_not_read_is_told_of() {
        for overflow in &POLICIES[..2] {
            // Once with input that `cat` does not read for want of room, and once
            // without any.
            let mut cat = child(&["cat"])
                .stdin(Stdin::Pipe)
                .stall_after(Duration::from_millis(50))
                .spawn_with(*overflow)
                .unwrap();
            let mut theirs = cat.stdout.take().unwrap();
            let mut talk = cat.communicate(input());
            let error = talk.proceed(None).unwrap_err();
            let stalled = Stalled::of(&error).unwrap_or_else(|| panic!("{error}"));
            assert!(stalled.writing && stalled.streams[0].name == "stdout");
            let reading = std::thread::spawn(move || std::io::copy(&mut theirs, &mut std::io::sink()).unwrap());
            while let Err(error) = talk.proceed(None) {
                assert!(Stalled::of(&error).is_some(), "{error}");
            }
            assert_eq!(reading.join().unwrap(), input().len() as u64);
            cat.wait(None).unwrap();

            let mut flood = child(&["flood", "--out", "1M", "--err", "1M"])
                .stall_after(Duration::from_millis(50))
                .spawn_with(*overflow)
                .unwrap();
            let mut theirs = flood.stderr.take().unwrap();
            let mut talk = flood.communicate(Vec::new());
            let error = talk.proceed(None).unwrap_err();
            let stalled = Stalled::of(&error).unwrap_or_else(|| panic!("{error}"));
            assert!(!stalled.writing && stalled.streams[0].name == "stderr");
            let reading = std::thread::spawn(move || std::io::copy(&mut theirs, &mut std::io::sink()).unwrap());
            while let Err(error) = talk.proceed(None) {
                assert!(Stalled::of(&error).is_some(), "{error}");
            }
            assert_eq!(reading.join().unwrap(), 1 << 20);
            assert_eq!(talk.outputs()[0].len(), 1 << 20);
            flood.wait(None).unwrap();
        }
    }
}
