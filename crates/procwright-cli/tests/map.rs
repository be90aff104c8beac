//! A command for each of many items, so many at a time.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Ran, assert_gone, child, kill, subcommand, wait_gone_or_zombie};
use rustix::process::Signal;

fn map<I, S>(words: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<std::ffi::OsStr>,
{
    let mut command = subcommand("map");
    command.args(words);
    command
}

fn ran<const N: usize>(words: [&str; N]) -> Ran {
    map(words).output().unwrap().into()
}

fn ran_with(words: &[&str]) -> Ran {
    map(words).output().unwrap().into()
}

/// The output of `command`, which reads `input`.
fn fed(mut command: Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut procwright = command.spawn().unwrap();
    procwright.stdin.take().unwrap().write_all(input).unwrap();
    procwright.wait_with_output().unwrap().into()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn items_stand_behind_the_separator() {
    let ran = ran([
        "--ordered",
        "echo",
        "{#}",
        "<{/.}>",
        ":::",
        "a/b.c",
        "d e",
        "",
    ]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout, "1 <b>\n2 <d e>\n3 <>\n");
}

#[test]
fn items_are_lines_or_end_with_nul() {
    let ran = fed(map(["--ordered", "echo", "-"]), b"a b\n\nc\\d\nlast");
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout, "- a b\n- c\\d\n- last\n");
    let ran = fed(map(["-0", "--ordered", "echo", "-{}-"]), b"a\nb\0\0c\0");
    assert_eq!(ran.stdout, "-a\nb-\n-c-\n");
}

#[test]
fn nothing_to_do_is_no_failure() {
    assert_eq!(ran(["false", ":::"]).code(), Some(0));
    let ran = fed(map(["false"]), b"\n\n");
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_command_runs_as_soon_as_its_item_is_there() {
    let mut command = map(["--live", "echo"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut procwright = command.spawn().unwrap();
    let mut stdin = procwright.stdin.take().unwrap();
    let mut stdout = BufReader::new(procwright.stdout.take().unwrap());
    for item in ["one\n", "two\n"] {
        stdin.write_all(item.as_bytes()).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, item);
    }
    drop(stdin);
    assert!(procwright.wait().unwrap().success());
}

#[test]
fn a_command_reads_nothing_of_ours() {
    let ran = fed(map(["cat", "/dev/stdin"]), b"/dev/null\n/dev/null\n");
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), ""));
}

#[test]
fn exit_codes_tell_what_became_of_all() {
    let exit = |code: &str| format!("exit {code}");
    let all = ran(["sh", "-c", ":::", &exit("0"), &exit("0")]);
    assert_eq!((all.code(), all.stderr.as_str()), (Some(0), ""));
    let one = ran(["sh", "-c", ":::", &exit("0"), &exit("3"), &exit("0")]);
    assert_eq!(one.code(), Some(1));
    let said = "procwright: sh -c 'exit 3' exited with code 3\n\
                procwright: 1 of 3 commands have failed\n";
    assert_eq!(one.stderr, said);
    let missing = ran(["/does/not/exist", ":::", "a"]);
    assert_eq!(missing.code(), Some(1));
    assert!(
        missing.stderr.contains("No such file"),
        "{}",
        missing.stderr
    );
    let sleeper = child(["sleep-forever"]).join(" ");
    let late = ran(["--deadline", "200ms", "sh", "-c", ":::", &sleeper, &sleeper]);
    assert_eq!(late.code(), Some(124), "{}", late.stderr);
    assert!(
        late.stderr.contains("the deadline has come"),
        "{}",
        late.stderr
    );
    let slow = ran(["--timeout", "100ms", "sh", "-c", ":::", &sleeper]);
    assert_eq!(slow.code(), Some(1));
    assert!(slow.stderr.contains("timed out after"), "{}", slow.stderr);
}

