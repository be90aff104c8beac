//! A queue, one lane of which is filled with nonsense: a program of a few bytes says how.
//! Used by the fuzzers, and by a test.
//!
//! The driver uses the public interface and the queue's file alone, as any invited process
//! can. So it is the real memory, where a wrong offset is a SIGBUS.
#![allow(dead_code)] // each fuzzer uses a part of it

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use procwright_queue::{Error, Options, Receiver, Sender};

// Offsets as docs/reference/queue-format.md has them: three lanes, a first block of 4 KiB,
// four blocks.
const SECTION: u64 = 64 * 1024;
const LANES: u32 = 3;
const FIRST: u64 = 4096;
const BLOCKS: u64 = 4;
const WINDOW: u64 = FIRST * ((1 << BLOCKS) - 1);
const HEAD: u64 = 18 * SECTION;
const DONE: u64 = HEAD + 8;
const SLEEP: u64 = 19 * SECTION;
const CLAIMS: u64 = SLEEP + 128;
const TAIL: u64 = 20 * SECTION;
const SPACE: u64 = TAIL + 128;
const PEER: u64 = TAIL + 256;
const GUEST: u64 = TAIL + 260;
const BLOCK: u64 = TAIL + SECTION;

/// The rest of a program. Beyond its end there are zeros.
#[derive(Clone, Copy)]
struct Program<'a>(&'a [u8]);

impl Program<'_> {
    fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    fn number(&mut self, bytes: usize) -> u64 {
        (0..bytes).fold(0, |number, at| number | u64::from(self.byte()) << (8 * at))
    }
}

/// One write to the file.
struct Write {
    at: u64,
    bytes: Vec<u8>,
}

impl Write {
    fn word(at: u64, word: u64) -> Write {
        let bytes = word.to_le_bytes().to_vec();
        Write { at, bytes }
    }

    /// Writes anything, or nearly what could be there.
    fn next(program: &mut Program<'_>) -> Write {
        let cursor = |program: &mut Program<'_>| {
            let block = u64::from(program.byte() % 5);
            block << 59 | program.number(2)
        };
        match program.byte() % 8 {
            0 => Write::word(TAIL, program.number(8)),
            1 => Write::word(TAIL, cursor(program)),
            2 => Write::word(HEAD, program.number(8)),
            3 => Write::word(
                [HEAD, DONE][usize::from(program.byte() % 2)],
                cursor(program),
            ),
            4 => {
                let at = program.number(2) * 8 % WINDOW;
                Write::word(BLOCK + at, program.number(8))
            }
            // A record that could stand where it does.
            5 => {
                let block = u64::from(program.byte() % 4);
                let offset = program.number(2) * 8 % (FIRST << block);
                let position = offset + u64::from(program.byte()) * (FIRST << block);
                let kind = u64::from(program.byte() % 5);
                let is_message = matches!(kind, 1 | 4);
                let length = program.number(if is_message { 2 } else { 1 });
                let word = length | kind << 32 | (position >> 3 & 0xffff) << 48;
                Write::word(BLOCK + FIRST * ((1 << block) - 1) + offset, word)
            }
            6 => {
                let at = [SLEEP, CLAIMS, SPACE, PEER, GUEST][usize::from(program.byte() % 5)];
                let bytes = program.number(4).to_le_bytes()[..4].to_vec();
                Write { at, bytes }
            }
            _ => {
                let at = program.number(3) % (SECTION + WINDOW);
                let length = u64::from(program.byte()).min(SECTION + WINDOW - at);
                let bytes = (0..length).map(|_| program.byte()).collect();
                Write {
                    at: TAIL + at,
                    bytes,
                }
            }
        }
    }

    fn make(&self, file: &File) {
        file.write_all_at(&self.bytes, self.at).expect("a write");
    }
}

/// The ends of a queue. Nonsense is written to the first lane.
struct Stage {
    receiver: Receiver,
    file: File,
    spoilt: Option<Sender>,
    /// Sender of the other lane; how many messages were sent there, and have come.
    clean: Sender,
    sent: u64,
    came: u64,
}

const MARK: &[u8] = b"unharmed";

impl Stage {
    fn new() -> Stage {
        let options = Options::new().lanes(LANES).first(FIRST as usize);
        let mut receiver = options.limit(WINDOW as usize).create().expect("a queue");
        let file = receiver.invite().expect("an invitation").files()[0]
            .try_clone_to_owned()
            .expect("a descriptor");
        let spoilt = Some(receiver.sender().expect("the first lane"));
        let clean = receiver.sender().expect("the second lane");
        Stage {
            receiver,
            file: file.into(),
            spoilt,
            clean,
            sent: 0,
            came: 0,
        }
    }

