//! What people type who know other tools: each of their options works, or its refusal says what to
//! type in its place; and what the reference says to type is run.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{Ran, child, procwright, subcommand};

/// A command of this subcommand with these words, and what it came to.
fn ran(name: &str, words: &[&str]) -> Ran {
    subcommand(name).args(words).output().unwrap().into()
}

/// The options of the tools that go in front of a program, as their manuals have them.
const OPTIONS: &[(&str, &[&str])] = &[
    (
        "timeout",
        &[
            "-s INT",
            "--signal=INT",
            "--signal INT",
            "-k 5",
            "--kill-after=5",
            "-k inf",
            "-v",
            "--verbose",
            "--foreground",
            "-f",
            "--preserve-status",
            "-p",
        ],
    ),
    ("nohup", &["--nohup"]),
    (
        "setsid",
        &[
            "-c",
            "--ctty",
            "-f",
            "--fork",
            "-w",
            "--wait",
            "--setsid",
            "--new-session",
            "--detach",
            "--background",
        ],
    ),
    ("nice", &["-n 10", "--adjustment=10", "--nice 10"]),
    (
        "env",
        &[
            "-i",
            "--ignore-environment",
            "-u HOME",
            "--unset=HOME",
            "-C /",
            "--chdir=/",
            "-S line",
            "--split-string=line",
            "--block-signal=INT",
            "--default-signal=INT",
            "--ignore-signal=INT",
            "--list-signal-handling",
            "-v",
            "--debug",
            "-0",
            "--null",
        ],
    ),
    (
        "stdbuf",
        &[
            "-i0",
            "-oL",
            "-e0",
            "--input=0",
            "--output=L",
            "--error=0",
            "--line-buffered",
        ],
    ),
    (
        "chrt",
        &[
            "-b",
            "--batch",
            "-d",
            "--deadline",
            "-f",
            "--fifo",
            "-i",
            "--idle",
            "-o",
            "--other",
            "-r",
            "--rr",
            "-R",
            "--reset-on-fork",
            "-T 1",
            "--sched-runtime=1",
            "-P 1",
            "--sched-period=1",
            "-D 1",
            "--sched-deadline=1",
            "-a",
            "-m",
            "-p",
            "-v",
        ],
    ),
    ("taskset", &["-a", "--all-tasks", "-p", "-c", "--cpu-list"]),
    (
        "ionice",
        &[
            "-c 3",
            "--class=idle",
            "-n 7",
            "--classdata=7",
            "-p 1",
            "-P 1",
            "-t",
            "--ignore",
            "-u 0",
        ],
    ),
    (
        "ulimit",
        &["--ulimit 256", "--rlimit=nofile", "--umask 077", "-n 256"],
    ),
    (
        "sudo",
        &[
            "-u root",
            "--user=root",
            "-g root",
            "--group=root",
            "-E",
            "--preserve-env",
            "-D /",
            "-H",
            "--set-home",
            "-n",
            "-b",
            "-i",
            "--login",
            "-A",
            "-S",
        ],
    ),
    (
        "tee",
        &[
            "-a",
            "--append",
            "-i",
            "--ignore-interrupts",
            "-p",
            "--output-error=warn",
            "--tee",
        ],
    ),
    ("ts", &["-i", "-m", "-r", "--timestamps", "--time"]),
    (
        "script",
        &[
            "-I f",
            "--log-in=f",
            "-O f",
            "--log-out=f",
            "-B f",
            "--log-io=f",
            "-T f",
            "--log-timing=f",
            "-t",
            "--timing",
            "-m classic",
            "--logging-format=classic",
            "-a",
            "--append",
            "-c line",
            "--command=line",
            "-e",
            "--return",
            "-f",
            "--flush",
            "--force",
            "-E auto",
            "--echo=auto",
            "-o 1k",
            "--output-limit=1k",
            "-q",
        ],
    ),
    (
        "what runs a program again",
        &[
            "--retries 2",
            "--attempts=2",
            "--max-attempts 3",
            "--delay 1",
        ],
    ),
    (
        "what reports of it",
        &[
            "--report-file f",
            "--report-json",
            "--json",
            "--max-output 1M",
            "--output-limit 1M",
            "--max-bytes=1",
            "--name=x",
            "--prefix x",
        ],
    ),
];

