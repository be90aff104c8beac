//! The journal of a map: what was done is not done again, and what is not known is told.

mod common;

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procwright::map::{Ended, Error, Joblog, Journal, JournalError, Map, Outcome};
use procwright::process::{Exit, Signal};
use procwright::time::Timeout;
use procwright::{Cancel, Spec};
use test_support::{eventually, watchdog};

/// Appends a letter to a file of this name, which tells how often it was run.
fn mark(dir: &Path, name: &str) -> Spec {
    let line = format!("printf x >> {}", dir.join(name).display());
    Spec::shell(line)
}

fn times(dir: &Path, name: &str) -> usize {
    fs::read(dir.join(name)).map_or(0, |bytes| bytes.len())
}

fn run(specs: Vec<Spec>, journal: Journal) -> Vec<Ended> {
    let map = Map::new(specs)
        .parallel(3)
        .ordered()
        .journal(journal)
        .start()
        .unwrap();
    map.map(Result::unwrap).collect()
}

fn names(ended: &[Ended]) -> Vec<&'static str> {
    let name = |one: &Ended| match &one.outcome {
        Outcome::Ran(_) => "ran",
        Outcome::NotStarted(_) => "not started",
        Outcome::Before(past) if past.success() => "before",
        Outcome::Before(_) => "failed before",
        Outcome::Unknown(_) => "unknown",
        _ => "?",
    };
    ended.iter().map(name).collect()
}

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal");
    (dir, journal)
}

/// Keeps the lines that `keep` wants.
fn edit(journal: &Path, keep: impl Fn(&serde_json::Value) -> bool) {
    let text = fs::read_to_string(journal).unwrap();
    let lines = text.split_inclusive('\n');
    let kept = lines.filter(|line| keep(&serde_json::from_str(line).unwrap()));
    fs::write(journal, kept.collect::<String>()).unwrap();
}

#[test]
fn what_was_done_is_not_done_again_whatever_the_order() {
    let _watchdog = watchdog("what_was_done_is_not_done_again_whatever_the_order");
    let (dir, journal) = scratch();
    let spec = |name: &str| mark(dir.path(), name);
    let first = vec![spec("a"), spec("b"), spec("b"), spec("c")];
    let ended = run(first, Journal::create(&journal).unwrap());
    assert_eq!(names(&ended), ["ran"; 4]);
    // In another order, with one more of what was there twice, one that is new, and one less.
    let second = vec![spec("d"), spec("b"), spec("c"), spec("b"), spec("b")];
    let ended = run(second, Journal::resume(&journal).unwrap());
    assert_eq!(
        names(&ended).iter().filter(|name| **name == "ran").count(),
        2
    );
    assert_eq!(names(&ended)[..1], ["ran"]);
    let done = ["a", "b", "c", "d"].map(|name| times(dir.path(), name));
    assert_eq!(done, [1, 3, 1, 1]);
}

#[test]
fn a_start_without_an_end_is_told_and_not_run_unless_asked() {
    let _watchdog = watchdog("a_start_without_an_end_is_told_and_not_run_unless_asked");
    let (dir, journal) = scratch();
    let specs = || vec![mark(dir.path(), "a"), mark(dir.path(), "b")];
    run(specs(), Journal::create(&journal).unwrap());
    // As a kill of this process leaves it, between the start of the second and its end.
    edit(&journal, |line| {
        !(line["event"] == "ended" && line["index"] == 1)
    });
    let ended = run(specs(), Journal::resume(&journal).unwrap());
    assert_eq!(names(&ended), ["before", "unknown"]);
    assert!(!ended[1].success());
    let words = ended[1].summary();
    assert!(
        words.ends_with("was started, and its end is not known"),
        "{words}"
    );
    assert_eq!(times(dir.path(), "b"), 1);
    // It stays unknown, until somebody says that it may be run again.
    let ended = run(specs(), Journal::resume(&journal).unwrap());
    assert_eq!(names(&ended), ["before", "unknown"]);
    let ended = run(specs(), Journal::resume(&journal).unwrap().rerun_unknown());
    assert_eq!(names(&ended), ["before", "ran"]);
    assert_eq!(times(dir.path(), "b"), 2);
    let ended = run(specs(), Journal::resume(&journal).unwrap().rerun_unknown());
    assert_eq!(names(&ended), ["before", "before"]);
}

