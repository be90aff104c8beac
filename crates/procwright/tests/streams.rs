//! What a caller holds of a child's streams, beyond reading and writing them:
//! interrupts, gaps, readiness.

mod common;

use std::io::{Read, Write};
use std::os::fd::AsFd;

use common::child;
use procwright::process::{Exit, Signal};
use procwright::stream::{Chunk, Closed, Patience};
use procwright::{Overflow, Stdin};
use test_children::{Pattern, Stream};

/// The bare pipe, and what is read ahead.
const BOTH: [Option<Overflow>; 2] = [
    None,
    Some(Overflow::Spill {
        memory: 1 << 20,
        disk: None,
    }),
];

alone! {
    fn an_interrupt_ends_a_read_which_can_be_taken_up_again() {
        for overflow in BOTH {
            let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            let (stdout, mut stdin) = (cat.stdout.take().unwrap(), cat.stdin.take().unwrap());
            let (mut interrupt, mut bell) = std::io::pipe().unwrap();
            let twin = interrupt.try_clone().unwrap();
            let patience = Patience::NEVER_ENDING.or_readable(twin.as_fd());
            std::thread::scope(|scope| {
                let readers: Vec<_> = (0..20)
                    .map(|_| scope.spawn(|| stdout.read_with(&mut [0; 8], patience).unwrap_err()))
                    .collect();
                bell.write_all(b"!").unwrap();
                for reader in readers {
                    assert_eq!(reader.join().unwrap().kind(), std::io::ErrorKind::Interrupted);
                }
            });
            interrupt.read_exact(&mut [0]).unwrap();
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| stdout.read_with(&mut [0; 8], patience).unwrap());
                stdin.write_all(b"abc").unwrap();
                assert_eq!(reader.join().unwrap(), Chunk::Bytes(3));
                let closed = scope.spawn(|| stdout.read_with(&mut [0; 8], patience).unwrap_err());
                stdout.close();
                assert!(Closed::is(&closed.join().unwrap()));
            });
        }
    }
}

alone! {
    fn an_interrupt_ends_a_write() {
        let mut deaf = child(&["sleep-forever"]).stdin(Stdin::Pipe).spawn().unwrap();
        let stdin = deaf.stdin.take().unwrap();
        let (interrupt, mut bell) = std::io::pipe().unwrap();
        bell.write_all(b"!").unwrap();
        let patience = Patience::NEVER_ENDING.or_readable(interrupt.as_fd());
        // As long as there is room nothing waits, and nothing is interrupted.
        let mut written = 0;
        let error = loop {
            match stdin.write_with(&[7; 4096], patience) {
                Ok(n) => written += n,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::Interrupted);
        assert!(written >= 4096, "{written}");
        deaf.signal(Signal::KILL).unwrap();
        deaf.wait(None).unwrap();
    }
}

alone! {
    fn gaps_are_told_where_they_are() {
        let memory = 64 << 10;
        let size = 8 << 20;
        for overflow in [Overflow::DropOldest { memory }, Overflow::DropNewest { memory }] {
            let mut flood = child(&["flood", "--out", "8M"]).spawn_with(overflow).unwrap();
            assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
            let stdout = flood.stdout.take().unwrap();
            let pattern = Pattern::new(Stream::Stdout, size as usize);
            let (mut at, mut gaps) = (0, 0);
            let mut buffer = vec![0; 4096];
            loop {
                match stdout.read_with(&mut buffer, Patience::NEVER_ENDING).unwrap() {
                    Chunk::Bytes(n) => {
                        assert_eq!(pattern.mismatch(at, &buffer[..n]), None, "at {at}");
                        at += n as u64;
                    }
                    Chunk::Gap(n) => {
                        at += n;
                        gaps += n;
                    }
                    Chunk::End => break,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(at, size);
            assert_eq!(gaps, stdout.figures().unwrap().dropped_bytes);
            assert!(gaps > 0);
        }
    }
}
