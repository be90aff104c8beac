//! One process and its threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::{calls, files, slept};
use crate::letters;
use crate::wait::{Children, Wait};
use crate::world::{Process, Thread};

/// Mark of a thread of the kernel's own (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// More fields than `stat` has behind the name; it grows at its end.
const STAT_FIELDS: usize = 64;

/// Reads whose child a process is, and no more; `name` is that of its file `stat`. `None` if it
/// is the kernel's.
pub(super) fn outline(at: impl AsFd, name: &str, pid: i32) -> io::Result<Option<Process>> {
    let stat = stat(at, name)?;
    if stat.flags & KERNEL_THREAD != 0 {
        return Ok(None);
    }
    let gone = stat.is_gone();
    Ok(Some(Process {
        is_outline: true,
        pid,
        ppid: stat.ppid,
        pgrp: stat.pgrp,
        name: stat.name,
        start: stat.start,
        uid: None,
        tracer: 0,
        nested: false,
        terminal: stat.terminal,
        foreground: stat.foreground,
        gone,
        frozen: None,
        stop_signal: stat.exit_code & 0x7f,
        caught: 0,
        timers: Some(false),
        elsewhere: false,
        threads: Vec::new(),
        thread_count: stat.threads as usize,
        fds: None,
        written: None,
    }))
}

/// Reads a process. `None` if it is the kernel's.
///
/// Its descriptors are left to be read, as `None`, behind the threads. A thread that sleeps from
/// here to the next look has changed no descriptor in between, so that the list is that of the
/// whole time.
pub(super) fn read(dir: BorrowedFd<'_>, pid: i32) -> io::Result<Option<Process>> {
    let Some(mut process) = outline(dir, "stat", pid)? else {
        return Ok(None);
    };
    process.is_outline = false;
    let expected = process.thread_count;
    let mut buffer = [0; 16 * 1024];
    if expected == 1 {
        process.add_thread(thread(dir, pid, &mut buffer)?)?;
    } else {
        let tasks = files::open_dir(dir, "task")?;
        let mut tids = Vec::new();
        files::numbers(&tasks, &mut |tid| tids.push(tid))?;
        for tid in tids {
            let task = files::open_dir(&tasks, &tid.to_string());
            match task.and_then(|task| thread(task.as_fd(), tid, &mut buffer)) {
                Ok(found) => process.add_thread(found)?,
                Err(error) if files::is_gone(&error) => process.add_mover(tid),
                Err(error) => return Err(error),
            }
        }
        if process.threads.len() < expected {
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

/// The process that traces another, 0 if there is none; from the file `status` of that.
pub(super) fn tracer(at: impl AsFd, name: &str) -> io::Result<i32> {
    // It stands before the groups, of which there may be thousands.
    let mut buffer = [0; 1024];
    let text = files::read(at, name, &mut buffer)?;
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
            state: 'X',
            switches: (0, 0),
            ran: None,
            wait: Wait::Runs,
            call: String::new(),
        });
    }

    /// Adds a thread; what its file tells of the process is the same in each. `SRCH` if it is of
    /// another process: the number of a thread leads to files, too, though no list has it.
    fn add_thread(&mut self, (mut thread, status): (Thread, Status)) -> io::Result<()> {
        if status.pid != self.pid {
            return Err(rustix::io::Errno::SRCH.into());
        }
        if status.nested
            && matches!(
                thread.wait,
                Wait::Child(Children::One(_) | Children::Group(_))
            )
        {
            // It names its children by the numbers of its own pid namespace.
            thread.wait = Wait::Child(Children::Any);
        }
        // It may have executed another program since its outline: who waits is who is called so.
        if thread.tid == self.pid {
            self.name = status.name;
        }
        self.threads.push(thread);
        self.uid = status.uid.or(self.uid);
        self.tracer = status.tracer;
        self.nested |= status.nested;
        self.caught |= status.caught;
        Ok(())
    }
}

/// What `status` tells of the process.
struct Status {
    /// That of the first thread, from its own file; empty in those of others.
    name: String,
    pid: i32,
    uid: Option<u32>,
    tracer: i32,
    caught: u64,
    /// It is in a pid namespace within ours.
    nested: bool,
}

/// Reads a thread. Its counters come before its call: where they have not changed at the
/// next look, it has slept in that call all the while.
fn thread(dir: BorrowedFd<'_>, tid: i32, buffer: &mut [u8]) -> io::Result<(Thread, Status)> {
    let ran = slept::ran(dir, "schedstat");
    let (mut thread, status) = status(tid, files::read(dir, "status", buffer)?)?;
    thread.ran = ran;
    (thread.wait, thread.call) = calls::waiting(dir, thread.state);
    Ok((thread, status))
}

