//! `/proc/PID/stat`.

use std::ffi::CStr;
use std::io;

use rustix::io::Errno;

use super::files::{number, read_file};
use super::{Comm, ProcStat};

pub(super) fn read_stat(path: &CStr) -> io::Result<ProcStat> {
    let mut buffer = [0; 1024];
    for _ in 0..UNBOUND {
        let text = read_file(path, &mut buffer)?;
        let stat = parse_stat(text).ok_or_else(|| {
            let text = text.escape_ascii();
            let why = format!("cannot read {path:?}: {text}");
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        if stat.threads > 0 {
            return Ok(stat);
        }
    }
    Err(Errno::NOENT.into())
}

/// Limit of reads in a row that show a process without threads. The thread that is
/// shown has ended then. Either the process is being reaped and is gone at the next
/// read, or another of its threads is in exec(2), which takes the place of the
/// first: shown dead, the process lives. That takes longer than a read.
const UNBOUND: usize = 64;

/// Reads `pid (name) state ppid …`. The name can hold anything, `) R 1 (` too,
/// but nothing after it holds a parenthesis.
pub(super) fn parse_stat(text: &[u8]) -> Option<ProcStat> {
    let open = text.iter().position(|&b| b == b'(')?;
    let close = text.iter().rposition(|&b| b == b')')?;
    let name = text.get(open + 1..close)?;
    let pid = number(text[..open].trim_ascii())?;
    let mut rest = text[close + 1..]
        .split(|b| b.is_ascii_whitespace())
        .filter(|field| !field.is_empty());
    // The first of `rest` is field 3 of proc_pid_stat(5); `skip` counts those
    // between.
    let mut field = |skip: usize| rest.nth(skip);
    let state = match field(0)? {
        [letter] => char::from(*letter),
        _ => return None,
    };
    Some(ProcStat {
        pid,
        name: Comm::new(name),
        state,
        ppid: number(field(0)?)?,
        pgrp: number(field(0)?)?,
        session: number(field(0)?)?,
        // Field 9; PF_KTHREAD of linux/sched.h, where it has been since 2.6.27.
        kernel_thread: number::<u64>(field(2)?)? & 0x0020_0000 != 0,
        // Field 20.
        threads: number(field(10)?)?,
        // Field 22.
        start_ticks: number(field(1)?)?,
    })
}
