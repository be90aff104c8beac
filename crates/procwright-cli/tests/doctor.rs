//! `procwright doctor`: exit codes, forms of output, and what is not its own.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use common::hang::{Background, self_made_deadlock, wait_until_in};
use common::{Ran, subcommand};
use serde_json::Value;
use test_support::schema;

const NOBODY: u32 = 65_534;

fn doctor(words: &[&str]) -> Ran {
    Ran::from(subcommand("doctor").args(words).output().unwrap())
}

fn the_schema() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/doctor.schema.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The object of a diagnosis, which conforms.
#[track_caller]
fn object(ran: &Ran) -> Value {
    let value = serde_json::from_str(&ran.stdout).unwrap();
    let schema = the_schema();
    schema::check(&schema, &schema, &value, "diagnosis").unwrap();
    value
}

/// Whether this is root, which may also do what `unshare WORDS` does: many a container has a root
/// that may not. Otherwise the test is left out in plain sight.
fn may_unshare_or_skip(test: &str, words: &[&str]) -> bool {
    if !test_support::root_or_skip(test) {
        return false;
    }
    let tried = Command::new("unshare").args(words).output();
    let may = tried.is_ok_and(|output| output.status.success());
    if !may {
        let line = words.join(" ");
        test_support::skip(test, &format!("unshare {line} is not permitted"));
    }
    may
}

#[test]
fn a_sleeper_is_healthy_and_the_exit_code_0() {
    let sleeper = Background::start(&["sleep", "1000"], |_| ());
    // Until it has executed sleep and gone to sleep it is busy, which is well too.
    let ran = doctor(&[&sleeper.pid()]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.starts_with("Nothing hangs: "), "{}", ran.stdout);
    let json = doctor(&["--json", &sleeper.pid()]);
    let told = object(&json);
    assert_eq!(told["counts"]["asked"], 1);
    assert_eq!(told["findings"], serde_json::json!([]));
    assert_eq!(told["processes"][0]["pid"].to_string(), sleeper.pid());
}

#[test]
fn of_several_who_wait_each_is_told_with_whom_it_waits_for() {
    let reader = Background::start(&["cat"], |command| {
        command.stdin(Stdio::piped()).stdout(Stdio::null());
    });
    let sleeper = Background::start(&["sleep", "1000"], |_| ());
    let asked = [&*reader.pid(), &*sleeper.pid()];
    // Until it has executed cat, and reads.
    loop {
        let told = object(&doctor(&[&["--json"], &asked[..]].concat()));
        assert_eq!(told["waiting"], Value::Null);
        let processes = told["processes"].as_array().unwrap();
        let is_reader = |one: &&Value| one["pid"] == reader.0.id();
        let Some(wait) = processes.iter().find(is_reader).map(|one| &one["waits"][0]) else {
            continue;
        };
        let own = |one: &Value| one["pid"] == std::process::id() && one["fd"].is_u64();
        let mut holders = wait["holders"].as_array().unwrap().iter();
        if wait["text"].as_str().unwrap().contains(", held by ") && holders.any(own) {
            break;
        }
    }
    let ran = doctor(&asked);
    assert!(ran.stdout.contains("held by"), "{}", ran.stdout);
}

#[test]
fn a_deadlock_has_exit_code_1_or_where_not_all_is_seen_2() {
    let (program, _dir) = self_made_deadlock(|_| ());
    let ran = doctor(&["--json", &program.pid()]);
    let told = object(&ran);
    let all_seen = told["unseen"] == serde_json::json!([]);
    let code = if told["verdict"] == "proven" { 1 } else { 2 };
    assert!(code == 1 || !all_seen, "{}", ran.stdout);
    assert_eq!(ran.code(), Some(code));
    assert_eq!(told["findings"][0]["pattern"], "own-write-end");
    assert_eq!(told["findings"][0]["circle"], true);

    // What is unseen comes and goes with other processes of the machine.
    let ran = doctor(&[&program.pid()]);
    let proven = ran.stdout.starts_with("Deadlock, proven: ");
    assert_eq!(
        ran.code(),
        Some(if proven { 1 } else { 2 }),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.starts_with("Deadlock, p"), "{}", ran.stdout);
    assert!(ran.stdout.contains("◄── the circle"), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\x1b'), "{}", ran.stdout);

    let ran = doctor(&["--dot", &program.pid()]);
    assert!(matches!(ran.code(), Some(1 | 2)), "{:?}", ran.code());
    let pid = program.pid();
    assert!(ran.stdout.starts_with("digraph"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains(&format!("p{pid} -> p{pid}")),
        "{}",
        ran.stdout
    );
}

/// What doctor has inherited it will not use, and is no way out.
#[test]
fn descriptors_of_its_own_hide_no_deadlock() {
    let (program, _dir) = self_made_deadlock(|_| ());
    let pid = program.pid();
    let is_pipe = |number: &i32| {
        let link = std::fs::read_link(format!("/proc/{pid}/fd/{number}")).unwrap_or_default();
        link.to_string_lossy().starts_with("pipe:")
    };
    // Behind the read end.
    let write = (3..100).filter(is_pipe).max().unwrap();
    let line = format!("exec \"$0\" doctor --json {pid} 7>/proc/{pid}/fd/{write}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_procwright")]);
    let ran = Ran::from(shell.stdin(Stdio::null()).output().unwrap());
    let told = object(&ran);
    assert_eq!(told["findings"][0]["pattern"], "own-write-end", "{told}");
}