#[test]
fn lists_go_side_by_side() {
    let linked = |words: &[&str]| {
        let words = [&["--ordered"], words].concat();
        let ran = ran_with(&words);
        (ran.stdout.clone(), ran.stderr.clone(), ran.code())
    };
    let said = |text: &str| (text.to_owned(), String::new(), Some(0));
    let words = [
        "--link", "echo", "{2}-{1}", ":::", "a", "b", ":::", "x", "y",
    ];
    assert_eq!(linked(&words), said("x-a\ny-b\n"));
    // One list beside another, and each of their rows with each of a third.
    let words = ["echo", ":::", "a", "b", ":::+", "x", "y", ":::", "1", "2"];
    assert_eq!(linked(&words), said("a x 1\na x 2\nb y 1\nb y 2\n"));
    // An empty line has its place, and an item is one word, whatever is in it.
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let (names, ages) = (file("names", "*\n\nc d\n"), file("ages", "1\n2\n3"));
    let words = ["printf", "<%s|%s>", "::::", &names, "::::+", &ages];
    assert_eq!(linked(&words), said("<*|1><|2><c d|3>"));
}

#[test]
fn wrong_usage_is_told_before_anything_runs() {
    for (words, said) in [
        (&[":::", "a"][..], "no command is named before :::"),
        (&["echo", "::::"], "no file is named behind ::::"),
        (&["echo", "::::", "/does/not/exist"], "/does/not/exist"),
        (
            &["echo", ":::", "a", "b", ":::+", "c"],
            "lists that go side by side have 2 and 1 items",
        ),
        (&["echo", ":::+", "a"], "and there is none"),
        (&["--link", "echo", ":::", "a"], "and there is one"),
        (&["echo", "{2}", ":::", "a"], "there is one list of items"),
        (&["echo", "{%}", ":::", "a"], "{%} is not there"),
        (&["-I", "@", "echo", ":::", "a"], "which -I has stand"),
        (&["-n2", "echo", ":::", "a"], "a command gets one item"),
        (
            &["--halt", "now,fail=10%", "echo", ":::", "a"],
            "now,fail=1",
        ),
        (
            &["sh", "-c", "echo {} | wc -c", ":::", "a"],
            "sh -c 'echo \"$0\" | wc -c' {}",
        ),
        (
            &["echo {} | wc -c", ":::", "a"],
            "sh -c 'echo \"$0\" | wc -c' {}",
        ),
        (&["--joblog", "x", "echo", ":::", "a"], "add --journal FILE"),
        (
            &["-0", "echo", ":::", "a"],
            "--null is for items that are read",
        ),
        (
            &["-j", "00", "echo", ":::", "a"],
            "write a number from 1 on",
        ),
        (&["--resume", "echo", ":::", "a"], "--journal"),
        (&["--ordered", "--live", "echo", ":::", "a"], "--live"),
        (
            &["--until", "silent:0", "echo", ":::", "a"],
            "a silence of no time",
        ),
        (&["echo", "::::", "-", "-"], "which come once"),
        (&["-a", "-", "echo", "::::", "-"], "which come once"),
        (
            &["echo", "{=s/a/b/=}", ":::", "a"],
            "nobody reads Perl here",
        ),
        (
            &["python3", "-cprint('{}')", ":::", "a"],
            "from sys.argv[1]",
        ),
    ] {
        let ran: Ran = map(words).output().unwrap().into();
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(125), ""),
            "{words:?}"
        );
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn options_of_xargs_and_parallel_do_what_they_do_there() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("items");
    std::fs::write(&file, "a\nb\n").unwrap();
    let file = file.to_str().unwrap();
    for (words, said) in [
        (&["-k", "echo", ":::", "a", "b"][..], "a\nb\n"),
        (
            &["--keep-order", "--jobs", "100%", "echo", ":::", "a", "b"],
            "a\nb\n",
        ),
        (
            &["-k", "-P", "+1", "-n1", "-r", "echo", ":::", "a", "b"],
            "a\nb\n",
        ),
        (&["-kj-1", "echo", ":::", "a", "b"], "a\nb\n"),
        (&["-k", "echo", "{1}", ":::", "a", "b"], "a\nb\n"),
        (&["-k", "-a", file, "echo"], "a\nb\n"),
        (&["-k", "echo", "::::", file], "a\nb\n"),
        (
            &["-k", "echo", "{2}{1}", ":::", "a", "b", ":::", "c", "d"],
            "ca\nda\ncb\ndb\n",
        ),
        (&["-k", "echo", ":::", "x", "::::", file], "x a\nx b\n"),
        (
            &["-k", "-I@", "echo", "{}@{%}", ":::", "a", "b"],
            "{}a{%}\n{}b{%}\n",
        ),
        (
            &["--dry-run", "rm", "-f", "{}", ":::", "a b", "c"],
            "rm -f 'a b'\nrm -f c\n",
        ),
        (
            &["-k", "--tag", "echo", ":::", "a", "b"],
            "a out | a\nb out | b\n",
        ),
        (
            &["-k", "--tagstring", "B-{}", "echo", ":::", "a", "b"],
            "B-a out | a\nB-b out | b\n",
        ),
        (
            &["-k", "--tagstring=B-{}", "echo", ":::", "a"],
            "B-a out | a\n",
        ),
        (&["--dryrun", "echo", ":::", "a b"], "echo 'a b'\n"),
        (&["-q", "echo", ":::", "a  b"], "a  b\n"),
        (&["--quote", "echo", ":::", "a  b"], "a  b\n"),
        (
            &["--no-run-if-empty", "--max-args", "1", "echo", ":::", "a"],
            "a\n",
        ),
        (
            &["--max-args=1", "--max-lines", "1", "echo", ":::", "a"],
            "a\n",
        ),
        (&["--halt", "never", "--lb", "echo", ":::", "a"], "a\n"),
        (&["--bar", "--eta", "--progress", "echo", ":::", "a"], "a\n"),
    ] {
        let ran: Ran = map(words).output().unwrap().into();
        assert_eq!(
            (ran.code(), ran.stdout.as_str(), ran.stderr.as_str()),
            (Some(0), said, ""),
            "{words:?}"
        );
    }
    let halted = ran([
        "-j1",
        "--halt",
        "now,fail=1",
        "-k",
        "sh",
        "-c",
        "echo $0; exit $0",
        ":::",
        "0",
        "1",
        "2",
    ]);
    assert_eq!((halted.code(), halted.stdout.as_str()), (Some(1), "0\n1\n"));
}

