//! Disks that stand still, are full, or are full for a while, below the spools of
//! children: only the thread that writes to a disk waits for it.

mod common;

use std::path::Path;
use test_support::alone;

use common::sys::held::Held;
use common::{child, eventually, root_or_skip, skip, sys, threads};
use procwright::process::{Exit, Signal};
use procwright::stream::{Chunk, Closed, Patience, Reader};
use procwright::{Budget, Child, Overflow};
use test_children::{Pattern, Stream};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const SPILL: Overflow = Overflow::Spill {
    memory: 256 * KIB,
    disk: Some(64 * MIB),
};

fn spool_in(directory: &Path) {
    sys::set_variable("PROCWRIGHT_SPOOL_DIR", directory);
}

/// A child with `bytes` bytes on stdout, and its spool in `directory`.
fn flood(directory: &Path, bytes: u64) -> Child {
    spool_in(directory);
    child(&["flood", "--out", &bytes.to_string()])
        .spawn_with(SPILL)
        .unwrap()
}

fn is_whole(reader: &Reader, bytes: u64) {
    goes_on(reader, 0, bytes);
    let end = reader
        .read_with(&mut [0; 8], Patience::NEVER_ENDING)
        .unwrap();
    assert_eq!(end, Chunk::End);
}

/// Reads from one offset to another, and compares each byte.
fn goes_on(reader: &Reader, mut at: u64, end: u64) {
    let mut buffer = vec![0; 64 << 10];
    let pattern = Pattern::new(Stream::Stdout, buffer.len());
    while at < end {
        let most = buffer.len().min((end - at) as usize);
        match reader.read_with(&mut buffer[..most], Patience::NEVER_ENDING) {
            Ok(Chunk::Bytes(n)) => {
                assert_eq!(pattern.mismatch(at, &buffer[..n]), None);
                at += n as u64;
            }
            other => panic!("{other:?} at {at}"),
        }
    }
}

fn spills() -> bool {
    // The kernel cuts names.
    threads()
        .iter()
        .any(|name| name.starts_with("procwright-spil"))
}

/// Number of threads of this name that sleep on a futex, as the library's queues do. Others fall
/// asleep and wake up as they like.
fn sleepers(named: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let futex = format!("{} ", libc::SYS_futex);
    let sleeps = |task: &std::path::Path| {
        let name = std::fs::read_to_string(task.join("comm"));
        let call = std::fs::read_to_string(task.join("syscall"));
        name.is_ok_and(|name| name.trim_end() == named)
            && call.is_ok_and(|call| call.starts_with(&futex))
    };
    tasks
        .filter(|task| task.as_ref().is_ok_and(|task| sleeps(&task.path())))
        .count()
}

/// A disk that can be made to stand still, and two directories on it; where this is
/// impossible the test is left out in plain sight.
fn disk_or_skip(test: &str) -> Option<(Held, [tempfile::TempDir; 2])> {
    let calls = [
        libc::SYS_pwrite64,
        libc::SYS_pread64,
        libc::SYS_close,
        libc::SYS_fallocate,
    ];
    let Some(disk) = Held::new(&calls) else {
        skip(test, "a sandbox forbids to hold system calls");
        return None;
    };
    // The path is resolved: the kernel's names of open files contain no links.
    let base = std::fs::canonicalize(std::env::temp_dir()).unwrap();
    let directory = || tempfile::tempdir_in(&base).unwrap();
    Some((disk, [directory(), directory()]))
}

alone! {
    fn a_disk_that_stands_still_holds_up_no_other_child() {
        let name = "a_disk_that_stands_still_holds_up_no_other_child";
        let Some((disk, [slow, fast])) = disk_or_skip(name) else { return };
        for call in [libc::SYS_fallocate, libc::SYS_pwrite64] {
            disk.hold(slow.path(), &[call]);
            let held = flood(slow.path(), 8 * MIB);
            let stuck = disk.wait();
            assert_eq!((stuck.number, &stuck.name[..]), (call, "procwright-spil"));
            // The stream's memory is full, and it waits.
            let stdout = held.stdout.as_ref().unwrap();
            eventually(|| stdout.figures().unwrap().bytes_in >= 256 * KIB);
            for _ in 0..5 {
                let other = flood(fast.path(), 16 * MIB);
                assert_eq!(other.wait(None).unwrap(), Some(Exit::Code(0)));
                let figures = other.stdout.as_ref().unwrap().figures().unwrap();
                assert!(figures.spilled_bytes > 8 * MIB, "{figures:?}");
                is_whole(other.stdout.as_ref().unwrap(), 16 * MIB);
            }
            assert_eq!(disk.held(), [stuck], "it is still held, and nobody else");
            assert_eq!(stdout.figures().unwrap().spilled_bytes, 0);
            assert_eq!(held.try_wait(), None);
            disk.let_on();
            is_whole(stdout, 8 * MIB);
            assert_eq!(held.wait(None).unwrap(), Some(Exit::Code(0)));
        }
    }
}

