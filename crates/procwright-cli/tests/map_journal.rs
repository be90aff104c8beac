//! A map that was killed is taken up again: each command once, or told of.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Ran, kill, subcommand, wait_gone};
use rustix::process::Signal;
use test_support::scaled;

/// As many commands as the map has that is killed in its middle.
fn commands() -> usize {
    usize::try_from(scaled(200, 10_000)).unwrap()
}

/// A map in `dir` of commands that each append a letter to a file of theirs.
fn map(dir: &Path, options: &[&str], items: &[String]) -> Command {
    let mut command = subcommand("map");
    command
        .current_dir(dir)
        .args(["-j8", "--journal", "journal"]);
    command.args(options);
    command.args(["sh", "-c", "printf x >> done/$0", "{}", ":::"]);
    command.args(items);
    command
}

fn items() -> Vec<String> {
    (0..commands())
        .map(|number| format!("item{number}"))
        .collect()
}

fn scratch() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("done")).unwrap();
    dir
}

/// How often each item was done.
fn done(dir: &Path) -> BTreeMap<String, u64> {
    let entries = std::fs::read_dir(dir.join("done")).unwrap();
    let times = entries.map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, entry.metadata().unwrap().len())
    });
    times.collect()
}

fn report(ran: &Ran) -> serde_json::Value {
    let last = ran.stderr.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr))
}

#[test]
fn after_a_kill_each_is_done_once_or_told_of() {
    let all = commands();
    for quarters in 1..=3 {
        let dir = scratch();
        let dir = dir.path();
        let mut command = map(dir, &[], &items());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut procwright = command.spawn().unwrap();
        // Somewhere in the middle.
        let killed_at = all * quarters / 4;
        while std::fs::read_dir(dir.join("done")).unwrap().count() < killed_at {
            std::thread::yield_now();
        }
        let pid = procwright.id().cast_signed();
        kill(pid, Signal::KILL);
        procwright.wait().unwrap();
        wait_gone(pid);
        // In another order.
        let mut reordered = items();
        reordered.reverse();
        reordered.rotate_left(50);
        let options = ["--resume", "--report", "json"];
        let ran: Ran = map(dir, &options, &reordered).output().unwrap().into();
        let told = report(&ran);
        let unknown = told["unknown"].as_u64().unwrap();
        assert!(unknown <= 8, "{told}");
        assert_eq!(
            ran.code(),
            Some(if unknown > 0 { 1 } else { 0 }),
            "{}",
            ran.stderr
        );
        assert_eq!(
            (&told["commands"], &told["failed"]),
            (&all.into(), &0.into())
        );
        assert!(
            told["succeeded_before"].as_u64().unwrap() + 8 >= killed_at as u64,
            "{told}"
        );
        let times = done(dir);
        // One that went on after the kill may not have written its letter yet.
        assert!(times.values().all(|times| *times <= 1), "twice: {times:?}");
        // What was not done is among those that are told of.
        let missing = all - times.len();
        assert!(missing as u64 <= unknown, "{missing} of {unknown}");
        // Whoever says that these may be run again has all done.
        let options = ["--resume", "--rerun-unknown", "--report", "json"];
        let ran: Ran = map(dir, &options, &reordered).output().unwrap().into();
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
        assert_eq!(report(&ran)["succeeded"], unknown);
        assert_eq!(done(dir).len(), all);
    }
}

#[test]
fn a_journal_is_not_begun_over_without_a_word() {
    let dir = scratch();
    let items = ["a".to_owned()];
    let ran: Ran = map(dir.path(), &[], &items).output().unwrap().into();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let ran: Ran = map(dir.path(), &[], &items).output().unwrap().into();
    assert_eq!(ran.code(), Some(125));
    assert!(ran.stderr.contains("hint: --resume"), "{}", ran.stderr);
    let ran: Ran = map(dir.path(), &["--resume"], &items)
        .output()
        .unwrap()
        .into();
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(done(dir.path())["a"], 1);
}

#[test]
fn elsewhere_its_items_would_be_others() {
    let dir = scratch();
    let items = ["a".to_owned()];
    map(dir.path(), &[], &items).status().unwrap();
    let elsewhere = scratch();
    let journal = dir.path().join("journal");
    std::fs::copy(journal, elsewhere.path().join("journal")).unwrap();
    let ran: Ran = map(elsewhere.path(), &["--resume"], &items)
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code(), Some(125));
    assert!(ran.stderr.contains("was begun in"), "{}", ran.stderr);
    assert!(done(elsewhere.path()).is_empty());
}

#[test]
fn the_joblog_is_written_besides() {
    let dir = scratch();
    let items = ["a".to_owned(), "b".to_owned()];
    let ran: Ran = map(dir.path(), &["--joblog", "joblog"], &items)
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let text = std::fs::read_to_string(dir.path().join("joblog")).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(
        text.starts_with("Seq\tHost\tStarttime\tJobRuntime\t"),
        "{text}"
    );
}
