//! Forks that a hook makes on the thread of its pipeline, and returns in; forks that stay; and a
//! watch that wants a turn.
#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use procwright::pipeline::{Error, PipelineOutput};
use procwright::{BoxError, Command, Demand, Moment, Overflow, Pipeline, Watch};
use test_support::{alone, forked};

/// Calls a hook for each byte.
struct Bell<F>(PipeReader, F);

impl<F: FnMut() -> Demand> Watch for Bell<F> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn ready(&mut self, _pipeline: Moment<'_>) -> Result<Demand, BoxError> {
        self.0.read_exact(&mut [0])?;
        Ok(self.1())
    }
}

/// What is between the first program and the last.
#[derive(Clone, Copy)]
enum Between {
    Pipe,
    Buffer,
    Fan,
}

/// Programs that write and read for as long as it takes the watch to act, once the first has
/// rung the bell.
fn pipeline<'a>(between: Between, ready: impl FnMut() -> Demand + 'a) -> Pipeline<'a> {
    let (bell, ring) = std::io::pipe().unwrap();
    let first = Command::new("sh")
        .args(["-c", "echo begun; printf x >&3; cat; echo over"])
        .stdin_bytes("input\n")
        .pass_fd(ring, 3)
        .on_event(|_| Ok(()));
    let last = Command::new("cat").on_stdout_line(|_| Ok(()));
    let pipeline = Pipeline::new([first]).watch(Bell(bell, ready));
    match between {
        Between::Pipe => pipeline.pipe(last),
        Between::Buffer => pipeline.pipe(last).elastic(0, Overflow::default()),
        Between::Fan => pipeline.fan([Command::new("cat"), last]),
    }
}

#[track_caller]
fn is_whole(result: Result<PipelineOutput, Error>) {
    let output = result.unwrap();
    assert_eq!(output.stdout, b"begun\ninput\nover\n");
    assert!(output.success(), "{}", output.explain());
}

fn a_watch_forks(between: Between) {
    let parent = std::process::id();
    let code = Cell::new(None);
    let result = pipeline(between, || {
        match forked::fork() {
            0 => {}
            pid => code.set(Some(forked::wait_code(pid))),
        }
        Demand::Nothing
    })
    .run();
    if std::process::id() != parent {
        let is_told = matches!(&result, Err(Error::Forked { command }) if command.contains("cat"));
        forked::exit(i32::from(!is_told));
    }
    is_whole(result);
    assert_eq!(code.get(), Some(0));
}

alone! {
    fn a_fork_that_a_watch_returns_in_has_no_pipeline() {
        a_watch_forks(Between::Pipe);
    }
}

alone! {
    fn such_a_fork_has_no_buffers_either() {
        a_watch_forks(Between::Buffer);
    }
}

alone! {
    fn such_a_fork_has_no_fan_either() {
        a_watch_forks(Between::Fan);
    }
}

fn a_fork_stays(between: Between) {
    let (mut wait, mut go) = std::io::pipe().unwrap();
    let pid = Cell::new(0);
    let result = pipeline(between, || {
        pid.set(forked::fork());
        if pid.get() == 0 {
            // Until the pipeline is over, whose programs see the ends of their inputs.
            let read = wait.read_exact(&mut [0]);
            forked::exit(i32::from(read.is_err()));
        }
        Demand::Nothing
    })
    .run();
    is_whole(result);
    go.write_all(b"x").unwrap();
    assert_eq!(forked::wait_code(pid.get()), 0);
}

alone! {
    fn a_fork_that_stays_holds_no_end_of_a_buffer() {
        a_fork_stays(Between::Buffer);
    }
}

alone! {
    fn a_fork_that_stays_holds_no_end_of_a_fan() {
        a_fork_stays(Between::Fan);
    }
}

alone! {
    fn a_pause_is_nobodys_turn() {
        let asked = Cell::new(0);
        let result = pipeline(Between::Pipe, || {
            asked.set(asked.get() + 1);
            Demand::Pause
        })
        .run();
        is_whole(result);
        assert_eq!(asked.get(), 1);
    }
}
