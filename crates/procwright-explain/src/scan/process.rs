//! One process and its threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::{calls, files};
use crate::letters;
use crate::wait::{Children, Wait};
use crate::world::{Process, Thread};

/// Mark of a thread of the kernel's own (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// How much of a process is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Whose child it is, and what it has open.
    Outline,
    /// What it waits for, too, and which ends of pipes it has.
    Whole,
}

/// Reads a process without its descriptors. `None` if it is the kernel's.
///
/// The threads are read before the descriptors. A thread that sleeps from here to the next
/// look has changed no descriptor in between, so that the list is that of the whole time.
pub(super) fn read(dir: BorrowedFd<'_>, pid: i32, depth: Depth) -> io::Result<Option<Process>> {
    let mut buffer = [0; 1024];
    let stat = files::read(dir, "stat", &mut buffer)?;
    let stat = Stat::parse(stat).ok_or_else(no_sense)?;
    if stat.flags & KERNEL_THREAD != 0 {
        return Ok(None);
    }
    let mut process = Process {
        is_outline: depth == Depth::Outline,
        pid,
        ppid: stat.ppid,
        pgrp: stat.pgrp,
        name: stat.name,
        start: stat.start,
        uid: None,
        tracer: 0,
        terminal: stat.terminal,
        foreground: stat.foreground,
        gone: matches!(stat.state, 'Z' | 'X' | 'x') && stat.threads <= 1,
        stop_signal: stat.exit_code & 0x7f,
        caught: 0,
        timers: Some(false),
        elsewhere: false,
        threads: Vec::new(),
        thread_count: stat.threads as usize,
        fds: None,
        written: None,
    };
    if depth == Depth::Outline {
        return Ok(Some(process));
    }
    let alone = stat.threads == 1;
    let mut buffer = [0; 16 * 1024];
    if alone {
        process.add_thread(thread(dir, pid, &mut buffer)?);
    } else {
        let tasks = files::open_dir(dir, "task")?;
        let mut tids = Vec::new();
        files::numbers(&tasks, &mut |tid| tids.push(tid))?;
        for tid in tids {
            let task = files::open_dir(&tasks, &tid.to_string());
            match task.and_then(|task| thread(task.as_fd(), tid, &mut buffer)) {
                Ok(found) => process.add_thread(found),
                Err(error) if files::is_gone(&error) => process.add_mover(tid),
                Err(error) => return Err(error),
            }
        }
        if process.threads.len() < stat.threads as usize {
            process.add_mover(pid);
        }
    }
    process.thread_count = process.threads.len();
    if process
        .threads
        .iter()
        .any(|t| matches!(t.wait, Wait::Write(_)))
    {
        let text = files::read(dir, "io", &mut buffer).ok();
        process.written = text.and_then(|text| files::number(files::field(text, "wchar:")?));
    }
    Ok(Some(process))
}

/// The process that traces this one, 0 if there is none.
pub(super) fn tracer(dir: BorrowedFd<'_>) -> io::Result<i32> {
    // It stands before the groups, of which there may be thousands.
    let mut buffer = [0; 1024];
    let text = files::read(dir, "status", &mut buffer)?;
    let tracer = files::field(text, "TracerPid:").and_then(files::number);
    tracer.ok_or_else(no_sense)
}

fn no_sense() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "/proc is not as it is known")
}

impl Process {
    /// Adds a thread that ended while it was looked at: whatever it did last, a write or a
    /// start of another, others of the process may have been read before.
    fn add_mover(&mut self, tid: i32) {
        self.threads.push(Thread {
            tid,
            switches: (0, 0),
            wait: Wait::Runs,
            call: String::new(),
        });
    }

    /// Adds a thread; what its file tells of the process is the same in each.
    fn add_thread(&mut self, (mut thread, status): (Thread, Status)) {
        if status.nested
            && matches!(
                thread.wait,
                Wait::Child(Children::One(_) | Children::Group(_))
            )
        {
            // It names its children by the numbers of its own pid namespace.
            thread.wait = Wait::Child(Children::Any);
        }
        self.threads.push(thread);
        self.uid = status.uid.or(self.uid);
        self.tracer = status.tracer;
        self.caught |= status.caught;
    }
}

/// What `status` tells of the process.
struct Status {
    uid: Option<u32>,
    tracer: i32,
    caught: u64,
    /// It is in a pid namespace within ours.
    nested: bool,
}

/// Reads a thread. Its counters come before its call: where they have not changed at the
/// next look, it has slept in that call all the while.
fn thread(dir: BorrowedFd<'_>, tid: i32, buffer: &mut [u8]) -> io::Result<(Thread, Status)> {
    let text = files::read(dir, "status", buffer)?;
    let field = |name: &str| files::field(text, name);
    let state = field("State:").and_then(|state| state.first());
    let state = *state.ok_or_else(no_sense)? as char;
    // They stand last, behind lists without a bound: a text that was cut lacks them.
    let count = |name: &str| field(name).and_then(files::number).ok_or_else(no_sense);
    let switches = (
        count("voluntary_ctxt_switches:")?,
        count("nonvoluntary_ctxt_switches:")?,
    );
    let status = Status {
        // Real, effective, saved, file system.
        uid: field("Uid:").and_then(|ids| files::number(ids.split(|b| *b == b'\t').next()?)),
        tracer: field("TracerPid:").and_then(files::number).unwrap_or(0),
        caught: field("SigCgt:").and_then(files::hex).unwrap_or(u64::MAX),
        nested: field("NSpid:").is_some_and(|pids| pids.contains(&b'\t')),
    };
    let (wait, call) = calls::waiting(dir, state);
    let thread = Thread {
        tid,
        switches,
        wait,
        call,
    };
    Ok((thread, status))
}

/// The fields of `stat` that are used.
struct Stat {
    name: String,
    state: char,
    ppid: i32,
    pgrp: i32,
    terminal: u64,
    foreground: i32,
    flags: u64,
    threads: u32,
    start: u64,
    exit_code: i32,
}

impl Stat {
    /// Reads `PID (NAME) STATE PPID …`; the name may have parentheses of its own.
    fn parse(text: &[u8]) -> Option<Stat> {
        let open = text.iter().position(|b| *b == b'(')?;
        let close = text.iter().rposition(|b| *b == b')')?;
        let name = letters::safe(&String::from_utf8_lossy(text.get(open + 1..close)?));
        let fields = text.get(close + 2..)?.trim_ascii();
        let fields: Vec<&[u8]> = fields.split(|b| *b == b' ').collect();
        fn at<T: std::str::FromStr>(fields: &[&[u8]], index: usize) -> Option<T> {
            files::number(fields.get(index)?)
        }
        let terminal: i32 = at(&fields, 4)?;
        Some(Stat {
            name,
            state: *fields.first()?.first()? as char,
            ppid: at(&fields, 1)?,
            pgrp: at(&fields, 2)?,
            terminal: u64::from(terminal as u32),
            foreground: at(&fields, 5)?,
            flags: at(&fields, 6)?,
            threads: at(&fields, 17)?,
            start: at(&fields, 19)?,
            exit_code: at(&fields, fields.len() - 1).unwrap_or(0),
        })
    }
}
