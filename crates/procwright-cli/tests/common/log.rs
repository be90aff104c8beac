//! Logs, and runs that write them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use super::{Ran, child, procwright};

/// A directory for logs.
pub struct Place(pub tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub fn log(&self) -> PathBuf {
        self.0.path().join("log")
    }

    /// The log, or an old one.
    pub fn read(&self, n: u32) -> String {
        let name = if n == 0 {
            "log".into()
        } else {
            format!("log.{n}")
        };
        fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
    }

    /// A run with a log here.
    pub fn command(&self, options: &[&str], words: &[&str]) -> Command {
        logged(&self.log(), options, words)
    }

    pub fn run(&self, options: &[&str], words: &[&str]) -> Ran {
        self.command(options, words).output().unwrap().into()
    }
}

pub fn logged(path: &Path, options: &[&str], words: &[&str]) -> Command {
    let mut command = procwright(options);
    command.arg("--log").arg(path).arg("--");
    command.args(child(["says"])).args(words);
    command
}

/// A run that speaks each word only when it is told to.
pub struct Talk {
    pub procwright: Child,
    stderr: BufReader<ChildStderr>,
}

impl Talk {
    pub fn new(mut command: Command) -> Talk {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut procwright = command.spawn().unwrap();
        let stderr = BufReader::new(procwright.stderr.take().unwrap());
        Talk { procwright, stderr }
    }

    pub fn go_on(&mut self) {
        self.procwright
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"\n")
            .unwrap();
    }

    /// The next line of stderr, the program's or ours.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    pub fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.procwright.wait().unwrap().code(), rest)
    }
}

/// The lines of a log with times: stream and text. Each begins with a time, and
/// no time is before the one above it.
pub fn timed(log: &str) -> Vec<(String, String)> {
    let mut latest = String::new();
    let lines = log.lines().map(|line| {
        let (time, rest) = line.split_once(' ').unwrap();
        let (stream, text) = rest.split_once(' ').unwrap();
        // 2026-01-02T03:04:05.678+01:00
        let shape: String = time
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        let shape = shape.replace('-', "+");
        assert_eq!(shape, "0000+00+00T00:00:00.000+00:00", "{line:?}");
        assert!(time >= latest.as_str(), "{log}");
        time.clone_into(&mut latest);
        (stream.to_owned(), text.to_owned())
    });
    lines.collect()
}

pub fn pair(stream: &str, text: &str) -> (String, String) {
    (stream.into(), text.into())
}