#[test]
fn failures_are_run_again_if_asked() {
    let _watchdog = watchdog("failures_are_run_again_if_asked");
    let (_dir, journal) = scratch();
    let specs = || {
        vec![
            Spec::shell("exit 0"),
            Spec::shell("exit 3"),
            Spec::new(["/does/not/exist"]),
        ]
    };
    let ended = run(specs(), Journal::create(&journal).unwrap());
    assert_eq!(names(&ended), ["ran", "ran", "not started"]);
    let ended = run(specs(), Journal::resume(&journal).unwrap());
    assert_eq!(names(&ended), ["before", "failed before", "failed before"]);
    assert!(
        ended[1].summary().ends_with("exited with code 3, before"),
        "{}",
        ended[1].summary()
    );
    let ended = run(specs(), Journal::resume(&journal).unwrap().rerun_failed());
    assert_eq!(names(&ended), ["before", "ran", "not started"]);
    // The latest line of a command holds.
    let ended = run(specs(), Journal::resume(&journal).unwrap());
    assert_eq!(names(&ended), ["before", "failed before", "failed before"]);
}

#[test]
fn what_the_end_of_a_map_has_stopped_is_run_again() {
    let _watchdog = watchdog("what_the_end_of_a_map_has_stopped_is_run_again");
    for way in ["cancel", "failure", "deadline"] {
        let (dir, journal) = scratch();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let (begun, go) = (path("begun"), path("go"));
        let specs = || {
            let mut limited = Spec::new(["sleep", "1000"]);
            limited.timeout = Timeout::after(Duration::from_millis(10));
            let waits = format!("printf x >> {begun}; test -e {go} || exec sleep 1000");
            // The second runs by then.
            let fails = format!("until test -e {begun}; do sleep 0.01; done; exit 3");
            match way {
                "deadline" => vec![limited, Spec::shell(waits)],
                _ => vec![limited, Spec::shell(waits), Spec::shell(fails)],
            }
        };
        let cancel = Cancel::new().unwrap();
        let map = Map::new(specs()).parallel(3).ordered();
        let map = map.journal(Journal::create(&journal).unwrap());
        let map = match way {
            "cancel" => map.cancel_on(&cancel),
            "failure" => map.stop_after_failures(NonZero::new(2).unwrap()),
            _ => map.deadline(Duration::from_secs(1)),
        };
        let mut map = map.start().unwrap();
        if way == "cancel" {
            eventually(|| map.progress().failed == 2 && times(dir.path(), "begun") == 1);
            cancel.cancel();
        }
        let ended: Vec<_> = map.by_ref().map(Result::unwrap).collect();
        assert!(!ended[1].success(), "{way}: {}", ended[1].summary());
        fs::write(dir.path().join("go"), "").unwrap();
        let before = times(dir.path(), "begun");
        let ended = run(specs(), Journal::resume(&journal).unwrap());
        let expected = ["failed before", "ran", "failed before"];
        assert_eq!(names(&ended), expected[..ended.len()], "{way}");
        assert!(ended[1].success());
        assert_eq!(times(dir.path(), "begun"), before + 1, "{way}");
        // From now on it is done.
        let ended = run(specs(), Journal::resume(&journal).unwrap());
        assert_eq!(names(&ended)[1], "before", "{way}");
    }
}

#[test]
fn the_status_of_an_earlier_map_is_known() {
    let _watchdog = watchdog("the_status_of_an_earlier_map_is_known");
    let (_dir, journal) = scratch();
    let specs = || {
        vec![
            Spec::shell("exit 3"),
            Spec::shell("kill -9 $$"),
            Spec::new(["/does/not/exist"]),
            Spec::new(["true"]),
        ]
    };
    let statuses = |ended: &[Ended]| ended.iter().map(Ended::status).collect::<Vec<_>>();
    let now = statuses(&run(specs(), Journal::create(&journal).unwrap()));
    assert_eq!(now[0], Some(Exit::Code(3)));
    assert_eq!(now[1].and_then(Exit::signal).map(Signal::number), Some(9));
    assert_eq!(now[2], None);
    assert_eq!(now[3], Some(Exit::Code(0)));
    let ended = run(specs(), Journal::resume(&journal).unwrap());
    assert_eq!(names(&ended)[0], "failed before");
    assert_eq!(statuses(&ended), now);
    edit(&journal, |line| line["event"] != "ended");
    let ended = run(specs(), Journal::resume(&journal).unwrap());
    assert_eq!(statuses(&ended), [None; 4]);
}

