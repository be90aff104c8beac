//! Descriptors of the kernel: a pipe for each sender, with the length before each
//! message, and a pair of SEQPACKET sockets.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use nix::unistd::{pipe, read, write};
use procwright_bench::subject_queue::{Pause, Plan, Rx, Tx, Way};

/// One pipe a sender: in a shared one nothing above 4 KiB stays in one piece.
pub struct Pipe;

/// One pair for all senders, which keeps messages apart; of messages that are too long
/// for one packet one for each, and pieces.
pub struct Seqpacket;

/// The ends where to read and where to write.
pub type Common = Vec<(OwnedFd, OwnedFd)>;

/// A packet has at most this; more is refused or needs memory in one piece.
const PACKET: usize = 64 << 10;
/// What one read brings at most of short messages.
const BUFFER: usize = 256 << 10;
/// The kernel gives as much to everybody.
const PIPE: i32 = 1 << 20;

fn refused(error: Errno) -> String {
    io::Error::from(error).to_string()
}

impl Way for Pipe {
    type Common = Common;
    type Rx = Receiver;
    type Tx = Sender;

    fn common(plan: &Plan) -> Result<Common, String> {
        if plan.room > 0 {
            return Err("it has at most 1 MiB".into());
        }
        let pipes = (0..plan.senders).map(|_| {
            let (rx, tx) = pipe().map_err(refused)?;
            // More than the usual 64 KiB if there is some left for this user.
            let _ = fcntl(&tx, FcntlArg::F_SETPIPE_SZ(PIPE));
            prepare(&rx, &tx, plan)?;
            Ok((rx, tx))
        });
        pipes.collect()
    }

    fn receiver(common: &Common, plan: &Plan, _: &[UnixStream]) -> Receiver {
        Receiver::new(common, plan, 8, BUFFER.max(2 * (plan.length + 8)))
    }

    fn sender(common: &Common, plan: &Plan, number: usize, _: &UnixStream) -> Sender {
        Sender::new(&common[number].1, plan, 8, usize::MAX)
    }
}

impl Way for Seqpacket {
    type Common = Common;
    type Rx = Receiver;
    type Tx = Sender;

    fn common(plan: &Plan) -> Result<Common, String> {
        if plan.room > 0 {
            return Err("it has a socket's buffer".into());
        }
        let pairs = if plan.length > PACKET {
            plan.senders
        } else {
            1
        };
        let pairs = (0..pairs).map(|_| {
            let (rx, tx) = socketpair(
                AddressFamily::Unix,
                SockType::SeqPacket,
                None,
                SockFlag::empty(),
            )
            .map_err(refused)?;
            // Cut to what the system allows.
            let _ = setsockopt(&tx, sockopt::SndBuf, &(1 << 20));
            prepare(&rx, &tx, plan)?;
            Ok((rx, tx))
        });
        pairs.collect()
    }

    fn receiver(common: &Common, plan: &Plan, _: &[UnixStream]) -> Receiver {
        Receiver::new(common, plan, 0, plan.length)
    }

    fn sender(common: &Common, plan: &Plan, number: usize, _: &UnixStream) -> Sender {
        Sender::new(&common[number % common.len()].1, plan, 0, PACKET)
    }
}