#[test]
fn what_parallel_has_and_map_has_not_is_refused_with_what_to_type() {
    for (option, typed) in [
        ("--retries", "procwright run --retry 2"),
        ("--resume-failed", "--resume --rerun-failed"),
        ("--shell", "sh -c 'echo \"$0\"' {}"),
        ("-d", "procwright map -0"),
        ("-u", "--live"),
        ("-X", "one item"),
        ("--colsep", "--link CMD {1} {2}"),
        ("--delay", "sleep 0.1"),
        ("--results", "procwright run --keep-full {#}.out"),
        ("--version", "procwright --version"),
    ] {
        let ran = ran([option, "3", "echo", ":::", "a"]);
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(125), ""),
            "{option}"
        );
        let said = format!("procwright map has no {option}");
        assert!(
            ran.stderr.contains(&said) && ran.stderr.contains(typed),
            "{}",
            ran.stderr
        );
    }
    let alone = ran([]);
    assert!(
        alone.stderr.contains("procwright map -j 8"),
        "{}",
        alone.stderr
    );
    // What is far from what was typed is not proposed, what is near it is.
    let far = ran(["--reorder", "echo", ":::", "a"]);
    assert!(!far.stderr.contains("tip:"), "{}", far.stderr);
    let near = ran(["--orderd", "echo", ":::", "a"]);
    assert!(near.stderr.contains("--ordered"), "{}", near.stderr);
}

