//! `--spec` and `--dry-run`.

mod common;

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use common::{Ran, child, procwright, run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A file with this text, and the directory that it is in.
fn file(name: &str, text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

/// Runs a spec of this text under this name, with these words behind it.
fn spec(name: &str, text: &str, words: &[&str]) -> Ran {
    let (_directory, path) = file(name, text);
    let mut command = procwright(["--spec"]);
    command.arg(path).args(words).output().unwrap().into()
}

fn dry(words: &[&str]) -> Value {
    let ran = Ran::from(procwright(["--dry-run"]).args(words).output().unwrap());
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_dry_run_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let made = directory.path().join("made");
    let ran = run(
        ["--dry-run", "--report-to", made.to_str().unwrap()],
        &["touch".to_owned(), made.to_str().unwrap().to_owned()],
    );
    assert_eq!(ran.code(), Some(0));
    assert!(!made.exists());
    let said = "options of the command are no part of the spec: --report-to";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn what_is_printed_is_what_was_said() {
    let spec = dry(&[
        "--timeout",
        "5m",
        "--idle-timeout",
        "90s",
        "--limit",
        "1KiB",
        "--stop",
        "INT",
        "--grace",
        "250ms",
        "--scope",
        "group",
        "--until",
        "exit",
        "--cwd",
        "/",
        "--env",
        "A=1",
        "--env",
        "A=2",
        "--stdin",
        "null",
        "--keep-full",
        "full",
        "prog",
        "-x",
        "a b",
    ]);
    assert_eq!(spec["argv"], json!(["prog", "-x", "a b"]));
    assert_eq!(spec["timeout"], 300.0);
    assert_eq!(spec["idle_timeout"], 90.0);
    assert_eq!(spec["limit"], json!({"bytes": 1024, "beyond": "fail"}));
    assert_eq!(
        spec["stop"],
        json!({"signal": "SIGINT", "grace": 0.25, "scope": "group"})
    );
    assert_eq!(spec["until"], "exit");
    assert_eq!(spec["cwd"], "/");
    assert_eq!(spec["extra_env"], json!({"A": "2"}));
    assert_eq!(spec["stdin"], "null");
    assert_eq!(spec["keep_full"], "full");
    // Options that have to see the output put pipes between.
    assert_eq!(spec["stdout"], "relay");
    let plain = dry(&["--shell", "make && make test"]);
    assert_eq!(plain["argv"], json!(["/bin/sh", "-c", "make && make test"]));
    for stream in ["stdin", "stdout", "stderr"] {
        assert_eq!(plain[stream], "inherit");
    }
}

#[test]
fn a_dry_run_of_a_dry_run_is_the_same() {
    let cases: [&[&str]; 5] = [
        &["true"],
        &["--timeout", "0.1", "--stop", "KILL", "--", "a", ""],
        &["--idle-timeout", "3s", "--until", "eof", "--env", "A=", "x"],
        &["--grace", "inf", "--timeout", "99999999999999999d", "x"],
        &["--limit", "0", "--scope", "process", "--stdin", "/in", "x"],
    ];
    for words in cases {
        let first = procwright(["--dry-run"]).args(words).output().unwrap();
        let (_directory, path) = file("spec", std::str::from_utf8(&first.stdout).unwrap());
        let second = procwright(["--dry-run", "--spec"])
            .arg(path)
            .output()
            .unwrap();
        assert_eq!(first.stdout, second.stdout, "{words:?}");
        assert!(!first.stdout.is_empty());
    }
}

#[test]
fn arguments_that_are_no_text_survive() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"\xff\n");
    let mut command = procwright(["--dry-run"]);
    let dry = command.args(child(["args"])).arg(odd).output().unwrap();
    let (_directory, path) = file("a.json", std::str::from_utf8(&dry.stdout).unwrap());
    let ran = procwright(["--spec"]).arg(path).output().unwrap();
    assert_eq!(ran.stdout, b"\xff\n\0");
}

#[test]
fn a_dry_run_finds_what_is_wrong() {
    let user = r#"{"argv": ["true"], "user": "no-such-user-here"}"#;
    let ran = spec("a.json", user, &["--dry-run"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""));
    assert!(ran.stderr.contains("no-such-user-here"), "{}", ran.stderr);
    for wrong in [
        r#"{"argv": []}"#,
        r#"{"argv": [""]}"#,
        r#"{"argv": ["a\u0000"]}"#,
        r#"{"argv": ["true"], "stdin": "pipe"}"#,
        r#"{"argv": ["true"], "idle_timeout": 5, "stdout": "null", "stderr": "null"}"#,
    ] {
        let ran = spec("a.json", wrong, &["--dry-run"]);
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(125), ""),
            "{wrong}"
        );
        assert!(ran.stderr.starts_with("procwright: "), "{}", ran.stderr);
    }
}