#[test]
fn a_log_is_not_begun_over() {
    let _watchdog = watchdog("a_log_is_not_begun_over");
    let (dir, journal) = scratch();
    run(
        vec![mark(dir.path(), "a")],
        Journal::create(&journal).unwrap(),
    );
    let text = fs::read(&journal).unwrap();
    let error = Journal::create(&journal).unwrap_err();
    assert!(matches!(error, JournalError::Exists { .. }), "{error}");
    assert!(error.to_string().contains("hint: resume"), "{error}");
    assert_eq!(fs::read(&journal).unwrap(), text);
}

#[test]
fn a_file_that_is_no_log_stays_as_it_is() {
    let (_dir, journal) = scratch();
    let started = r#"{"event":"started","key":"00112233445566778899aabbccddeeff","nth":1,"at":0}"#;
    for text in [
        "notes",
        "notes\n",
        "{\"event\":\"map\",\"ver",
        "{}\n{}\n",
        &format!("{started}\n"),
    ] {
        fs::write(&journal, text).unwrap();
        for opened in [Journal::create(&journal), Journal::resume(&journal)] {
            let error = opened.unwrap_err();
            assert!(
                matches!(error, JournalError::Foreign { line: 1, .. }),
                "{error}"
            );
        }
        assert_eq!(fs::read_to_string(&journal).unwrap(), text);
    }
}

#[test]
fn a_line_that_was_cut_off_is_as_none() {
    let _watchdog = watchdog("a_line_that_was_cut_off_is_as_none");
    let (dir, journal) = scratch();
    let specs = || vec![mark(dir.path(), "a")];
    run(specs(), Journal::create(&journal).unwrap());
    let whole = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    // Cut within the line of the end: the start is known.
    fs::write(&journal, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(
        names(&run(specs(), Journal::resume(&journal).unwrap())),
        ["unknown"]
    );
    // Cut within the line of the start: the program was not started.
    let cut = format!("{}{}", lines[0], &lines[1][..lines[1].len() / 2]);
    fs::write(&journal, cut).unwrap();
    assert_eq!(
        names(&run(specs(), Journal::resume(&journal).unwrap())),
        ["ran"]
    );
    assert_eq!(
        names(&run(specs(), Journal::resume(&journal).unwrap())),
        ["before"]
    );
    // In the middle it is damage, of which nobody knows what it was.
    fs::write(&journal, format!("{}{}\n{}", lines[0], "{\"ev", lines[1])).unwrap();
    let error = Journal::resume(&journal).unwrap_err();
    assert!(
        matches!(error, JournalError::Foreign { line: 2, .. }),
        "{error}"
    );
}

#[test]
fn one_map_at_a_time_uses_a_log() {
    let (_dir, journal) = scratch();
    let first = Journal::create(&journal).unwrap();
    let error = Journal::resume(&journal).unwrap_err();
    assert!(matches!(error, JournalError::Busy { .. }), "{error}");
    drop(first);
    Journal::resume(&journal).unwrap();
}

#[test]
fn a_log_of_another_directory_is_refused() {
    let (_dir, journal) = scratch();
    let line = r#"{"event":"map","version":1,"cwd":"/elsewhere","at":0,"pid":1}"#;
    fs::write(&journal, format!("{line}\n")).unwrap();
    let error = Journal::resume(&journal).unwrap_err();
    assert!(matches!(error, JournalError::Elsewhere { .. }), "{error}");
}

#[test]
fn the_start_is_written_before_it_happens() {
    let _watchdog = watchdog("the_start_is_written_before_it_happens");
    let (dir, journal) = scratch();
    // The command itself looks at the journal.
    let copy = dir.path().join("copy");
    let spec = Spec::new(["cp".as_ref(), journal.as_os_str(), copy.as_os_str()]);
    run(vec![spec], Journal::create(&journal).unwrap().synced());
    let text = fs::read_to_string(&copy).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["argv"][0]),
        (&"started".into(), &"cp".into())
    );
}

#[test]
fn a_log_that_cannot_be_written_ends_the_map() {
    let _watchdog = watchdog("a_log_that_cannot_be_written_ends_the_map");
    let dir = tempfile::tempdir().unwrap();
    // What is written goes to a device that is always full, behind the journal's back.
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let journal = Journal::create(dir.path().join("journal")).unwrap();
    let log_fd = fs::read_dir("/proc/self/fd").unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        let is_log = fs::read_link(&path).is_ok_and(|to| to == dir.path().join("journal"));
        is_log.then(|| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .parse::<i32>()
                .unwrap()
        })
    });
    let path = dir.path().to_owned();
    let specs = (0..).map(move |_| mark(&path, "a"));
    let mut map = Map::new(specs)
        .parallel(2)
        .journal(journal)
        .start()
        .unwrap();
    map.next().unwrap().unwrap();
    std::mem::forget(test_support::sys::copy_at(&full, log_fd.unwrap()));
    let error = map.find_map(Result::err).unwrap();
    assert!(
        matches!(error, Error::Journal(JournalError::Io { .. })),
        "{error:?}"
    );
}