#[test]
fn failures_may_stop_the_others() {
    let sleeper = child(["sleep-forever"]).join(" ");
    let words = ["-j2", "--stop-after-failures", "1", "sh", "-c", ":::"];
    let ran: Ran = map(words)
        .args([&sleeper, "exit 3", &sleeper, &sleeper])
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code(), Some(1));
    assert!(ran.stderr.contains("exited with code 3"), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("procwright: no more commands were started"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_output_is_shown_in_one_piece() {
    // Both run at a time, and wait for each other between their lines.
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let (_a, _b) = (common::fifo(&a), common::fifo(&b));
    let meet = |mine: &Path, other: &Path, name: &str| {
        let (mine, other) = (mine.display(), other.display());
        format!("echo {name}1; echo > {other}; read x < {mine}; echo {name}2")
    };
    let words = ["-j2", "sh", "-c", ":::"];
    let mut command = map(words);
    command.args([meet(&a, &b, "a"), meet(&b, &a, "b")]);
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert!(
        ["a1\na2\nb1\nb2\n", "b1\nb2\na1\na2\n"].contains(&ran.stdout.as_str()),
        "{}",
        ran.stdout
    );
}

#[test]
fn lines_are_never_mixed_and_have_their_tags() {
    let line = "x".repeat(3000);
    let script =
        format!("for i in 1 2 3 4 5 6 7 8 9; do printf %s {line}; echo $0; done; printf end");
    let mut command = map(["-j4", "--tag={/}", "sh", "-c", &script, "{}", ":::"]);
    command.args(["d/a", "d/b", "d/c", "d/d"]);
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let mut expected = Vec::new();
    for name in ["a", "b", "c", "d"] {
        expected.push(format!("{name} out | end"));
        expected.extend(std::iter::repeat_n(
            format!("{name} out | {line}d/{name}"),
            9,
        ));
    }
    expected.sort();
    assert_eq!(sorted(&ran.stdout), expected);
}

#[test]
fn errors_go_to_stderr_with_their_tags() {
    let ran = ran(["--tag", "sh", "-c", "echo o; echo e >&2", ":::", "a"]);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("a out | o\n", "a err | e\n")
    );
}

#[test]
fn both_streams_to_one_place_keep_their_order() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let line = child(["says", "out:1\\n", "err:2\\n", "out:3\\n"]);
    let mut command = map(["--"]);
    command.args(&line).args([":::", "out:4\\n"]);
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let status = command.status().unwrap();
    drop(command);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(status.success(), "{text}");
    assert_eq!(sorted(&text), ["1", "2", "3", "4"]);
}

#[test]
fn the_output_of_successes_may_be_left_out() {
    let ran = ran([
        "--quiet",
        "--ordered",
        "sh",
        "-c",
        "echo $0; exit $0",
        ":::",
        "0",
        "1",
        "0",
    ]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(1), "1\n"));
}

#[test]
fn who_was_stopped_is_counted_apart_in_the_report() {
    let sleeper = child(["sleep-forever"]).join(" ");
    let words = ["-j2", "--stop-after-failures", "1", "sh", "-c", ":::"];
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    for form in ["text", "json"] {
        let mut command = map(["--report", form, "--report-to", report.to_str().unwrap()]);
        let ran: Ran = command
            .args(words)
            .args([&sleeper, "exit 3"])
            .output()
            .unwrap()
            .into();
        assert_eq!(ran.code(), Some(1));
        let text = std::fs::read_to_string(&report).unwrap();
        match form {
            "text" => assert!(text.contains("\nfailed     1\nstopped    1\n"), "{text}"),
            _ => {
                let json: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!((&json["failed"], &json["stopped"]), (&1.into(), &1.into()));
            }
        }
    }
}

#[test]
fn no_exit_code_ends_the_others() {
    let ran = ran(["-j1", "sh", "-c", "echo $0; exit $0", ":::", "255", "0"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(1), "255\n0\n"));
}

