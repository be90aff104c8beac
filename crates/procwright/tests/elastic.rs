//! The elastic stage when the disk, the descriptors or the threads run out: room is
//! lost, and never a byte.

mod common;

use std::io::{PipeReader, Read, Write, pipe};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use test_support::alone;

use procwright::Overflow;
use procwright::buffer::{Buffer, Error, Event, Figures, Monitor, Outcome};
use test_children::{Pattern, Stream};

use common::{Census, eventually, root_or_skip, skip, sys, threads};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A stage with a writer of `bytes` bytes, and no reader yet.
struct Stage {
    monitor: Monitor,
    go: Sender<()>,
    writer: JoinHandle<()>,
    stage: JoinHandle<Result<Outcome, Error>>,
    output: PipeReader,
    events: Receiver<(&'static str, Option<i32>)>,
    bytes: u64,
    read: u64,
}

impl Stage {
    /// Starts all threads but the one that spills before a byte moves.
    fn start(memory: u64, bytes: u64) -> Stage {
        Stage::start_in_parts(memory, vec![bytes])
    }

    /// Starts a stage whose writer waits for one `go` per part; `parts` are the offsets
    /// of their ends.
    fn start_in_parts(memory: u64, parts: Vec<u64>) -> Stage {
        let bytes = *parts.last().unwrap();
        let disk = Some(64 * MIB);
        let buffer = Buffer::new(Overflow::Spill { memory, disk }).expect("a buffer");
        let (tell, events) = channel();
        let tell = Mutex::new(tell);
        let buffer = buffer.on_event(move |event| {
            let told = match event {
                Event::Spilling { .. } => ("spilling", None),
                Event::Degraded { what, error } => (*what, error.raw_os_error()),
                event => panic!("{event:?}"),
            };
            tell.lock().unwrap().send(told).unwrap();
        });
        let monitor = buffer.monitor();
        let (input, mut feed) = pipe().expect("a pipe");
        let (output, into) = pipe().expect("a pipe");
        let (go, wait) = channel();
        let writer = std::thread::spawn(move || {
            let pattern = Pattern::new(Stream::Stdout, 64 << 10);
            let mut at = 0;
            for until in parts {
                wait.recv().unwrap();
                while at < until {
                    let n = (until - at).min(50_000);
                    feed.write_all(pattern.slice(at, n as usize)).unwrap();
                    at += n;
                }
            }
        });
        let stage = std::thread::spawn(move || buffer.run(input.into(), into.into()));
        eventually(|| {
            threads()
                .iter()
                .any(|name| name.starts_with("procwright-out"))
        });
        Stage {
            monitor,
            go,
            writer,
            stage,
            output,
            events,
            bytes,
            read: 0,
        }
    }

    fn go(&self) {
        self.go.send(()).unwrap();
    }

    fn spilled(&self) -> u64 {
        self.monitor.figures().spilled_bytes
    }

    /// Reads at most `most` bytes, and compares each.
    fn take(&mut self, most: u64) {
        let pattern = Pattern::new(Stream::Stdout, 64 << 10);
        let mut buffer = vec![0; 100_000];
        let until = self.read.saturating_add(most);
        while self.read < until {
            let most = buffer.len().min((until - self.read) as usize);
            let n = self.output.read(&mut buffer[..most]).unwrap();
            if n == 0 {
                break;
            }
            assert_eq!(pattern.mismatch(self.read, &buffer[..n]), None);
            self.read += n as u64;
        }
    }

