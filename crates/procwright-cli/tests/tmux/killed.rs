//! The terminal after a signal has ended us, or the program, while it was raw.

use rustix::process::{Pid, Signal, kill_process_group};

use crate::common;
use crate::session::{Session, is_installed};

/// A program that makes the terminal raw: its line, what it shows first, and the
/// signals that it answers and that do not end it.
struct Program {
    line: &'static str,
    shows: &'static str,
    answers: &'static [Signal],
}

const SIGNALS: [Signal; 8] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::KILL,
    Signal::USR1,
    Signal::ABORT,
    Signal::SEGV,
];

const PROGRAMS: [Program; 3] = [
    Program {
        line: "$W vim --clean a.txt",
        shows: "\"a.txt\" [New]",
        answers: &[Signal::INT, Signal::USR1],
    },
    Program {
        line: "$W sh -c 'ulimit -c 0; stty raw -echo; echo on; exec sleep 1000'",
        shows: "on",
        answers: &[],
    },
    // This shell has a process group of its own, which has the terminal. A signal that
    // comes right before it waits for a key is answered at the next one.
    Program {
        line: "$W env PS1='on> ' bash --norc -i",
        shows: "on>",
        answers: &[
            Signal::HUP,
            Signal::INT,
            Signal::QUIT,
            Signal::TERM,
            Signal::USR1,
            Signal::ABORT,
            Signal::SEGV,
        ],
    },
];

/// The process that gets the signal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    /// Process that the shell started: procwright, or the bare program.
    Job,
    Program,
}

/// The modes before the program was started, and after the signal.
fn modes(words: &str, program: &Program, signal: Signal, whom: Whom) -> [String; 2] {
    let mut session = Session::new(words, &[]);
    session.line(program.line);
    session.until(program.shows, |screen| screen.shows(program.shows));
    // The prompt may be hidden by what vim leaves on the screen, or still draws when
    // it is on its own.
    let before = session.prompts();
    let target = match whom {
        Whom::Job => session.job(),
        Whom::Program => session.program(),
    };
    match whom {
        // A shell signals the whole group. SIGUSR1 is the program's to answer.
        Whom::Job if signal == Signal::USR1 => {
            kill_process_group(Pid::from_raw(target).unwrap(), signal).unwrap();
        }
        _ => common::kill(target, signal),
    }
    if signal == Signal::SEGV && whom == Whom::Job && !words.is_empty() {
        // Rust's runtime takes the first for a fault that comes again, and has
        // no handler from then on.
        while catches_faults(target) {
            std::thread::yield_now();
        }
        common::kill(target, signal);
    }
    let line = program.line.replace("$W", words);
    session.until_prompts(&format!("{line} to end by {signal:?}"), before + 1);
    // C-u erases answers of the terminal to vim that vim has not read.
    session.press("C-u");
    session.line("stty -g >after");
    session.until_prompts("stty", before + 2);
    ["before", "after"].map(|name| session.file(name))
}

/// Returns whether a process has a handler for SIGSEGV.
fn catches_faults(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 1 << (Signal::SEGV.as_raw() - 1) != 0)
}

fn each(test: &str, options: &str, whom: Whom) {
    if !["tmux", "bash", "vim"].into_iter().all(is_installed) {
        return common::skip(test, "there is no tmux, bash or vim");
    }
    let procwright = env!("CARGO_BIN_EXE_procwright");
    let mut faults = Vec::new();
    for (program, signal) in PROGRAMS.iter().flat_map(|p| SIGNALS.map(|s| (p, s))) {
        for words in [String::new(), format!("{procwright} run {options}")] {
            // A program can only answer a signal that it gets.
            let to_program = words.is_empty() || whom == Whom::Program || signal == Signal::USR1;
            if to_program && program.answers.contains(&signal) {
                continue;
            }
            let [before, mut after] = modes(&words, program, signal, whom);
            assert!(before.contains(':'), "{before:?}");
            // Nobody keeps the shell from its prompt until the watchdog, another process, has
            // restored the modes: on a busy machine the shell can be first.
            for _ in 0..4 {
                if before != after {
                    [_, after] = modes(&words, program, signal, whom);
                }
            }
            if before != after {
                let line = program.line.replace("$W", &words);
                faults.push(format!("{signal:?}, {line}:\n  {before}  {after}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn we_are_ended() {
    each("we_are_ended", "--", Whom::Job);
}

#[test]
fn the_program_is_ended() {
    each("the_program_is_ended", "--", Whom::Program);
}

#[test]
fn we_are_ended_beside_a_group() {
    each("we_are_ended_beside_a_group", "--scope group --", Whom::Job);
}

#[test]
fn the_program_is_ended_in_a_group() {
    each(
        "the_program_is_ended_in_a_group",
        "--scope group --",
        Whom::Program,
    );
}

#[test]
fn we_are_ended_with_a_pty() {
    each("we_are_ended_with_a_pty", "--pty --", Whom::Job);
}

#[test]
fn the_program_is_ended_on_a_pty() {
    each("the_program_is_ended_on_a_pty", "--pty --", Whom::Program);
}