#[test]
fn a_report_of_a_form_that_there_is_not_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.xml");
    let ran = ran(["--report-to", path.to_str().unwrap(), "echo", ":::", "a"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""));
    assert!(
        ran.stderr.contains("a report is JSON or text"),
        "{}",
        ran.stderr
    );
    assert!(!path.exists());
    let ran = self::ran([
        "--report",
        "json",
        "--report-to",
        path.to_str().unwrap(),
        "echo",
        ":::",
        "a",
    ]);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert!(path.exists());
}

/// What is no program may be something else.
#[test]
fn a_name_that_is_none_of_a_program_has_a_hint() {
    for (word, hint) in [
        ("my_function", "bash -c 'my_function \"$@\"' _"),
        ("cd", "sh -c 'LINE'"),
        ("exit", "sh -c 'LINE'"),
        ("A=b", "--env NAME=VALUE"),
        ("10", "--timeout DURATION"),
        ("no-such-program", "no directory of PATH has it"),
    ] {
        let mut command = map([word, ":::", "a"]);
        command.env("BASH_FUNC_my_function%%", "() {  :\n}");
        let ran: Ran = command.output().unwrap().into();
        assert_eq!(ran.code(), Some(1));
        assert!(ran.stderr.contains(hint), "{word}: {}", ran.stderr);
    }
}

#[test]
fn the_report_counts() {
    let ran = ran([
        "--report", "json", "sh", "-c", "exit $0", ":::", "0", "1", "0",
    ]);
    let json = ran.stderr.lines().last().unwrap();
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let counts = ["commands", "succeeded", "failed", "unknown"].map(|name| json[name].clone());
    assert_eq!(counts, [3, 2, 1, 0].map(serde_json::Value::from));
    assert_eq!(
        json["failures"][0]["argv"],
        serde_json::json!(["sh", "-c", "exit $0", "1"])
    );
    let failed = ["outcome", "summary"].map(|name| json["failures"][0][name].clone());
    let said = ["exited with code 1", "sh -c 'exit $0' 1 exited with code 1"];
    assert_eq!(failed, said.map(serde_json::Value::from));
    let runs = json["runs"].as_array().unwrap();
    let failed = runs.iter().find(|run| run["success"] == false).unwrap();
    assert_eq!(failed["outcome"], said[0]);
    let mut codes: Vec<_> = runs
        .iter()
        .map(|run| run["status"]["code"].as_i64())
        .collect();
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(0), Some(1)]);
    for run in runs {
        assert!(
            run["duration_s"].as_f64().is_some_and(|time| time > 0.0),
            "{run}"
        );
        assert_eq!(run["success"], run["status"]["code"] == 0);
        assert_eq!(run["argv"][2], "exit $0");
        assert_eq!(
            run["outcome"],
            format!("exited with code {}", run["status"]["code"])
        );
        assert_eq!(
            (&run["before"], &run["reason"]),
            (&false.into(), &"finished".into())
        );
    }
    assert_eq!(
        (&json["stopped_by"], &json["all_taken"]),
        (&serde_json::Value::Null, &true.into())
    );
}

#[test]
fn the_report_may_go_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let report = file("report");
    let ran = ran([
        "--report-to",
        &report,
        "sh",
        "-c",
        "exit $0",
        ":::",
        "0",
        "3",
    ]);
    assert_eq!(ran.code(), Some(1));
    let text = std::fs::read_to_string(&report).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["failures"][0]["index"], 1);
    let ran = ran_with(&["--report-to", "-", "--report", "text", "echo", ":::", "a"]);
    assert!(
        ran.stdout.starts_with("a\ncommands   1\n"),
        "{}",
        ran.stdout
    );
    // What would be of no use is refused before anything runs.
    let journal = file("journal");
    for words in [
        ["--report-to", &journal, "--journal", &journal],
        ["--joblog", &journal, "--journal", &journal],
        ["--report-to", "/does/not/exist", "--journal", &journal],
    ] {
        let mark = file("mark");
        let ran = ran_with(&[&words[..], &["touch", ":::", &mark]].concat());
        assert_eq!(ran.code(), Some(125), "{}", ran.stderr);
        assert!(!std::path::Path::new(&mark).exists());
        assert!(!std::path::Path::new(&journal).exists());
    }
}

