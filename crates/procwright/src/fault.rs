//! Deliberate faults, which show that the tests of every front end would find them:
//! `ci/conformance_fault.sh`. They are compiled only with
//! `RUSTFLAGS="--cfg procwright_fault"`, and one is on if `PROCWRIGHT_FAULT` names it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use crate::child::OutputEnd;
use crate::spec::Limit;

pub(crate) fn is_on(name: &str) -> bool {
    std::env::var_os("PROCWRIGHT_FAULT").is_some_and(|on| on == name)
}

/// `limit`: it is one byte too low.
pub(crate) fn of_limit(limit: Option<Limit>) -> Option<Limit> {
    limit.map(|limit| Limit {
        bytes: limit.bytes - u64::from(is_on("limit") && limit.bytes > 0),
        ..limit
    })
}

/// `stderr`: its last byte is lost.
pub(crate) fn of_pipe(end: OutputEnd, stream: usize) -> io::Result<OutputEnd> {
    if stream == 0 || !is_on("stderr") {
        return Ok(end);
    }
    let (ours, theirs) = io::pipe()?;
    let ours = OwnedFd::from(ours);
    rustix::io::ioctl_fionbio(&ours, true)?;
    rustix::io::ioctl_fionbio(&end.fd, false)?;
    std::thread::spawn(move || {
        let _ = steal(
            &mut File::from(end.fd),
            &mut File::from(OwnedFd::from(theirs)),
        );
    });
    Ok(OutputEnd {
        fd: ours,
        probe: None,
    })
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