#[test]
fn each_option_of_a_tool_works_or_says_what_to_type() {
    let mut unknown = Vec::new();
    for (tool, options) in OPTIONS {
        for option in *options {
            let name = option.split([' ', '=']).next().unwrap();
            let mut words: Vec<&str> = option.split(' ').collect();
            words.extend(["--", "echo", "done"]);
            let ran = ran("run", &words);
            if ran.code() == Some(0) {
                assert_eq!(ran.stdout, "done\n", "{tool} {option}");
                continue;
            }
            let refused = (Some(125), "");
            assert_eq!(
                (ran.code(), ran.stdout.as_str()),
                refused,
                "{tool} {option}"
            );
            // Of letters in one word it names the first.
            let name = match name.starts_with("--") {
                true => name,
                false => &name[..2],
            };
            let said = format!("procwright: procwright run has no {name}\n  hint: ");
            if !ran.stderr.starts_with(&said) {
                unknown.push(format!("{tool} {option}: {}", ran.stderr));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn hints_are_what_to_type() {
    for (subcommand, option, typed) in [
        ("run", "--preserve-status", "--report-to FILE"),
        ("run", "--foreground", "--scope process"),
        ("run", "--nohup", "nohup procwright run"),
        ("run", "--setsid", "procwright run setsid -w CMD"),
        ("run", "--detach", "setsid -f procwright run"),
        ("run", "--nice", "nice -n 10 procwright run"),
        ("run", "--unset", "procwright run env -u NAME CMD"),
        ("run", "--user", "sudo -u USER procwright run"),
        ("run", "--ulimit", "prlimit --nofile=256 procwright run"),
        ("run", "--umask", "(umask 077; procwright run"),
        ("run", "--line-buffered", "--pty"),
        ("run", "--tee", "--log FILE"),
        ("run", "--timestamps", "--log-times"),
        ("run", "--retries", "--retry N"),
        ("run", "--retries", "--backoff 0 has them follow at once"),
        ("map", "--retries", "run --retry 2 --backoff 0 CMD {}"),
        ("map", "-U", "-I TEXT is for {} alone"),
        ("map", "--seqreplace", "{#} are written so"),
        ("map", "--shebang", "procwright map CMD {} <<'END'"),
        ("map", "--jl", "--joblog FILE, beside --journal FILE"),
        ("run", "--report-file", "--report-to FILE"),
        ("run", "--max-output", "--limit SIZE"),
        ("run", "--wait-for", "tail -n +1 -F FILE --to grep -q -m1"),
        ("run", "--ready", "tail -n +1 -F FILE --to grep -q -m1"),
        ("run", "--port", "--quiet --retry 20 --backoff 100ms curl"),
        ("wait", "--port", "--quiet --retry 20 --backoff 100ms curl"),
        ("wait", "--ready", "tail -n +1 -F FILE --to grep -q -m1"),
        ("pipe", "--stderr", "procwright pipe sh -c 'CMD 2>&1' --to"),
        ("pipe", "--merge", "procwright pipe sh -c 'CMD 2>&1' --to"),
        (
            "map",
            "--delay",
            "while read -r item; do echo \"$item\"; sleep 0.1; done",
        ),
        ("pipe", "--shell", "procwright pipe sh -c 'LINE'"),
        ("pipe", "--tag", "procwright run --tag procwright pipe"),
        ("pipe", "--log", "procwright run --log FILE procwright pipe"),
        (
            "pipe",
            "--explain-after",
            "procwright run --explain-after 30s procwright pipe",
        ),
        (
            "pipe",
            "--input-wanted",
            "procwright run --input-wanted fail procwright pipe",
        ),
        ("doctor", "--name", "$(pgrep NAME)"),
        ("doctor", "--follow", "procwright doctor --watch PID"),
        (
            "pipe",
            "--retry",
            "procwright run --retry 2 procwright pipe",
        ),
        ("pipe", "--dry-run", "PROCWRIGHT_TRACE=1"),
        ("pipe", "--pipefail", "--success strict"),
        ("pipe", "--nice", "nice -n 10 procwright pipe"),
        ("pipe", "-s", "--stop SIGNAL"),
        ("map", "--process-slot-var", "{#}"),
        ("map", "--keep-full", "procwright run --keep-full {#}.out"),
        ("map", "--results", "procwright run --keep-full {#}.out"),
        ("map", "--header", "write {1} for"),
        ("map", "-t", "PROCWRIGHT_TRACE=1 shows each start"),
        ("map", "--nice", "procwright map nice -n 10 CMD {}"),
        ("map", "--pty", "procwright run --pty CMD {}"),
        ("map", "--stdin", "a command reads nothing here"),
        ("map", "--input", "a command reads nothing here"),
        ("map", "--ok-codes", "--ok CODE"),
        ("run", "--ok-codes", "--ok CODE"),
        ("wait", "-n", "--any"),
        ("wait", "--pid", "procwright wait PID"),
        ("wait", "-p", "procwright wait PID"),
        ("wait", "--count", "--first K"),
        ("wait", "-t", "--timeout DURATION"),
        ("wait", "-x", "--name NAME"),
        ("wait", "--interval", "leave it out"),
        ("map", "-o", "xargs -o"),
    ] {
        let ran = ran(subcommand, &[option, "5", "echo"]);
        assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""));
        let said = format!("procwright: procwright {subcommand} has no {option}\n  hint: ");
        assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
        assert!(ran.stderr.contains(typed), "{option}: {}", ran.stderr);
    }
    // What takes FILE for a form of the report.
    let report = ran("run", &["--report", "out.json", "true"]);
    assert_eq!(report.code(), Some(125));
    assert!(
        report.stderr.contains("hint: --report-to FILE"),
        "{}",
        report.stderr
    );
}

/// Options of GNU parallel, as its manual has them, that no other test names.
const OF_PARALLEL: &str = "
    --basenameextensionreplace --basenamereplace --bf --bin --block-size --block-timeout --bner \
    --bnr --bt --cf --cleanup --color-failed --compress-program --controlmaster \
    --decompress-program --dirnamereplace --dnr --filter-hosts --group-by --hashbang --hgrp \
    --hostgroups --latest-line --ll --max-line-length-allowed --minversion --no-keep-order \
    --output-as-files --outputasfiles --profile --record-env --regexp --remove-rec-sep \
    --removerecsep --round --round-robin --rsync-opts --semaphore-name --semaphore-timeout \
    --session --shard --shebang-wrap --shell-completion --shell-quote --shellquote --slotreplace --ssh \
    --ssh-delay --st --template --term-seq --tf --tmpl --tmux --tmuxpane --total --total-jobs \
    --use-cores-instead-of-threads --wait -J -M";

#[test]
fn each_option_of_parallel_says_what_to_type() {
    let unknown = OF_PARALLEL.split_whitespace().filter(|option| {
        let ran = ran("map", &[option, "echo", ":::", "a"]);
        let said = format!("procwright: procwright map has no {option}\n  hint: ");
        ran.code() != Some(125) || !ran.stderr.starts_with(&said)
    });
    assert_eq!(unknown.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_variable_without_a_value_is_passed_on_as_it_is() {
    for subcommand in ["run", "map"] {
        let ran = ran(subcommand, &["--env", "HOME", "echo", "x"]);
        let said = "there is no '='; write NAME=VALUE, or leave it out: what we have is passed on";
        assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""));
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn the_last_of_an_option_counts() {
    let late = ran(
        "run",
        &[
            "--timeout",
            "1ms",
            "--timeout",
            "1h",
            "--quiet",
            "--quiet",
            "true",
        ],
    );
    assert_eq!((late.code(), late.stderr.as_str()), (Some(0), ""));
    let late = ran("map", &["-j", "0", "-j", "1", "echo", ":::", "a"]);
    assert_eq!((late.code(), late.stdout.as_str()), (Some(0), "a\n"));
    let both = ran(
        "run",
        &["--env", "A=1", "--env", "B=2", "sh", "-c", "echo $A$B"],
    );
    assert_eq!(both.stdout, "12\n");
    // One of them would not be written.
    let files = ran("run", &["--log", "one", "--log", "two", "true"]);
    assert_eq!(files.code(), Some(125));
}

#[test]
fn names_of_other_tools_say_what_they_are_here() {
    for (words, typed) in [
        (
            &["parallel", "echo"][..],
            "procwright map -j 4 CMD {} ::: ITEM...",
        ),
        (&["xargs", "echo"], "procwright map -j 4 CMD {} ::: ITEM..."),
        (&["timeout", "5", "true"], "procwright run --timeout 5m CMD"),
        (&["pv"], "procwright pipe --progress CMD --to CMD"),
        (&["tee", "log"], "procwright run --log FILE CMD"),
        (&["explain", "1"], "procwright doctor PID"),
        (&["help", "run"], "procwright run --help"),
        (&["help"], "--help"),
    ] {
        let ran = ran(words[0], &words[1..]);
        assert_eq!(ran.code(), Some(125), "{words:?}");
        let said = format!(
            "procwright: there is no subcommand {:?}\n  hint: ",
            words[0]
        );
        assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
        assert!(ran.stderr.contains(typed), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn an_end_of_a_run_is_no_line_that_it_says() {
    let refused = ran("run", &["--until", "listening", "true"]);
    assert_eq!(refused.code(), Some(125));
    let typed = "procwright pipe --timeout 10s tail -n +1 -F FILE --to grep -q -m1 ready";
    assert!(refused.stderr.contains(typed), "{}", refused.stderr);
}

#[test]
fn commands_that_are_printed_are_those_of_all_items() {
    let words = [
        "--journal",
        "F",
        "--resume",
        "--dry-run",
        "true",
        ":::",
        "a",
    ];
    let refused = ran("map", &words);
    assert_eq!(refused.code(), Some(125));
    let typed = "procwright map --dry-run CMD, without --journal and --resume";
    assert!(refused.stderr.contains(typed), "{}", refused.stderr);
}

#[test]
fn a_tag_for_failures_alone_says_what_to_type() {
    let refused = ran("map", &["--tag", "--quiet", "true", ":::", "a"]);
    assert_eq!(refused.code(), Some(125));
    let typed = "hint: a tag stands before lines as they come, of all commands; of those that \
                 fail it is had by procwright map --quiet procwright run --tag={} CMD {}";
    assert!(refused.stderr.contains(typed), "{}", refused.stderr);
    let words = [
        "--quiet",
        env!("CARGO_BIN_EXE_procwright"),
        "run",
        "--tag={}",
    ];
    let words = [
        &words[..],
        &["sh", "-c", "echo $0; [ $0 = a ]", "{}", ":::", "a", "b"],
    ]
    .concat();
    let ran = ran("map", &words);
    assert!(
        ran.stdout.contains("b") && !ran.stdout.contains("a |"),
        "{}",
        ran.stdout
    );
}

#[test]
fn our_stdin_needs_no_option() {
    for name in ["run", "pipe"] {
        let ran = ran(name, &["--stdin", "-", "cat"]);
        assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""));
        let said = "our stdin is read unless something else is said: leave --stdin out";
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn options_that_exclude_each_other_are_told_by_the_names_that_were_typed() {
    for (words, said) in [
        (
            &["--lb", "-k"][..],
            "'--lb' (--live) cannot be used with '-k' (--ordered)",
        ),
        (
            &["-k", "--line-buffer"],
            "'--line-buffer' (--live) cannot be used with '-k' (--ordered)",
        ),
        (
            &["--live", "-k"],
            "'--live' cannot be used with '-k' (--ordered)",
        ),
        (
            &["--ordered", "--live"],
            "'--live' cannot be used with '--ordered'",
        ),
    ] {
        let mut words = words.to_vec();
        words.extend(["echo", "--lb", ":::", "a"]);
        let ran = ran("map", &words);
        assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""));
        // Either may be told first.
        let (one, other) = said.split_once(" cannot be used with ").unwrap();
        let turned = format!("{other} cannot be used with {one}");
        assert!(
            ran.stderr.contains(said) || ran.stderr.contains(&turned),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn what_keeps_the_outputs_of_a_map_does() {
    let directory = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_procwright");
    let words = [
        program,
        "run",
        "--keep-full",
        "{#}.out",
        "echo",
        "{}",
        ":::",
        "a",
        "b",
    ];
    let mut command = subcommand("map");
    let ran = Ran::from(
        command
            .args(words)
            .current_dir(directory.path())
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    for (name, kept) in [("1.out", "a\n"), ("2.out", "b\n")] {
        let file = directory.path().join(name);
        assert_eq!(std::fs::read_to_string(file).unwrap(), kept);
    }
}

#[test]
fn signal_and_time_of_a_stop_as_timeout_has_them() {
    let words = child(["sleep-forever"]);
    let mut command = procwright(["-s", "USR1", "-k", "inf", "--timeout", "50ms"]);
    let ran = Ran::from(command.arg("--").args(&words).output().unwrap());
    assert_eq!(ran.code(), Some(124));
    assert!(ran.stderr.contains("SIGUSR1"), "{}", ran.stderr);
    // It ignores SIGTERM: SIGKILL follows.
    let words = child(["ignore-term"]);
    let mut command = procwright(["--signal=TERM", "--kill-after=50ms", "--timeout", "50ms"]);
    let ran = Ran::from(command.arg("--").args(&words).output().unwrap());
    assert_eq!(ran.code(), Some(124));
    for both in [["--stop", "INT", "-s", "INT"], ["--grace", "1", "-k", "1"]] {
        let mut command = procwright(both);
        let ran = Ran::from(command.arg("true").output().unwrap());
        assert_eq!(ran.code(), Some(125), "{}", ran.stderr);
    }
}

#[test]
fn limits_by_other_names_are_told() {
    for (words, told) in [
        (["--idle", "1s"], "--idle-timeout DURATION"),
        (["-t", "10s"], "--timeout DURATION"),
    ] {
        let refused = ran("run", &[words[0], words[1], "echo", "a"]);
        assert_eq!((refused.code(), refused.stdout.as_str()), (Some(125), ""));
        assert!(refused.stderr.contains(told), "{}", refused.stderr);
    }
}

#[test]
fn no_time_is_refused_where_it_would_mean_none_to_others() {
    for (name, option) in [
        ("run", "--timeout"),
        ("run", "--idle-timeout"),
        ("run", "-k"),
        ("pipe", "--timeout"),
        ("map", "--timeout"),
        ("map", "--deadline"),
    ] {
        let no_time = ran(name, &[option, "0", "echo", "a"]);
        assert_eq!((no_time.code(), no_time.stdout.as_str()), (Some(125), ""));
        assert!(no_time.stderr.contains("inf"), "{}", no_time.stderr);
        let for_ever = ran(name, &[option, "inf", "echo", "a"]);
        assert_eq!(for_ever.code(), Some(0), "{}", for_ever.stderr);
    }
}

/// The rows of the table below this heading of the reference.
fn rows(heading: &str) -> Vec<[String; 2]> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/command.md"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split_once(heading).unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let lines = section.lines().filter(|line| line.starts_with("| "));
    let rows = lines.map(|line| {
        let cells = line.trim_matches('|').replace("\\|", "\u{0}");
        let (left, right) = cells.split_once('|').unwrap();
        [left, right].map(|cell| cell.replace('\u{0}', "|").trim().to_owned())
    });
    rows.skip(1).collect()
}

/// The commands in a cell: code with CMD in it.
fn commands(cell: &str) -> Vec<&str> {
    let code = cell.split('`').skip(1).step_by(2);
    code.filter(|code| code.contains("CMD")).collect()
}

/// Runs a line of the reference by a shell.
fn shell(line: &str, directory: &Path) -> Ran {
    let program = concat!(env!("CARGO_BIN_EXE_procwright"), " run");
    let user = rustix::process::getuid().as_raw().to_string();
    let line = line
        .replace("procwright run", program)
        .replace("CMD", "echo done")
        .replace("USER", &format!("'#{user}'"))
        .replace("DIR", directory.to_str().unwrap())
        .replace("FILE", directory.join("file").to_str().unwrap())
        .replace("NAME", "SOME_NAME");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env("TERM", "dumb");
    command.current_dir(directory).stdin(Stdio::null());
    command.output().unwrap().into()
}

#[test]
fn what_the_reference_says_to_type_is_what_the_tool_does() {
    let mut compared = 0;
    for [theirs, ours] in rows("## Coming from timeout, nohup, env and their like\n") {
        let (theirs, ours) = (commands(&theirs), commands(&ours));
        for (place, line) in ours.iter().enumerate() {
            let there = tempfile::tempdir().unwrap();
            let here = tempfile::tempdir().unwrap();
            let known = theirs.get(place.min(theirs.len() - 1)).unwrap();
            let tool = shell(known, there.path());
            // Not every system has all of them, or lets everybody use them.
            let name = known.split(' ').next().unwrap();
            match tool.code() {
                Some(0) => {}
                Some(127) if !line.contains(name) => {}
                _ => continue,
            }
            let ran = shell(line, here.path());
            assert_eq!(ran.code(), Some(0), "{line}: {}", ran.stderr);
            assert!(ran.stdout.contains("done"), "{line}: {}", ran.stdout);
            if line.contains("FILE") {
                assert!(
                    here.path().join("file").metadata().unwrap().len() > 0,
                    "{line}"
                );
            }
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}
