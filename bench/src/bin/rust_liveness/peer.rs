//! The process whose life it is about.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use procwright::Process;
use procwright::liveness::{Invitation, Token};

/// One that lives and holds a token, until it is killed or its parent ends.
pub(crate) struct Peer {
    pub(crate) child: Child,
    pub(crate) process: Process,
    /// Closed when we end, which it sees.
    socket: UnixStream,
}

impl Peer {
    /// With so many MiB of memory that it has written to.
    pub(crate) fn start(mib: u64) -> Peer {
        let (socket, theirs) = UnixStream::pair().expect("a pair of sockets");
        let child = Command::new(std::env::current_exe().expect("our own path"))
            .args(["peer", &mib.to_string()])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .expect("the peer");
        let process = Process::of_child(&child).expect("the peer");
        Peer {
            child,
            process,
            socket,
        }
    }

    /// Blocks until it has its memory and its token.
    pub(crate) fn invitation(&self) -> Invitation {
        Invitation::receive(&self.socket).expect("an invitation")
    }

    /// When it was killed: just before that.
    pub(crate) fn kill(&mut self) -> u64 {
        let now = procwright_bench::subject_wait::now_ns();
        self.child.kill().expect("kill");
        now
    }

    /// Blocks until it is gone and its memory given back.
    pub(crate) fn reap(mut self) {
        self.child.wait().expect("wait");
    }
}

/// The other side.
pub(crate) fn live(mib: u64) {
    let mut memory = vec![0u8; (mib << 20) as usize];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&memory);
    let token = Token::new().expect("a token");
    let invitation = token.invite().expect("an invitation");
    let stdin = std::io::stdin();
    invitation.send(&stdin).expect("our parent");
    let _ = stdin.lock().read(&mut [0]);
}
