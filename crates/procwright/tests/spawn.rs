//! A child that the caller holds: its streams, its end, and what remains of it.

mod common;

use std::io::{Read, Write};
use std::time::{Duration, Instant};
use test_support::alone;

use common::{Census, child, sys};
use procwright::process::{Exit, Signal, Stop};
use procwright::stream::Closed;
use procwright::stream::Reader;
use procwright::time::Timeout;
use procwright::wait::{Event, Want};
use procwright::{Error, Overflow, Sink, Stdin, WaitSet};
use test_children::{Pattern, Stream};

alone! {
    fn what_is_written_comes_back() {
        let before = Census::now();
        {
            let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn().unwrap();
            let mut stdin = cat.stdin.take().unwrap();
            let mut stdout = cat.stdout.take().unwrap();
            assert!(cat.stderr.is_some());
            assert_eq!(cat.try_wait(), None);
            let data: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
            let written = data.clone();
            let writer = std::thread::spawn(move || stdin.write_all(&written).unwrap());
            let mut read = Vec::new();
            stdout.read_to_end(&mut read).unwrap();
            writer.join().unwrap();
            assert_eq!(read, data);
            assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
            assert_eq!(cat.wait(Duration::ZERO).unwrap(), Some(Exit::Code(0)));
            assert_eq!(cat.process().exit(), Some(Exit::Code(0)));
        }
        before.comes_back();
    }
}

alone! {
    fn a_read_ends_when_another_thread_closes() {
        let mut quiet = child(&["sleep-forever"]).spawn().unwrap();
        let stdout = quiet.stdout.take().unwrap();
        let begun = Instant::now();
        let error = stdout.read_for(&mut [0; 8], Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= Duration::from_millis(20));
        let readers: Vec<_> = (0..50)
            .map(|_| {
                let mut stdout = stdout.clone();
                std::thread::spawn(move || stdout.read(&mut [0; 8]).unwrap_err())
            })
            .collect();
        assert!(stdout.close());
        assert!(!stdout.close());
        for reader in readers {
            assert!(Closed::is(&reader.join().unwrap()));
        }
        assert!(quiet.stop().is_empty());
        assert_eq!(quiet.try_wait().and_then(Exit::signal), Some(Signal::TERM));
    }
}

alone! {
    fn a_closed_reader_ends_a_writing_child() {
        let mut yes = child(&["flood-forever"]).spawn().unwrap();
        let stdout = yes.stdout.take().unwrap();
        assert!(stdout.read_for(&mut [0; 4096], Timeout::NEVER).unwrap() > 0);
        stdout.close();
        let exit = yes.wait(None).unwrap().unwrap();
        assert_eq!(exit.signal(), Some(Signal::PIPE));
    }
}