#[test]
fn json_and_toml_by_name_or_by_look() {
    let json = r#" {"argv": ["echo", "it"]}"#;
    let toml = "# a comment\nargv = ['echo', 'it']\n";
    for (name, text) in [
        ("a.json", json),
        ("a", json),
        ("a.txt", json),
        ("a.toml", toml),
        ("a", toml),
    ] {
        let ran = spec(name, text, &[]);
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(0), "it\n"),
            "{name}"
        );
    }
}

#[test]
fn toml_has_all_of_it() {
    let text = r#"
        argv = ["sh", "-c", "echo $A $B $(ulimit -n); cat; exit 3"]
        extra_env = { A = "x", HOME = false }
        stdin = { bytes = "input" }
        timeout = inf
        rlimits = { nofile = [64, 128], core = [0, "unlimited"] }
        [stop]
        signal = "INT"
        grace = 1
    "#;
    let ran = spec("a.toml", text, &[]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(3), "x 64\ninput"));
}

#[test]
fn what_the_library_would_keep_passes_through() {
    let text = r#"{"argv": ["echo", "it"], "stdout": "capture"}"#;
    let ran = spec("a.json", text, &["--report", "json"]);
    assert_eq!(ran.stdout, "it\n");
    let report: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(report["stdout_info"]["bytes"], 3);
    assert_eq!(report["stderr_info"], Value::Null);
    // Members that mean nothing to the command are named.
    let text = r#"{"argv": ["echo", "it"], "stdout": "capture", "stderr": "capture",
        "merged": true, "limit": {"bytes": 1}}"#;
    let ran = spec("a.json", text, &[]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), "it\n"));
    assert!(ran.stderr.contains("\"merged\"") && ran.stderr.contains("\"limit\""));
}

#[test]
fn flags_come_on_top() {
    let text = "argv = ['sh', '-c', 'echo $A $B']\nextra_env = { A = 'a', B = 'b' }\n\
                timeout = 0.1\n[stop]\ngrace = 7\n";
    let ran = spec("a.toml", text, &["--env", "A=mine", "--timeout", "1h"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), "mine b\n"));
    let ran = spec("a.toml", text, &["--stop", "INT", "--dry-run"]);
    let spec: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        spec["stop"],
        json!({"signal": "SIGINT", "grace": 7.0, "scope": "tree"})
    );
}

#[test]
fn another_scope_takes_the_terminal_back_from_the_file() {
    let group = dry(&["--scope", "group", "true"]);
    assert_eq!(group["foreground"], true);
    let ran = spec(
        "a.json",
        &group.to_string(),
        &["--scope", "tree", "--dry-run"],
    );
    let tree: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(tree["foreground"], false);
}

#[test]
fn a_program_on_the_command_line_replaces_that_of_the_file() {
    let text = "argv = ['echo', 'its']\n";
    assert_eq!(
        spec("a.toml", text, &["--", "echo", "mine"]).stdout,
        "mine\n"
    );
    // A file needs no argv then.
    let ran = spec("a.toml", "timeout = 60\n", &["echo", "mine"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), "mine\n"));
    let ran = spec("a.toml", text, &["--shell", "echo $((1 + 1))"]);
    assert_eq!(ran.stdout, "2\n");
}

