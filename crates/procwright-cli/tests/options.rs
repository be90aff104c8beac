//! The options that shape the program's surroundings.

mod common;

use common::{child, procwright, run};

#[test]
fn arguments_come_through_as_they_are() {
    let ran = run([], &child(["args", "--", "-x", "", "a b", "--timeout"]));
    assert_eq!(ran.stdout, "--\0-x\0\0a b\0--timeout\0");
}

#[test]
fn options_end_at_the_program() {
    let mut command = procwright(["--timeout", "1h"]);
    command.args(child(["args", "--timeout", "x"]));
    let output = command.output().unwrap();
    assert_eq!(output.stdout, b"--timeout\0x\0");
}

#[test]
fn environment_and_directory() {
    let ran = run(["--env", "PW_A=1=2", "--env", "PW_B="], &child(["env"]));
    let entries: Vec<&str> = ran.stdout.split('\0').collect();
    assert!(entries.contains(&"PW_A=1=2") && entries.contains(&"PW_B="));
    let ran = run(["--cwd", "/"], &child(["show"]));
    let shown: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["cwd"], "/");
}

#[test]
fn a_shell_only_when_asked_for() {
    let ran = run(["--shell"], &["echo one; exit 4".to_owned()]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(4), "one\n"));
}

#[test]
fn stdin_from_a_file_or_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("in");
    std::fs::write(&file, "from a file").unwrap();
    let ran = run(["--stdin", file.to_str().unwrap()], &child(["cat"]));
    assert_eq!(ran.stdout, "from a file");
    let ran = run(["--stdin", "null"], &child(["cat"]));
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), ""));
}

#[test]
fn the_program_gets_our_very_descriptors_unless_somebody_must_look() {
    let ran = run([], &child(["show"]));
    let shown: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let fds = shown["fds"].as_object().unwrap();
    assert_eq!(fds.keys().collect::<Vec<_>>(), ["0", "1", "2"]);
    assert_eq!(fds["0"], "/dev/null");
    assert_ne!(fds["1"], fds["2"]);
}

#[test]
fn both_streams_pass_whole_and_apart() {
    let ran = procwright(["--idle-timeout", "1h", "--"])
        .args(child(["flood", "--out", "3M", "--err", "3M"]))
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0));
    let expected = |stream| -> Vec<u8> {
        (0..3 << 20)
            .map(|offset| test_children::pattern_byte(stream, offset))
            .collect()
    };
    assert!(ran.stdout == expected(test_children::Stream::Stdout));
    assert!(ran.stderr == expected(test_children::Stream::Stderr));
}

#[test]
fn die_with_parent_is_the_programs_death_signal() {
    let shown = |options: &[&str]| -> serde_json::Value {
        let mut command = procwright(options);
        command.arg("--").args(child(["show"]));
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(shown(&[])["pdeathsig"], serde_json::Value::Null);
    assert_eq!(shown(&["--die-with-parent"])["pdeathsig"], 9);
    // A spec may ask for a gentler signal, which the flag does not replace.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("spec.json");
    std::fs::write(&file, r#"{"argv": [], "die_with_parent": "TERM"}"#).unwrap();
    let spec = file.to_str().unwrap();
    assert_eq!(
        shown(&["--spec", spec, "--die-with-parent"])["pdeathsig"],
        15
    );
}

#[test]
fn sigkill_of_the_command_ends_a_program_that_is_to_die_with_it() {
    for options in [
        &["--die-with-parent"][..],
        &["--die-with-parent", "--until", "eof"],
    ] {
        let mut command = procwright(options);
        command
            .arg("--")
            .args(child(["ignore-term", "--print-ready"]));
        let mut started = common::Started::of(command);
        started.kill(rustix::process::Signal::KILL);
        started.procwright.wait().unwrap();
        common::wait_gone_or_zombie(started.pids[0]);
    }
}
