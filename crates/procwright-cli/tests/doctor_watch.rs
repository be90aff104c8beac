//! `procwright doctor --watch`: on a terminal a screen with keys, elsewhere a report for each
//! change.

mod common;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use common::bash::{Bash, await_state};
use common::hang::{Background, deadlock_below_a_shell};
use common::outer::Outer;
use common::rows::rows;
use common::{Ran, kill, subcommand, wait_gone_or_zombie};
use rustix::process::Signal;
use rustix::termios::LocalModes;
use serde_json::Value;
use test_support::schema;

/// Options of a watch that looks often.
const OFTEN: [&str; 5] = ["--watch", "--interval", "50ms", "--between", "20ms"];

fn watch(options: &[&str], pid: &str) -> Command {
    let mut command = subcommand("doctor");
    command.args(options).arg(pid).env("TERM", "xterm");
    command.env_remove("NO_COLOR");
    command
}

fn sleeper() -> Background {
    Background::start(&["sleep", "1000"], |_| ())
}

/// Reads until what stands on the screen is as wanted.
#[track_caller]
fn until(outer: &mut Outer, what: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
    loop {
        let rows = rows(&outer.text);
        if wanted(&rows) {
            return rows;
        }
        assert!(outer.read_more(), "no {what}: {rows:#?}");
    }
}

fn shows(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row.contains(text))
}

/// A watch that shows the end of its first report.
fn watching(options: &[&str], pid: &str) -> Outer {
    let mut outer = Outer::new(watch(options, pid));
    until(&mut outer, "first report", |rows| shows(rows, "q leave"));
    assert!(!outer.modes().local_modes.contains(LocalModes::ICANON));
    outer
}

/// The terminal has its first page and its cursor again, and its modes.
#[track_caller]
fn assert_given_back(outer: &Outer) {
    assert!(outer.is_as_before());
    let (_, after) = outer.text.rsplit_once("\x1b[?1049h").unwrap();
    assert!(after.contains("\x1b[?25h\x1b[?1049l"), "{after:?}");
}

#[test]
fn the_first_screen_tells_the_cause_and_that_it_is_over() {
    let (shell, python) = deadlock_below_a_shell();
    let mut outer = Outer::sized(watch(&OFTEN, &shell.pid()), 24, 80);
    let screen = until(&mut outer, "the whole screen", |rows| {
        shows(rows, "q leave")
    });
    assert!(screen.len() <= 24, "{screen:#?}");
    assert!(screen[0].starts_with("Deadlock, p"), "{screen:#?}");
    for said in ["◄── the circle", "To do: Close the write end", "fd "] {
        assert!(shows(&screen, said), "{said}: {screen:#?}");
    }
    assert!(screen[22].contains(" ── looked at "), "{screen:#?}");

    kill(python, Signal::KILL);
    let screen = until(&mut outer, "the end of it", |rows| {
        rows[0].starts_with("Nothing")
    });
    assert!(!shows(&screen, "the circle"), "{screen:#?}");
    until(&mut outer, "what was before", |rows| {
        shows(rows, "healthy since ") && shows(rows, ", before: p")
    });

    outer.type_in("q");
    assert_eq!(outer.code(), Some(0));
    assert_given_back(&outer);
    // What was seen last stays.
    let (_, after) = outer.text.rsplit_once("\x1b[?1049l").unwrap();
    assert!(after.contains("Nothing hangs"), "{after:?}");
}

#[test]
fn keys_that_leave_leave_with_the_code_of_the_verdict() {
    let (shell, _) = deadlock_below_a_shell();
    for keys in ["q", "Q", "\x1b"] {
        let mut outer = watching(&OFTEN, &shell.pid());
        outer.type_in(keys);
        // 2 where not all may be seen.
        let code = outer.code();
        assert!(matches!(code, Some(1 | 2)), "{keys:?}: {code:?}");
        assert_given_back(&outer);
    }
}

#[test]
fn the_terminal_is_given_back_after_each_signal_that_ends_it() {
    let sleeper = sleeper();
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
        let mut outer = watching(&OFTEN, &sleeper.pid());
        outer.kill(signal);
        assert_eq!(outer.signal(), Some(signal.as_raw()));
        assert_given_back(&outer);
    }
    let mut outer = watching(&OFTEN, &sleeper.pid());
    outer.type_in("\x03");
    assert_eq!(outer.signal(), Some(Signal::INT.as_raw()));
    assert_given_back(&outer);
}