alone! {
    fn a_write_that_nobody_reads_is_refused_and_kills_nobody() {
        sys::default(libc::SIGPIPE);
        let mut reader = child(&["close-stdin-exit", "3"]).stdin(Stdin::Pipe).spawn().unwrap();
        let mut stdin = reader.stdin.take().unwrap();
        let error = loop {
            if let Err(error) = stdin.write_all(&[0; 65536]) {
                break error;
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
        assert_eq!(reader.wait(None).unwrap(), Some(Exit::Code(3)));
    }
}

alone! {
    fn a_write_to_a_full_pipe_keeps_its_time_and_is_closed() {
        let mut deaf = child(&["sleep-forever"]).stdin(Stdin::Pipe).spawn().unwrap();
        let stdin = deaf.stdin.take().unwrap();
        let begun = Instant::now();
        let error = stdin.write_all_for(&vec![0; 1 << 20], Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= Duration::from_millis(20));
        let mut blocked = stdin.clone();
        let writer = std::thread::spawn(move || blocked.write_all(&[0; 4096]).unwrap_err());
        stdin.close();
        assert!(Closed::is(&writer.join().unwrap()));
        deaf.signal(Signal::KILL).unwrap();
        assert_eq!(deaf.wait(None).unwrap().and_then(Exit::signal), Some(Signal::KILL));
        assert!(deaf.signal(Signal::KILL).is_err());
    }
}

alone! {
    fn a_dropped_child_goes_on_and_leaves_no_zombie() {
        let before = Census::now();
        let fd;
        {
            let ready = child(&["ignore-term", "--print-ready"]).spawn().unwrap();
            let pid = ready.pid();
            fd = sys::pidfd(pid).unwrap();
            let mut line = [0; 64];
            assert!(ready.stdout.as_ref().unwrap().read_for(&mut line, Timeout::NEVER).unwrap() > 0);
            drop(ready);
            assert!(common::lives(pid));
            sys::kill(pid, libc::SIGKILL);
        }
        sys::wait_for_end(std::os::fd::AsFd::as_fd(&fd));
        drop(fd);
        before.comes_back();
    }
}

alone! {
    fn a_stop_ends_the_tree_and_names_nobody() {
        let mut tree = child(&["fork-tree", "2", "3", "--ignore-term", "--print-ready"])
            .stop(Stop::new().with_grace(Duration::from_millis(20)))
            .spawn()
            .unwrap();
        let mut line = vec![0; 65536];
        // The reader is kept: its drop would end the tree by SIGPIPE.
        let stdout = tree.stdout.take().unwrap();
        let n = stdout.read_for(&mut line, Timeout::NEVER).unwrap();
        let pids = common::ready_pids(&line[..n]);
        assert!(pids.len() > 2);
        assert!(tree.stop().is_empty());
        assert!(pids.iter().all(|pid| !common::lives(*pid)));
        assert_eq!(tree.try_wait().and_then(Exit::signal), Some(Signal::KILL));
        assert!(tree.stop().is_empty(), "once more does no harm");
    }
}

alone! {
    fn many_children_in_a_set() {
        let mut set = WaitSet::new().unwrap();
        for code in 0..20 {
            let code = code.to_string();
            set.add(child(&["exit", &code]).spawn().unwrap(), Event::Exited).unwrap();
        }
        let waited = set.wait(Want::All, None).unwrap();
        let mut codes: Vec<_> = waited
            .ended
            .iter()
            .map(|(_, child)| child.try_wait().unwrap().code().unwrap())
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, (0..20).collect::<Vec<_>>());
    }
}

alone! {
    fn both_streams_at_once_by_two_threads() {
        let mut flood = child(&["flood", "--out", "4M", "--err", "4M"]).spawn().unwrap();
        let streams = [(Stream::Stdout, flood.stdout.take()), (Stream::Stderr, flood.stderr.take())];
        let readers = streams.map(|(stream, reader)| {
            std::thread::spawn(move || {
                let mut data = Vec::new();
                reader.unwrap().read_to_end(&mut data).unwrap();
                assert_eq!(data.len(), 4 << 20);
                assert_eq!(Pattern::new(stream, data.len()).mismatch(0, &data), None);
            })
        });
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
    }
}

alone! {
    fn what_is_for_runs_alone_is_refused() {
        let before = Census::now();
        let text = |error: Error| match error {
            Error::Invalid(invalid) => invalid.to_string(),
            other => panic!("{other}"),
        };
        let error = text(child(&["exit", "0"]).on_stdout_line(|_| Ok(())).spawn().unwrap_err());
        assert!(error.starts_with("a callback is for run(), not for spawn()"), "{error}");
        let error = text(child(&["cat"]).stdin(Stdin::Pipe).run().unwrap_err());
        assert!(error.contains("spawn"), "{error}");
        let error = child(&["exit", "0"]).cwd("/no/such").spawn().unwrap_err();
        assert!(error.to_string().contains("chdir"), "{error}");
        let none = child(&["exit", "0"]).stdout(Sink::Null).stderr(Sink::Null).spawn().unwrap();
        assert!(none.stdout.is_none() && none.stderr.is_none() && none.stdin.is_none());
        none.wait(None).unwrap();
        drop(none);
        before.comes_back();
    }
}

/// Reads a whole stream and compares it with what was written, byte for byte.
fn is_whole(reader: &mut Reader, stream: Stream, length: usize) {
    let mut data = Vec::new();
    reader.read_to_end(&mut data).unwrap();
    assert_eq!(data.len(), length);
    assert_eq!(Pattern::new(stream, length).mismatch(0, &data), None);
}

alone! {
    fn who_only_waits_gets_the_exit_and_reads_afterwards() {
        let before = Census::now();
        {
            let mut flood = child(&["flood", "--out", "24M", "--err", "24M"]).spawn().unwrap();
            // The output is more than pipes and memory hold, and is not read.
            assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
            let mut stdout = flood.stdout.take().unwrap();
            let figures = stdout.figures().unwrap();
            assert!(figures.bytes_in > 23 << 20, "{figures:?}");
            is_whole(&mut stdout, Stream::Stdout, 24 << 20);
            is_whole(flood.stderr.as_mut().unwrap(), Stream::Stderr, 24 << 20);
            let figures = stdout.figures().unwrap();
            assert_eq!((figures.bytes_in, figures.lag_bytes), (24 << 20, 0));
            assert!(figures.spilled_bytes > 0 && figures.dropped_bytes == 0);
        }
        before.comes_back();
    }
}

alone! {
    fn with_the_bare_pipe_the_program_waits() {
        let mut flood = child(&["flood", "--out", "1M"]).spawn_with(None).unwrap();
        assert_eq!(flood.wait(Duration::from_millis(50)).unwrap(), None);
        let mut stdout = flood.stdout.take().unwrap();
        assert!(stdout.figures().is_none());
        is_whole(&mut stdout, Stream::Stdout, 1 << 20);
        assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
    }
}

alone! {
    fn what_is_too_much_is_dropped_and_counted() {
        let memory = 64 << 10;
        for overflow in [Overflow::DropOldest { memory }, Overflow::DropNewest { memory }] {
            let mut flood = child(&["flood", "--out", "8M"]).spawn_with(overflow).unwrap();
            assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
            let mut data = Vec::new();
            let mut stdout = flood.stdout.take().unwrap();
            stdout.read_to_end(&mut data).unwrap();
            let figures = stdout.figures().unwrap();
            assert_eq!(figures.bytes_in, 8 << 20);
            assert_eq!(data.len() as u64 + figures.dropped_bytes, 8 << 20, "{figures:?}");
            let pattern = Pattern::new(Stream::Stdout, 8 << 20);
            if matches!(overflow, Overflow::DropNewest { .. }) {
                assert_eq!(pattern.mismatch(0, &data[..memory as usize]), None);
            } else {
                let tail = &data[data.len() - memory as usize / 2..];
                assert_eq!(pattern.mismatch((8 << 20) - tail.len() as u64, tail), None);
            }
        }
    }
}

alone! {
    fn one_thread_for_many_children_and_none_when_they_are_gone() {
        let before = Census::now();
        {
            let mut children: Vec<_> = (0..common::scaled(40, 400))
                .map(|_| child(&["cat"]).stdin(Stdin::Pipe).spawn().unwrap())
                .collect();
            common::eventually(|| common::threads().len() == before.threads.len() + 1);
            for (i, child) in children.iter_mut().enumerate() {
                let line = format!("line {i}\n");
                child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
                let mut read = vec![0; line.len()];
                child.stdout.as_mut().unwrap().read_exact(&mut read).unwrap();
                assert_eq!(read, line.as_bytes());
            }
            assert_eq!(common::threads().len(), before.threads.len() + 1);
            for child in &mut children {
                drop(child.stdin.take());
                assert_eq!(child.wait(None).unwrap(), Some(Exit::Code(0)));
            }
        }
        before.comes_back();
    }
}

alone! {
    fn a_fork_keeps_nobody_waiting() {
        let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(None).unwrap();
        let worker = sys::fork_pausing();
        // The worker goes on without exec, as a server's workers do.
        drop(cat.stdin.take());
        assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
        let mut yes = child(&["flood-forever"]).spawn_with(None).unwrap();
        let second = sys::fork_pausing();
        drop(yes.stdout.take());
        assert_eq!(yes.wait(None).unwrap().and_then(Exit::signal), Some(Signal::PIPE));
        for pid in [worker, second] {
            sys::kill(pid, libc::SIGKILL);
            sys::reap(pid);
        }
    }
}

alone! {
    fn a_fork_has_no_streams() {
        let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(None).unwrap();
        let code = sys::fork_running(|| {
            let mut stdin = cat.stdin.take().unwrap();
            let written = stdin.write(b"x").is_err();
            let read = cat.stdout.as_mut().unwrap().read(&mut [0; 8]).is_err();
            // The drop in the fork closes no other descriptor of that number.
            let file = std::fs::File::open("/dev/null").unwrap();
            drop((stdin, cat));
            i32::from(!(written && read && file.metadata().is_ok()))
        });
        assert_eq!(code, 0);
    }
}

alone! {
    fn a_fork_keeps_no_end_of_what_is_read_ahead() {
        let keep = Overflow::DropNewest { memory: 64 << 10 };
        let mut yes = child(&["flood-forever"]).spawn_with(keep).unwrap();
        let stdout = yes.stdout.take().unwrap();
        assert!(stdout.read_for(&mut [0; 4096], Timeout::NEVER).unwrap() > 0);
        let worker = sys::fork_pausing();
        drop(stdout);
        assert_eq!(yes.wait(None).unwrap().and_then(Exit::signal), Some(Signal::PIPE));
        sys::kill(worker, libc::SIGKILL);
        sys::reap(worker);
    }
}

alone! {
    fn a_fork_never_waits_for_what_is_read_ahead() {
        let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn().unwrap();
        let stdout = cat.stdout.take().unwrap();
        let mut blocked = stdout.clone();
        let reader = std::thread::spawn(move || blocked.read(&mut [0; 8]).unwrap_err());
        let code = sys::fork_running(|| {
            let read = stdout.read_for(&mut [0; 8], Duration::from_millis(20));
            let refused = read.is_err_and(|e| e.kind() == std::io::ErrorKind::Unsupported);
            stdout.close();
            drop((stdout.clone(), cat.stderr.take()));
            i32::from(!refused)
        });
        assert_eq!(code, 0);
        assert!(stdout.close(), "the fork has closed it for us");
        assert!(Closed::is(&reader.join().unwrap()));
    }
}

alone! {
    fn a_panic_of_the_caller_kills_no_child() {
        let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn().unwrap();
        let (mut stdin, mut stdout) = (cat.stdin.take().unwrap(), cat.stdout.take().unwrap());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _held = cat;
            std::panic::resume_unwind(Box::new("for the test"));
        }));
        assert!(panicked.is_err());
        stdin.write_all(b"alive").unwrap();
        let mut read = [0; 5];
        stdout.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"alive");
    }
}