/// Who spins asks and does not wait; nor does a receiver of several, which waits for
/// all of them. The ends of a pair are descriptions of their own.
fn prepare(rx: &OwnedFd, tx: &OwnedFd, plan: &Plan) -> Result<(), String> {
    if plan.is_spinning {
        fcntl(tx, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(refused)?;
    }
    if plan.is_spinning || plan.senders > 1 {
        fcntl(rx, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(refused)?;
    }
    Ok(())
}

/// Of whom, and what has come that is not a whole message yet.
struct Source {
    file: OwnedFd,
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

pub struct Receiver {
    sources: Vec<Source>,
    length: usize,
    /// Bytes before each message that say how long it is.
    header: usize,
    turn: usize,
    pause: Option<Pause>,
}

impl Receiver {
    fn new(common: &Common, plan: &Plan, header: usize, buffer: usize) -> Receiver {
        let sources = common.iter().map(|(rx, _)| Source {
            file: rx.try_clone().expect("a descriptor"),
            bytes: vec![0; buffer],
            from: 0,
            to: 0,
        });
        Receiver {
            sources: sources.collect(),
            length: plan.length,
            header,
            turn: 0,
            pause: plan.is_spinning.then(|| plan.pause()),
        }
    }

    /// Until one of several has something.
    fn wait(&mut self) {
        if let Some(pause) = &mut self.pause {
            return pause.pause();
        }
        let mut files: Vec<PollFd<'_>> = self
            .sources
            .iter()
            .map(|source| PollFd::new(source.file.as_fd(), PollFlags::POLLIN))
            .collect();
        poll(&mut files, PollTimeout::NONE).expect("poll");
        let ready = |file: &PollFd<'_>| file.any() == Some(true);
        // Beginning behind the last one, so that it is everybody's turn.
        let order = (0..files.len()).map(|at| (self.turn + at) % files.len());
        let next = order.into_iter().find(|at| ready(&files[*at]));
        self.turn = next.unwrap_or(self.turn);
    }
}

impl Source {
    /// Whether something came.
    fn read(&mut self, packet: bool, length: usize) -> bool {
        if !packet && self.from > 0 && self.bytes.len() - self.from < length + 8 {
            self.bytes.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        match read(&self.file, &mut self.bytes[self.to..]) {
            Ok(0) => panic!("nobody writes"),
            Ok(count) => {
                self.to += count;
                true
            }
            Err(Errno::EAGAIN) => false,
            Err(error) => panic!("read: {error}"),
        }
    }

    /// Whether there was a whole message.
    fn hand_out(&mut self, header: usize, length: usize, read: &mut impl FnMut(&[u8])) -> bool {
        let mut is_any = false;
        while self.to - self.from >= header + length {
            let bytes = &self.bytes[self.from..self.to];
            let (prefix, rest) = bytes.split_at(header);
            if let Some(prefix) = prefix.first_chunk() {
                assert_eq!(
                    u64::from_le_bytes(*prefix) as usize,
                    length,
                    "another length"
                );
            }
            read(&rest[..length]);
            self.from += header + length;
            is_any = true;
        }
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        is_any
    }
}

impl Rx for Receiver {
    fn recv(&mut self, mut read: impl FnMut(&[u8])) {
        let count = self.sources.len();
        loop {
            let mut is_any = false;
            for _ in 0..count {
                let source = &mut self.sources[self.turn];
                let came = source.read(self.header == 0, self.length);
                if came && source.hand_out(self.header, self.length, &mut read) {
                    self.turn = (self.turn + 1) % count;
                    return;
                }
                is_any |= came;
                self.turn = (self.turn + 1) % count;
            }
            if !is_any {
                self.wait();
            }
        }
    }
}

pub struct Sender {
    file: OwnedFd,
    bytes: Vec<u8>,
    header: usize,
    /// What is written at once at most.
    piece: usize,
    pause: Pause,
}

impl Sender {
    fn new(file: &OwnedFd, plan: &Plan, header: usize, piece: usize) -> Sender {
        let mut bytes = vec![0; header + plan.length];
        bytes[..header].copy_from_slice(&(plan.length as u64).to_le_bytes()[..header]);
        Sender {
            file: file.try_clone().expect("a descriptor"),
            bytes,
            header,
            piece,
            pause: plan.pause(),
        }
    }
}

impl Tx for Sender {
    fn send(&mut self, length: usize, mut fill: impl FnMut(&mut [u8])) {
        let all = self.header + length;
        fill(&mut self.bytes[self.header..all]);
        let mut done = 0;
        while done < all {
            let piece = all.min(done.saturating_add(self.piece));
            match write(&self.file, &self.bytes[done..piece]) {
                Ok(count) => done += count,
                Err(Errno::EAGAIN) => self.pause.pause(),
                Err(error) => panic!("write: {error}"),
            }
        }
    }
}