    /// Reads everything that is left. Returns the final figures, and the events since
    /// the last receive.
    fn finish(mut self) -> (Figures, Vec<(&'static str, Option<i32>)>) {
        self.take(u64::MAX);
        let at = self.read;
        assert_eq!(at, self.bytes);
        self.writer.join().unwrap();
        let outcome = self.stage.join().unwrap().unwrap();
        let figures = outcome.figures;
        assert!(!outcome.reader_gone);
        assert_eq!((figures.bytes_in, figures.bytes_out), (at, at));
        assert_eq!((figures.lag_bytes, figures.disk_bytes), (0, 0));
        assert_eq!((figures.dropped_bytes, figures.lost_bytes), (0, 0));
        (figures, self.events.try_iter().collect())
    }
}

fn spool_in(directory: &Path) {
    sys::set_variable("PROCWRIGHT_SPOOL_DIR", directory);
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().count() == 0
}

alone! {
    fn a_disk_that_is_full_and_is_freed_again() {
        if !root_or_skip("a_disk_that_is_full_and_is_freed_again") {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        if !sys::mount_memory(directory.path(), MIB) {
            return skip("a_disk_that_is_full_and_is_freed_again", "may not mount");
        }
        spool_in(directory.path());
        let other = directory.path().join("other");
        std::fs::write(&other, vec![1; 600 << 10]).unwrap();
        let stage = Stage::start(256 * KIB, 3 * MIB);
        stage.go();
        // A quarter fits beside the other file, and then nothing more.
        assert_eq!(stage.events.recv().unwrap().0, "spilling");
        let refused = stage.events.recv().unwrap();
        assert_eq!(refused, ("make a file", Some(libc::ENOSPC)));
        let before = stage.spilled();
        assert!(before <= 424 * KIB, "{before}");
        std::fs::remove_file(&other).unwrap();
        eventually(|| stage.spilled() > before);
        let (figures, _) = stage.finish();
        assert!(figures.disk_peak_bytes <= MIB);
        assert!(figures.refused > std::time::Duration::ZERO);
        assert!(is_empty(directory.path()));
    }
}

alone! {
    fn files_may_not_be_large() {
        // SIGXFSZ is not ignored here: it must not end this process.
        let directory = tempfile::tempdir().unwrap();
        spool_in(directory.path());
        sys::default(libc::SIGXFSZ);
        sys::limit_file_size(300 * KIB);
        let stage = Stage::start(256 * KIB, 3 * MIB);
        stage.go();
        // Many small files serve as well.
        eventually(|| stage.spilled() > MIB);
        let (_, told) = stage.finish();
        assert!(told.iter().all(|told| told.0 == "spilling"), "{told:?}");

        sys::limit_file_size(100 * KIB);
        let stage = Stage::start(256 * KIB, 3 * MIB);
        stage.go();
        let refused = stage.events.recv().unwrap();
        assert_eq!(refused, ("make a file", Some(libc::EFBIG)));
        let (figures, told) = stage.finish();
        assert_eq!(figures.spilled_bytes, 0);
        // The refusal is reported once, however often the stage tries.
        assert_eq!(told, []);
    }
}

alone! {
    fn no_descriptor_is_left_for_a_file() {
        let directory = tempfile::tempdir().unwrap();
        spool_in(directory.path());
        let stage = Stage::start(256 * KIB, 3 * MIB);
        let files = sys::nofile();
        sys::set_nofile(3);
        stage.go();
        let refused = stage.events.recv().unwrap();
        assert_eq!(refused, ("make a file", Some(libc::EMFILE)));
        assert_eq!(stage.spilled(), 0);
        sys::set_nofile(files);
        // The stage tries again though nothing else happens.
        eventually(|| stage.spilled() > 0);
        stage.finish();
    }
}

alone! {
    fn no_thread_can_be_started() {
        let directory = tempfile::tempdir().unwrap();
        spool_in(directory.path());
        let stage = Stage::start(256 * KIB, 3 * MIB);
        sys::deny(&[libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN);
        stage.go();
        let refused = stage.events.recv().unwrap();
        assert_eq!(refused, ("start a thread", Some(libc::EAGAIN)));
        let (figures, _) = stage.finish();
        assert_eq!(figures.spilled_bytes, 0);

        // The writing thread cannot start either: then no input is taken at all.
        let buffer = Buffer::new(Overflow::default()).unwrap();
        let (input, mut feed) = pipe().unwrap();
        let (_output, into) = pipe().unwrap();
        feed.write_all(b"kept").unwrap();
        let copy = input.try_clone().unwrap();
        let error = buffer.run(input.into(), into.into()).unwrap_err();
        assert!(matches!(error, Error::Setup(_)), "{error}");
        drop(feed);
        let mut kept = String::new();
        (&copy).read_to_string(&mut kept).unwrap();
        assert_eq!(kept, "kept");
    }
}

alone! {
    fn a_file_system_without_unnamed_files_and_without_fallocate() {
        let directory = tempfile::tempdir().unwrap();
        spool_in(directory.path());
        sys::deny(&[libc::SYS_fallocate], libc::EOPNOTSUPP);
        let stage = Stage::start(256 * KIB, 3 * MIB);
        stage.go();
        eventually(|| stage.spilled() > MIB);
        assert!(is_empty(directory.path()));
        stage.finish();
    }
}

alone! {
    fn writes_fail_after_a_promise() {
        let directory = tempfile::tempdir().unwrap();
        spool_in(directory.path());
        let stage = Stage::start_in_parts(256 * KIB, vec![MIB, 3 * MIB]);
        stage.go();
        eventually(|| stage.spilled() > 0);
        sys::deny(&[libc::SYS_pwrite64], libc::EIO);
        // The next part is large enough to be spilled, however much was spilled before.
        stage.go();
        // The first event is the beginning of spilling.
        let told: Vec<_> = stage.events.iter().take(2).collect();
        assert_eq!(told, [("spilling", None), ("write a file", Some(libc::EIO))]);
        stage.finish();
    }
}

alone! {
    fn what_was_spilled_cannot_be_read() {
        let directory = tempfile::tempdir().unwrap();
        spool_in(directory.path());
        let stage = Stage::start(256 * KIB, 3 * MIB);
        stage.go();
        eventually(|| stage.spilled() > MIB);
        sys::deny(&[libc::SYS_pread64], libc::EIO);
        let Stage { mut output, stage, writer, .. } = stage;
        let mut out = Vec::new();
        output.read_to_end(&mut out).unwrap();
        let error = stage.join().unwrap().unwrap_err();
        match error {
            Error::Lost { offset, length, source } => {
                // Everything before the lost bytes is there, and nothing from behind
                // them.
                assert_eq!(offset, out.len() as u64);
                assert!(length > 0);
                assert_eq!(source.raw_os_error(), Some(libc::EIO));
            }
            error => panic!("{error}"),
        }
        let pattern = Pattern::new(Stream::Stdout, 64 << 10);
        assert_eq!(pattern.mismatch(0, &out), None);
        // The writer's pipe is closed; its error is expected.
        let _ = writer.join();
    }
}

alone! {
    fn a_directory_that_may_not_be_used() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("missing");
        spool_in(&place);
        let error = Buffer::new(Overflow::default()).unwrap_err();
        assert!(matches!(&error, Error::Invalid(invalid) if invalid.what() == "PROCWRIGHT_SPOOL_DIR"));
        // A buffer without a disk does not need the directory.
        Buffer::new(Overflow::Block { memory: MIB }).unwrap();
        Buffer::new(Overflow::Spill { memory: MIB, disk: Some(0) }).unwrap();
        if !root_or_skip("a_directory_that_may_not_be_used") {
            return;
        }
        // A directory of another user.
        spool_in(directory.path());
        sys::become_user(65_534);
        let error = Buffer::new(Overflow::default()).unwrap_err().to_string();
        assert!(error.contains("Permission denied"), "{error}");
    }
}

alone! {
    fn nothing_is_left_behind_and_no_thread_that_nobody_needs() {
        let directory = tempfile::tempdir().unwrap();
        spool_in(directory.path());
        let spills = || threads().iter().any(|name| name.starts_with("procwright-spil"));
        let before = Census::now();
        let stage = Stage::start(256 * KIB, 100 * KIB);
        stage.go();
        eventually(|| stage.monitor.figures().bytes_in == 100 * KIB);
        assert!(!spills());
        stage.finish();
        before.comes_back();

        let mut stage = Stage::start(256 * KIB, 3 * MIB);
        stage.go();
        eventually(|| stage.monitor.figures().bytes_in == 3 * MIB);
        eventually(|| stage.spilled() > 2 * MIB);
        // The spilling thread ends though the reader has not come back.
        eventually(|| !spills());
        assert!(is_empty(directory.path()));
        // An empty file is removed while the stage goes on.
        let mut some = vec![0; 100];
        stage.output.read_exact(&mut some).unwrap();
        assert_eq!(Pattern::new(Stream::Stdout, 100).mismatch(0, &some), None);
        drop(stage.output);
        let outcome = stage.stage.join().unwrap().unwrap();
        let figures = outcome.figures;
        assert!(outcome.reader_gone);
        // Bytes that will never be read are still accounted for.
        assert_eq!(figures.bytes_in, figures.bytes_out + figures.lag_bytes);
        stage.writer.join().unwrap();
        drop((stage.events, stage.go, stage.monitor));
        before.comes_back();
    }
}

alone! {
    fn memory_stays_within_its_bound() {
        let directory = tempfile::tempdir().unwrap();
        spool_in(directory.path());
        let memory = 4 * MIB;
        let stage = Stage::start(memory, 60 * MIB);
        let before = common::reset_peak();
        stage.go();
        eventually(|| stage.monitor.figures().bytes_in == 60 * MIB);
        let grown = common::status_bytes("VmHWM") - before;
        let (figures, _) = stage.finish();
        assert!(figures.memory_peak_bytes <= memory + 6 * 256 * KIB, "{figures:?}");
        // The system's figure contains a thread's stack and this test's blocks as well.
        assert!(grown <= memory + 4 * MIB, "{grown}");
    }
}

#[test]
fn figures_from_many_threads_always_add_up() {
    let buffer = Buffer::new(Overflow::DropOldest { memory: 64 * KIB }).unwrap();
    let monitor = buffer.monitor();
    let (input, mut feed) = pipe().unwrap();
    let (mut output, into) = pipe().unwrap();
    let stage = std::thread::spawn(move || buffer.run(input.into(), into.into()));
    let looking: Vec<_> = (0..3)
        .map(|_| {
            let monitor = monitor.clone();
            std::thread::spawn(move || {
                let mut seen = Figures::default();
                while monitor.wait_moved(&seen, procwright::time::Deadline::NEVER) {
                    let now = monitor.figures();
                    assert_eq!(
                        now.bytes_in,
                        now.bytes_out + now.lag_bytes + now.dropped_bytes
                    );
                    assert!(now.bytes_in >= seen.bytes_in && now.bytes_out >= seen.bytes_out);
                    seen = now;
                }
            })
        })
        .collect();
    let total = Arc::new(20 * MIB);
    let copy = Arc::clone(&total);
    let writer = std::thread::spawn(move || {
        let zeros = vec![0; 10_000];
        let mut left = *copy;
        while left > 0 {
            let n = left.min(10_000);
            feed.write_all(&zeros[..n as usize]).unwrap();
            left -= n;
        }
    });
    let mut out = Vec::new();
    output.read_to_end(&mut out).unwrap();
    writer.join().unwrap();
    let figures = stage.join().unwrap().unwrap().figures;
    assert_eq!(out.len() as u64 + figures.dropped_bytes, *total);
    for thread in looking {
        thread.join().unwrap();
    }
}

alone! {
    fn a_disk_that_is_full_all_the_time_is_told_of_once() {
        let name = "a_disk_that_is_full_all_the_time_is_told_of_once";
        if !root_or_skip(name) {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        if !sys::mount_memory(directory.path(), MIB) {
            return skip(name, "may not mount");
        }
        spool_in(directory.path());
        // Every file that is read makes room for one more, and then the disk is full
        // again.
        let mut stage = Stage::start(256 * KIB, 16 * MIB);
        stage.go();
        assert_eq!(stage.events.recv().unwrap().0, "spilling");
        assert_eq!(stage.events.recv().unwrap(), ("make a file", Some(libc::ENOSPC)));
        for _ in 0..6 {
            let before = stage.spilled();
            stage.take(2 * MIB);
            eventually(|| stage.spilled() > before);
        }
        let (_, told) = stage.finish();
        assert_eq!(told, []);
    }
}
