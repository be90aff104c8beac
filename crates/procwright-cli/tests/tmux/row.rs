//! A row of the table: what is pressed and awaited, and what may differ.

use std::fmt::Write as _;

use rustix::process::Signal;

use crate::common;
use crate::session::{Session, is_installed};

/// One thing after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A line for the shell or the program, with Enter.
    Line(&'static str),
    /// Text without Enter.
    Text(&'static str),
    /// Keys by their names in tmux, with spaces between.
    Keys(&'static str),
    /// Waits until a line of the screen begins so.
    Shows(&'static str),
    /// Waits until the text is somewhere on the screen.
    Has(&'static str),
    /// Waits until the text is not on the screen any more.
    Gone(&'static str),
    /// Waits until the line with the cursor is this, and the program waits for input.
    Cursor(&'static str),
    /// Types this line at a prompt that is there: a prompt that comes next is another one.
    Answer(&'static str, &'static str),
    /// Waits until the foreground processes sleep.
    Asleep,
    /// Waits until the shell asks for another command.
    Prompt,
    /// Compares the present screen as well.
    Look,
    /// The terminal gets this many columns and lines.
    Resize(u16, u16),
    /// Sends a signal to the last descendant.
    KillProgram(Signal),
}

/// How a program is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Bare,
    Run,
    /// The program has a process group of its own, which gets the terminal.
    Group,
    /// The program has a terminal of its own.
    Pty,
}

impl Way {
    /// Words in front of the program.
    fn words(self) -> String {
        let procwright = env!("CARGO_BIN_EXE_procwright");
        match self {
            Way::Bare => String::new(),
            Way::Run => format!("{procwright} run --"),
            Way::Group => format!("{procwright} run --scope group --"),
            Way::Pty => format!("{procwright} run --pty --"),
        }
    }
}

/// A program, its use, and what is allowed to differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Programs besides tmux and a shell.
    pub(crate) needs: &'static [&'static str],
    /// Files in the directory of the shell.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// Ends with a prompt.
    pub(crate) steps: &'static [Step],
    /// Lines with one of these words are not compared: times and numbers of
    /// processes, which differ each time.
    pub(crate) blur: &'static [&'static str],
    /// How lines begin that stand on one of the screens alone, and why that was
    /// asked for.
    pub(crate) may: &'static [(&'static str, &'static str)],
    /// Why it is not the same on a terminal of its own, where that is asked for.
    pub(crate) not_on_a_pty: Option<&'static str>,
}

impl Row {
    pub(crate) const PLAIN: Row = Row {
        needs: &[],
        files: &[],
        steps: &[],
        blur: &[],
        may: &[],
        not_on_a_pty: None,
    };

    fn ways(&self) -> impl Iterator<Item = Way> {
        let pty = self.not_on_a_pty.is_none().then_some(Way::Pty);
        [Way::Run, Way::Group].into_iter().chain(pty)
    }
}

/// Traces of one use of a program.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    /// Screens, at the end and on the way.
    shown: String,
    /// True if the terminal is as it was before.
    restored: bool,
    /// `stty -g` in the end.
    modes: String,
}

/// Goes through a row each way, and compares.
pub(crate) fn compare(name: &str, row: &Row) {
    let needs = ["tmux", "bash", "stty"].iter().chain(row.needs);
    if let Some(missing) = needs.into_iter().find(|name| !is_installed(name)) {
        return common::skip(name, &format!("there is no {missing}"));
    }
    let bare = go(row, Way::Bare);
    let mut faults = String::new();
    for way in row.ways() {
        let ours = go(row, way);
        if ours != bare {
            let (bare, ours) = (bare.told(), ours.told());
            let first = bare.lines().zip(ours.lines()).find(|(a, b)| a != b);
            let _ = writeln!(
                faults,
                "\n{name} differs under {way:?}, first {first:?}\n--- bare: {bare}\n--- {way:?}: {ours}",
            );
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

impl Left {
    fn told(&self) -> String {
        let Left {
            shown,
            restored,
            modes,
        } = self;
        format!("restored: {restored}, modes: {modes}\n{shown}")
    }
}

fn go(row: &Row, way: Way) -> Left {
    let mut session = Session::new(&way.words(), row.files);
    let mut shown = String::new();
    for step in row.steps {
        take(&mut session, *step, &mut shown, row, way);
    }
    session.line("echo \"exit $?\"; jobs; stty -g >after");
    session.await_prompt("the last prompt");
    shown += &comparable(&session.picture(), row);
    let [before, after] = ["before", "after"].map(|name| session.file(name));
    assert!(before.contains(':') && after.contains(':'));
    Left {
        shown,
        restored: before == after,
        modes: after.trim().to_owned(),
    }
}

fn take(session: &mut Session, step: Step, shown: &mut String, row: &Row, way: Way) {
    let what = format!("{step:?} under {way:?}");
    match step {
        Step::Line(text) => session.line(text),
        Step::Text(text) => session.text(text),
        Step::Keys(keys) => session.press(keys),
        Step::Shows(text) => drop(session.until(&what, |screen| screen.shows(text))),
        Step::Has(text) => drop(session.until(&what, |screen| screen.has(text))),
        Step::Gone(text) => drop(session.until(&what, |screen| !screen.has(text))),
        Step::Cursor(text) => session.until_asked(&what, text),
        Step::Answer(prompt, text) => {
            session.until_asked(&what, prompt);
            session.text(text);
            let typed = format!("{prompt} {text}");
            session.until(&what, |screen| screen.line() == typed);
            session.press("Enter");
        }
        Step::Asleep => session.until_asleep(&what),
        Step::Prompt => session.await_prompt(&what),
        Step::Look => {
            *shown += &comparable(&session.picture(), row);
            *shown += "----\n";
        }
        Step::Resize(columns, lines) => session.resize(columns, lines),
        Step::KillProgram(signal) => common::kill(session.program(), signal),
    }
}

/// A screen without the parts that differ each time, and those that may.
fn comparable(picture: &str, row: &Row) -> String {
    let mut text = String::new();
    for line in picture.trim_end().lines() {
        let line = line.trim_end();
        let blurred = row.blur.iter().any(|word| line.contains(word));
        let allowed = row.may.iter().any(|(only, _)| line.starts_with(only));
        if !blurred && !allowed {
            text += &without_pid(line);
            text.push('\n');
        }
    }
    text
}

/// `[1] 4711`, as a shell tells of a job in the background.
fn without_pid(line: &str) -> String {
    match line.split_once("] ") {
        Some((job, pid))
            if job.starts_with('[')
                && !pid.is_empty()
                && pid.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            format!("{job}] PID")
        }
        _ => line.to_owned(),
    }
}
