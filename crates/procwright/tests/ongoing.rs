//! A run whose caller takes turns with it, and may leave it, or be left by it, at any
//! time.

mod common;

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use test_support::alone;

use common::{Census, child, eventually};
use procwright::process::Stop;
use procwright::spec::Limit;
use procwright::{
    Beyond, BoxError, Command, Demand, Moment, Ongoing, Pipeline, Reason, StdStream, Watch,
};

/// A watch that asks for a turn for each byte that arrives, or panics.
struct Bell {
    bell: PipeReader,
    panics: bool,
}

impl Watch for Bell {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn ready(&mut self, _moment: Moment<'_>) -> Result<Demand, BoxError> {
        self.bell.read_exact(&mut [0])?;
        assert!(!self.panics, "as a mistake of the host's would");
        Ok(Demand::Pause)
    }
}

fn begin(command: Command<'static>, panics: bool) -> (Ongoing<'static, Vec<u8>>, PipeWriter) {
    let (bell, ring) = std::io::pipe().unwrap();
    let ongoing = command.watch(Bell { bell, panics }).begin_into();
    (ongoing.unwrap(), ring)
}

/// More on both streams than is ever read, of which little is kept; written by two
/// programs, so that one stream can end without the other.
fn flood() -> Command<'static> {
    let child = test_children::path();
    let child = child.display();
    let line = format!("{child} flood-forever & exec {child} flood-forever --err");
    Command::shell(line).limit(Limit {
        bytes: 1 << 16,
        beyond: Beyond::HeadAndTail,
    })
}

fn has_second_thread() -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let mut names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
    // The kernel keeps the first 15 letters of a name.
    names.any(|name| name.is_ok_and(|name| name.starts_with("procwright-drai")))
}

alone! {
    fn who_served_a_run_that_is_left_is_gone() {
        let before = Census::now();
        let command = child(&["flood-forever"])
            .on_stdout_line(|_| Ok(()))
            .tee_to(StdStream::Stderr, std::io::sink())
            .stdin_iter(std::iter::repeat_with(|| Ok(vec![0; 1 << 16].into())));
        let (mut ongoing, mut ring) = begin(command, false);
        ring.write_all(&[1]).unwrap();
        assert!(!ongoing.proceed());
        drop((ongoing, ring));
        // The program ends as well: its output is not read.
        before.comes_back();
    }
}

alone! {
    fn the_second_thread_does_not_go_on_reading_for_a_run_that_was_left() {
        let before = Census::now();
        let (mut ongoing, mut ring) = begin(flood(), false);
        eventually(|| {
            ring.write_all(&[1]).unwrap();
            assert!(!ongoing.proceed());
            has_second_thread()
        });
        drop((ongoing, ring));
        before.comes_back();
    }
}

#[test]
fn a_demand_that_comes_after_the_end_changes_nothing() {
    let (mut ongoing, _ring) = begin(child(&["echo", "all"]), false);
    while !ongoing.proceed() {}
    ongoing.kill();
    assert!(ongoing.proceed());
    let collected = ongoing.finish().unwrap();
    assert_eq!(collected.report.reason, Reason::Finished);
    assert!(collected.report.success());
    assert_eq!(collected.stdout.unwrap(), b"all\n");
}

#[test]
fn a_pipeline_takes_turns_as_a_run_does() {
    let never = Stop::new().with_grace(Duration::MAX);
    let stages = [child(&["ignore-term"]), child(&["cat"])];
    let (bell, mut ring) = std::io::pipe().unwrap();
    let pipeline = Pipeline::new(stages).stop(never);
    let watch = Bell {
        bell,
        panics: false,
    };
    let mut ongoing = pipeline.watch(watch).begin_into::<Vec<u8>>().unwrap();
    for _ in 0..3 {
        ring.write_all(&[1]).unwrap();
        assert!(!ongoing.proceed());
    }
    ongoing.stop();
    ring.write_all(&[1]).unwrap();
    // In the midst of the stop, or after it, if that came before the signal was ignored.
    ongoing.proceed();
    ongoing.kill();
    let report = ongoing.finish().unwrap().report;
    assert_eq!(report.reason, Reason::Cancelled);
    for stage in &report.stages {
        assert!(stage.report.status.signal().is_some(), "{stage:?}");
    }
}

#[test]
fn a_demand_that_comes_after_the_end_of_a_pipeline_changes_nothing() {
    let stages = [child(&["echo", "all"]), child(&["cat"])];
    let mut ongoing = Pipeline::new(stages).begin_into::<Vec<u8>>().unwrap();
    while !ongoing.proceed() {}
    ongoing.stop();
    ongoing.kill();
    assert!(ongoing.proceed());
    let collected = ongoing.finish().unwrap();
    assert!(collected.report.success());
    assert_eq!(collected.stdout.unwrap(), b"all\n");
}

alone! {
    fn a_pipeline_that_is_left_is_left_to_itself() {
        let before = Census::now();
        let stages = [child(&["flood-forever"]), child(&["cat"])];
        let (bell, mut ring) = std::io::pipe().unwrap();
        let bell = Bell { bell, panics: false };
        let pipeline = Pipeline::new(stages).watch(bell);
        let mut ongoing = pipeline.begin_into::<Vec<u8>>().unwrap();
        ring.write_all(&[1]).unwrap();
        assert!(!ongoing.proceed());
        drop((ongoing, ring));
        // They end as well: nobody reads the output of the last.
        before.comes_back();
    }
}

alone! {
    fn a_program_is_not_left_to_itself_by_a_panic_that_was_caught_in_the_turn() {
        let before = Census::now();
        let (mut ongoing, mut ring) = begin(child(&["sleep-forever"]), true);
        ring.write_all(&[1]).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| ongoing.proceed())).is_err());
        drop((ongoing, ring));
        // The program would sleep for ever, if the run had not ended it.
        before.comes_back();
    }
}
