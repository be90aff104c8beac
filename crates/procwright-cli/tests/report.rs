//! The report at the end.

use test_support::schema;

mod common;

use std::io::Read;

use common::{child, procwright, run, terminal};
use serde_json::{Value, json};

/// Checks that a report conforms to `docs/reference/result.schema.json`, with the
/// members that only the command has.
#[track_caller]
fn conforms(report: &Value) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/result.schema.json"
    );
    let rules: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    schema::check(&rules, &rules, report, "report").unwrap();
    for own in ["attempts", "total_s", "log", "left", "input_wanted"] {
        assert!(report.get(own).is_some(), "{own}");
    }
}

fn report(options: [&str; 2], words: &[String]) -> (Option<i32>, Value) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let [a, b] = options;
    let ran = run(["--report-to", file.to_str().unwrap(), a, b], words);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.ends_with('\n'));
    let report = serde_json::from_str(&text).unwrap();
    conforms(&report);
    (ran.code(), report)
}

#[test]
fn json_after_an_ordinary_end() {
    let words = child(["exit", "3"]);
    let (code, report) = report(["--report", "json"], &words);
    assert_eq!(code, Some(3));
    assert_eq!(report["argv"], Value::from(words));
    assert_eq!(report["status"]["kind"], "exited");
    assert_eq!(report["status"]["code"], 3);
    assert_eq!(report["reason"], "finished");
    assert!(report["duration_s"].as_f64().unwrap() > 0.0);
    assert_eq!(report["survivors"], Value::Array(Vec::new()));
    // No pipe was between, and nothing is said about what was not seen.
    assert_eq!(report["stdout_info"], Value::Null);
    assert_eq!(report["stdout"], Value::Null);
    assert_eq!(
        (&report["attempts"], &report["log"]),
        (&json!(1), &Value::Null)
    );
    assert!(report["total_s"].as_f64() >= report["duration_s"].as_f64());
}

#[test]
fn json_after_a_stop() {
    let (code, report) = report(["--idle-timeout", "200ms"], &child(["sleep-forever"]));
    assert_eq!(code, Some(124));
    assert_eq!(report["reason"], "idle_timeout");
    assert_eq!(report["status"]["kind"], "signaled");
    assert_eq!(report["status"]["name"], "SIGTERM");
    assert!(report["duration_s"].as_f64().unwrap() >= 0.2);
    assert_eq!(report["stdout_info"]["bytes"], 0);
    assert_eq!(report["stdout_info"]["complete"], false);
}

#[test]
fn what_passes_is_counted_and_not_kept() {
    let (code, report) = report(["--until", "eof"], &child(["echo", "hello"]));
    assert_eq!(code, Some(0));
    let info = &report["stdout_info"];
    assert_eq!(info["bytes"], 6);
    assert_eq!(info["kept_bytes"], 0);
    assert_eq!(info["dropped_bytes"], 0);
    assert_eq!(info["complete"], true);
}