#[test]
fn no_option_writes_to_a_list_of_items_or_to_another_ones_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("items"), "a\nb\n").unwrap();
    std::os::unix::fs::symlink("new", dir.path().join("link")).unwrap();
    let refused = |words: &[&str]| {
        let mut command = map(words);
        let ran: Ran = command.current_dir(&dir).output().unwrap().into();
        assert_eq!(ran.code(), Some(125), "{words:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{words:?}");
        assert!(ran.stderr.contains("name the same file"), "{}", ran.stderr);
        let items = std::fs::read_to_string(dir.path().join("items")).unwrap();
        assert_eq!(items, "a\nb\n", "{words:?}");
        assert!(!dir.path().join("new").exists(), "{words:?}");
        assert!(!dir.path().join("j").exists(), "{words:?}");
    };
    let outputs: [&[&str]; 3] = [
        &["--journal", "items"],
        &["--journal", "j", "--joblog", "items"],
        &["--report-to", "./items"],
    ];
    for output in outputs {
        refused(&[output, &["-a", "items", "echo"]].concat());
        refused(&[output, &["echo", "::::", "items"]].concat());
        refused(&[output, &["echo", ":::", "x", "::::", "items"]].concat());
    }
    // Neither of the two names has a file yet.
    for other in ["./new", "link", "../"] {
        let own = dir.path().file_name().unwrap().to_str().unwrap();
        let other = match other {
            "../" => format!("../{own}/new"),
            other => other.to_owned(),
        };
        refused(&[
            "--journal",
            "new",
            "--report-to",
            &other,
            "echo",
            ":::",
            "x",
        ]);
        refused(&["--journal", &other, "--joblog", "new", "echo", ":::", "x"]);
    }
}

#[test]
fn a_fifo_is_one_list_only() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    let _both_ends = common::fifo(&fifo);
    let fifo = fifo.to_str().unwrap();
    let ran = ran(["-a", fifo, "echo", "::::", fifo]);
    assert_eq!(ran.code(), Some(125), "{}", ran.stderr);
    assert!(ran.stderr.contains("which come once"), "{}", ran.stderr);
}

#[test]
fn a_fifo_that_nobody_reads_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (fifo, journal) = (file("fifo"), file("journal"));
    drop(common::fifo(fifo.as_ref()));
    for (words, hint) in [
        (vec!["--journal", &fifo], "is not a regular file"),
        (
            vec!["--journal", &journal, "--joblog", &fifo],
            "start its reader first",
        ),
        (vec!["--report-to", &fifo], "start its reader first"),
    ] {
        let ran = ran_with(&[&words[..], &["true", ":::", "a"]].concat());
        assert_eq!(ran.code(), Some(125), "{}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    }
}

#[test]
fn who_closes_our_stdout_ends_it() {
    for options in [&["--live"][..], &[]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = map(options);
        command.args(["sh", "-c", "echo x; exec sleep 0.1", ":::"]);
        command.args(["a"; 100]);
        command.stdout(writer).stderr(Stdio::piped());
        let ran: Ran = command.output().unwrap().into();
        assert_eq!(
            ran.signal(),
            Some(libc::SIGPIPE),
            "{options:?}: {}",
            ran.stderr
        );
    }
}

/// A map of endless commands, each of which has told its pid.
struct Endless {
    procwright: std::process::Child,
    stdout: BufReader<std::process::ChildStdout>,
    pids: Vec<i32>,
}

impl Endless {
    fn start(mut command: Command, commands: usize) -> Endless {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut procwright = command.spawn().unwrap();
        let mut stdout = BufReader::new(procwright.stdout.take().unwrap());
        let mut pids = Vec::new();
        while pids.len() < commands {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            let words = line
                .strip_prefix("ready ")
                .unwrap_or_else(|| panic!("{line:?}"));
            pids.extend(
                words
                    .split_ascii_whitespace()
                    .map(|pid| pid.parse::<i32>().unwrap()),
            );
        }
        Endless {
            procwright,
            stdout,
            pids,
        }
    }

    fn kill(&self, signal: Signal) {
        kill(self.procwright.id().cast_signed(), signal);
    }

    fn finish(mut self) -> Ran {
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let mut stderr = String::new();
        let mut from = self.procwright.stderr.take().unwrap();
        from.read_to_string(&mut stderr).unwrap();
        let status = self.procwright.wait().unwrap();
        Ran {
            status,
            stdout,
            stderr,
        }
    }
}

fn endless(options: &[&str], program: &str) -> Command {
    let mut command = map(["-j3", "--live"]);
    command.args(options).arg("--");
    command.args(child([program, "--print-ready", "--limit", "{}"]));
    command.args([":::"]).args(["500"; 20]);
    command
}

#[test]
fn a_signal_ends_all_and_then_us() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let map = Endless::start(endless(&[], "sleep-forever"), 3);
        let pids = map.pids.clone();
        map.kill(signal);
        let ran = map.finish();
        assert_eq!(ran.signal(), Some(signal.as_raw()), "{}", ran.stderr);
        assert_gone(&pids);
        // No more was started.
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    }
}

