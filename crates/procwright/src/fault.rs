//! Deliberate faults, which show that the tests of every front end would find them:
//! `ci/conformance_fault.sh`. They are compiled only with
//! `RUSTFLAGS="--cfg procwright_fault"`, and one is on if `PROCWRIGHT_FAULT` names it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use procwright_os::fault::is_on;

use crate::child::OutputEnd;
use crate::spec::Limit;
use crate::std_stream::StdStream;

/// Fault `limit`: a limit is one byte too low.
pub(crate) fn lowered(limit: Option<Limit>) -> Option<Limit> {
    limit.map(|limit| Limit {
        bytes: limit.bytes - u64::from(is_on("limit") && limit.bytes > 0),
        ..limit
    })
}

/// Fault `stderr`: its last byte is lost. Where that takes more descriptors than there are,
/// the fault is off.
pub(crate) fn without_last_byte(end: OutputEnd, stream: StdStream) -> OutputEnd {
    if stream == StdStream::Stdout || !is_on("stderr") {
        return end;
    }
    let Ok((ours, theirs)) = io::pipe() else {
        return end;
    };
    let ours = OwnedFd::from(ours);
    let _ = rustix::io::ioctl_fionbio(&ours, true);
    let _ = rustix::io::ioctl_fionbio(&end.fd, false);
    std::thread::spawn(move || {
        let _ = steal(
            &mut File::from(end.fd),
            &mut File::from(OwnedFd::from(theirs)),
        );
    });
    OutputEnd {
        fd: ours,
        probe: None,
    }
}

fn steal(from: &mut File, to: &mut File) -> io::Result<()> {
    let mut last = None;
    let mut piece = [0; 4096];
    loop {
        let n = from.read(&mut piece)?;
        let Some((&next, others)) = piece[..n].split_last() else {
            return Ok(());
        };
        to.write_all(last.replace(next).as_slice())?;
        to.write_all(others)?;
    }
}
