//! `procwright map --progress`: how many there are, and how long the rest takes.

mod common;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use common::seen::Seen;
use common::subcommand;
use rustix::fs::{CWD, Mode, mkfifoat};
use test_support::watchdog;

/// FIFOs; a command that reads one ends when [`end`] is called.
fn fifos(dir: &Path) -> [PathBuf; 3] {
    let fifos = ["a", "b", "c"].map(|name| dir.join(name));
    for fifo in &fifos {
        mkfifoat(CWD, fifo, Mode::RUSR | Mode::WUSR).unwrap();
    }
    fifos
}

fn end(fifo: &Path) {
    drop(File::options().write(true).open(fifo).unwrap());
}

fn lines(fifos: &[PathBuf]) -> String {
    fifos
        .iter()
        .map(|fifo| format!("{}\n", fifo.display()))
        .collect()
}

/// Sees the total from the first command on, and what is left once one has ended.
fn sees_the_total(mut seen: Seen, fifos: &[PathBuf; 3]) {
    assert!(seen.until("0 of 3 done, 1 running, "), "{:?}", seen.text);
    assert!(!seen.text.contains(" left"), "{:?}", seen.text);
    end(&fifos[0]);
    assert!(seen.until("1 of 3 done, 1 running, "), "{:?}", seen.text);
    assert!(seen.until("s left"), "{:?}", seen.text);
    end(&fifos[1]);
    end(&fifos[2]);
    assert_eq!(seen.end(), (Some(0), None));
    assert_eq!(seen.screen(), [""]);
}

#[test]
fn items_on_the_command_line() {
    let _watchdog = watchdog("items_on_the_command_line");
    let dir = tempfile::tempdir().unwrap();
    let fifos = fifos(dir.path());
    for flag in ["--progress", "--bar", "--eta"] {
        let mut command = subcommand("map");
        command.args(["-j1", flag, "cat", ":::"]).args(&fifos);
        sees_the_total(Seen::out(command, 80), &fifos);
    }
}

#[test]
fn lines_of_a_file() {
    let _watchdog = watchdog("lines_of_a_file");
    let dir = tempfile::tempdir().unwrap();
    let fifos = fifos(dir.path());
    let list = dir.path().join("list");
    fs::write(&list, format!("\n{}\n", lines(&fifos))).unwrap();
    let mut command = subcommand("map");
    command
        .args(["-j1", "--progress", "cat", "::::"])
        .arg(&list);
    sees_the_total(Seen::out(command, 80), &fifos);
    let mut command = subcommand("map");
    command.args(["-j1", "--progress", "cat"]);
    command.stdin(File::open(&list).unwrap());
    sees_the_total(Seen::out(command, 80), &fifos);
}

#[test]
fn lines_of_a_pipe_are_known_at_its_end() {
    let _watchdog = watchdog("lines_of_a_pipe_are_known_at_its_end");
    let dir = tempfile::tempdir().unwrap();
    let fifos = fifos(dir.path());
    let (read, mut write) = std::io::pipe().unwrap();
    let mut command = subcommand("map");
    command.args(["-j2", "--progress", "cat"]).stdin(read);
    let mut seen = Seen::out(command, 80);
    write.write_all(lines(&fifos[..1]).as_bytes()).unwrap();
    assert!(seen.until("0 done, 1 running, "), "{:?}", seen.text);
    assert!(!seen.text.contains(" of "), "{:?}", seen.text);
    drop(write);
    assert!(seen.until("0 of 1 done, 1 running, "), "{:?}", seen.text);
    end(&fifos[0]);
    assert_eq!(seen.end(), (Some(0), None));
}
