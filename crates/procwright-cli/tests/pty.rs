//! `procwright run --pty`: a terminal for the program, and the person's own.

mod common;

use std::io::{Read, Write};
use std::process::Stdio;

use common::outer::Outer;
use common::{Ran, child, procwright, run};
use rustix::process::Signal;

const READY: &str = "echo ready; exec sleep 1000";

/// A run whose program says that it is there, on a terminal that is raw by then.
fn ready<const N: usize>(words: [&str; N]) -> Outer {
    let mut outer = Outer::run(words);
    outer.wait_for("ready");
    assert!(outer.is_raw());
    outer
}

#[test]
fn the_terminal_is_as_before_after_every_end_of_the_program() {
    for (line, code) in [
        ("exit 0", Some(0)),
        ("exit 3", Some(3)),
        ("kill -KILL $$", Some(128 + 9)),
        ("kill -SEGV $$", Some(128 + 11)),
        ("kill -INT $$", None),
        // Modes of its own terminal, which it leaves as it likes.
        ("stty raw -echo", Some(0)),
    ] {
        let mut outer = Outer::run(["--pty", "sh", "-c", line]);
        assert_eq!(outer.code(), code, "{line}");
        assert!(outer.is_as_before(), "{line}");
    }
    let mut outer = Outer::run(["--pty", "--timeout", "0.1", "sleep", "1000"]);
    assert_eq!(outer.code(), Some(124));
    assert!(outer.is_as_before());
}

#[test]
fn and_if_there_is_no_program() {
    for (words, code) in [
        (["--pty", "/no/such/program"], 127),
        (["--pty", "/dev/null"], 126),
        (["--pty", "--cwd=/no/such/directory"], 125),
    ] {
        let mut command = procwright(words);
        command.arg("true");
        let mut outer = Outer::new(command);
        assert_eq!(outer.code(), Some(code), "{words:?}");
        assert!(outer.is_as_before(), "{words:?}");
        assert!(outer.text.contains("procwright: "), "{:?}", outer.text);
    }
}

#[test]
fn and_after_each_signal_that_ends_procwright() {
    let stops = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];
    let kills = [Signal::KILL, Signal::ABORT, Signal::SEGV];
    for signal in stops.into_iter().chain(kills) {
        let mut outer = ready(["--pty", "sh", "-c", READY]);
        outer.kill(signal);
        // The first only tells Rust's handler that it was no overflow.
        while signal == Signal::SEGV && outer.command.try_wait().unwrap().is_none() {
            outer.kill(signal);
            std::thread::yield_now();
        }
        assert_eq!(outer.signal(), Some(signal.as_raw()), "{signal:?}");
        if stops.contains(&signal) {
            assert!(outer.is_as_before(), "{signal:?}");
        }
        // The guard restores the others in its own time, within the watchdog's.
        while !outer.is_as_before() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn the_guard_holds_the_terminal_alone_and_goes_with_procwright() {
    let mut outer = ready(["--pty", "sh", "-c", READY]);
    let procwright = outer.command.id().cast_signed();
    let guard = the_guard(&outer);
    let links = |pid: i32| -> Vec<_> {
        let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let links = fds.map(|fd| std::fs::read_link(fd.unwrap().path()));
        // One that it has closed since is none.
        links.flatten().collect()
    };
    let stat = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let rest = stat.rsplit_once(") ").unwrap().1.to_owned();
        let fields: Vec<i64> = rest
            .split(' ')
            .skip(1)
            .take(4)
            .map(|n| n.parse().unwrap())
            .collect();
        fields
    };
    // The guard closes inherited descriptors and makes a session of its own in its own
    // time, within the watchdog's.
    while links(guard).len() != 2 || stat(guard)[2] != i64::from(guard) {
        std::thread::yield_now();
    }
    let (theirs, ours) = (stat(guard), stat(procwright));
    assert!(
        theirs[..3].iter().zip(&ours[..3]).all(|(a, b)| a != b),
        "ids"
    );
    assert_eq!(theirs[3], 0, "no terminal controls it");
    outer.kill(Signal::TERM);
    outer.finish();
    assert!(common::is_gone(guard), "and nobody has to reap it");
    // Whatever has become of it.
    let mut outer = ready(["--pty", "sh", "-c", "echo ready; read word; echo got $word"]);
    let guard = the_guard(&outer);
    common::kill(guard, Signal::STOP);
    outer.type_in("this\n");
    assert_eq!(outer.code(), Some(0));
    assert!(outer.is_as_before() && common::is_gone(guard));
    let mut outer = ready(["--pty", "sh", "-c", "echo ready; read word; echo got $word"]);
    common::kill(the_guard(&outer), Signal::KILL);
    outer.type_in("that\n");
    assert_eq!(outer.code(), Some(0));
    assert!(outer.is_as_before());
}

