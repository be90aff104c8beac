//! A child that cannot go on because its output is not read: a waiting caller is told,
//! and a caller without a reason to worry is not.

mod common;

use std::io::{Read, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use test_support::alone;

use common::{child, sys};
use procwright::process::{Exit, Signal, Stop};
use procwright::stream::{Patience, Stalled};
use procwright::time::Timeout;
use procwright::{Child, Command, Overflow, Reason, Stdin, WaitError};

const SHORT: Duration = Duration::from_millis(50);

const SMALL: Overflow = Overflow::Spill {
    memory: 64 << 10,
    disk: Some(0),
};

fn stalled(result: Result<Option<Exit>, WaitError>) -> Stalled {
    match result {
        Err(WaitError::Stalled(stalled)) => stalled,
        other => panic!("{other:?}"),
    }
}

fn read_all(child: &mut Child) -> usize {
    let mut data = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut data).unwrap();
    data.len()
}

alone! {
    fn who_waits_for_a_child_that_nobody_reads_is_told() {
        let mut flood = child(&["flood", "--out", "1M"])
            .stall_after(SHORT)
            .spawn_with(SMALL)
            .unwrap();
        let begun = Instant::now();
        let told = stalled(flood.wait(None));
        assert!(begun.elapsed() >= SHORT && told.after >= SHORT);
        assert!(told.command.contains("flood --out 1M") && !told.writing);
        assert_eq!(told.streams.len(), 1);
        let stream = &told.streams[0];
        assert_eq!((stream.name, stream.overflow), ("stdout", Some(SMALL)));
        assert!(stream.memory_bytes >= 56 << 10 && stream.disk_bytes == 0);
        let text = told.to_string();
        assert!(text.contains("stdout") && text.contains("read") && text.contains("Spill"), "{text}");
        // The next wait reports it again, and not at once.
        let begun = Instant::now();
        stalled(flood.wait(None));
        assert!(begun.elapsed() >= SHORT);
        assert_eq!(read_all(&mut flood), 1 << 20);
        assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
    }
}

alone! {
    fn with_the_bare_pipe_too() {
        let mut flood = child(&["flood", "--out", "1M"])
            .stall_after(SHORT)
            .spawn_with(None)
            .unwrap();
        let told = stalled(flood.wait(None));
        assert_eq!((told.streams[0].name, told.streams[0].overflow), ("stdout", None));
        assert_eq!(read_all(&mut flood), 1 << 20);
        assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
    }
}

alone! {
    fn the_stream_that_is_read_is_not_named() {
        for overflow in [None, Some(SMALL)] {
            let mut flood = child(&["flood", "--err", "1M"])
                .stall_after(SHORT)
                .spawn_with(overflow)
                .unwrap();
            let mut stdout = flood.stdout.take().unwrap();
            let reader = std::thread::spawn(move || stdout.read(&mut [0; 8]).unwrap());
            assert_eq!(stalled(flood.wait(None)).streams[0].name, "stderr");
            drop(flood.stderr.take());
            assert_eq!(flood.wait(None).unwrap().unwrap().signal(), Some(Signal::PIPE));
            assert_eq!(reader.join().unwrap(), 0);
        }
    }
}

alone! {
    fn a_slow_reader_is_a_reader() {
        for overflow in [None, Some(SMALL)] {
            // The patience is long enough not to take a stalled machine for a stalled
            // reader.
            let patience = Duration::from_secs(3);
            let mut flood = child(&["flood", "--out", "192K"])
                .stall_after(patience)
                .spawn_with(overflow)
                .unwrap();
            let stdout = flood.stdout.take().unwrap();
            let (over, pace) = mpsc::channel::<()>();
            let reader = std::thread::spawn(move || {
                let mut buffer = vec![0; 4 << 10];
                let mut read = 0;
                loop {
                    // The reader's pace, until the wait is over.
                    let _ = pace.recv_timeout(patience / 15);
                    match stdout.read_for(&mut buffer, None).unwrap() {
                        0 => break read,
                        n => read += n,
                    }
                }
            });
            let begun = Instant::now();
            assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
            drop(over);
            assert!(begun.elapsed() > patience, "was not slow enough to be a test");
            assert_eq!(reader.join().unwrap(), 192 << 10);
        }
    }
}

