//! The terminal: whose it is, and what is left of its modes.

#![allow(clippy::disallowed_methods)] // Tests may sleep.

mod common;

use std::io::{BufRead, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use common::bash::{Bash, await_state, child_of};
use common::{assert_gone, child, is_gone, kill, procwright, skip, wait_gone};
use rustix::process::Signal;

/// Program in the group of the command, and in one of its own.
const SCOPES: [&str; 2] = ["", "--scope group"];

/// A shell that never takes the terminal back: it finds what procwright has left.
fn plain_shell(line: &str) -> (std::fs::File, std::process::Child) {
    let (master, slave) = common::terminal();
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command.env("run", format!("{} run", env!("CARGO_BIN_EXE_procwright")));
    command.env("child", test_children::path());
    command.stdin(slave).stdout(Stdio::piped());
    // SAFETY: both are plain system calls.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin().as_fd())?;
            Ok(())
        });
    }
    common::watchdog();
    (master, command.spawn().unwrap())
}

#[test]
fn the_terminal_is_taken_back_however_it_ends() {
    for run in [
        "$run --scope group $child echo done",
        "$run --scope group no-such-program",
        "$run --scope group --cwd /no/such/directory true",
        "$run --scope group $child signal-self 9",
        "$run --scope group --timeout 50ms $child sleep-forever",
        // The program is gone; what it has left has its group.
        "$run --scope group --until exit $child fork-holder 500",
        "$run --scope group --until eof $child fork-holder 100",
    ] {
        // The read would fail in the background, as the group is orphaned.
        let line = format!("{run} >&2; read word && echo \"got $word\"");
        let (mut master, shell) = plain_shell(&line);
        master.write_all(b"word\n").unwrap();
        let output = shell.wait_with_output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "got word\n",
            "{run}"
        );
    }
}

#[test]
fn a_program_with_a_group_of_its_own_reads_the_terminal() {
    let (mut master, shell) = plain_shell("$run --scope group $child cat");
    master.write_all(b"typed\n\x04").unwrap();
    let output = shell.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "typed\n");
}

#[test]
fn a_stop_that_the_kernel_would_discard_stops_nobody() {
    // A stopped group would stay so: the shell is the first of its session.
    for scope in SCOPES {
        let line = format!("exec $run {scope} $child sleep-forever --print-ready");
        let (mut master, mut shell) = plain_shell(&line);
        let mut stdout = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut stdout, &mut String::new()).unwrap();
        master.write_all(b"\x1a\x03").unwrap();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(shell.wait().unwrap().signal(), Some(2));
    }
}

#[test]
fn a_stop_that_cannot_be_discarded_does_not_leave_us_stopped() {
    // SIGSTOP stops the program alone: no shell could continue procwright.
    for options in ["", "--scope group", "--pty"] {
        let line = format!("exec $run {options} $child sleep-forever --print-ready 2>&1");
        let (_master, mut shell) = plain_shell(&line);
        let mut lines = std::io::BufReader::new(shell.stdout.take().unwrap()).lines();
        let ready = lines.next().unwrap().unwrap();
        let pid = ready
            .strip_prefix("ready ")
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        kill(pid, Signal::STOP);
        let said = lines.next().unwrap().unwrap();
        assert!(said.contains("was stopped by SIGSTOP"), "{options}: {said}");
        kill(shell.id().cast_signed(), Signal::TERM);
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(shell.wait().unwrap().signal(), Some(15));
    }
}

#[test]
fn what_comes_before_the_start_means_us() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let line = format!("exec $run --stdin {} $child sleep-forever", fifo.display());
    let (mut master, mut shell) = plain_shell(&line);
    let ours = shell.id().cast_signed();
    // The shell has become the command, which waits for the other end of the pipe.
    let waits_in = || std::fs::read_to_string(format!("/proc/{ours}/wchan")).unwrap();
    while !["wait_for_partner", "fifo_open"]
        .iter()
        .any(|name| waits_in().contains(name))
    {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    master.write_all(b"\x03").unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(shell.wait().unwrap().signal(), Some(2));
}

#[test]
fn what_comes_after_the_end_means_us() {
    let mut bash = Bash::start();
    bash.line("$run --until eof $child fork-holder 0");
    bash.until("held open by");
    bash.until("--until exit");
    bash.press(b"\x03");
    bash.prompt();
    assert_eq!(bash.run("echo code $?"), "code 130\r\n");
}

#[test]
fn a_program_that_ends_by_itself_keeps_what_it_set() {
    for scope in SCOPES {
        let mut bash = Bash::start();
        bash.run(&format!("$run {scope} stty -echo"));
        bash.line("stty -a");
        assert!(bash.prompt().contains(" -echo "), "{:?}", bash.text);
    }
}