#[test]
fn a_second_signal_ends_the_grace() {
    let mut map = Endless::start(endless(&["--grace", "1h"], "ignore-term"), 3);
    let pids = map.pids.clone();
    while map.procwright.try_wait().unwrap().is_none() {
        map.kill(Signal::TERM);
        std::thread::yield_now();
    }
    assert_eq!(map.finish().signal(), Some(15));
    assert_gone(&pids);
}

#[test]
fn what_is_no_wish_for_an_end_is_none() {
    let map = Endless::start(endless(&[], "sleep-forever"), 3);
    map.kill(Signal::USR1);
    map.kill(Signal::ALARM);
    map.kill(Signal::TERM);
    assert_eq!(map.finish().signal(), Some(15));
}

#[test]
fn ctrl_c_ends_all() {
    use std::os::unix::process::CommandExt;
    let (mut keyboard, slave) = common::terminal();
    let mut command = endless(&["--grace", "1h"], "sleep-forever");
    command.stdin(slave);
    // SAFETY: both are plain system calls.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let map = Endless::start(command, 3);
    let pids = map.pids.clone();
    keyboard.write_all(b"\x03").unwrap();
    assert_eq!(map.finish().signal(), Some(2));
    assert_gone(&pids);
}

#[test]
fn a_signal_ends_all_though_nobody_reads_our_output() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = map(["-j2", "sh", "-c"]);
    let flood = child(["flood", "--out", "1000000"]).join(" ");
    let sleeper = child(["sleep-forever"]).join(" ");
    command.args([":::", &flood, &sleeper]);
    command.stdout(writer).stderr(Stdio::null());
    let mut procwright = command.spawn().unwrap();
    drop(command);
    // The output of the first is being shown: the pipe is full.
    reader.read_exact(&mut [0]).unwrap();
    let pid = procwright.id().cast_signed();
    let children = || {
        let path = format!("/proc/{pid}/task/{pid}/../../task");
        let tasks = std::fs::read_dir(path).unwrap();
        let lists = tasks.map(|task| {
            let path = task.unwrap().path().join("children");
            std::fs::read_to_string(path).unwrap_or_default()
        });
        let pids = lists.collect::<String>();
        pids.split_ascii_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect::<Vec<i32>>()
    };
    let pids = children();
    kill(pid, Signal::TERM);
    for pid in &pids {
        wait_gone_or_zombie(*pid);
    }
    // A second one ends us, though there is output left to show.
    while procwright.try_wait().unwrap().is_none() {
        kill(pid, Signal::TERM);
        std::thread::yield_now();
    }
    drop(reader);
    // What it had not reaped by then is somebody else's to reap.
    assert!(!pids.iter().any(|pid| test_support::lives(*pid)));
}