alone! {
    fn a_blocked_write_takes_no_signal_of_the_hosts() {
        sys::default(libc::SIGPIPE);
        // The signal is blocked in every thread, as in hosts that read signals from a
        // descriptor: the fork has only the calling one.
        sys::mask(libc::SIGPIPE, true);
        let code = sys::fork_running(|| {
            let mut deaf = child(&["sleep-forever"]).stdin(Stdin::Pipe).spawn().unwrap();
            let stdin = deaf.stdin.take().unwrap();
            let other = stdin.clone();
            let closer = std::thread::spawn(move || {
                common::eventually(|| other.write_for(b"x", Duration::ZERO).is_err());
                sys::kill(std::process::id() as i32, libc::SIGPIPE);
                other.close();
            });
            let closed = stdin.write_all_for(&vec![0; 1 << 20], None).unwrap_err();
            closer.join().unwrap();
            deaf.signal(Signal::KILL).unwrap();
            i32::from(!Closed::is(&closed)) + 2 * i32::from(!sys::is_pending(libc::SIGPIPE))
        });
        assert_eq!(code, 0);
    }
}

alone! {
    fn an_empty_buffer_waits_for_nothing() {
        for overflow in [None, Some(Overflow::default())] {
            let quiet = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            let stdout = quiet.stdout.as_ref().unwrap();
            assert_eq!(stdout.read_for(&mut [], Duration::from_millis(20)).unwrap(), 0);
            stdout.close();
            assert!(Closed::is(&stdout.read_for(&mut [], Duration::ZERO).unwrap_err()));
        }
    }
}

#[test]
fn all_of_it_may_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<procwright::Child>();
    shared::<Reader>();
    shared::<procwright::stream::Writer>();
}