#[test]
fn text_goes_to_stderr_and_data_to_stdout() {
    let ran = run(
        ["--report", "text", "--until", "eof"],
        &child(["echo", "hello"]),
    );
    assert_eq!(ran.stdout, "hello\n");
    for part in [
        "command ",
        "outcome ",
        "exited with code 0",
        "time ",
        "stdout ",
        "6 bytes",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn json_on_stderr_is_one_line() {
    let ran = run(["--report", "json"], &child(["exit", "0"]));
    assert_eq!(ran.stderr.lines().count(), 1);
    serde_json::from_str::<Value>(&ran.stderr).unwrap();
}

#[test]
fn a_report_fits_a_screen() {
    let words = ["x".repeat(60), "y ".repeat(300)];
    let ran = procwright(["--report", "text", "--until", "eof"])
        .args(child(["args"]))
        .args(words)
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stderr).unwrap();
    assert!(text.lines().count() < 12, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // A value begins where all others do.
    for line in text.lines() {
        assert_eq!(
            line.find(|c: char| c != ' ').map(|at| at % 11),
            Some(0),
            "{line}"
        );
    }
}

#[test]
fn a_signal_is_named_and_explained_but_not_ascribed() {
    let ran = run(["--report", "text"], &child(["signal-self", "KILL"]));
    let outcome = "killed by SIGKILL: the system does not tell by whom";
    assert!(ran.stderr.contains(outcome), "{}", ran.stderr);
    let ran = run(["--report", "text"], &child(["signal-self", "USR1"]));
    assert!(ran.stderr.contains("killed by SIGUSR1\n"), "{}", ran.stderr);
}

#[test]
fn a_stop_says_why() {
    let options = ["--timeout", "100ms", "--report", "text"];
    let ran = run(options, &child(["sleep-forever"]));
    let outcome = ran.stderr.lines().find(|line| line.starts_with("outcome"));
    let outcome = outcome.unwrap_or_default();
    let start = "outcome    timed out after 0.1 s (stopped in ";
    assert!(outcome.starts_with(start), "{}", ran.stderr);
    assert!(
        outcome.ends_with(" s); killed by SIGTERM"),
        "{}",
        ran.stderr
    );
    let started = common::Started::new(["--report", "text"], &child(["sleep-forever"]));
    started.kill(rustix::process::Signal::HUP);
    let ran = started.finish();
    let outcome = "was stopped, as procwright got SIGHUP; killed by SIGTERM";
    assert!(ran.stderr.contains(outcome), "{}", ran.stderr);
}

#[test]
fn who_holds_a_stream_is_named_but_not_the_program_itself() {
    let options = ["--timeout", "3s", "--until", "eof", "--report", "text"];
    let ran = run(options, &child(["fork-holder", "0"]));
    let report = ran.stderr.split_once("\ncommand ").unwrap().1;
    assert!(
        report.contains("; held open by test-child (pid "),
        "{report}"
    );
    assert!(report.contains("left before its end"), "{report}");
}

/// The report as a terminal shows it.
fn shown(variables: &[(&str, &str)], code: &str) -> String {
    let (mut master, slave) = terminal();
    let mut command = procwright(["--report", "text", "--"]);
    command.args(child(["exit", code])).stderr(slave);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    command.envs(variables.iter().copied());
    let mut child = command.spawn().unwrap();
    // The command has the other end open, which would keep the master from an end.
    drop(command);
    let mut text = Vec::new();
    // The read fails with EIO once no process has the other end.
    let _ = master.read_to_end(&mut text);
    child.wait().unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn colour_only_where_it_is_seen_and_wanted() {
    let (green, red) = (
        "\x1b[32mexited with code 0\x1b[0m",
        "\x1b[31mexited with code 3",
    );
    assert!(shown(&[], "0").contains(green));
    assert!(shown(&[], "3").contains(red));
    assert!(shown(&[("NO_COLOR", "")], "0").contains(green));
    for off in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let text = shown(&[off], "0");
        assert!(
            text.contains("exited with code 0") && !text.contains('\x1b'),
            "{text}"
        );
    }
    let ran = run(["--report", "text"], &child(["exit", "0"]));
    assert!(!ran.stderr.contains('\x1b'));
}

#[test]
fn who_goes_on_in_the_background_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (json, pids) = (at("report.json"), at("pids"));
    // No pipes are put between: the run does not wait for the process that is left, and
    // no list of holders names it.
    let words = child(["fork-holder", "0", "--pidfile", &pids]);
    let mut command = procwright(["--report-to", &json, "--"]);
    let null = || std::process::Stdio::null();
    let status = command.args(words).stdout(null()).stderr(null()).status();
    assert_eq!(status.unwrap().code(), Some(0));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    conforms(&report);
    let pid: i32 = std::fs::read_to_string(pids)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert_eq!(report["left"], json!([{"pid": pid, "name": "test-child"}]));
    common::kill(pid, rustix::process::Signal::KILL);
}

#[test]
fn an_old_report_stays_until_there_is_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    let text = "an old report\n".repeat(1000);
    std::fs::write(&old, &text).unwrap();
    let missing = directory.path().join("no/such");
    let missing = missing.to_str().unwrap();
    for file in [&old, &new] {
        let to = file.to_str().unwrap();
        let options: [(&[&str], &str, i32); 4] = [
            (&[], "/no/such/program", 127),
            (&[], directory.path().to_str().unwrap(), 126),
            // Trouble of our own, before the start and in its middle.
            (&["--log", missing], "true", 125),
            (&["--keep-full", missing], "true", 125),
        ];
        for (options, program, code) in options {
            let mut command = procwright(["--report-to", to]);
            let output = command
                .args(options)
                .arg("--")
                .arg(program)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(code), "{output:?}");
            match file == &old {
                true => assert_eq!(std::fs::read_to_string(file).unwrap(), text),
                // An empty file would be no report.
                false => assert!(!file.exists(), "{program}"),
            }
        }
        let ran = run(["--report-to", to], &child(["exit", "3"]));
        assert_eq!(ran.code(), Some(3));
        let report: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        conforms(&report);
    }
}

#[test]
fn a_pipe_takes_a_report() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    let mut pipe = common::fifo(&path);
    let ran = run(
        ["--report-to", path.to_str().unwrap()],
        &child(["exit", "0"]),
    );
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    let mut text = vec![0; 64 * 1024];
    let n = pipe.read(&mut text).unwrap();
    conforms(&serde_json::from_slice(&text[..n]).unwrap());
}

#[test]
fn what_keep_full_replaces_stays_until_the_program_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full");
    let errors = directory.path().join("full.stderr");
    let options = ["--keep-full", path.to_str().unwrap()];
    let old = "old output\n".repeat(1000);
    for file in [&path, &errors] {
        std::fs::write(file, &old).unwrap();
    }
    assert_eq!(
        run(options, &["/no/such/program".to_owned()]).code(),
        Some(127)
    );
    for file in [&path, &errors] {
        assert_eq!(std::fs::read_to_string(file).unwrap(), old);
    }
    let ran = run(options, &["sh", "-c", "echo new"].map(str::to_owned));
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), "new\n"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
    // A stream without a byte empties its file too.
    assert_eq!(std::fs::read_to_string(&errors).unwrap(), "");
}

#[test]
fn a_dash_is_stdout_after_what_the_program_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    std::fs::write(&path, "before\n").unwrap();
    let file = std::fs::File::options().append(true).open(&path).unwrap();
    let status = procwright(["--report-to", "-"])
        .arg("--")
        .args(child(["echo", "hello"]))
        .stdout(file)
        .current_dir(&directory)
        .status()
        .unwrap();
    assert!(status.success());
    let text = std::fs::read_to_string(&path).unwrap();
    let (said, report) = text.split_at("before\nhello\n".len());
    assert_eq!(said, "before\nhello\n");
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    assert_eq!(report["outcome"], "exited with code 0");
    assert!(!directory.path().join("-").exists());
}