/// What `status` tells, in one pass: of a thread what it does not wait for, and of its process.
fn status(tid: i32, text: &[u8]) -> io::Result<(Thread, Status)> {
    let mut thread = Thread {
        tid,
        state: ' ',
        switches: (0, 0),
        ran: None,
        wait: Wait::Runs,
        call: String::new(),
    };
    let mut status = Status {
        name: String::new(),
        pid: 0,
        uid: None,
        tracer: 0,
        caught: u64::MAX,
        nested: false,
    };
    // The counters stand last, behind lists without a bound: a text that was cut lacks them.
    let mut counters = 0;
    let mut own_name = b"".as_slice();
    for line in text.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let mut count = || {
            counters += 1;
            files::number(value).ok_or_else(no_sense)
        };
        match name {
            // It may begin and end with blanks.
            b"Name" => own_name = line[colon + 1..].strip_prefix(b"\t").unwrap_or_default(),
            b"State" => thread.state = *value.first().ok_or_else(no_sense)? as char,
            b"Tgid" => status.pid = files::number(value).ok_or_else(no_sense)?,
            b"TracerPid" => status.tracer = files::number(value).unwrap_or(0),
            // Real, effective, saved, file system.
            b"Uid" => {
                let mut uids = value.split(|byte| *byte == b'\t');
                status.uid = uids.next().and_then(files::number);
            }
            b"NSpid" => status.nested = value.contains(&b'\t'),
            b"SigCgt" => status.caught = files::hex(value).unwrap_or(u64::MAX),
            b"voluntary_ctxt_switches" => thread.switches.0 = count()?,
            b"nonvoluntary_ctxt_switches" => thread.switches.1 = count()?,
            _ => {}
        }
    }
    if tid == status.pid {
        status.name = letters::safe(&unescaped(own_name));
    }
    match (counters, thread.state) {
        (0 | 1, _) | (_, ' ') => Err(no_sense()),
        _ => Ok((thread, status)),
    }
}

/// A name as it is: `status` writes `\n` for the end of a line, and `\\` for a backslash.
fn unescaped(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let mut letters = name.chars();
    let mut found = String::new();
    while let Some(letter) = letters.next() {
        found.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                other => other.unwrap_or('\\'),
            },
            letter => letter,
        });
    }
    found
}

/// Reads the file `stat` of a process.
pub(super) fn stat(at: impl AsFd, name: &str) -> io::Result<Stat> {
    let mut buffer = [0; 1024];
    Stat::parse(files::read(at, name, &mut buffer)?).ok_or_else(no_sense)
}

/// The fields of `stat` that are used.
pub(super) struct Stat {
    name: String,
    state: char,
    pub(super) ppid: i32,
    pub(super) pgrp: i32,
    pub(super) terminal: u64,
    pub(super) foreground: i32,
    flags: u64,
    threads: u32,
    pub(super) start: u64,
    exit_code: i32,
}

impl Stat {
    /// True if its first thread has ended, and no other is left.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }

    /// Reads `PID (NAME) STATE PPID …`; the name may have parentheses of its own.
    fn parse(text: &[u8]) -> Option<Stat> {
        let open = text.iter().position(|b| *b == b'(')?;
        let close = text.iter().rposition(|b| *b == b')')?;
        let name = letters::safe(&String::from_utf8_lossy(text.get(open + 1..close)?));
        let mut fields = [b"".as_slice(); STAT_FIELDS];
        let text = text.get(close + 2..)?.trim_ascii();
        let mut count = 0;
        for (place, field) in fields.iter_mut().zip(text.split(|b| *b == b' ')) {
            *place = field;
            count += 1;
        }
        let fields = &fields[..count];
        fn at<T: std::str::FromStr>(fields: &[&[u8]], index: usize) -> Option<T> {
            files::number(fields.get(index)?)
        }
        let terminal: i32 = at(fields, 4)?;
        Some(Stat {
            name,
            state: *fields.first()?.first()? as char,
            ppid: at(fields, 1)?,
            pgrp: at(fields, 2)?,
            terminal: u64::from(terminal as u32),
            foreground: at(fields, 5)?,
            flags: at(fields, 6)?,
            threads: at(fields, 17)?,
            start: at(fields, 19)?,
            exit_code: at(fields, count.checked_sub(1)?).unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] =
        b"Name:\t \xffa\\\\b\\n: c\nState:\tS (sleeping)\nTgid:\t42\nTracerPid:\t7\n\
        Uid:\t1000\t0\t0\t0\nGroups:\t \nNSpid:\t42\t1\nSigCgt:\t0000000000010002\n\
        voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";

    #[test]
    fn what_status_tells() {
        let (thread, of) = status(42, TEXT).unwrap();
        assert_eq!(of.name, letters::safe(" \u{fffd}a\\b\n: c"));
        assert_eq!((thread.state, thread.switches), ('S', (5, 6)));
        assert_eq!((of.uid, of.tracer, of.nested), (Some(1000), 7, true));
        assert_eq!(of.pid, 42);
        assert_eq!(of.caught, 0x10002);
    }

    #[test]
    fn a_status_that_was_cut_tells_nothing() {
        for length in 0..TEXT.len() - 2 {
            assert!(status(42, &TEXT[..length]).is_err(), "{length}");
        }
    }
}
