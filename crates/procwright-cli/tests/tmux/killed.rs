//! The terminal after a signal has ended us, or the program, while it was raw.

use rustix::process::Signal;

use crate::common;
use crate::session::{Session, is_installed};

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

/// Has vim under these words ended by a signal to whom `target` picks; the modes
/// before and after.
fn modes(words: &str, signal: Signal, target: fn(&Session) -> i32) -> [String; 2] {
    let mut session = Session::new(words, &[]);
    session.line("$W vim --clean a.txt");
    session.until("vim", |screen| screen.shows("\"a.txt\" [New]"));
    // What vim leaves on the screen, or still draws when it is on its own, may
    // hide the prompt.
    let before = session.prompts();
    common::kill(target(&session), signal);
    session.until_prompts(before + 1);
    session.line("stty -g >after");
    session.until_prompts(before + 2);
    ["before", "after"].map(|name| session.file(name))
}

fn each(test: &str, options: &str, target: fn(&Session) -> i32) {
    if !["tmux", "bash", "vim"].into_iter().all(is_installed) {
        return common::skip(test, "there is no tmux, bash or vim");
    }
    let procwright = env!("CARGO_BIN_EXE_procwright");
    let mut faults = Vec::new();
    for signal in SIGNALS {
        for words in [String::new(), format!("{procwright} run {options}")] {
            let [before, after] = modes(&words, signal, target);
            assert!(before.contains(':'), "{before:?}");
            if before != after {
                faults.push(format!("{signal:?}, {words:?}:\n  {before}  {after}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn we_are_ended() {
    each("we_are_ended", "--", Session::job);
}

#[test]
fn the_program_is_ended() {
    each("the_program_is_ended", "--", Session::program);
}

#[test]
fn we_are_ended_with_a_pty() {
    each("we_are_ended_with_a_pty", "--pty --", Session::job);
}

#[test]
fn the_program_is_ended_on_a_pty() {
    each(
        "the_program_is_ended_on_a_pty",
        "--pty --",
        Session::program,
    );
}