/// The guard is no part of the run, which a stop of the whole tree ends.
#[test]
fn a_timeout_does_not_name_or_end_the_guard() {
    // A busy machine may need longer than that until the program has set its trap.
    let mut timeouts = ["0.3", "3", "30", "300"].iter();
    let mut outer = loop {
        let timeout = timeouts.next().expect("bash is there within minutes");
        let words = ["--pty", "--timeout", timeout, "--grace", "60", "bash", "-c"];
        let mut command = procwright(words);
        command.arg("trap 'echo term' TERM; echo ready; until read word; do :; done");
        let mut outer = Outer::new(command);
        if outer.shows("ready") {
            break outer;
        }
    };
    let guard = the_guard(&outer);
    outer.wait_for("term");
    assert!(!common::is_gone(guard));
    outer.type_in("enough\n");
    assert_eq!(outer.code(), Some(124));
    assert!(!outer.text.contains("procwright-tty"), "{:?}", outer.text);
    assert!(outer.is_as_before());
}

/// The guard, which holds the terminal beside procwright; the program has none of it. A
/// child that another test starts holds it, too, from its fork to its exec: so this
/// looks again, within the watchdog's time.
fn the_guard(outer: &Outer) -> i32 {
    let procwright = outer.command.id().cast_signed();
    loop {
        let mut others = outer.holders();
        others.retain(|pid| *pid != procwright);
        if let [guard] = others[..] {
            return guard;
        }
        std::thread::yield_now();
    }
}

#[test]
fn whoever_has_put_it_right_before_the_guard_wins() {
    let mut outer = ready(["--pty", "sh", "-c", READY]);
    let guard = the_guard(&outer);
    common::kill(guard, Signal::STOP);
    outer.kill(Signal::KILL);
    outer.finish();
    // A shell sets modes that are not quite those before.
    let mut modes = outer.modes();
    assert!(outer.is_raw());
    modes.local_modes |= rustix::termios::LocalModes::ICANON;
    outer.set_modes(&modes);
    common::kill(guard, Signal::CONT);
    common::wait_gone_or_zombie(guard);
    assert!(!outer.is_raw() && !outer.is_as_before());
}