#[test]
fn a_terminal_that_takes_nothing_does_not_keep_it() {
    let sleeper = sleeper();
    let mut outer = watching(&OFTEN, &sleeper.pid());
    outer.stop_output();
    // It has to draw all anew, and cannot.
    outer.resize(20, 60);
    outer.type_in("j");
    // It waits for room, or a signal: a poll of these two, `NUMBER SET COUNT …`. Otherwise it polls
    // more. What it reads tells nothing: once no look is under way, it makes none until then.
    let call = format!("/proc/{}/syscall", outer.command.id());
    while std::fs::read_to_string(&call).unwrap().split(' ').nth(2) != Some("0x2") {
        std::thread::yield_now();
    }
    outer.kill(Signal::TERM);
    assert_eq!(outer.signal(), Some(libc::SIGTERM));
    assert!(outer.is_as_before());
}

/// `/proc/PID/stat` has the state behind the name.
fn wait_for_stop(outer: &Outer) {
    let stat = format!("/proc/{}/stat", outer.command.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        std::thread::yield_now();
    }
}

/// A shell with jobs, that is told what to do by lines.
#[test]
fn it_stops_and_goes_on_as_less_does() {
    let sleeper = sleeper();
    let own = env!("CARGO_BIN_EXE_procwright");
    let line = format!(
        "set -m; '{own}' doctor {} {}; echo \"stopped with $?\"; read word; fg; \
         echo \"left with $?\"",
        OFTEN.join(" "),
        sleeper.pid()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).env("TERM", "xterm");
    let mut outer = Outer::new(shell);
    until(&mut outer, "first report", |rows| shows(rows, "q leave"));
    assert!(!outer.is_as_before());
    outer.type_in("\x1a");
    outer.wait_for("stopped with 1");
    assert_given_back(&outer);
    let before = outer.text.len();
    outer.type_in("\n");
    while !outer.text[before..].contains("q leave") {
        assert!(outer.read_more(), "{:?}", outer.text);
    }
    assert!(!outer.is_as_before());
    outer.type_in("q");
    outer.wait_for("left with 0");
    outer.finish();
    assert_given_back(&outer);
}

#[test]
fn it_does_not_stop_where_nobody_could_let_it_go_on() {
    let sleeper = sleeper();
    let mut outer = watching(&OFTEN, &sleeper.pid());
    outer.type_in("\x1a");
    // It has given the screen back and taken it again.
    while outer.text.matches("\x1b[?1049h").count() < 2 {
        assert!(outer.read_more(), "{:?}", outer.text);
    }
    outer.type_in("p");
    until(&mut outer, "a pause", |rows| shows(rows, ", paused"));
    outer.type_in("q");
    assert_eq!(outer.code(), Some(0));
    assert_given_back(&outer);
}

/// A stop that it has no say in, and a shell that sets its own modes meanwhile.
#[test]
fn it_takes_the_terminal_again_after_a_stop() {
    let sleeper = sleeper();
    let mut outer = watching(&OFTEN, &sleeper.pid());
    outer.kill(Signal::STOP);
    wait_for_stop(&outer);
    let mut modes = outer.modes();
    modes.local_modes |= LocalModes::ICANON | LocalModes::ECHO;
    outer.set_modes(&modes);
    let before = outer.text.len();
    outer.kill(Signal::CONT);
    while !outer.text[before..].contains("q leave") {
        assert!(outer.read_more(), "{:?}", outer.text);
    }
    assert!(!outer.modes().local_modes.contains(LocalModes::ICANON));
    outer.type_in("q");
    assert_eq!(outer.code(), Some(0));
    assert_given_back(&outer);
}

/// The line by which a shell starts a watch.
fn line(pid: &str) -> String {
    let own = env!("CARGO_BIN_EXE_procwright");
    format!("{own} doctor {} {pid}", OFTEN.join(" "))
}

/// A bash with what this line starts in its background: a watch, which stops before it sets modes.
fn in_background(line: &str) -> (Bash, i32) {
    let mut bash = Bash::start();
    bash.line(&format!("{line} &"));
    bash.prompt();
    let job = bash.job();
    await_state(job, &['T']);
    (bash, job)
}

#[test]
fn the_modes_of_a_shells_prompt_are_not_taken_for_the_persons() {
    let sleeper = sleeper();
    // What it leaves behind is seen before bash sets the modes of before `fg`.
    let line = format!("sh -c '{}; stty -a'", line(&sleeper.pid()));
    let (mut bash, _) = in_background(&line);
    bash.line("fg");
    bash.until("q leave");
    bash.press(b"q");
    let modes = bash.prompt();
    for mode in [" icanon", " echo "] {
        assert!(modes.contains(mode), "{modes}");
    }
}

#[test]
fn signals_end_it_in_the_background() {
    let sleeper = sleeper();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (_bash, job) = in_background(&line(&sleeper.pid()));
        kill(job, signal);
        kill(job, Signal::CONT);
        wait_gone_or_zombie(job);
    }
}

