//! Exit codes.

mod common;

use std::path::Path;

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use common::{child, procwright, run};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn the_programs_own() {
    for code in ["0", "1", "3", "124", "255"] {
        let ran = run([], &child(["exit", code]));
        assert_eq!(ran.code(), Some(code.parse().unwrap()));
        assert_eq!(ran.stderr, "");
    }
}

#[test]
fn so_too_with_pipes_between() {
    let ran = run(["--until", "eof"], &child(["exit", "3"]));
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(3), ""));
}

#[test]
fn a_signal_is_128_and_its_number() {
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("PIPE", 13)] {
        let ran = run([], &child(["signal-self", name]));
        assert_eq!((ran.code(), ran.stderr.as_str()), (Some(128 + number), ""));
    }
}

#[test]
fn a_program_that_died_by_sigint_takes_us_along() {
    let ran = run([], &child(["signal-self", "INT"]));
    assert_eq!((ran.signal(), ran.stderr.as_str()), (Some(2), ""));
}

#[test]
fn not_found_is_127() {
    for program in ["no-such-program-here", "/no/such/program", "/dev/null/x"] {
        let ran = run([], &[program.to_owned()]);
        assert_eq!(ran.code(), Some(127), "{program}");
        assert!(ran.stderr.starts_with("procwright: "), "{}", ran.stderr);
        assert!(ran.stderr.contains(program), "{}", ran.stderr);
    }
}

#[test]
fn not_executable_is_126() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("text");
    std::fs::write(&file, "no program\n").unwrap();
    let name = file.to_str().unwrap().to_owned();
    let ran = run([], std::slice::from_ref(&name));
    assert_eq!(ran.code(), Some(126), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);

    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    let ran = run([], &[name]);
    assert_eq!(ran.code(), Some(126), "{}", ran.stderr);
}

#[test]
fn wrong_usage_is_125() {
    let cases: &[&[&str]] = &[
        &[],
        &["--no-such-option", "x"],
        &["--timeout", "5x", "x"],
        &["--timeout", "-1", "x"],
        &["--limit", "1MB", "x"],
        &["--stop", "NOPE", "x"],
        &["--scope", "world", "x"],
        &["--env", "NAME", "x"],
        &["--shell", "two", "words"],
        &["--cwd", "/no/such/directory", "true"],
        &["--stdin", "/no/such/file", "true"],
        &["--report-to", "/no/such/file", "true"],
    ];
    for case in cases {
        let output = procwright(*case).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(125), "{case:?}: {stderr}");
        assert!(stderr.starts_with("procwright: "), "{case:?}: {stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn wrong_usage_says_what_to_do() {
    let usage = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_procwright"));
        let output = command.args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (words, part) in [
        (
            &["make", "all"][..],
            "a program of that name: procwright run make",
        ),
        (&["rum", "make"], "did you mean run?"),
        (&["help", "run"], "procwright run --help"),
        (&["run"], "no program is named"),
        (&["run", "--timout", "5", "make"], "'--timeout'"),
        (&["run", "--retry", "x", "make"], "no whole number"),
        (&["wait", "--first", "0", "1"], "above 0"),
    ] {
        let said = usage(words);
        assert!(said.contains(part), "{words:?}: {said}");
        // No program has the name of a misspelt option.
        assert!(!said.contains("as a value"), "{words:?}: {said}");
    }
    let ran = run([], &["echo hi".to_owned()]);
    assert!(ran.stderr.contains("--shell"), "{}", ran.stderr);
}

#[test]
fn one_file_is_not_for_two() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (file, errors) = (path("file"), path("file.stderr"));
    std::fs::write(&file, "precious").unwrap();
    for options in [
        ["--stdin", &file, "--keep-full", &file],
        ["--log", &file, "--keep-full", &file],
        ["--log", &errors, "--keep-full", &file],
        ["--report-to", &file, "--log", &file],
    ] {
        let ran = run(options, &child(["exit", "0"]));
        assert_eq!(ran.code(), Some(125), "{options:?}");
        assert!(ran.stderr.contains("name the same file"), "{}", ran.stderr);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    }
    // Of a file that is not there yet its names tell.
    std::os::unix::fs::symlink("new", path("link")).unwrap();
    let (new, errors) = (path("new"), path("new.stderr"));
    for options in [
        ["--log", &new, "--report-to", &path("./new")],
        ["--log", &path("link"), "--report-to", &new],
        ["--keep-full", &new, "--log", &path("link")],
        ["--keep-full", &new, "--report-to", &path("./new.stderr")],
    ] {
        let ran = run(options, &child(["exit", "0"]));
        assert_eq!(ran.code(), Some(125), "{options:?}");
        assert!(ran.stderr.contains("name the same file"), "{}", ran.stderr);
        assert!(!Path::new(&new).exists() && !Path::new(&errors).exists());
    }
    let options = ["--stdin", "/dev/null", "--log", "/dev/null"];
    assert_eq!(run(options, &child(["exit", "0"])).code(), Some(0));
}

