//! A shell in a tmux of its own, and what stands on its screen.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

/// A wait fails after this time; nothing else looks at the clock.
const WATCHDOG: Duration = Duration::from_secs(600);

pub(crate) const COLUMNS: u16 = 80;
const LINES: u16 = 24;

/// Options of a fresh server. A status line would take a line and show the time.
const SERVER: &str = "\
set -g default-terminal screen
set -g status off
set -s escape-time 0
set -g history-limit 2000
";

/// The shell says with each prompt which one it is, so it is known when a new one
/// is there; and `--` when it has taken a line, after which the terminal is in
/// the modes that programs find.
const SHELL: &str = "\
PS1='READY \\#> '
PS2='more> '
PS0='--\n'
PROMPT_COMMAND='echo >>.prompts'
unset HISTFILE
stty -g >before
";

/// A shell on a terminal. A drop ends it, with the server.
pub(crate) struct Session {
    /// Directory of the shell, with a home and files of its own.
    pub(crate) dir: tempfile::TempDir,
    /// Output of the pane as it comes, which wakes up the waits.
    output: File,
    /// The number of the last prompt that was awaited.
    prompt: u32,
}

/// Text of the screen without colours, and the cursor.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) lines: Vec<String>,
    cursor: usize,
}

impl Screen {
    pub(crate) fn has(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }

    /// Returns whether a line begins so. Typed text stands behind a prompt.
    pub(crate) fn shows(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.starts_with(text))
    }

    /// The line with the cursor.
    pub(crate) fn line(&self) -> &str {
        self.lines.get(self.cursor).map_or("", |line| line.trim())
    }

    /// The number of the prompt, if the shell waits for a line and has none.
    fn prompt(&self) -> Option<u32> {
        // Output without a newline at its end stands before the prompt.
        let line = self.line();
        let number = line.get(line.rfind("READY ")? + 6..)?.strip_suffix('>')?;
        number.parse().ok()
    }
}

impl Session {
    /// A shell in which `$W` is what goes before a command.
    pub(crate) fn new(before: &str, files: &[(&str, &str)]) -> Session {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write(".tmux", SERVER);
        write(".shell", &format!("{SHELL}W='{before}'\n"));
        for (name, text) in files {
            write(name, text);
        }
        let fifo = dir.path().join(".output");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let output = rustix::fs::open(&fifo, flags, Mode::empty()).unwrap();
        let mut session = Session {
            dir,
            output: output.into(),
            prompt: 0,
        };
        let (columns, lines) = (COLUMNS.to_string(), LINES.to_string());
        session.tmux(&[
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &lines,
            "exec bash --noprofile --rcfile .shell -i",
        ]);
        let copy = format!("exec cat >'{}'", fifo.display());
        session.tmux(&["pipe-pane", "-O", &copy]);
        session.await_prompt("the first prompt");
        session
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn socket(&self) -> PathBuf {
        self.path().join(".socket")
    }

    /// Output of a client of the server.
    fn try_tmux(&self, words: &[&str]) -> std::process::Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.socket());
        command.arg("-f").arg(self.path().join(".tmux"));
        command.args(words).current_dir(self.path());
        command.env_clear().env("HOME", self.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let plain = [("LANG", "C.UTF-8"), ("TZ", "UTC"), ("SHELL", "/bin/bash")];
        command.envs(plain).stdin(Stdio::null());
        command.output().unwrap()
    }