alone! {
    fn a_reader_overtakes_a_disk_that_stands_still() {
        let name = "a_reader_overtakes_a_disk_that_stands_still";
        let Some((disk, [slow, _])) = disk_or_skip(name) else { return };
        disk.hold(slow.path(), &[libc::SYS_pwrite64]);
        let held = flood(slow.path(), 8 * MIB);
        let stuck = disk.wait();
        is_whole(held.stdout.as_ref().unwrap(), 8 * MIB);
        assert_eq!(held.wait(None).unwrap(), Some(Exit::Code(0)));
        assert_eq!(disk.held(), [stuck]);
        let figures = held.stdout.as_ref().unwrap().figures().unwrap();
        assert_eq!((figures.spilled_bytes, figures.lag_bytes), (0, 0));
    }
}

alone! {
    fn who_has_overtaken_the_disk_takes_no_share_of_it() {
        let name = "who_has_overtaken_the_disk_takes_no_share_of_it";
        let Some((disk, [slow, fast])) = disk_or_skip(name) else { return };
        Budget { memory: 64 * MIB, disk: Some(8 * MIB) }.set();
        disk.hold(slow.path(), &[libc::SYS_pwrite64]);
        let held = flood(slow.path(), 8 * MIB);
        disk.wait();
        is_whole(held.stdout.as_ref().unwrap(), 8 * MIB);
        disk.let_on();
        // The thread that was held gives the file back.
        eventually(|| !spills());
        let other = flood(fast.path(), 64 * MIB);
        eventually(|| other.stdout.as_ref().unwrap().figures().unwrap().disk_bytes > 6 * MIB);
        is_whole(other.stdout.as_ref().unwrap(), 64 * MIB);
        assert_eq!(held.wait(None).unwrap(), Some(Exit::Code(0)));
    }
}

alone! {
    fn a_close_waits_for_no_disk() {
        let Some((disk, [slow, _])) = disk_or_skip("a_close_waits_for_no_disk") else { return };
        // The disk stands still during a write.
        disk.hold(slow.path(), &[libc::SYS_pwrite64]);
        let held = flood(slow.path(), 8 * MIB);
        let stuck = disk.wait();
        assert!(held.stdout.as_ref().unwrap().close());
        assert_eq!(held.wait(None).unwrap().and_then(Exit::signal), Some(Signal::PIPE));
        assert_eq!(disk.held(), [stuck]);
        disk.let_on();
        eventually(|| !spills());

        // The disk stands still while the file is given back, which takes long for
        // large files.
        let held = flood(slow.path(), 8 * MIB);
        assert_eq!(held.wait(None).unwrap(), Some(Exit::Code(0)));
        let stdout = held.stdout.as_ref().unwrap().clone();
        eventually(|| stdout.figures().unwrap().bytes_in == 8 * MIB && !spills());
        disk.hold(slow.path(), &[libc::SYS_close]);
        let closer = std::thread::spawn(move || stdout.close());
        let stuck = disk.wait();
        assert_eq!(stuck.name, "procwright-spil", "somebody else is held up");
        assert!(closer.join().unwrap());
        // The directory is removed as well.
        disk.let_on();
    }
}

alone! {
    fn a_close_does_not_wait_for_its_memory_to_be_given_back() {
        let name = "a_close_does_not_wait_for_its_memory_to_be_given_back";
        let Some(memory) = Held::new(&[libc::SYS_munmap]) else {
            return skip(name, "a sandbox forbids to hold system calls");
        };
        let overflow = Overflow::Block { memory: 64 * MIB };
        let size = (32 * MIB).to_string();
        let held = child(&["flood", "--out", &size]).spawn_with(overflow).unwrap();
        let stdout = held.stdout.as_ref().unwrap();
        assert_eq!(held.wait(None).unwrap(), Some(Exit::Code(0)));
        eventually(|| stdout.figures().unwrap().bytes_in == 32 * MIB);
        memory.hold_all(&[libc::SYS_munmap]);
        assert!(stdout.close());
        assert_ne!(memory.wait().thread, sys::thread_id());
        memory.let_on();
        eventually(|| stdout.figures().unwrap().memory_bytes <= MIB);
    }
}

