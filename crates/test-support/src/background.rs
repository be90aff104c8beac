//! A `test-child` in the background, and the line that says it is set up.

use std::process::Stdio;

/// The pids of a line `ready PID…`.
pub fn ready_pids(text: &[u8]) -> Vec<i32> {
    let text = String::from_utf8_lossy(text);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("ready "))
        .unwrap_or_else(|| panic!("no ready line in {text:?}"));
    line.split_whitespace()
        .map(|pid| pid.parse().expect("a pid"))
        .collect()
}

/// The pids of the line `ready PID…` that is read next.
pub fn ready_line(from: &mut impl std::io::Read) -> Vec<i32> {
    use std::io::BufRead;
    let mut line = String::new();
    let mut from = std::io::BufReader::with_capacity(1, from);
    from.read_line(&mut line).expect("a line");
    ready_pids(line.as_bytes())
}

/// A `test-child` in the background that prints `ready …` on stdout; killed on drop.
pub struct Background {
    child: std::process::Child,
    /// Numbers of the line `ready …`.
    pub ready: Vec<i64>,
}

impl Background {
    /// Starts `test-child ARGS`, and waits for its line `ready …`.
    pub fn start(args: &[&str]) -> Background {
        use std::io::BufRead;
        let mut child = std::process::Command::new(test_children::path())
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a helper");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("its stdout");
        std::io::BufReader::new(stdout)
            .read_line(&mut line)
            .expect("a line");
        let ready = line
            .strip_prefix("ready ")
            .unwrap_or_else(|| panic!("{args:?} said {line:?}"))
            .split_whitespace()
            .map(|number| number.parse().expect("a number"))
            .collect();
        Background { child, ready }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