#[test]
fn a_spec_on_stdin() {
    let mut command = procwright(["--spec", "-"]);
    let mut running = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = json!({"argv": child(["cat"])}).to_string();
    let mut stdin = running.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    // Nothing is left for the program.
    let output = running.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), Vec::new()));
}

#[test]
fn errors_name_file_line_and_member() {
    for (name, text, parts) in [
        (
            "a.toml",
            "argv = ['a']\n\ntimeot = 3\n",
            [
                "a.toml, line 3: unknown field `timeot`",
                "did you mean timeout?",
            ],
        ),
        (
            "a.json",
            "{\"argv\": [\"a\"],\n\"timeot\": 3}",
            [
                "a.json, line 2: unknown field `timeot`",
                "did you mean timeout?",
            ],
        ),
        (
            "a.toml",
            "argv = ['a']\n[stop]\nsignal = 'NONE'\n",
            ["a.toml, line 3, stop.signal: ", "NONE"],
        ),
        (
            "a.json",
            "{\"argv\": [\"a\"],\n\"stop\": {\n\"scope\": \"all\"}}",
            ["a.json, line 3, stop.scope: ", "`process`"],
        ),
        (
            "a.toml",
            "argv = ['a']\ntimeout = '5m'\n",
            ["a.toml, line 2, timeout: ", "expected seconds as a number"],
        ),
        (
            "a.json",
            "{\"argv\": [\"a\"],\n\"timeout\": \"5m\"}",
            ["a.json, line 2, timeout: ", "expected seconds as a number"],
        ),
        (
            "a.toml",
            "argv = 'make all'\n",
            ["a.toml, line 1, argv: ", "argv = [\"make\", \"all\"]"],
        ),
        ("a.toml", "argv = ['a'\n", ["a.toml, line ", "hint: "]),
        (
            "a.json",
            "{\"argv\": [\"a\"]} x",
            ["a.json, line 1", "trailing"],
        ),
        (
            "a.json",
            "{}",
            [
                "a.json: missing field `argv`",
                "name them behind the options",
            ],
        ),
        ("a", "", ["missing field `argv`", "hint: "]),
        (
            "a.toml",
            "argv = ['a']\nlimit = 5\n",
            ["line 2, limit: ", "a table with bytes and beyond"],
        ),
    ] {
        let ran = spec(name, text, &[]);
        assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""), "{text}");
        for part in parts {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
    }
    let ran = run(
        ["--spec", "/no/such/file", "--dry-run"],
        &child(["exit", "0"]),
    );
    assert_eq!(ran.code(), Some(125));
    assert!(ran.stderr.contains("cannot read the spec /no/such/file"));
}

#[test]
fn the_examples_of_the_reference_are_one_and_run() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/spec.md");
    let document = std::fs::read_to_string(path).unwrap();
    let block = |kind: &str| {
        let (_, rest) = document.split_once(&format!("```{kind}\n")).unwrap();
        rest.split_once("\n```").unwrap().0.to_owned()
    };
    let (json, toml) = (block("json"), block("toml"));
    for (name, text) in [("a.json", &json), ("a.toml", &toml)] {
        let ran = spec(name, text, &[]);
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(0), "hello\nand good-bye\n"),
            "{}",
            ran.stderr
        );
    }
    let dry = |name, text: &str| spec(name, text, &["--dry-run"]).stdout;
    assert_eq!(dry("a.json", &json), dry("a.toml", &toml));
    // The table in the document has every member.
    let written: Value = serde_json::from_str(&dry("a.json", &json)).unwrap();
    let rows: Vec<&str> = document.lines().filter(|l| l.starts_with("| `")).collect();
    for member in written.as_object().unwrap().keys() {
        let name = format!("`{member}`");
        let known = rows
            .iter()
            .any(|row| row.split('|').nth(1).unwrap().contains(&name));
        assert!(known, "{member}");
    }
}