alone! {
    fn a_close_releases_those_who_queue_behind_a_disk() {
        let name = "a_close_releases_those_who_queue_behind_a_disk";
        let Some((disk, [slow, _])) = disk_or_skip(name) else { return };
        let held = flood(slow.path(), 8 * MIB);
        assert_eq!(held.wait(None).unwrap(), Some(Exit::Code(0)));
        let stdout = held.stdout.as_ref().unwrap().clone();
        disk.hold(slow.path(), &[libc::SYS_pread64]);
        let reader = |name: &str, stdout: Reader, until: u64| std::thread::Builder::new().name(name.into()).spawn(move || {
            let mut read = 0;
            let mut buffer = vec![0; 64 << 10];
            while read < until {
                match stdout.read_with(&mut buffer, Patience::NEVER_ENDING) {
                    Ok(Chunk::Bytes(n)) => read += n as u64,
                    other => return other,
                }
            }
            Ok(Chunk::End)
        }).unwrap();
        let first = reader("first", stdout.clone(), 8 * MIB);
        let stuck = disk.wait();
        let queued: Vec<_> = (0..20).map(|_| reader("queued", stdout.clone(), 1)).collect();
        eventually(|| sleepers("queued") == queued.len());
        assert!(stdout.close());
        for reader in queued {
            assert!(Closed::is(&reader.join().unwrap().unwrap_err()));
        }
        assert_eq!(disk.held(), [stuck], "the disk was let on too soon");
        disk.let_on();
        assert!(Closed::is(&first.join().unwrap().unwrap_err()));
    }
}

/// A file system of this size; where this is impossible the test is left out in plain
/// sight.
fn small_disk_or_skip(test: &str, bytes: u64) -> Option<tempfile::TempDir> {
    if !root_or_skip(test) {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    if !sys::mount_memory(directory.path(), bytes) {
        skip(test, "may not mount");
        return None;
    }
    Some(directory)
}

alone! {
    fn a_disk_of_one_megabyte() {
        let Some(directory) = small_disk_or_skip("a_disk_of_one_megabyte", MIB) else { return };
        let held = flood(directory.path(), 24 * MIB);
        let stdout = held.stdout.as_ref().unwrap();
        // The stream fills the disk, and then waits: nothing else happens to it.
        eventually(|| {
            let figures = stdout.figures().unwrap();
            figures.spilled_bytes > 512 * KIB && figures.refused > std::time::Duration::ZERO
        });
        assert_eq!(held.try_wait(), None);
        is_whole(stdout, 24 * MIB);
        assert_eq!(held.wait(None).unwrap(), Some(Exit::Code(0)));
        let figures = stdout.figures().unwrap();
        assert_eq!((figures.bytes_out, figures.dropped_bytes, figures.lost_bytes), (24 * MIB, 0, 0));
        assert!(figures.disk_peak_bytes <= MIB);
    }
}

alone! {
    fn what_has_been_read_makes_room_on_a_small_disk() {
        // A single file would give its room back only once all of it has been read.
        let directory = tempfile::tempdir().unwrap();
        let overflow = Overflow::Spill { memory: 256 * KIB, disk: Some(4 * MIB) };
        spool_in(directory.path());
        let held = child(&["flood", "--out", "24M"]).spawn_with(overflow).unwrap();
        let stdout = held.stdout.as_ref().unwrap();
        let is_full = || stdout.figures().unwrap().disk_bytes > 3 * MIB;
        for round in 0..10 {
            eventually(is_full);
            goes_on(stdout, 2 * MIB * round, 2 * MIB * (round + 1));
        }
        assert!(stdout.figures().unwrap().disk_peak_bytes <= 4 * MIB);
    }
}

alone! {
    fn a_disk_that_is_full_and_freed_again_and_again() {
        let name = "a_disk_that_is_full_and_freed_again_and_again";
        let Some(directory) = small_disk_or_skip(name, 4 * MIB) else { return };
        let other = directory.path().join("other");
        let held = flood(directory.path(), 24 * MIB);
        let stdout = held.stdout.as_ref().unwrap();
        let mut at = 0;
        for _ in 0..5 {
            // Another file takes whatever room there is.
            let _ = std::fs::write(&other, vec![1; 4 << 20]);
            goes_on(stdout, at, at + 2 * MIB);
            at += 2 * MIB;
            std::fs::remove_file(&other).unwrap();
            // The room is the stream's again.
            eventually(|| stdout.figures().unwrap().disk_bytes > 2 * MIB);
        }
        goes_on(stdout, at, 24 * MIB);
        assert_eq!(held.wait(None).unwrap(), Some(Exit::Code(0)));
    }
}