#[test]
fn in_the_background_it_leaves_the_modes_of_the_prompt_alone() {
    let sleeper = sleeper();
    let mut bash = Bash::start();
    bash.line(&line(&sleeper.pid()));
    bash.until("q leave");
    let job = bash.job();
    kill(job, Signal::STOP);
    bash.prompt();
    bash.line("bg");
    bash.prompt();
    // It stops again, as it would set modes.
    while !bash.run("jobs").contains("Stopped") {}
    kill(job, Signal::TERM);
    kill(job, Signal::CONT);
    wait_gone_or_zombie(job);
    assert!(!bash.modes().local_modes.contains(LocalModes::ICANON));
}

#[test]
fn it_follows_the_size_of_the_terminal() {
    let (shell, _) = deadlock_below_a_shell();
    let mut outer = watching(&OFTEN, &shell.pid());
    for (lines, columns) in [(5_u16, 20_u16), (1, 1), (2, 200), (50, 160), (24, 80)] {
        let before = outer.text.len();
        outer.resize(lines, columns);
        // Each row has a line; the last is drawn last.
        let last = if lines < 4 { "Dead" } else { "──" };
        loop {
            let drawn = &outer.text[before..];
            if drawn.contains("\x1b[2J") && rows(drawn).iter().any(|row| row.contains(last)) {
                break;
            }
            assert!(outer.read_more(), "{lines}x{columns}: {:?}", outer.text);
        }
        assert!(rows(&outer.text[before..]).len() <= lines.into());
    }
    outer.type_in("q");
    assert!(matches!(outer.code(), Some(1 | 2)));
    assert_given_back(&outer);
}

#[test]
fn it_scrolls_and_pauses() {
    let (shell, python) = deadlock_below_a_shell();
    let mut outer = Outer::sized(watch(&OFTEN, &shell.pid()), 10, 80);
    until(&mut outer, "the first screen", |rows| {
        shows(rows, "1-8 of ")
    });
    outer.type_in("\x1b[B");
    until(&mut outer, "one line on", |rows| shows(rows, "2-9 of "));
    outer.type_in("G");
    until(&mut outer, "the end", |rows| shows(rows, "Looked twice"));
    outer.type_in("p");
    until(&mut outer, "a pause", |rows| shows(rows, ", paused"));
    kill(python, Signal::KILL);
    wait_gone_or_zombie(python);
    outer.type_in("\x1bOH");
    let screen = until(&mut outer, "the top", |rows| rows[0].starts_with("Dead"));
    assert!(shows(&screen, ", paused"), "{screen:#?}");
    outer.type_in("p");
    until(&mut outer, "what is now", |rows| {
        rows[0].starts_with("Nothing")
    });
    outer.type_in("q");
    assert_eq!(outer.code(), Some(0));
}

#[test]
fn colours_are_a_matter_of_taste() {
    let (shell, _) = deadlock_below_a_shell();
    for (value, is_coloured) in [("", true), ("1", false)] {
        let mut command = watch(&OFTEN, &shell.pid());
        command.env("NO_COLOR", value);
        let mut outer = Outer::new(command);
        until(&mut outer, "the first report", |rows| {
            shows(rows, "q leave")
        });
        outer.type_in("q");
        outer.finish();
        let has = |code: &str| outer.text.contains(code);
        assert_eq!(has("\x1b[1;3"), is_coloured, "{:?}", outer.text);
        assert_eq!(has("\x1b[0m"), is_coloured, "{:?}", outer.text);
    }
}

/// The watch waits for a key, and the shell for the watch.
#[test]
fn it_does_not_report_itself() {
    let own = env!("CARGO_BIN_EXE_procwright");
    let mut shell = Command::new("sh");
    let line = format!(
        "'{own}' doctor {} $$; echo \"left with $?\"",
        OFTEN.join(" ")
    );
    shell.args(["-c", &line]).env("TERM", "xterm");
    let mut outer = Outer::new(shell);
    // The whole time of day, of the line that has all its columns.
    let looked = |rows: &[String]| {
        let (_, at) = rows
            .iter()
            .find_map(|row| row.split_once("── looked at "))?;
        Some(at.split_once(", next in")?.0.to_owned())
    };
    let first = until(&mut outer, "a look", |rows| looked(rows).is_some());
    let screen = until(&mut outer, "a later look", |rows| {
        looked(rows).is_some_and(|at| Some(at) != looked(&first))
    });
    assert!(screen[0].starts_with("Nothing hangs"), "{screen:#?}");
    assert!(shows(&screen, "healthy since "), "{screen:#?}");
    outer.type_in("q");
    outer.wait_for("left with 0");
    outer.finish();
}

