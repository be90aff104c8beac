//! Tests that run in a process of their own.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::watchdog::patience;
use crate::{say, sys};

const ALONE: &str = "PROCWRIGHT_TEST_ALONE";

/// Runs a test in a process of its own, a copy of the test executable: for tests that
/// count what their process has, or change it for good. Returns the copy's output in
/// the outer process, and none in the copy itself.
pub fn alone(test: &'static str, body: impl FnOnce()) -> Option<Said> {
    if std::env::var_os(ALONE).is_some_and(|name| name == test) {
        sys::alarm(patience().as_secs() as u32);
        body();
        return None;
    }
    let mut copy = copy_of_test(test);
    copy.stdin(Stdio::null());
    // Files, not pipes: a copy that its alarm ends leaves children behind, which would
    // hold a pipe open for ever.
    let [mut stdout, mut stderr] =
        std::array::from_fn(|_| tempfile::tempfile().expect("a file for what a copy says"));
    copy.stdout(stdout.try_clone().expect("a descriptor"));
    copy.stderr(stderr.try_clone().expect("a descriptor"));
    let status = copy.status().expect("a copy of the test executable");
    let said = Said {
        stdout: text_of(&mut stdout),
        stderr: text_of(&mut stderr),
    };
    assert!(
        status.success(),
        "{test}: {status}\n{}{}",
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

fn text_of(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut bytes))
        .expect("what a copy said");
    String::from_utf8_lossy(&bytes).into_owned()
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
