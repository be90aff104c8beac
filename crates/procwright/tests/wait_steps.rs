//! A wait for a child that an event loop takes step by step.

mod common;

use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::sync::mpsc;
use std::time::Duration;
use test_support::alone;

use common::child;
use procwright::process::{Exit, Stop};
use procwright::wait::{Awaits, Event, Waitable, Want};
use procwright::{Child, Overflow, Reason, StdStream, Stdin, WaitError, WaitSet};

const SHORT: Duration = Duration::from_millis(50);

struct News<'a>(BorrowedFd<'a>);

impl Waitable for News<'_> {
    fn awaits(&self) -> Awaits<'_> {
        Awaits::readable(self.0)
    }
}

/// What an event loop does; how often it slept.
fn wait_on_a_loop(child: &Child) -> Result<(Exit, usize), WaitError> {
    let mut wait = child.begin_wait(false);
    let mut sleeps = 0;
    loop {
        if let Some(exit) = child.wait_step()? {
            return Ok((exit, sleeps));
        }
        sleeps += 1;
        let sleep = child.wait_sleep(&mut wait)?;
        let mut set: WaitSet<Box<dyn Waitable + '_>> = WaitSet::new().unwrap();
        if sleep.is_for_process {
            set.add(Box::new(child.process()), Event::Exited).unwrap();
        }
        for fd in sleep.readable {
            set.add(Box::new(News(fd)), Event::Exited).unwrap();
        }
        set.wait_until(Want::Any, sleep.until).unwrap();
    }
}

alone! {
    fn it_ends_with_the_child_and_looks_at_nothing_by_the_clock() {
        let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn().unwrap();
        assert!(cat.wait_step().unwrap().is_none());
        drop(cat.stdin.take());
        let (exit, sleeps) = wait_on_a_loop(&cat).unwrap();
        assert_eq!(exit, Exit::Code(0));
        assert!(sleeps <= 1, "{sleeps}");
    }
}

alone! {
    fn it_lasts_until_a_stop_for_a_limit_is_over() {
        let tree = child(&["ignore-term", "--print-ready"])
            .timeout(SHORT)
            .stop(Stop::new().with_grace(SHORT))
            .spawn()
            .unwrap();
        wait_on_a_loop(&tree).unwrap();
        let report = tree.report().expect("its stop is over");
        assert_eq!(report.reason, Reason::Timeout);
        assert!(report.survivors.is_empty());
    }
}

alone! {
    fn it_tells_of_a_stall_and_may_be_taken_up_again() {
        let mut flood = child(&["flood", "--out", "1M"])
            .stall_after(SHORT)
            .spawn_with(Overflow::Block { memory: 64 << 10 })
            .unwrap();
        match wait_on_a_loop(&flood) {
            Err(WaitError::Stalled(stalled)) => assert!(!stalled.writing),
            other => panic!("{other:?}"),
        }
        let mut read = Vec::new();
        flood.stdout.take().unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), 1 << 20);
        assert_eq!(wait_on_a_loop(&flood).unwrap().0, Exit::Code(0));
    }
}

alone! {
    fn a_failed_source_of_stdin_is_told_once() {
        let failing = std::iter::once_with(|| Err("it fails".into()));
        let cat = child(&["cat"]).stdin_iter(failing).spawn().unwrap();
        match wait_on_a_loop(&cat) {
            Err(WaitError::Stdin(error)) => assert_eq!(error.to_string(), "it fails"),
            other => panic!("{other:?}"),
        }
        wait_on_a_loop(&cat).unwrap();
    }
}

/// A writer that says when it is written to, takes nothing before it is told to, and then fails.
struct Gated(mpsc::Sender<()>, mpsc::Receiver<()>);

impl Write for Gated {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(());
        let _ = self.1.recv();
        Err(io::Error::other("no room"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

alone! {
    fn it_lasts_until_the_copies_are_over_and_tells_once_what_has_failed() {
        let (writes, is_written_to) = mpsc::channel();
        let (open, gate) = mpsc::channel();
        let flood = child(&["flood", "--out", "1000"])
            .tee_to(StdStream::Stdout, Gated(writes, gate))
            .spawn()
            .unwrap();
        is_written_to.recv().unwrap();
        flood.process().wait(None).unwrap();
        for _ in 0..3 {
            assert!(flood.wait_step().unwrap().is_none());
        }
        let mut wait = flood.begin_wait(false);
        assert!(!flood.wait_sleep(&mut wait).unwrap().is_for_process);
        drop(open);
        match wait_on_a_loop(&flood) {
            Err(WaitError::Copy(error)) => assert_eq!(error.to_string(), "no room"),
            other => panic!("{other:?}"),
        }
        assert_eq!(wait_on_a_loop(&flood).unwrap().0, Exit::Code(0));
    }
}