#[test]
fn it_ends_with_those_who_were_asked_about() {
    let mut sleeper = sleeper();
    // It sleeps for an hour between two looks, and not until then.
    let mut outer = watching(&["--watch", "--interval", "1h"], &sleeper.pid());
    sleeper.0.kill().unwrap();
    // It may stay a zombie for as long as it likes.
    assert_eq!(outer.code(), Some(0));
    assert_given_back(&outer);
    assert!(
        outer.text.trim_end().ends_with(" ended"),
        "{:?}",
        outer.text
    );
    sleeper.0.wait().unwrap();
}

/// Without a terminal.
#[test]
fn each_change_is_a_report_below_the_last() {
    let (mut shell, python) = deadlock_below_a_shell();
    let mut command = watch(&OFTEN, &shell.pid());
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(watch.stdout.take().unwrap());
    let mut text = String::new();
    let mut until = |what: &str| {
        while !text.contains(what) {
            assert_ne!(stdout.read_line(&mut text).unwrap(), 0, "{what}: {text}");
        }
        text.clone()
    };
    let first = until("Looked twice");
    let head: Vec<&str> = first.lines().next().unwrap().split(' ').collect();
    assert!(
        matches!(head[..], ["---", time, "proven" | "possible"] if time.len() == 8),
        "{first}"
    );
    assert!(
        first.lines().nth(1).unwrap().starts_with("Deadlock, p"),
        "{first}"
    );
    kill(python, Signal::KILL);
    until(" healthy\nNothing hangs");
    shell.0.kill().unwrap();
    let last = until(" ended\n");
    let ran = watch.wait().unwrap();
    assert_eq!(ran.code(), Some(0));
    // Nothing was said twice. Who may be looked at comes and goes, and so may the proof.
    let mut verdicts: Vec<&str> = last
        .lines()
        .filter_map(|line| line.strip_prefix("--- ")?.split(' ').nth(1))
        .collect();
    let all = verdicts.clone();
    verdicts.dedup();
    assert_eq!(verdicts, all, "{last}");
    assert_eq!(
        verdicts[verdicts.len() - 2..],
        ["healthy", "ended"],
        "{last}"
    );
    assert!(!last.contains('\x1b'), "{last}");
    shell.0.wait().unwrap();
}

#[test]
fn each_change_is_a_line_of_json_on_a_terminal_too() {
    let (mut shell, python) = deadlock_below_a_shell();
    let options = [&OFTEN[..], &["--json"]].concat();
    let mut outer = Outer::new(watch(&options, &shell.pid()));
    outer.wait_for("\n");
    kill(python, Signal::KILL);
    while !outer.text.contains("\"findings\":[]") || !outer.text.ends_with('\n') {
        assert!(outer.read_more(), "{:?}", outer.text);
    }
    shell.0.kill().unwrap();
    assert_eq!(outer.code(), Some(0));
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/doctor.schema.json"
    );
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut patterns: Vec<Value> = outer
        .text
        .lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).unwrap();
            schema::check(&schema, &schema, &value, "diagnosis").unwrap();
            value["findings"][0]["pattern"].clone()
        })
        .collect();
    // It may be proven at one look and possible at the next.
    patterns.dedup();
    assert_eq!(patterns, [Value::from("own-write-end"), Value::Null]);
    shell.0.wait().unwrap();
}

#[test]
fn it_ends_when_nobody_reads() {
    let sleeper = sleeper();
    // It has nothing to write, and looks no more.
    let mut command = watch(&["--watch", "--interval", "1h"], &sleeper.pid());
    let mut watch = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(watch.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    assert_eq!(watch.wait().unwrap().signal(), Some(libc::SIGPIPE));
}

#[test]
fn a_terminal_that_knows_text_alone_gets_text() {
    let sleeper = sleeper();
    let mut command = watch(&OFTEN, &sleeper.pid());
    command.env("TERM", "dumb");
    let mut outer = Outer::new(command);
    outer.wait_for("Looked twice");
    assert!(outer.is_as_before());
    assert!(!outer.text.contains('\x1b'), "{:?}", outer.text);
    outer.type_in("\x03");
    assert_eq!(outer.signal(), Some(libc::SIGINT));
}

#[test]
fn wrong_words_are_refused_before_anything_is_looked_at() {
    for (words, said) in [
        (&["--watch", "--interval", "0"][..], "no pause at all"),
        (&["--watch", "--interval", "inf"], "has no end"),
        (&["--watch", "--interval", "soon"], "--interval"),
        (&["--watch", "--dot"], "--dot"),
        (&["--interval", "2s"], "--watch"),
    ] {
        let ran = Ran::from(subcommand("doctor").args(words).output().unwrap());
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(125), ""),
            "{words:?}"
        );
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
    let mut outer = Outer::new(watch(&OFTEN, &i32::MAX.to_string()));
    assert_eq!(outer.code(), Some(125));
    assert!(
        outer.text.contains("no such process: 2147483647"),
        "{:?}",
        outer.text
    );
    assert!(!outer.text.contains('\x1b'), "{:?}", outer.text);
}