#[test]
fn the_inner_terminal_is_like_the_outer_one_and_follows_its_size() {
    let line = "test -t 0 && test -t 1 && test -t 2 && echo yes; stty -a; stty size; \
                trap 'stty size; exit 7' WINCH; echo ready; while :; do sleep 0.01; done";
    let mut outer = ready(["--pty", "bash", "-c", line]);
    let text = outer.text.clone();
    for part in [
        "yes\r\n",
        "33 77\r\n",
        "erase = ^H",
        "iutf8",
        "ixany",
        " icanon",
        " echo ",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    outer.resize(12, 34);
    assert_eq!(outer.code(), Some(7));
    assert!(outer.text.ends_with("12 34\r\n"), "{:?}", outer.text);
}

#[test]
fn without_any_terminal_it_is_24_by_80() {
    let ran = run(
        ["--pty"],
        &["stty", "-F", "/dev/tty", "size"].map(str::to_owned),
    );
    assert_eq!(
        (ran.stdout.as_str(), ran.code()),
        ("24 80\r\n", Some(0)),
        "{}",
        ran.stderr
    );
}

#[test]
fn or_as_a_spec_says() {
    let mut spec = tempfile::NamedTempFile::new().unwrap();
    spec.write_all(
        br#"{"argv": ["stty", "-F", "/dev/tty", "size"], "pty": {"rows": 5, "columns": 6}}"#,
    )
    .unwrap();
    let ran = Ran::from(procwright(["--spec"]).arg(spec.path()).output().unwrap());
    assert_eq!(ran.stdout, "5 6\r\n", "{}", ran.stderr);
}

#[test]
fn keys_are_the_inner_terminal_s() {
    // Control-C: the program dies by it, and so do we.
    let mut outer = ready(["--pty", "sh", "-c", READY]);
    outer.type_in("\u{3}");
    assert_eq!(outer.signal(), Some(Signal::INT.as_raw()));
    assert!(outer.is_as_before());
    // One that answers goes on.
    let line = "trap 'echo caught' INT; echo ready; read word; read word; echo got $word";
    let mut outer = ready(["--pty", "bash", "-c", line]);
    outer.type_in("\u{3}");
    outer.wait_for("caught");
    outer.type_in("a\nb\n");
    assert_eq!(outer.code(), Some(0));
    assert!(outer.text.contains("got b"), "{:?}", outer.text);
    // Control-\\ and the end of the input.
    let mut outer = ready(["--pty", "sh", "-c", READY]);
    outer.type_in("\u{1c}");
    assert_eq!(outer.code(), Some(128 + 3));
    let mut outer = ready(["--pty", "sh", "-c", "echo ready; cat"]);
    outer.type_in("line\n\u{4}");
    assert_eq!(outer.code(), Some(0));
    assert!(outer.text.ends_with("line\r\nline\r\n"), "{:?}", outer.text);
}

#[test]
fn an_interpreter_can_be_talked_to() {
    let mut outer = Outer::run([
        "--pty",
        "python3",
        "-q",
        "-c",
        "import code; code.interact()",
    ]);
    outer.wait_for(">>> ");
    outer.type_in("print(6 * 7, __import__('sys').stdout.isatty())\n");
    // Typed before it reads, the end would be lost as on any terminal.
    outer.wait_behind("42 True", ">>> ");
    outer.type_in("\u{4}");
    assert_eq!(outer.code(), Some(0));
    assert!(outer.is_as_before());
}

#[test]
fn what_is_typed_afterwards_is_the_next_one_s() {
    let exe = env!("CARGO_BIN_EXE_procwright");
    let mut shell = std::process::Command::new("sh");
    let line = format!("{exe} run --pty true; echo over; read word; echo got $word");
    shell.args(["-c", &line]);
    let mut outer = Outer::new(shell);
    outer.wait_for("over");
    outer.type_in("mine\n");
    outer.finish();
    assert!(outer.text.contains("got mine"), "{:?}", outer.text);
}

#[test]
fn after_a_stop_the_terminal_is_raw_again() {
    let mut outer = ready(["--pty", "sh", "-c", "echo ready; read word; echo got $word"]);
    let raw = outer.modes();
    outer.kill(Signal::STOP);
    // A shell that has its terminal back sets its own modes.
    let mut modes = raw.clone();
    modes.local_modes |= rustix::termios::LocalModes::ICANON;
    outer.set_modes(&modes);
    outer.kill(Signal::CONT);
    while !outer.is_raw() {
        std::thread::yield_now();
    }
    outer.type_in("it\r");
    assert_eq!(outer.code(), Some(0));
    assert!(outer.text.ends_with("got it\r\n"), "{:?}", outer.text);
    assert!(outer.is_as_before());
}

#[test]
fn in_the_background_it_stops_until_it_may_have_the_terminal() {
    let mut shell = std::process::Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "> ");
    let mut outer = Outer::new(shell);
    let exe = env!("CARGO_BIN_EXE_procwright");
    outer.wait_for("> ");
    // The quotes tell the command from what it prints.
    let line = "echo r\"\"eady; read word; echo got $word";
    outer.type_in(&format!("{exe} run --pty sh -c '{line}' &\n"));
    // Told of at the next prompt.
    while !outer.text.contains("Stopped") {
        outer.type_in("\n");
        assert!(outer.read_more(), "{:?}", outer.text);
    }
    outer.type_in("fg\n");
    outer.wait_for("ready");
    outer.type_in("it\r");
    outer.wait_behind("got it", "> ");
    outer.type_in("exit\n");
    outer.finish();
}

#[test]
fn what_is_typed_to_the_shell_is_no_end_of_the_input() {
    let mut shell = std::process::Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "> ");
    let mut outer = Outer::new(shell);
    let exe = env!("CARGO_BIN_EXE_procwright");
    outer.wait_for("> ");
    let line = "echo r\"\"eady $PPID.; read word && echo got $word";
    outer.type_in(&format!("{exe} run --pty sh -c '{line}'\n"));
    outer.wait_for(".\r\n");
    let pid = outer.text.rsplit_once("ready ").unwrap().1;
    let pid = pid.trim().trim_end_matches('.').parse().unwrap();
    common::kill(pid, Signal::STOP);
    outer.wait_for("Stopped");
    // The terminal echoes input that the shell does not read yet.
    outer.type_in("bg; sleep 1\n");
    outer.wait_behind("sleep 1", "' &");
    outer.type_in("fg\n");
    outer.text.clear();
    // The shell echoes the line of the job that `fg` continues.
    outer.wait_for("$word'");
    outer.type_in("it\r");
    outer.wait_behind("got it", "> ");
    outer.type_in("exit\n");
    outer.finish();
}