#[test]
fn a_long_command_line_is_cut() {
    let long = "x".repeat(100_000);
    let code = "import time; time.sleep(1000)";
    let sleeper = Background::start(&["python3", "-c", code, &long], |_| ());
    // Until it has executed Python its command is ours; the watchdog ends this.
    let command = loop {
        let told = object(&doctor(&["--json", &sleeper.pid()]));
        let command = told["processes"][0]["command"]
            .as_str()
            .unwrap_or("")
            .to_owned();
        if command.contains("xxx") {
            break command;
        }
    };
    assert!(
        command.len() < 5_000 && command.ends_with("x…"),
        "{}",
        command.len()
    );
}

#[test]
fn a_process_at_its_terminal_has_exit_code_3() {
    use rustix::process::{ioctl_tiocsctty, setsid};
    let (master, slave) = common::terminal();
    let reader = Background::start(&["cat"], |command| {
        command.stdin(slave.try_clone().unwrap()).stdout(slave);
        // SAFETY: two system calls, which allocate nothing.
        unsafe {
            command.pre_exec(|| {
                setsid()?;
                ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
    });
    // It may not have executed cat, or come to its read.
    let ran = loop {
        let ran = doctor(&[&reader.pid()]);
        if ran.code() != Some(0) {
            break ran;
        }
    };
    assert_eq!(ran.code(), Some(3), "{}", ran.stdout);
    assert!(
        ran.stdout.starts_with("Waits for input: cat"),
        "{}",
        ran.stdout
    );
    drop(master);
}

#[test]
fn who_is_not_there_and_wrong_words_are_trouble() {
    let ran = doctor(&[&i32::MAX.to_string()]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""));
    assert!(
        ran.stderr.contains("no such process: 2147483647\n"),
        "{}",
        ran.stderr
    );
    // Beside others that there are, too.
    let ran = doctor(&["2147483646", &std::process::id().to_string(), "2147483647"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""));
    assert!(
        ran.stderr.contains(": 2147483646, 2147483647\n"),
        "{}",
        ran.stderr
    );
    for words in [
        &["0"][..],
        &["-1"],
        &["make"],
        &["--between", "soon", "1"],
        &["--json", "--dot"],
    ] {
        let ran = doctor(words);
        assert_eq!(ran.code(), Some(125), "{words:?}: {}", ran.stderr);
    }
}

/// Processes of others hide what they hold: nothing is proven that they could undo.
#[test]
fn as_another_user_it_says_what_it_cannot_see() {
    if !test_support::root_or_skip("as_another_user_it_says_what_it_cannot_see") {
        return;
    }
    let as_nobody = |command: &mut Command| {
        command.uid(NOBODY).gid(NOBODY);
    };
    let (theirs, _dir) = self_made_deadlock(as_nobody);
    let (roots, _dir) = self_made_deadlock(|_| ());
    // Where the command lies nobody else may look.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let command = dir.path().join("procwright");
    std::fs::copy(env!("CARGO_BIN_EXE_procwright"), &command).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let examine = |pid: &str| {
        let mut doctor = Command::new(&command);
        doctor.args(["doctor", "--json", pid]).current_dir("/");
        Ran::from(doctor.uid(NOBODY).gid(NOBODY).output().unwrap())
    };
    let own = object(&examine(&theirs.pid()));
    assert_eq!(own["findings"][0]["pattern"], "own-write-end", "{own}");
    assert_ne!(own["unseen"], serde_json::json!([]), "{own}");
    let other = object(&examine(&roots.pid()));
    assert_eq!(other["verdict"], "possible", "{other}");
    assert_eq!(other["findings"], serde_json::json!([]), "{other}");
    let sentence = other["sentence"].to_string();
    assert!(sentence.contains("cannot be looked at"), "{other}");
}

/// Within a pid namespace, processes outside of it are not seen, which is said.
#[test]
fn in_a_pid_namespace_it_says_so() {
    let words = ["--pid", "--fork", "--mount-proc", "true"];
    if !may_unshare_or_skip("in_a_pid_namespace_it_says_so", &words) {
        return;
    }
    let command = env!("CARGO_BIN_EXE_procwright");
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount-proc", command, "run", "--"]);
    unshare.args([command, "doctor", "--json", "1"]);
    let ran = Ran::from(unshare.stdin(Stdio::null()).output().unwrap());
    let told = object(&ran);
    assert!(
        told["unseen"].to_string().contains("pid namespace"),
        "{told}"
    );
}

/// From outside, those within a pid namespace are seen as all others are.
#[test]
fn who_is_in_a_pid_namespace_is_seen_from_outside() {
    let words = ["--pid", "--fork", "true"];
    if !may_unshare_or_skip("who_is_in_a_pid_namespace_is_seen_from_outside", &words) {
        return;
    }
    let code = "import os, signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); \
                time.sleep(0.1); r, w = os.pipe(); os.read(r, 1)";
    let outer = Background::start(
        &[
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            "python3",
            "-c",
            code,
        ],
        |_| (),
    );
    // Until it has come to its read; the watchdog ends this. What comes before it, such as a
    // script that looks for Python, waits for pipes too.
    let told = loop {
        let told = object(&doctor(&["--json", &outer.pid()]));
        if told["findings"][0]["pattern"] == "own-write-end" {
            break told;
        }
    };
    let finding = &told["findings"][0];
    assert_eq!(finding["behind"][0], outer.0.id(), "{told}");
}

/// Where `/proc` hides others, one of them may have the other end: that is no proof.
#[test]
fn where_proc_hides_processes_nothing_is_proven() {
    // Until then the option was that of every mount in the pid namespace: the machine's.
    if test_support::family::kernel() < (5, 8) {
        let test = "where_proc_hides_processes_nothing_is_proven";
        return test_support::skip(test, "hidepid would be set for all, before Linux 5.8");
    }
    let words = [
        "--mount",
        "mount",
        "-t",
        "proc",
        "-o",
        "hidepid=2",
        "proc",
        "/proc",
    ];
    if !may_unshare_or_skip("where_proc_hides_processes_nothing_is_proven", &words) {
        return;
    }
    let (program, _dir) = self_made_deadlock(|command| {
        command.uid(NOBODY).gid(NOBODY);
    });
    // Where the command lies nobody else may look.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let command = dir.path().join("procwright");
    std::fs::copy(env!("CARGO_BIN_EXE_procwright"), &command).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let line = format!(
        "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid={NOBODY} --regid={NOBODY} \
         --clear-groups \"$0\" doctor --json {}",
        program.pid()
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", &line]).arg(&command);
    let ran = Ran::from(
        unshare
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .unwrap(),
    );
    let told = object(&ran);
    assert_eq!(ran.code(), Some(2), "{told}");
    // Its name needs the call that it is in, which Yama may show to its ancestors alone.
    let finding = &told["findings"][0];
    assert_eq!(finding["processes"][0], program.0.id(), "{told}");
    assert_eq!(finding["verdict"], "possible", "{told}");
    assert!(told["unseen"].to_string().contains("hidepid"), "{told}");
}

/// A filter of system calls that refuses the socket by which the kernel tells of others.
#[test]
fn where_peers_of_sockets_are_not_told_it_says_so() {
    let code = "import socket; ours, theirs = socket.socketpair(); ours.recv(1)";
    let reader = Background::start(&["python3", "-c", code], |_| ());
    let mut filtered = subcommand("doctor");
    filtered.args(["--json", &reader.pid()]);
    // SAFETY: it sets up a filter; glibc keeps its memory in order over a fork.
    unsafe {
        filtered.pre_exec(|| {
            test_support::sys::deny(&[libc::SYS_socket], libc::EPERM);
            Ok(())
        });
    }
    // Until it has its sockets; the watchdog ends this.
    let told = loop {
        let told = object(&Ran::from(filtered.output().unwrap()));
        if told["unseen"].to_string().contains("netlink") {
            break told;
        }
    };
    assert_eq!(told["findings"], serde_json::json!([]), "{told}");
}

#[test]
fn without_proc_it_says_what_is_missing() {
    let words = ["--mount", "mount", "-t", "tmpfs", "none", "/proc"];
    if !may_unshare_or_skip("without_proc_it_says_what_is_missing", &words) {
        return;
    }
    let line = "mount -t tmpfs none /proc && exec \"$0\" doctor 1";
    let mut unshare = Command::new("unshare");
    unshare.args([
        "--mount",
        "sh",
        "-c",
        line,
        env!("CARGO_BIN_EXE_procwright"),
    ]);
    let ran = Ran::from(unshare.stdin(Stdio::null()).output().unwrap());
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""));
    assert!(ran.stderr.contains("there is no /proc"), "{}", ran.stderr);
}

/// The calls by which doctor could disturb others while it looks at `pid`; `None` without strace.
fn calls_of_doctor(pid: &str) -> Option<String> {
    Command::new("strace").arg("--version").output().ok()?;
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("calls");
    let mut strace = Command::new("strace");
    strace.args([
        // A file for each thread: in one the calls of several are cut in two.
        "-ff",
        "-e",
        "trace=open,openat,kill,tgkill,tkill,ptrace,pidfd_getfd,pidfd_send_signal",
    ]);
    strace
        .arg("-o")
        .arg(&log)
        .arg(env!("CARGO_BIN_EXE_procwright"));
    let ran = strace.args(["doctor", pid]).output().unwrap();
    assert!(ran.status.code().is_some_and(|code| code < 3), "{ran:?}");
    let logs = std::fs::read_dir(dir.path()).unwrap();
    Some(
        logs.map(|log| std::fs::read_to_string(log.unwrap().path()).unwrap())
            .collect(),
    )
}

/// What is opened in the list of processes, by their numbers.
fn opened(calls: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut opened: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in calls.lines().filter_map(|line| line.split('"').nth(1)) {
        let (pid, file) = name.split_once('/').unwrap_or((name, ""));
        if pid.parse::<i32>().is_ok() {
            let files = opened.entry(String::from(pid)).or_default();
            files.insert(String::from(file));
        }
    }
    opened
}

/// What others wait for is nobody's question: of a program that sleeps nobody else is looked at,
/// and of one that waits for a pipe of others the links alone that show whether they hold it.
#[test]
fn others_are_looked_at_where_a_wait_makes_them_matter() {
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        return test_support::skip("others_are_looked_at", "children are not listed");
    }
    let sleeper = Background::start(&["sleep", "600"], |_| {});
    let (read, write) = std::io::pipe().unwrap();
    let _holder = Background::start(&["sleep", "600"], |command| {
        command.stdout(write);
    });
    let reader = Background::start(&["cat"], |command| {
        command.stdin(read);
    });
    wait_until_in("pipe_read", reader.0.id().cast_signed());
    let Some(calls) = calls_of_doctor(&sleeper.pid()) else {
        return test_support::skip("others_are_looked_at", "there is no strace");
    };
    let opened_of = opened(&calls);
    assert!(opened_of.keys().eq([&sleeper.pid()]), "{opened_of:?}");
    let opened_of = opened(&calls_of_doctor(&reader.pid()).unwrap());
    let links = BTreeSet::from([String::from("fd")]);
    assert_eq!(opened_of.get(&sleeper.pid()), Some(&links));
}