alone! {
    fn none_never_tells_and_a_quiet_child_has_not_stalled() {
        let flood = child(&["flood", "--out", "1M"])
            .stall_after(None)
            .spawn_with(SMALL)
            .unwrap();
        assert_eq!(flood.wait(SHORT * 4).unwrap(), None);
        for overflow in [None, Some(SMALL)] {
            let cat = child(&["cat"])
                .stdin(Stdin::Pipe)
                .stall_after(SHORT)
                .spawn_with(overflow)
                .unwrap();
            cat.stdin.as_ref().unwrap().write_all_for(b"unread", None).unwrap();
            assert_eq!(cat.wait(SHORT * 4).unwrap(), None);
        }
    }
}

alone! {
    fn a_child_that_has_closed_its_full_output_has_not_stalled() {
        // A shell, since the pipe has to be filled to the brim first.
        let gone = Command::shell("head -c 65536 /dev/zero; exec sleep 3600 >/dev/null 2>&1")
            .stall_after(SHORT)
            .spawn_with(None)
            .unwrap();
        common::eventually(|| common::with_argument("3600").contains(&gone.pid()));
        assert_eq!(gone.wait(SHORT * 4).unwrap(), None);
        gone.signal(Signal::KILL).unwrap();
    }
}

alone! {
    fn a_write_to_a_child_that_cannot_write_is_told() {
        for overflow in [None, Some(SMALL)] {
            let mut cat = child(&["cat"])
                .stdin(Stdin::Pipe)
                .stall_after(SHORT)
                .spawn_with(overflow)
                .unwrap();
            let mut stdin = cat.stdin.take().unwrap();
            let data = vec![7; 1 << 20];
            let mut written = 0;
            let error = loop {
                match stdin.write(&data[written..]) {
                    Ok(n) => written += n,
                    Err(error) => break error,
                }
            };
            let told = Stalled::of(&error).unwrap();
            assert!(told.writing && told.after >= SHORT, "{told:?}");
            assert_eq!(told.streams[0].name, "stdout");
            assert!(told.to_string().contains("input"), "{told}");
            let writer = std::thread::spawn(move || stdin.write_all(&data[written..]).unwrap());
            assert_eq!(read_all(&mut cat), 1 << 20);
            writer.join().unwrap();
            assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
        }
    }
}

alone! {
    fn a_write_to_a_deaf_child_only_waits() {
        let deaf = child(&["sleep-forever"])
            .stdin(Stdin::Pipe)
            .stall_after(SHORT)
            .spawn()
            .unwrap();
        let stdin = deaf.stdin.as_ref().unwrap();
        let error = stdin.write_all_for(&vec![0; 1 << 20], SHORT * 4).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        deaf.signal(Signal::KILL).unwrap();
    }
}

alone! {
    fn an_idle_wait_does_not_wake_up() {
        let cat = child(&["cat"])
            .stdin(Stdin::Pipe)
            .stall_after(Duration::from_millis(1))
            .spawn()
            .unwrap();
        let before = sys::sleeps();
        assert_eq!(cat.wait(Duration::from_millis(300)).unwrap(), None);
        let slept = sys::sleeps() - before;
        // One sleep is the wait itself; a look each millisecond would make 300.
        assert!((1..=10).contains(&slept), "{slept} sleeps");
    }
}

alone! {
    fn a_wait_is_interrupted_and_taken_up_again() {
        let cat = child(&["cat"]).stdin(Stdin::Pipe).spawn().unwrap();
        let (ring, bell) = std::io::pipe().unwrap();
        drop(bell);
        let patience = Patience::NEVER_ENDING.or_readable(std::os::fd::AsFd::as_fd(&ring));
        assert!(matches!(cat.wait_with(patience), Err(WaitError::Interrupted)));
        cat.stdin.as_ref().unwrap().close();
        assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
        // An end that has happened takes precedence over the interrupt.
        assert_eq!(cat.wait_with(patience).unwrap(), Some(Exit::Code(0)));
    }
}