/// Output of `stty -g`, with the modes that bash sets for its jobs.
fn modes(bash: &mut Bash) -> String {
    let path = bash.directory.path().join("modes");
    bash.run(&format!("stty -g > {}", path.display()));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn modes_are_restored_after_a_kill() {
    for scope in SCOPES {
        for by_us in [false, true] {
            let mut bash = Bash::start();
            let before = modes(&mut bash);
            bash.line(&format!(
                "$run {scope} sh -c 'stty raw -echo; exec $child sleep-forever --print-ready'"
            ));
            let pid = bash.ready()[0];
            // The shell itself restores the modes of a job that dies by a signal.
            match by_us {
                true => kill(bash.job(), Signal::TERM),
                false => kill(pid, Signal::KILL),
            }
            bash.prompt();
            assert_gone(&[pid]);
            assert_eq!(modes(&mut bash), before);
        }
    }
}

#[test]
fn a_limit_restores_them_too() {
    let (master, mut shell) = plain_shell(
        "$run --timeout 200ms sh -c 'stty raw -echo; exec $child sleep-forever'; stty -a",
    );
    let mut said = String::new();
    std::io::Read::read_to_string(&mut shell.stdout.take().unwrap(), &mut said).unwrap();
    assert!(
        said.contains(" icanon") && said.contains(" echo "),
        "{said}"
    );
    shell.wait().unwrap();
    drop(master);
}

#[test]
fn vim_and_less_are_killed_without_a_trace() {
    for (program, words, shown, again) in [
        ("vim", "-u NONE -N", "VIM - Vi IMproved", "~"),
        // The prompt of less is in reverse video at first, a colon later.
        ("less", "-X text", "\x1b[7m", "\r\n:"),
    ] {
        if Command::new(program).arg("--version").output().is_err() {
            skip("vim_and_less_are_killed_without_a_trace", program);
            continue;
        }
        for scope in SCOPES {
            let mut bash = Bash::start();
            let before = modes(&mut bash);
            let directory = bash.directory.path().to_owned();
            std::fs::write(directory.join("text"), "a line\n".repeat(100)).unwrap();
            bash.run(&format!("cd {}", directory.display()));
            bash.line(&format!("$run {scope} {program} {words}"));
            bash.until(shown);
            // A signal that comes before it waits for a key is lost to less.
            await_state(child_of(bash.job()), &['S']);
            // A round trip first: it draws itself anew.
            bash.press(b"\x1a");
            bash.until("Stopped");
            bash.prompt();
            assert_eq!(modes(&mut bash), before);
            bash.fg(words);
            bash.until(again);
            let pid = child_of(bash.job());
            kill(pid, Signal::KILL);
            bash.prompt();
            assert!(is_gone(pid));
            assert_eq!(modes(&mut bash), before, "{program} {scope}");
        }
    }
}

#[test]
fn a_make_leaves_no_recipe() {
    if Command::new("make").arg("--version").output().is_err() {
        return skip("a_make_leaves_no_recipe", "no make");
    }
    for scope in SCOPES {
        for by_key in [true, false] {
            let mut bash = Bash::start();
            let directory = bash.directory.path().to_owned();
            let recipes =
                "all: 1 2 3 4 5 6 7 8\n%:\n\t@sh -c '$$child sleep-forever --print-ready'\n";
            std::fs::write(directory.join("Makefile"), recipes).unwrap();
            bash.line(&format!("$run {scope} make -j8 -C {}", directory.display()));
            let recipes: Vec<i32> = (0..8).flat_map(|_| bash.ready()).collect();
            match by_key {
                true => bash.press(b"\x03"),
                false => kill(bash.job(), Signal::TERM),
            }
            bash.prompt();
            assert_gone(&recipes);
        }
    }
}

#[test]
fn without_a_terminal() {
    // Cron gives a session of its own, nothing to read, and ignores SIGHUP.
    for scope in ["process", "group", "tree"] {
        let mut command = procwright(["--scope", scope, "--"]);
        command.args(child(["echo", "hello"]));
        // SAFETY: both are plain system calls.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                libc::signal(libc::SIGHUP, libc::SIG_IGN);
                Ok(())
            });
        }
        let output = command.output().unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, b"hello\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn a_job_outlives_its_terminal_under_nohup() {
    let mut bash = Bash::start();
    let directory = bash.directory.path().to_owned();
    bash.run(&format!("cd {}", directory.display()));
    bash.line("nohup $run $child sleep-forever --print-ready --pidfile pid > out &");
    let pid = loop {
        let text = std::fs::read_to_string(directory.join("pid"));
        if let Ok(Ok(pid)) = text.map(|text| text.trim().parse::<i32>()) {
            break pid;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let ours = bash.job();
    bash.line("exit");
    bash.end();
    await_state(pid, &['S']);
    kill(ours, Signal::HUP);
    await_state(ours, &['S']);
    kill(ours, Signal::TERM);
    wait_gone(pid);
}