#[test]
fn a_command_that_cannot_be_known_again_is_not_run() {
    let _watchdog = watchdog("a_command_that_cannot_be_known_again_is_not_run");
    let (dir, journal) = scratch();
    let mut spec = mark(dir.path(), "a");
    let (read, _write) = std::io::pipe().unwrap();
    spec.stdin = procwright::Stdin::Fd(std::sync::Arc::new(read.into()));
    let mut map = Map::new([spec])
        .journal(Journal::create(&journal).unwrap())
        .start()
        .unwrap();
    let ended = map.next().unwrap().unwrap();
    assert!(matches!(ended.outcome, Outcome::NotStarted(_)));
    let error = map.next().unwrap().unwrap_err();
    assert!(
        matches!(error, Error::Journal(JournalError::Nameless { .. })),
        "{error:?}"
    );
    assert_eq!(times(dir.path(), "a"), 0);
}

#[test]
fn the_joblog_has_the_columns_of_gnu_parallel() {
    let _watchdog = watchdog("the_joblog_has_the_columns_of_gnu_parallel");
    let (dir, journal) = scratch();
    let path = dir.path().join("joblog");
    let joblog = Joblog::open(&path, false).unwrap();
    let mut slow = Spec::new(["sleep", "1000"]);
    slow.timeout = std::time::Duration::from_millis(10).into();
    let specs = vec![
        Spec::new(["echo", "a b"]),
        Spec::shell("exit 3"),
        Spec::shell("kill -9 $$"),
        slow,
    ];
    let map = Map::new(specs).parallel(1);
    let map = map
        .journal(Journal::create(&journal).unwrap().joblog(joblog))
        .start()
        .unwrap();
    assert_eq!(map.count(), 4);
    let text = fs::read_to_string(&path).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    let header = "Seq Host Starttime JobRuntime Send Receive Exitval Signal Command";
    assert_eq!(rows[0], header.split(' ').collect::<Vec<_>>());
    let picked = |row: &[&str]| [row[0], row[1], row[4], row[5], row[6], row[7], row[8]].join("|");
    assert_eq!(picked(&rows[1]), "1|:|0|4|0|0|echo 'a b'");
    assert_eq!(picked(&rows[2]), "2|:|0|0|3|0|/bin/sh -c 'exit 3'");
    assert_eq!(picked(&rows[3]), "3|:|0|0|0|9|/bin/sh -c 'kill -9 $$'");
    assert_eq!(picked(&rows[4]), "4|:|0|0|-1|15|sleep 1000");
    assert!(
        rows[1..]
            .iter()
            .all(|row| row[2].parse::<f64>().unwrap() > 1e9)
    );
}

#[test]
fn a_pipe_is_no_journal_and_waits_for_no_reader() {
    let _watchdog = watchdog("a_pipe_is_no_journal_and_waits_for_no_reader");
    let (dir, journal) = scratch();
    let mut mkfifo = std::process::Command::new("mkfifo");
    assert!(mkfifo.arg(&journal).status().unwrap().success());
    for opened in [Journal::create(&journal), Journal::resume(&journal)] {
        let error = opened.unwrap_err();
        assert!(matches!(error, JournalError::NotRegular { .. }), "{error}");
    }
    let device = Journal::create("/dev/null").unwrap_err();
    assert!(
        matches!(device, JournalError::NotRegular { .. }),
        "{device}"
    );
    for append in [false, true] {
        let error = Joblog::open(&journal, append).unwrap_err();
        assert!(matches!(error, JournalError::Unread { .. }), "{error}");
    }
    // One that is read is written.
    let reader = fs::File::options().read(true).write(true).open(&journal);
    let joblog = Joblog::open(&journal, false).unwrap();
    let kept = Journal::create(dir.path().join("file"))
        .unwrap()
        .joblog(joblog);
    run(vec![Spec::new(["true"])], kept);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(reader.unwrap()));
    assert!(lines.next().unwrap().unwrap().starts_with("Seq\t"));
    assert!(lines.next().unwrap().unwrap().ends_with("\ttrue"));
}
