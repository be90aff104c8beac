//! Tests that run in a process of their own.

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::{say, scaled, sys};

const ALONE: &str = "PROCWRIGHT_TEST_ALONE";

/// Runs a test in a process of its own, a copy of the test executable: for tests that
/// count what their process has, or change it for good. Returns the copy's output in
/// the outer process, and none in the copy itself.
pub fn alone(test: &'static str, body: impl FnOnce()) -> Option<Said> {
    if std::env::var_os(ALONE).is_some_and(|name| name == test) {
        sys::alarm(scaled(120, 600) as u32);
        body();
        return None;
    }
    let mut copy = copy_of_test(test);
    copy.stdin(Stdio::null());
    let output = copy.output().expect("a copy of the test executable");
    let said = Said {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert!(
        output.status.success(),
        "{test}: {}\n{}{}",
        output.status,
        said.stdout,
        said.stderr
    );
    // No test has run: the name alone does not find a test in a module of a file.
    assert!(said.stdout.contains("1 passed"), "{test}: {}", said.stdout);
    for line in said
        .stderr
        .lines()
        .filter(|line| line.starts_with("FIGURE") || line.starts_with("SKIPPED"))
    {
        say(line);
    }
    Some(said)
}

/// The output of a copy.
pub struct Said {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The command that runs one test in a copy of this executable.
pub fn copy_of_test(test: &str) -> std::process::Command {
    let mut copy = std::process::Command::new(std::env::current_exe().expect("our own path"));
    copy.args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, test);
    // The copy leads a process group: what a test does to groups stays there.
    copy.process_group(0);
    copy
}

/// Defines a test that runs in a process of its own, see [`alone()`](fn@crate::alone).
#[macro_export]
macro_rules! alone {
    ($(#[$meta:meta])* fn $name:ident() $body:block) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            $crate::alone(stringify!($name), || $body);
        }
    };
}