/// The end of a pipe comes when its last writer goes, however often it is looked at.
#[test]
fn nobody_is_disturbed() {
    let mut child = Background::start(&["cat"], |command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
    });
    let pid = child.pid();
    let mut stdin = child.0.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.0.stdout.take().unwrap());
    if let Some(calls) = calls_of_doctor(&pid) {
        let known = [
            "schedstat",
            "stat",
            "status",
            "syscall",
            "wchan",
            "fd",
            "fdinfo",
            "task",
            "mem",
            "maps",
            "io",
            "timers",
            "cmdline",
        ];
        assert!(calls.contains("\"syscall\""), "{calls}");
        for line in calls
            .lines()
            .filter(|line| !line.contains("---") && !line.contains("+++"))
        {
            assert!(line.contains("open"), "{line}");
            assert!(
                !line.contains("O_RDWR") && !line.contains("O_WRONLY"),
                "{line}"
            );
            let name = line.split('"').nth(1).unwrap_or_default();
            // A descriptor of theirs would be opened as fd/N.
            assert!(!name.contains("/fd/") && !name.starts_with("fd/"), "{line}");
            // What stands beside the folder of the links.
            let name = name.trim_start_matches("../");
            let relative = !name.starts_with('/') && name.parse::<i32>().is_err();
            // Of a process, or from its folder.
            let (folder, file) = name.split_once('/').unwrap_or(("", name));
            let within = match folder.parse::<i32>() {
                Ok(_) => file,
                Err(_) => name,
            };
            let first = within.split('/').next().unwrap_or_default();
            assert!(!relative || known.contains(&first), "{line}");
        }
    } else {
        test_support::skip("nobody_is_disturbed", "there is no strace");
    }
    writeln!(stdin, "word").unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "word\n");
    drop(stdin);
    assert_eq!(stdout.read_to_string(&mut line).unwrap(), 0);
}
