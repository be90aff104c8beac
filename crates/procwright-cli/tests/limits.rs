//! The limits on silence and on output.

mod common;

use common::{child, procwright, run};

#[test]
fn silence() {
    let ran = run(["--idle-timeout", "200ms"], &child(["sleep-forever"]));
    assert_eq!(ran.code(), Some(124));
    assert!(
        ran.stderr.contains(" was silent for 0.2 s (stopped in "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_program_that_speaks_in_time_goes_on() {
    let ran = run(["--idle-timeout", "1h"], &child(["progress", "3", "1"]));
    assert_eq!(ran.code(), Some(0));
    assert_eq!(ran.stdout, "\r0/3\r1/3\r2/3\r3/3\n");
}

/// How many bytes of the flood that is, before what we say.
fn dots(text: &str) -> usize {
    let flood = text.split("procwright: ").next().unwrap();
    flood.bytes().filter(|byte| *byte == b'.').count()
}

/// The program ignores SIGTERM, and writes on until it has written all: so it ends only if its pipe
/// is read to the end.
#[test]
fn nothing_beyond_the_limit_is_passed_on_and_all_of_it_is_read() {
    const LIMIT: usize = 100 << 10;
    const ALL: u64 = 8 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (log, kept, report) = (path("log"), path("kept"), path("report"));
    for stream in ["out", "err"] {
        let words = child(["flood", &format!("--{stream}"), "8M", "--ignore-term"]);
        let options = ["--limit", "100KiB", "--grace", "inf"];
        for more in [
            &[][..],
            &["--log", &log],
            &["--keep-full", &kept],
            &["--pty"],
            &["--tag"],
            &["--quiet"],
        ] {
            if stream == "err" && more == ["--pty"] {
                continue;
            }
            let _ = std::fs::remove_file(&log);
            let mut command = procwright(options);
            command.args(more).args(["--report-to", &report]);
            let output = command.arg("--").args(&words).output().unwrap();
            assert_eq!(output.status.code(), Some(124));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let dropped = ALL - LIMIT as u64;
            let text = std::fs::read_to_string(&report).unwrap();
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(json["status"]["code"], 0, "{more:?}: {text}");
            let name = if stream == "out" || more == ["--pty"] {
                "stdout"
            } else {
                "stderr"
            };
            let info = format!("{name}_info");
            // A terminal makes two bytes of each newline.
            if more != ["--pty"] {
                assert_eq!(json[&info]["bytes"], ALL, "{more:?}");
                assert_eq!(json[&info]["dropped_bytes"], dropped, "{more:?}");
                let told = format!("{dropped} of {ALL} bytes of {name} were dropped by the limit");
                assert!(said.contains(&told), "{more:?}: {}", said.len());
            }
            let passed = match stream {
                "out" => output.stdout.len(),
                // Behind it comes what we say.
                _ => find(&output.stderr, b"procwright: "),
            };
            match more {
                // With what it puts before each line.
                ["--tag"] => assert!((LIMIT..2 * LIMIT).contains(&passed), "{passed}"),
                _ => assert_eq!(passed, LIMIT, "{more:?}"),
            }
            match more {
                ["--log", log] => {
                    assert_eq!(std::fs::metadata(log).unwrap().len(), LIMIT as u64);
                    assert_eq!(json["log"]["bytes"], LIMIT);
                    assert_eq!(json["log"]["lost_bytes"], 0);
                }
                ["--keep-full", kept] => {
                    let file = match stream {
                        "out" => (*kept).to_owned(),
                        _ => format!("{kept}.stderr"),
                    };
                    assert_eq!(std::fs::metadata(file).unwrap().len(), LIMIT as u64);
                    let error = json[&info]["kept_error"].as_str().unwrap();
                    assert!(error.starts_with("it ends at the limit"), "{error}");
                    assert!(said.contains("is not whole: it ends at the limit"));
                }
                _ => {}
            }
        }
    }
}

/// The place of `word` in `bytes`.
fn find(bytes: &[u8], word: &[u8]) -> usize {
    let mut places = bytes.windows(word.len());
    places.position(|window| window == word).unwrap()
}

#[test]
fn too_much_output_on_either_stream() {
    for words in [child(["flood-forever"]), child(["flood-forever", "--err"])] {
        let ran = run(["--limit", "64KiB"], &words);
        assert_eq!(ran.code(), Some(124));
        let said = " wrote more than 65536 bytes (stopped in ";
        assert!(ran.stderr.contains(said), "{}", ran.stderr.len());
        assert_eq!(dots(&ran.stdout).max(dots(&ran.stderr)), 64 << 10);
    }
}

#[test]
fn exactly_the_limit_is_not_too_much() {
    let ran = run(["--limit", "4"], &child(["print-bytes", "61626364"]));
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), "abcd"));
    let ran = run(["--limit", "3"], &child(["print-bytes", "61626364"]));
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(124), "abc"));
}
