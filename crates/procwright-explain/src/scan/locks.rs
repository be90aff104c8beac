//! Who waits for a lock of a file, and who holds it: `/proc/locks`, and of locks that
//! belong to an open file (`flock`) `fdinfo` of those that have the file open.

use std::io;
use std::os::fd::OwnedFd;

use super::{descriptors, files};
use crate::world::{LockWait, Object, World};

/// A line of `/proc/locks`: `ID: [-> ]KIND ADVISORY WRITE PID MAJOR:MINOR:INODE FROM TO`.
struct Line<'t> {
    id: &'t str,
    waits: bool,
    kind: &'t str,
    pid: i32,
    device: u64,
    inode: u64,
}

impl Line<'_> {
    fn parse(line: &str) -> Option<Line<'_>> {
        let mut words = line.split_whitespace().peekable();
        let id = words.next()?;
        let waits = words.next_if_eq(&"->").is_some();
        let kind = words.next()?;
        let pid = words.nth(2)?.parse().ok()?;
        let mut file = words.next()?.split(':');
        let mut part = || file.next();
        let major = files::hex(part()?.as_bytes())? as u32;
        let minor = files::hex(part()?.as_bytes())? as u32;
        Some(Line {
            id,
            waits,
            kind,
            pid,
            device: descriptors::device(major, minor),
            inode: part()?.parse().ok()?,
        })
    }
}

/// The waits for locks of files among these processes.
pub(super) fn waits(proc: &OwnedFd, world: &World) -> io::Result<Vec<LockWait>> {
    let text = std::fs::read_to_string("/proc/locks")?;
    let lines: Vec<Line<'_>> = text.lines().filter_map(Line::parse).collect();
    let mut waits = Vec::new();
    for waiting in lines.iter().filter(|line| line.waits) {
        let holders = match waiting.kind {
            // It is of the process, and ends with it.
            "POSIX" => {
                let blocker = lines.iter().find(|one| !one.waits && one.id == waiting.id);
                blocker.map(|one| vec![one.pid])
            }
            // It is of an open file, which a fork shares.
            _ => Some(holders_of(proc, world, waiting)),
        };
        waits.push(LockWait {
            waiter: waiting.pid,
            holders: holders.unwrap_or_default(),
        });
    }
    Ok(waits)
}

/// Processes with a descriptor that holds a lock of this file.
fn holders_of(proc: &OwnedFd, world: &World, lock: &Line<'_>) -> Vec<i32> {
    let file = Object::File {
        device: lock.device,
        inode: lock.inode,
    };
    let mut holders = Vec::new();
    for process in world.processes.values() {
        let fds = process.fds.iter().flatten();
        let holds = fds.filter(|fd| fd.of == file).any(|fd| {
            let mut buffer = [0; 2048];
            let path = format!("{}/fdinfo/{}", process.pid, fd.number);
            files::read(proc, &path, &mut buffer)
                .is_ok_and(|text| files::field(text, "lock:").is_some())
        });
        if holds {
            holders.push(process.pid);
        }
    }
    holders
}