#[test]
fn a_pipe_on_stdin_is_read_as_it_is() {
    let bytes: Vec<u8> = (0..200_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let mut command = procwright(["--pty", "sh", "-c", "test -t 1 && cksum"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut procwright = command.spawn().unwrap();
    let mut stdin = procwright.stdin.take().unwrap();
    stdin.write_all(&bytes).unwrap();
    drop(stdin);
    let told = procwright.wait_with_output().unwrap();
    let mut plain = std::process::Command::new("cksum");
    let mut plain = plain
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    plain.stdin.take().unwrap().write_all(&bytes).unwrap();
    let expected = String::from_utf8(plain.wait_with_output().unwrap().stdout).unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert_eq!(told, expected.replace('\n', "\r\n"));
}

#[test]
fn every_byte_is_passed_on_as_it_is_shown() {
    let mut text = String::new();
    for i in 0..30_000 {
        text += &format!("{i} \u{1b}[31m{}\u{1b}[0m\n", "x".repeat(i % 60));
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let words = ["cat", file.path().to_str().unwrap()].map(str::to_owned);
    let ran = run(["--pty"], &words);
    assert!(
        ran.stdout == text.replace('\n', "\r\n"),
        "{}",
        ran.stdout.len()
    );
    // A raw terminal adds no second carriage return.
    let mut outer = Outer::run(["--pty", "cat", &words[1]]);
    assert_eq!(outer.code(), Some(0));
    assert!(
        outer.text == text.replace('\n', "\r\n"),
        "{}",
        outer.text.len()
    );
}

#[test]
fn both_streams_are_one_and_limits_see_it() {
    let ran = run(
        ["--pty"],
        &["sh", "-c", "echo a; echo b >&2"].map(str::to_owned),
    );
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("a\r\nb\r\n", "")
    );
    let ran = run(["--pty", "--limit", "1000"], &child(["flood-forever"]));
    assert_eq!(ran.code(), Some(124), "{}", ran.stderr);
    let ran = run(
        ["--pty", "--idle-timeout", "0.1"],
        &child(["sleep-forever"]),
    );
    assert_eq!(ran.code(), Some(124), "{}", ran.stderr);
}

#[test]
fn who_holds_the_terminal_is_told_line_by_line() {
    let line = "trap '' HUP; sleep 1000 & echo early";
    let mut outer = Outer::run(["--pty", "sh", "-c", line]);
    let told = "held open by sleep (pid ";
    outer.wait_behind(told, "\r\n  hint: --until exit");
    // It is held until that has been told.
    let (_, pid) = outer.text.split_once(told).unwrap();
    let (pid, _) = pid.split_once(')').unwrap();
    common::kill(pid.parse().unwrap(), Signal::KILL);
    assert_eq!(outer.code(), Some(0));
    let line = "trap '' HUP; sleep 1.5 & echo early";
    let mut outer = Outer::run(["--pty", "--until", "exit", "sh", "-c", line]);
    assert_eq!(outer.code(), Some(0));
    assert_eq!(outer.text, "early\r\n");
}

#[test]
fn a_reader_that_goes_away_hangs_up_the_terminal() {
    let mut command = procwright([
        "--pty",
        "sh",
        "-c",
        "trap 'exit 9' HUP; while :; do echo y; done",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut procwright = command.spawn().unwrap();
    let mut some = [0; 100];
    procwright
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut some)
        .unwrap();
    let ran = Ran::from(procwright.wait_with_output().unwrap());
    assert_eq!(ran.code(), Some(9), "{}", ran.stderr);
}

#[test]
fn between_two_attempts_the_keys_are_for_procwright() {
    let words = ["--pty", "--retry=3", "--backoff=1000", "sh", "-c", "exit 3"];
    let mut outer = Outer::run(words);
    outer.wait_for("next in");
    outer.type_in("\x03");
    assert_eq!(outer.signal(), Some(Signal::INT.as_raw()));
    assert!(outer.is_as_before());
    // The keys are the program's again in the next attempt.
    let line = "echo tty; read word; test $word = two";
    let words = ["--pty", "--retry=3", "--backoff=0.01", "sh", "-c", line];
    let mut outer = Outer::run(words);
    for word in ["one", "two"] {
        outer.wait_for("tty");
        assert!(outer.is_raw());
        outer.text.clear();
        outer.type_in(&format!("{word}\r"));
    }
    assert_eq!(outer.code(), Some(0));
}
