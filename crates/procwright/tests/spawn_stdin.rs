//! Input that a spawned child gets in the background.

mod common;

use std::io::Read;
use std::time::Duration;
use test_support::alone;

use bytes::Bytes;
use common::{Census, child};
use procwright::process::{Exit, Stop};
use procwright::{BoxError, Reason, WaitError};

fn input() -> Vec<u8> {
    (0..1 << 20).map(|i| (i % 251) as u8).collect()
}

fn read(child: &mut procwright::Child) -> Vec<u8> {
    let mut data = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut data).unwrap();
    data
}

alone! {
    fn a_little_needs_no_thread() {
        let before = Census::now();
        let mut cat = child(&["cat"]).stdin_bytes("hello").spawn_with(None).unwrap();
        assert_eq!(common::threads(), before.threads);
        assert!(cat.stdin.is_none());
        assert_eq!(read(&mut cat), b"hello");
        assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
        let mut cat = child(&["cat"]).stdin_bytes("").spawn_with(None).unwrap();
        assert_eq!(read(&mut cat), b"");
    }
}

alone! {
    fn much_is_fed_while_it_is_read_and_spawn_does_not_wait() {
        let before = Census::now();
        for overflow in [None, Some(procwright::Overflow::default())] {
            let mut cat = child(&["cat"]).stdin_bytes(input()).spawn_with(overflow).unwrap();
            assert!(read(&mut cat) == input());
            assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
        }
        before.comes_back();
    }
}

alone! {
    fn an_iterator_and_a_reader_are_fed() {
        let before = Census::now();
        let chunks: Vec<Result<Bytes, BoxError>> =
            input().chunks(10_000).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        let mut cat = child(&["cat"]).stdin_iter(chunks).spawn().unwrap();
        assert!(read(&mut cat) == input());
        assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
        drop(cat);
        let mut cat = child(&["cat"]).stdin_reader(std::io::Cursor::new(input())).spawn().unwrap();
        assert!(read(&mut cat) == input());
        drop(cat);
        before.comes_back();
    }
}

alone! {
    fn a_child_that_reads_no_more_is_no_error() {
        let before = Census::now();
        let deaf = child(&["close-stdin-exit", "3"]).stdin_bytes(input()).spawn().unwrap();
        assert_eq!(deaf.wait(None).unwrap(), Some(Exit::Code(3)));
        drop(deaf);
        let endless = std::iter::repeat_with(|| Ok(Bytes::from_static(&[7; 4096])));
        let deaf = child(&["close-stdin-exit", "4"]).stdin_iter(endless).spawn().unwrap();
        assert_eq!(deaf.wait(None).unwrap(), Some(Exit::Code(4)));
        drop(deaf);
        before.comes_back();
    }
}

fn failing(
    then: impl Fn() -> Option<Result<Bytes, BoxError>> + Send + 'static,
) -> procwright::Child {
    let mut first = true;
    let chunks = std::iter::from_fn(move || match std::mem::replace(&mut first, false) {
        true => Some(Ok(Bytes::from_static(b"half of it"))),
        false => then(),
    });
    let command = child(&["cat"]).stdin_iter(chunks);
    command
        .stop(Stop::new().with_grace(Duration::from_secs(3600)))
        .spawn()
        .unwrap()
}

alone! {
    fn an_error_of_the_iterator_stops_the_child_and_is_told_once() {
        let before = Census::now();
        {
            let (go, gone) = std::sync::mpsc::channel();
            let mut cat = failing(move || {
                gone.recv().unwrap();
                Some(Err("for the test".into()))
            });
            // A first half is read before the stop, so that `cat` has passed it on.
            let mut half = [0; 10];
            cat.stdout.as_mut().unwrap().read_exact(&mut half).unwrap();
            assert_eq!(&half, b"half of it");
            go.send(()).unwrap();
            let error = cat.wait(None).unwrap_err();
            assert!(matches!(&error, WaitError::Stdin(error) if error.to_string() == "for the test"));
            assert!(error.to_string().contains("stdin"), "{error}");
            let exit = cat.wait(None).unwrap().unwrap();
            assert!(exit.signal().is_some(), "{exit}");
            assert_eq!(read(&mut cat), b"");
            common::eventually(|| cat.report().unwrap().reason == Reason::Cancelled);
        }
        before.comes_back();
    }
}

alone! {
    fn a_panic_of_the_iterator_does_too() {
        let cat = failing(|| panic!("for the test"));
        let error = cat.wait(None).unwrap_err();
        assert!(matches!(&error, WaitError::Stdin(_)) && error.to_string().contains("panicked"));
    }
}

alone! {
    fn a_dropped_child_gets_the_rest_of_its_input() {
        let before = Census::now();
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("copy");
        let sink = procwright::Sink::File { path: copy.clone(), append: false };
        let cat = child(&["cat"]).stdin_bytes(input()).stdout(sink).spawn().unwrap();
        drop(cat);
        before.comes_back();
        assert!(std::fs::read(copy).unwrap() == input());
    }
}
