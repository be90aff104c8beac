//! What the tests share beside `test_support`: runs of `test-child`.
#![allow(dead_code, unused_imports)] // each test file uses a part of it

pub(crate) mod pipelines;

use procwright::{Cancel, Command, Error, Output, Reason};
pub(crate) use test_support::*;

/// A run of `test-child` with these arguments.
pub(crate) fn child(args: &[&str]) -> Command<'static> {
    Command::new(test_children::path()).args(args)
}

/// Runs `command`, calls `then` when its program says that it is ready, and
/// cancels the run. The stopped run's output.
pub(crate) fn stopped_when_ready(
    command: Command<'_>,
    mut then: impl FnMut(&[i32]) + Send + 'static,
) -> Output {
    let cancel = Cancel::new().expect("a descriptor");
    let from_callback = cancel.clone();
    let result = command
        .cancel_on(&cancel)
        .on_stdout_line(move |line| {
            if line.starts_with(b"ready ") {
                then(&ready_pids(line));
                from_callback.cancel();
            }
            Ok(())
        })
        .run();
    let output = stopped(result);
    assert_eq!(output.report.reason, Reason::Cancelled);
    output
}

/// The output of a run that had to be stopped.
pub(crate) fn stopped(result: Result<Output, Error>) -> Output {
    match result {
        Err(Error::Stopped(output)) => *output,
        Err(error) => panic!("failed in another way: {error}"),
        Ok(output) => panic!("was not stopped: {:?}", output.report),
    }
}

/// What `test-child show` said.
pub(crate) fn shown(output: &Output) -> serde_json::Value {
    assert!(
        output.success(),
        "{}",
        output.report.explain(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}
