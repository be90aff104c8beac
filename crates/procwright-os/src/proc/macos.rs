//! macOS: libproc. Type-checked, and never run.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime};

use super::super::{Comm, ProcStat};

/// The clock on the wall, in microseconds, as the start time is.
pub fn now_ticks() -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

pub fn wall_clock_start(start_ticks: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(start_ticks)
}

pub fn stat(pid: i32) -> io::Result<ProcStat> {
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    // SAFETY: the size is that of the memory, which is writable. The 1 asks for
    // zombies as well.
    let len = unsafe {
        libc::proc_pidinfo(
            pid,
            libc::PROC_PIDTBSDINFO,
            1,
            info.as_mut_ptr().cast(),
            size_of::<libc::proc_bsdinfo>() as i32,
        )
    };
    if len != size_of::<libc::proc_bsdinfo>() as i32 {
        let error = io::Error::last_os_error();
        return Err(match error.raw_os_error() {
            Some(libc::ESRCH) => io::ErrorKind::NotFound.into(),
            _ => error,
        });
    }
    // SAFETY: zeroed is a valid value of this plain C structure, and the system
    // has filled it.
    let info = unsafe { info.assume_init() };
    let name = info.pbi_comm.map(|byte| byte as u8);
    let len = name.iter().position(|byte| *byte == 0);
    Ok(ProcStat {
        pid: info.pbi_pid as i32,
        name: Comm::new(&name[..len.unwrap_or(name.len())]),
        state: match info.pbi_status {
            libc::SZOMB => 'Z',
            libc::SSTOP => 'T',
            libc::SRUN => 'R',
            _ => 'S',
        },
        ppid: info.pbi_ppid as i32,
        pgrp: info.pbi_pgid as i32,
        // SAFETY: no memory is handed over. It fails for a zombie.
        session: unsafe { libc::getsid(pid) }.max(0),
        kernel_thread: pid == 0,
        // A process is never shown as a zombie while a thread is left.
        threads: 1,
        start_ticks: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec,
    })
}