#[test]
fn no_option_writes_to_a_file_that_is_a_stream() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "precious").unwrap();
    let open = || {
        let mut options = std::fs::File::options();
        options.read(true).append(true).open(&path).unwrap()
    };
    for option in ["--log", "--keep-full", "--report-to"] {
        for stream in ["stdin", "stdout", "stderr"] {
            let mut command = procwright([option]);
            command.arg(&path).arg("--").args(child(["exit", "0"]));
            match stream {
                "stdin" => command.stdin(open()),
                "stdout" => command.stdout(open()),
                _ => command.stderr(open()),
            };
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(125), "{option} {stream}");
            let words = format!("{option} names the file that {stream} is already");
            let told = match stream {
                "stderr" => std::fs::read_to_string(&path).unwrap(),
                _ => String::from_utf8(output.stderr).unwrap(),
            };
            assert!(told.contains(&words), "{told}");
            assert!(
                std::fs::read_to_string(&path)
                    .unwrap()
                    .starts_with("precious")
            );
        }
    }
    // What the program does not read may be written.
    let mut command = procwright(["--stdin", "/dev/null", "--log"]);
    command
        .arg(&path)
        .arg("--")
        .args(child(["exit", "0"]))
        .stdin(open());
    assert_eq!(command.output().unwrap().status.code(), Some(0));
}

#[test]
fn a_fifo_that_nobody_reads_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fifo");
    drop(common::fifo(&path));
    for option in ["--log", "--keep-full", "--report-to"] {
        let ran = run([option, path.to_str().unwrap()], &child(["exit", "0"]));
        assert_eq!(ran.code(), Some(125), "{option}");
        let hint = "hint: nobody reads this FIFO: start its reader first";
        assert!(ran.stderr.contains(hint), "{option}: {}", ran.stderr);
    }
}

#[test]
fn a_fifo_that_nobody_writes_is_waited_for_until_a_signal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fifo");
    drop(common::fifo(&path));
    let mut command = procwright(["--stdin", path.to_str().unwrap(), "--"]);
    command.args(child(["cat"])).stdin(Stdio::null());
    let waiting = command.spawn().unwrap();
    let id = waiting.id();
    test_support::eventually(|| {
        let read = |file| std::fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
        read("stat").contains(") S ")
            && read("syscall").starts_with(&format!("{} ", libc::SYS_openat))
    });
    kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::TERM).unwrap();
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()));
    // Its writer may come later, and be gone before the program reads.
    let mut command = procwright(["--stdin", path.to_str().unwrap(), "--"]);
    command.args(child(["cat"])).stdout(Stdio::piped());
    let running = command.spawn().unwrap();
    std::fs::write(&path, "said").unwrap();
    assert_eq!(running.wait_with_output().unwrap().stdout, b"said");
}

#[test]
fn help_and_version_are_0() {
    for option in ["--help", "-h"] {
        let output = procwright([option]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stdout.starts_with(b"Run a program"));
    }
    let version = std::process::Command::new(env!("CARGO_BIN_EXE_procwright"))
        .arg("--version")
        .output()
        .unwrap();
    assert_eq!(version.status.code(), Some(0));
}

#[test]
fn stopped_by_a_timeout_is_124() {
    let ran = run(["--timeout", "100ms"], &child(["sleep-forever"]));
    assert_eq!(ran.code(), Some(124));
    assert!(ran.stderr.starts_with("procwright: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("timed out"), "{}", ran.stderr);
    assert!(ran.stderr.contains("SIGTERM"), "{}", ran.stderr);
}

test_support::alone! {
    fn waits_by_descriptor_are_refused() {
        test_support::sys::deny_wait_by_descriptor(rustix::io::Errno::PERM.raw_os_error());
        for code in ["0", "3"] {
            let ran = [
                run([], &child(["exit", code])),
                run(["--until", "eof"], &child(["exit", code])),
                run(["--report", "json"], &child(["exit", code])),
            ];
            for ran in ran {
                assert_eq!(ran.code(), Some(code.parse().unwrap()), "{}", ran.stderr);
            }
        }
    }
}

test_support::alone! {
    fn a_status_that_cannot_be_learnt_is_told() {
        test_support::sys::deny_waits(rustix::io::Errno::PERM.raw_os_error());
        let ran = run([], &child(["exit", "3"]));
        assert_eq!(ran.code(), Some(125));
        assert!(ran.stderr.contains("in an unknown way"), "{}", ran.stderr);
    }
}

#[test]
fn where_our_group_is_outside_of_the_namespace() {
    // The group has the number 0 there, as under `unshare` or in some containers.
    let in_namespace = |program: &[String], options: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--fork", "--pid", "--kill-child", "--"]);
        command.arg(env!("CARGO_BIN_EXE_procwright")).arg("run");
        command.args(options).arg("--").args(program);
        command.stdin(std::process::Stdio::null());
        common::Ran::from(command.output().unwrap())
    };
    let may = std::process::Command::new("unshare")
        .args(["--fork", "--pid", "true"])
        .output();
    if !may.is_ok_and(|output| output.status.success()) {
        let test = "where_our_group_is_outside_of_the_namespace";
        return common::skip(test, "no pid namespace may be made");
    }
    for options in [&[][..], &["--pty"], &["--scope", "group"]] {
        let ran = in_namespace(&child(["exit", "3"]), options);
        assert_eq!(ran.code(), Some(3), "{options:?}: {}", ran.stderr);
    }
}