alone! {
    fn a_report_has_what_a_run_has() {
        for overflow in [None, Some(Overflow::default())] {
            let mut flood = child(&["flood", "--out", "1M"]);
            flood = flood.stall_after(Timeout::NEVER);
            let mut flood = flood.spawn_with(overflow).unwrap();
            assert_eq!(read_all(&mut flood), 1 << 20);
            flood.wait(None).unwrap();
            let report = flood.report().unwrap();
            assert!(report.success() && report.reason == Reason::Finished);
            assert_eq!(report.pid, flood.pid());
            assert!(report.cpu_user.is_some() && report.duration > Duration::ZERO);
            let info = report.stdout_info.unwrap();
            assert_eq!((info.bytes, info.kept_bytes, info.dropped_bytes), (1 << 20, 1 << 20, 0));
            assert!(info.complete);
        }
        let cat = child(&["cat"]).stdin(Stdin::Pipe).spawn().unwrap();
        assert!(cat.report().is_none());
        let grace = Stop::new().with_grace(Duration::from_secs(3600));
        let mut deaf = child(&["ignore-term", "--print-ready"]).stop(grace).spawn().unwrap();
        common::ready_line(deaf.stdout.as_mut().unwrap());
        let (pressed, press) = std::io::pipe().unwrap();
        drop(press);
        let fd = std::os::fd::AsFd::as_fd(&pressed);
        let (survivors, said) = deaf.stop_watching(deaf.stop_policy(), fd, || Err("enough"));
        assert!(survivors.is_empty() && said == Err("enough"));
        let report = deaf.report().unwrap();
        assert_eq!(report.reason, Reason::Cancelled);
        assert_eq!(report.status.signal(), Some(Signal::KILL));
    }
}

/// A pipe that is readable at once and again and again, as interrupts are that come more
/// often than a stall is told of.
fn interrupted_for_ever(mut call: impl FnMut(Patience<'_>) -> Option<Stalled>) -> Stalled {
    let (mut interrupts, mut bell) = std::io::pipe().unwrap();
    let ringing = std::thread::spawn(move || {
        let (_keep, never) = mpsc::channel::<()>();
        while bell.write_all(b"!").is_ok() {
            let _ = never.recv_timeout(SHORT / 5);
        }
    });
    loop {
        use std::os::fd::AsFd;
        let patience = Patience::NEVER_ENDING.or_readable(interrupts.as_fd());
        if let Some(stalled) = call(patience) {
            drop(interrupts);
            ringing.join().unwrap();
            return stalled;
        }
        interrupts.read_exact(&mut [0]).unwrap();
    }
}

alone! {
    fn interrupts_hide_no_stall() {
        for overflow in [Some(SMALL), None] {
            let start = || child(&["flood", "--out", "1M"]).stall_after(SHORT).spawn_with(overflow).unwrap();
            let mut flood = start();
            let told = interrupted_for_ever(|patience| match flood.wait_with(patience) {
                Err(WaitError::Interrupted) => None,
                waited => Some(stalled(waited)),
            });
            assert!(told.after >= SHORT);
            assert_eq!(read_all(&mut flood), 1 << 20);
            flood.wait(None).unwrap();

            // Another thread has the output, and does not read it.
            let mut flood = start();
            let stdout = flood.stdout.take();
            let mut communication = flood.communicate(Vec::new());
            let told = interrupted_for_ever(|patience| match communication.proceed(patience) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => None,
                other => Some(Stalled::of(&other.unwrap_err()).unwrap().clone()),
            });
            assert!(told.after >= SHORT);
            drop(stdout);
            flood.wait(None).unwrap();
        }
    }
}