    fn tmux(&self, words: &[&str]) -> String {
        let done = self.try_tmux(words);
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "tmux {words:?}: {stderr}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Presses keys, by their names in tmux: `C-z`, `Escape`, `Enter`.
    pub(crate) fn press(&self, keys: &str) {
        let mut words = vec!["send-keys"];
        words.extend(keys.split(' '));
        self.tmux(&words);
    }

    /// Types this text.
    pub(crate) fn text(&self, text: &str) {
        // A semicolon at the end of a word would end tmux's own command.
        match text.strip_suffix(';') {
            Some(rest) => self.tmux(&["send-keys", "-l", "--", &format!("{rest}\\;")]),
            None => self.tmux(&["send-keys", "-l", "--", text]),
        };
    }

    /// Types a line and ends it.
    pub(crate) fn line(&self, text: &str) {
        self.text(text);
        self.press("Enter");
    }

    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let (columns, lines) = (columns.to_string(), lines.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &lines]);
    }

    pub(crate) fn screen(&self) -> Screen {
        let cursor = ["display-message", "-p", "#{cursor_y}", ";"];
        let shown = self.tmux(&[&cursor[..], &["capture-pane", "-p"]].concat());
        let mut lines = shown.lines().map(str::to_owned);
        let cursor = lines.next().unwrap_or_default();
        Screen {
            cursor: cursor.parse().expect("a line's number"),
            lines: lines.collect(),
        }
    }

    /// Scrollback and screen, with colours.
    pub(crate) fn picture(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e", "-S", "-"])
    }

    /// Waits until the screen is as wanted. What changes the screen comes through
    /// the pipe as well, and after tmux has drawn it.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&Screen) -> bool) -> Screen {
        let deadline = Instant::now() + WATCHDOG;
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            assert!(
                self.await_output(deadline),
                "waited in vain for {what}; the screen:\n{}",
                screen.lines.join("\n").trim_end()
            );
        }
    }

    /// Waits until the cursor's line is this, and who has asked sleeps until there is
    /// an answer. A program may forget a signal that comes between its question and
    /// its read, as less does with a Ctrl-Z, until the next key.
    #[track_caller]
    pub(crate) fn until_asked(&mut self, what: &str, line: &str) {
        self.until(what, |screen| screen.line() == line);
        self.until_asleep(what);
    }

    /// Waits until all that is in the foreground sleeps. Python's handlers of signals run
    /// between two instructions of it, or when a call was interrupted: not if the signal
    /// comes right before the call, until the next.
    #[track_caller]
    pub(crate) fn until_asleep(&self, what: &str) {
        let shell = self.shell();
        let deadline = Instant::now() + WATCHDOG;
        while !foreground(shell).iter().all(|one| one.state == "S") {
            assert!(Instant::now() < deadline, "{what}: it does not wait");
            std::thread::yield_now();
        }
    }

    /// Waits until the shell asks for another command.
    #[track_caller]
    pub(crate) fn await_prompt(&mut self, what: &str) {
        let last = self.prompt;
        let screen = self.until(what, |screen| {
            screen.prompt().is_some_and(|number| number != last)
        });
        self.prompt = screen.prompt().unwrap_or_default();
    }

    /// Number of prompts so far, on the screen or not.
    pub(crate) fn prompts(&self) -> usize {
        self.file(".prompts").len()
    }

    /// Waits for that many. A prompt is counted before it is shown.
    #[track_caller]
    pub(crate) fn until_prompts(&mut self, what: &str, count: usize) {
        let counter = self.path().join(".prompts");
        let written = || std::fs::metadata(&counter).is_ok_and(|file| file.len() >= count as u64);
        self.until(what, |_| written());
    }

    /// False when it is too late, or nothing can come any more.
    fn await_output(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = rustix::time::Timespec::try_from(left).unwrap();
        let mut fds = [PollFd::new(&self.output, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
        let mut some = false;
        let mut buffer = [0; 4096];
        loop {
            match self.output.read(&mut buffer) {
                Ok(0) => return some,
                Ok(_) => some = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("the pane's output: {error}"),
            }
        }
    }

    fn shell(&self) -> i32 {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        shell.trim().parse().expect("a pid")
    }

    /// The process that the shell has started last.
    pub(crate) fn job(&self) -> i32 {
        child_of(self.shell()).expect("the shell has started something")
    }

    /// The last one that it has started, and so on.
    pub(crate) fn program(&self) -> i32 {
        let mut program = self.job();
        while let Some(child) = child_of(program) {
            program = child;
        }
        program
    }

    /// Content of a file beside the shell.
    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The shell's children that outlive it get SIGHUP, and those in a group
        // that it does not know of are found by where they are.
        let _ = self.try_tmux(&["kill-server"]);
        for pid in pids() {
            let at = std::fs::read_link(format!("/proc/{pid}/cwd"));
            if at.is_ok_and(|at| at.starts_with(self.path())) {
                let pid = rustix::process::Pid::from_raw(pid).unwrap();
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}

fn pids() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

/// Fields of `/proc/PID/stat`.
struct Stat {
    pid: i32,
    state: String,
    parent: i32,
    group: i32,
    /// The one in the foreground of its terminal.
    foreground: i32,
    began: u64,
}

impl Stat {
    fn of(pid: i32) -> Option<Stat> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        Some(Stat {
            pid,
            state: (*fields.first()?).to_owned(),
            parent: number(1)?,
            group: number(2)?,
            foreground: number(5)?,
            began: fields.get(19)?.parse().ok()?,
        })
    }
}

/// Youngest child of a process.
fn child_of(parent: i32) -> Option<i32> {
    let all = pids().into_iter().filter_map(Stat::of);
    let children = all.filter(|one| one.parent == parent);
    children
        .max_by_key(|one| (one.began, one.pid))
        .map(|one| one.pid)
}

/// A process and its descendants, as far as they may read from their terminal.
fn foreground(ancestor: i32) -> Vec<Stat> {
    let mut all: Vec<Stat> = pids().into_iter().filter_map(Stat::of).collect();
    let mut family = vec![ancestor];
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        let children = all.iter().filter(|one| one.parent == parent);
        family.extend(children.map(|one| one.pid));
        next += 1;
    }
    all.retain(|one| family.contains(&one.pid) && one.group == one.foreground);
    all
}

/// Returns whether a program of this name can be found.
pub(crate) fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}