#[test]
fn who_is_stopped_because_nobody_reads_has_not_failed() {
    let live = "while echo \"$0\"; do sleep 0.01; done; exec sleep 1000";
    // Each write may be the one that finds stdout closed, before the stop of the map.
    let busy = "while echo \"$0\"; do :; done";
    let quiet = "echo \"$0\"; [ \"$0\" = 1 ] || exec sleep 0.2";
    let rows = [("--live", live), ("--ordered", quiet)];
    for (how, script) in rows.into_iter().chain([("--live", busy); 20]) {
        let mut command = map([how, "-j2", "sh", "-c", script, "{}", ":::"]);
        command
            .args(["1", "2", "3", "4", "5", "6"])
            .stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut procwright = command.spawn().unwrap();
        let mut stdout = BufReader::new(procwright.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        drop(stdout);
        let ended = procwright.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(said, "", "{how}");
    }
}

#[test]
fn who_is_stopped_for_the_failure_of_another_is_counted_apart() {
    let sleeper = child(["sleep-forever"]).join(" ");
    let now = ran([
        "-j3",
        "--halt",
        "now,fail=1",
        "sh",
        "-c",
        ":::",
        &sleeper,
        "exit 3",
    ]);
    let said = "procwright: sh -c 'exit 3' exited with code 3\n\
                procwright: 1 of 2 commands have failed, 1 was stopped\n\
                procwright: no more commands were started\n";
    assert_eq!((now.code(), now.stderr.as_str()), (Some(1), said));
}

#[test]
fn halt_soon_lets_what_runs_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let go = directory.path().join("go");
    let mut fifo = common::fifo(&go);
    let waits = format!("read line < {}; echo went on", go.display());
    for when in ["soon,fail=1", "1"] {
        let mut command = map(["-j2", "--halt", when, "sh", "-c", ":::"]);
        command.args([&waits, "exit 3", "echo never"]);
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut procwright = command.spawn().unwrap();
        let mut stderr = BufReader::new(procwright.stderr.take().unwrap());
        stderr.read_line(&mut String::new()).unwrap();
        // It has been told of, and nothing more is started.
        fifo.write_all(b"go\n").unwrap();
        let ended = procwright.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stdout), "went on\n");
        assert_eq!(ended.status.code(), Some(1));
    }
}

#[test]
fn as_many_as_can_be_had() {
    let ran = ran(["-j", "0", "--ordered", "echo", ":::", "a", "b", "c"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), "a\nb\nc\n"));
}

#[test]
fn options_of_parallel_say_what_to_type() {
    for (option, hint) in [
        ("-E", "sed '/^stop$/Q'"),
        ("--arg-sep", "::: stands before items"),
        ("--plus", "{.} {/} {//}"),
        ("--rpl", "have a shell cut"),
        ("--number-of-cores", "nproc(1)"),
        ("--silent", "leave it out"),
        ("--fg", "flock(1)"),
        ("--bg", "flock(1)"),
        ("--trim", "sed"),
    ] {
        let ran = ran([option, "x", "echo", ":::", "a"]);
        let said = format!("procwright: procwright map has no {option}\n  hint: ");
        assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    }
}

#[test]
fn lines_that_are_commands_have_a_hint() {
    for words in [&["-j2"][..], &[":::", "ls", "echo foo"]] {
        let ran = ran_with(words);
        assert_eq!(ran.code(), Some(125));
        assert!(
            ran.stderr.contains("run by a shell: procwright map sh -c"),
            "{}",
            ran.stderr
        );
    }
    let ran = fed(map(["sh", "-c"]), b"echo one\necho two\n");
    assert_eq!(ran.stdout.len(), "one\ntwo\n".len());
}
