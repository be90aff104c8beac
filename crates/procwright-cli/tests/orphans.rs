//! Nothing of a stopped run is left, and what is left of others is left alone.

mod common;

use std::time::Duration;

use common::{Started, assert_gone, child, is_gone, kill, option, wait_gone};
use rustix::process::Signal;
use test_support::in_time;

fn timed_out(words: &[String]) -> Vec<i32> {
    let started = in_time(Duration::from_secs(3), |limit| {
        let limit = option(limit);
        let mut options = vec!["--timeout", &limit, "--grace", "200ms", "--"];
        options.extend(words.iter().map(String::as_str));
        options.push("--print-ready");
        Started::in_time(common::procwright(options))
    });
    let pids = started.pids.clone();
    let ran = started.finish();
    assert_eq!(ran.code(), Some(124), "{}", ran.stderr);
    pids
}

#[test]
fn a_timeout_ends_a_grandchild_in_a_session_of_its_own() {
    let pids = timed_out(&child(["setsid-grandchild", "--ignore-term"]));
    assert_eq!(pids.len(), 3);
    assert_gone(&pids);
}

#[test]
fn and_one_that_was_forked_twice() {
    // No pipe, no group and no parent tells whose it is.
    let words = child(["fork-holder", "0", "--setsid", "--double-fork", "--stay"]);
    let pids = timed_out(&words);
    assert_eq!(pids.len(), 1);
    assert_gone(&pids);
}

#[test]
fn and_one_that_outlives_its_parent_by_ignoring_the_signal() {
    assert_gone(&timed_out(&child(["leader-term-child-ignore"])));
}

#[test]
fn orphans_are_reaped_while_the_program_runs() {
    let words = child(["fork-holder", "1", "--double-fork", "--stay"]);
    let started = Started::new([], &words);
    // A zombie would stay as long as we do.
    wait_gone(started.pids[0]);
    started.kill(Signal::TERM);
    assert_eq!(started.finish().signal(), Some(15));
}

#[test]
fn also_after_its_exit_while_its_pipes_are_held() {
    // The program's own zombie is the first that the system shows.
    let words = child(["fork-holder", "0", "--double-fork"]);
    let started = Started::new(["--until", "eof"], &words);
    kill(started.pids[0], Signal::KILL);
    wait_gone(started.pids[0]);
    assert_eq!(started.finish().code(), Some(0));
}

#[test]
fn what_a_program_leaves_behind_at_its_normal_end_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let pidfile = directory.path().join("pid");
    let mut command = common::procwright(["--"]);
    command.args(child(["fork-holder", "0", "--setsid", "--double-fork"]));
    command.arg("--pidfile").arg(&pidfile);
    assert!(command.status().unwrap().success());
    let orphan = std::fs::read_to_string(pidfile)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(!is_gone(orphan));
    kill(orphan, Signal::KILL);
}

#[test]
fn the_smaller_scopes_leave_the_rest_alone() {
    for scope in ["process", "group"] {
        let directory = tempfile::tempdir().unwrap();
        let pidfile = directory.path().join("pids");
        let words = child(["setsid-grandchild", "--pidfile", pidfile.to_str().unwrap()]);
        let pids = in_time(Duration::from_secs(3), |limit| {
            let limit = option(limit);
            let mut command = common::procwright(["--timeout", &limit, "--scope", scope, "--"]);
            assert_eq!(command.args(&words).status().unwrap().code(), Some(124));
            std::fs::read_to_string(&pidfile).ok()
        });
        let pids: Vec<i32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
        assert_gone(&pids[..1]);
        assert!(!is_gone(pids[2]), "scope {scope}");
        for pid in pids.into_iter().filter(|pid| !is_gone(*pid)) {
            kill(pid, Signal::KILL);
        }
    }
}

/// A script that has bash become the command, by `exec`, and so leave it its children.
fn exec_from_bash(script: &str) -> std::process::Output {
    common::watchdog();
    std::process::Command::new("bash")
        .args(["-c", script])
        .env("procwright", env!("CARGO_BIN_EXE_procwright"))
        .env("child", test_children::path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn the_reader_of_an_output_that_the_shell_has_started_lives_on() {
    // More than once: the reader may have been started in one clock tick with the program.
    for _ in 0..6 {
        a_reader_lives_on();
    }
}

fn a_reader_lives_on() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let log = log.to_str().unwrap();
    let output = exec_from_bash(&format!(
        "exec $procwright run --timeout 3s --grace 100ms -- \
         bash -c \"trap '' TERM; echo one; while :; do sleep 0.05; done\" \
         > >(cat > {log}; echo read >> {log})"
    ));
    assert_eq!(output.status.code(), Some(124));
    // The shell's process ends after us, by itself.
    test_support::eventually(|| {
        std::fs::read_to_string(log).is_ok_and(|text| text == "one\nread\n")
    });
}

#[test]
fn a_helper_of_the_shell_lives_on_and_so_does_what_it_starts_meanwhile() {
    for stop in ["TERM", "KILL"] {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().to_str().unwrap();
        // The helper starts an orphan while the program runs, which comes to the command
        // as the orphans of the program do.
        let output = exec_from_bash(&format!(
            "cd {at}; helper() {{ while ! [ -e go ]; do sleep 0.02; done; \
               (sleep 1000 & echo $! > orphan); echo $BASHPID > helper; exec sleep 1000; }}; \
             helper </dev/null >/dev/null 2>&1 & \
             exec $procwright run --report-to report --timeout 5s --grace 100ms --stop {stop} -- \
               bash -c \"trap '' TERM; sleep 1000 & echo \\$! > ours; \
                 (sleep 1000 </dev/null >/dev/null 2>&1 & echo \\$! > lost); touch go; sleep 1000\""
        ));
        assert_eq!(output.status.code(), Some(124), "{output:?}");
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        let pid = |name: &str| read(name).trim().parse::<i32>().unwrap();
        assert_gone(&[pid("ours")]);
        let report: serde_json::Value = serde_json::from_str(&read("report")).unwrap();
        // Whose an orphan is cannot be known, which is not the same as nobody.
        let doubtful: Vec<_> = report["survivors"].as_array().unwrap().iter().collect();
        assert!(doubtful.iter().all(|one| one["state"] == "?"), "{report}");
        assert!(report["left"].is_null(), "{report}");
        for kept in ["helper", "orphan", "lost"] {
            assert!(!is_gone(pid(kept)), "{kept} was ended with {stop}");
            kill(pid(kept), Signal::KILL);
            let is_told = doubtful.iter().any(|one| one["pid"] == pid(kept));
            assert_eq!(is_told, kept != "helper", "{kept}: {report}");
        }
    }
}