    fn send_clean(&mut self) {
        let message = [MARK, &self.sent.to_le_bytes()].concat();
        match self.clean.try_send(&message) {
            Ok(()) => self.sent += 1,
            Err(Error::Full) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// A fuzzer finds out how to write a message that looks like those of the other lane;
    /// but one of those that is lost, or comes too late, is missed.
    fn came(&mut self, message: &[u8]) {
        let is_next = message.starts_with(MARK) && message[MARK.len()..] == self.came.to_le_bytes();
        self.came += u64::from(is_next);
    }

    /// Receives. Returns whether there may be more.
    fn receive(&mut self) -> bool {
        let message = match self.receiver.try_recv() {
            Ok(message) => message,
            Err(Error::Empty) => return false,
            Err(Error::Damaged { lane: 0, .. }) => return true,
            Err(error) => panic!("{error}"),
        };
        self.came(&message);
        true
    }

    fn act(&mut self, program: &mut Program<'_>) {
        match program.byte() % 6 {
            0 | 1 => {
                let length = program.number(2) as usize % 9000;
                if let Some(sender) = &mut self.spoilt {
                    let _ = sender.try_send(&vec![0x11; length]);
                }
            }
            2 => self.send_clean(),
            3 => {
                for _ in 0..program.byte() {
                    if !self.receive() {
                        break;
                    }
                }
            }
            4 => {
                let lengths = [program.byte(), program.byte(), program.byte()];
                if let Some(sender) = &mut self.spoilt {
                    sender.set_overflow(procwright_queue::Overflow::DropNewest);
                    let _ =
                        sender.send_many(lengths.iter().map(|n| &[0x22; 256][..usize::from(*n)]));
                }
            }
            _ if program.byte().is_multiple_of(4) => {
                // The lane is taken back, and it or another taken anew.
                self.spoilt = None;
                while self.receive() {}
                self.spoilt = self.clean.try_clone().ok();
            }
            _ => {
                if let Ok(message) = self.receiver.recv_timeout(Duration::ZERO) {
                    self.came(&message);
                }
            }
        }
    }

    /// Checks that there is an end, that the other lane is unharmed, and that all lanes are
    /// good again.
    fn end(mut self) {
        self.spoilt = None;
        for _ in 0..100 {
            self.send_clean();
        }
        let mut looks = 0;
        while self.came < self.sent || self.receive() {
            if self.came < self.sent {
                self.receive();
            }
            // Messages of the first lane are at most as many as records fit into it, on
            // their way once more, and a few lanes that are found damaged.
            looks += 1;
            assert!(looks < 2 * WINDOW / 8 + 1000, "no end");
        }
        for _ in 0..3 {
            // A new sender may find nonsense in a free lane.
            if let Ok(mut sender) = self.clean.try_clone() {
                let sent = sender.try_send(b"again");
                assert!(sent.is_ok(), "{sent:?}");
            }
            while self.receive() {}
        }
    }
}

/// Runs the writes and all else, one after the other.
pub(crate) fn run(program: &[u8]) {
    let mut program = Program(program);
    let mut stage = Stage::new();
    while !program.0.is_empty() {
        match program.byte() % 2 {
            0 => Write::next(&mut program).make(&stage.file),
            _ => stage.act(&mut program),
        }
    }
    stage.end();
}

/// Runs all else while another thread writes.
pub(crate) fn run_with_mutator(program: &[u8]) {
    let (mut writes, mut acts) = match program {
        [at, rest @ ..] => {
            let (writes, acts) = rest.split_at(rest.len() * usize::from(*at) / 256);
            (Program(writes), Program(acts))
        }
        [] => return,
    };
    let mut stage = Stage::new();
    let file = stage.file.try_clone().expect("a descriptor");
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut all = Vec::new();
            while !writes.0.is_empty() {
                all.push(Write::next(&mut writes));
            }
            // The thread writes again and again, as fast as that goes.
            for _ in 0..20 {
                all.iter().for_each(|write| write.make(&file));
            }
        });
        while !acts.0.is_empty() {
            stage.act(&mut acts);
        }
        // The thread has really ended then: what it leaves for its end is no leak.
        writer.join().expect("no panic");
    });
    stage.end();
}
