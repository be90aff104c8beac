//! Streams that are closed while their readers are blocked, and children that have to
//! learn of the close.

mod common;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use test_support::alone;

use common::{Census, child, eventually, figure, scaled, timed};
use procwright::process::{Exit, Signal};
use procwright::stream::{Chunk, Closed, Patience, Reader};
use procwright::{Child, Overflow, Stdin};
use test_children::{Pattern, Stream};

const SMALL: u64 = 64 << 10;

const KINDS: [Option<Overflow>; 5] = [
    None,
    Some(Overflow::Spill {
        memory: SMALL,
        disk: None,
    }),
    Some(Overflow::Block { memory: SMALL }),
    Some(Overflow::DropOldest { memory: SMALL }),
    Some(Overflow::DropNewest { memory: SMALL }),
];

fn died_of_it(child: &Child) {
    let exit = child.wait(None).unwrap();
    assert_eq!(exit.and_then(Exit::signal), Some(Signal::PIPE));
}

/// Whether all threads of this process but the calling one sleep. A comparison with an
/// earlier number of sleepers would not do: the library's threads may have been awake
/// then.
fn all_others_sleep() -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let awake = tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok())
        .filter(|stat| !stat.contains(") S "));
    awake.count() <= 1
}

alone! {
    fn a_child_learns_of_a_close_under_blocked_readers() {
        let before = Census::now();
        for overflow in KINDS {
            for count in [1, scaled(50, 1_000) as usize] {
                let mut silent = child(&["bursts"])
                    .stdin(Stdin::Pipe)
                    .spawn_with(overflow)
                    .unwrap();
                let stdout = silent.stdout.take().unwrap();
                eventually(|| common::state(silent.pid()) == Some('S'));
                let readers: Vec<_> = (0..count)
                    .map(|_| {
                        let mut stdout = stdout.clone();
                        std::thread::spawn(move || stdout.read(&mut [0; 8]).unwrap_err())
                    })
                    .collect();
                eventually(all_others_sleep);
                let (first, took) = timed(|| stdout.close());
                assert!(first);
                for reader in readers {
                    assert!(Closed::is(&reader.join().unwrap()));
                }
                if count > 1 {
                    figure(&format!("{overflow:?}, {count} readers: closed in {took:?}"));
                }
                // More than a pipe holds, so the child has to notice the close.
                let stdin = silent.stdin.take().unwrap();
                (&stdin).write_all(b"4194304\n").unwrap();
                died_of_it(&silent);
            }
        }
        before.comes_back();
    }
}

alone! {
    fn a_child_that_is_held_up_learns_of_a_close() {
        for overflow in KINDS {
            let lossless = overflow.is_none_or(Overflow::is_lossless);
            let flood = child(&["flood-forever"]).spawn_with(overflow).unwrap();
            let stdout = flood.stdout.as_ref().unwrap();
            match overflow {
                // The close comes in the middle of spilling.
                Some(Overflow::Spill { .. }) => {
                    eventually(|| stdout.figures().unwrap().spilled_bytes > 4 << 20);
                }
                _ if lossless => eventually(|| common::state(flood.pid()) == Some('S')),
                _ => eventually(|| stdout.figures().unwrap().dropped_bytes > 4 << 20),
            }
            assert!(stdout.close());
            died_of_it(&flood);
        }
    }
}

/// Reads and checks bytes until the end or the close; whether it was the end, and the
/// offset reached.
fn read(reader: &Reader, closing: &AtomicBool, lossless: bool) -> (bool, u64) {
    let mut buffer = vec![0; 20_000];
    let pattern = Pattern::new(Stream::Stdout, buffer.len());
    let mut at = 0;
    loop {
        match reader.read_with(&mut buffer, Patience::NEVER_ENDING) {
            Ok(Chunk::Bytes(n)) => {
                assert_eq!(pattern.mismatch(at, &buffer[..n]), None);
                at += n as u64;
            }
            Ok(Chunk::Gap(n)) => {
                assert!(!lossless);
                at += n;
            }
            Ok(_) => return (true, at),
            Err(error) => {
                assert!(Closed::is(&error), "{error}");
                assert!(closing.load(Ordering::SeqCst), "nobody closed");
                return (false, at);
            }
        }
    }
}

alone! {
    fn a_close_at_any_moment_of_a_childs_life() {
        let before = Census::now();
        let rounds = scaled(200, 10_000);
        let (mut ended, mut killed) = (0, 0);
        let ((), took) = timed(|| for round in 0..rounds {
            let overflow = KINDS[round as usize % KINDS.len()];
            let lossless = overflow.is_none_or(Overflow::is_lossless);
            let bytes = 1 + round * 7_919 % 300_000;
            let flood = child(&["flood", "--out", &bytes.to_string(), "--chunk", "3000"])
                .spawn_with(overflow)
                .unwrap();
            let stdout = flood.stdout.as_ref().unwrap();
            let closing = AtomicBool::new(false);
            let (whole, at) = std::thread::scope(|scope| {
                let reader = scope.spawn(|| read(stdout, &closing, lossless));
                for _ in 0..round * 31 % 400 {
                    std::thread::yield_now();
                }
                closing.store(true, Ordering::SeqCst);
                assert!(stdout.close());
                reader.join().unwrap()
            });
            assert!(at <= bytes);
            match flood.wait(None).unwrap().unwrap() {
                Exit::Code(0) => ended += 1,
                exit => {
                    assert_eq!(exit.signal(), Some(Signal::PIPE));
                    assert!(!whole);
                    killed += 1;
                }
            }
            if whole {
                assert_eq!(at, bytes);
            }
        });
        assert!(ended > 0 && killed > 0, "{ended} {killed}");
        figure(&format!("{rounds} rounds in {took:?}: {ended} ended, {killed} were told by SIGPIPE"));
        before.comes_back();
    }
}
