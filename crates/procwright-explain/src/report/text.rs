//! A diagnosis for people: 80 columns, one sentence first.

use std::fmt::Write as _;

use crate::diagnosis::{Diagnosis, ProcessView};
use crate::finding::Finding;
use crate::letters;
use crate::verdict::Verdict;

/// Columns of a line at most, where nobody says how many there are; and of a sentence, which
/// is read with ease no wider.
const WIDTH: usize = 80;

/// Processes without a finding that are listed at most.
const MOST_LISTED: usize = 24;

const BOLD: &str = "1";
const FAINT: &str = "2";

impl Diagnosis {
    /// The diagnosis for people, in lines of 80 columns at most; with colours, or without.
    pub fn text(&self, colours: bool) -> String {
        self.text_within(WIDTH, colours)
    }

    /// As [`text`](Diagnosis::text), for a terminal of so many columns. Commands take the width
    /// that there is, sentences 80 columns at most. A word that is longer than a line stays
    /// whole.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let own = std::process::id() as i32;
    /// let diagnosis = procwright_explain::examine(&[own], Duration::from_millis(20))?;
    /// assert!(diagnosis.text_within(40, false).lines().count() > 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn text_within(&self, columns: usize, colours: bool) -> String {
        let mut page = Page {
            diagnosis: self,
            columns,
            colours,
            text: String::new(),
        };
        page.add_all();
        page.text
    }

    fn name(&self, pid: i32) -> String {
        match self.process(pid) {
            Some(process) => format!("{} ({pid})", process.name),
            None => format!("({pid})"),
        }
    }
}

/// A diagnosis on its way to be a text.
struct Page<'a> {
    diagnosis: &'a Diagnosis,
    columns: usize,
    colours: bool,
    text: String,
}

impl Page<'_> {
    fn add_all(&mut self) {
        let diagnosis = self.diagnosis;
        self.add_sentence(diagnosis.verdict, &diagnosis.sentence);
        for (number, finding) in diagnosis.findings.iter().enumerate() {
            self.text.push('\n');
            if number > 0 {
                self.add_sentence(finding.verdict, &format!("Also: {}", finding.sentence));
                self.text.push('\n');
            }
            self.add_finding(finding);
        }
        if diagnosis.findings.is_empty() {
            self.add_processes();
        }
        self.text.push('\n');
        let counts = &diagnosis.counts;
        let looked = format!(
            "Looked twice, {} ms apart; at {} with {} and {}; asked for {}.",
            diagnosis.between_ms,
            counted(counts.processes, "process", "processes"),
            counted(counts.threads, "thread", "threads"),
            counted(counts.pipes, "pipe", "pipes"),
            counts.asked
        );
        let looked = self.wrapped("", "", &looked);
        self.text += &self.painted(FAINT, &looked);
        for unseen in &diagnosis.unseen {
            let unseen = self.wrapped("", "", &format!("Not seen: {unseen}."));
            self.text += &self.painted(FAINT, &unseen);
        }
    }

    fn add_sentence(&mut self, verdict: Verdict, sentence: &str) {
        let lines = self.wrapped("", "", sentence);
        self.text += &self.painted(&format!("{BOLD};{}", colour(verdict)), &lines);
    }

    fn add_finding(&mut self, finding: &Finding) {
        let mut indent = String::from("  ");
        for (number, link) in finding.links.iter().enumerate() {
            if number == 0 {
                self.add_process(&indent, link.from);
            }
            let head = format!("{indent}└─ ");
            // On a narrow terminal a long way would leave no room for words.
            if indent.len() < self.columns / 2 {
                indent += "   ";
            }
            self.text += &self.wrapped(&head, &indent, &format!("{}:", link.text));
            match finding.circle && number + 1 == finding.links.len() {
                true => {
                    let first = self.diagnosis.process(link.to);
                    let first = first.map_or("", |one| one.name.as_str());
                    let mark = self.painted(colour(finding.verdict), "◄── the circle");
                    let _ = writeln!(self.text, "{indent}{first} ({}) {mark}", link.to);
                }
                false => self.add_process(&indent, link.to),
            }
        }
        if finding.links.is_empty() {
            for &pid in &finding.processes {
                self.add_process(&indent, pid);
            }
        }
        let listed: Vec<i32> = finding.links.iter().map(|link| link.from).collect();
        let others: Vec<String> = finding
            .behind
            .iter()
            .filter(|pid| !listed.contains(pid))
            .map(|&pid| self.diagnosis.name(pid))
            .collect();
        if !others.is_empty() {
            let more = others.len().saturating_sub(12);
            let mut names = others[..others.len() - more].join(", ");
            if more > 0 {
                let _ = write!(names, " and {more} more");
            }
            self.text += &self.wrapped("  ", "  ", &format!("Behind it wait: {names}."));
        }
        self.text.push('\n');
        for doubt in &finding.doubts {
            self.add_headed("Not proven:", doubt);
        }
        self.add_headed("To do:", &finding.fix);
    }

    fn add_headed(&mut self, head: &str, text: &str) {
        let lines = self.wrapped(&format!("{head} "), "  ", text);
        let rest = lines.strip_prefix(head).unwrap_or(&lines);
        self.text += &self.painted(BOLD, head);
        self.text += rest;
    }

    fn add_processes(&mut self) {
        // Of many that are well, the numbers say enough.
        if self.diagnosis.processes.len() > MOST_LISTED {
            return;
        }
        self.text.push('\n');
        for process in &self.diagnosis.processes {
            self.add_process("  ", process.pid);
            let mut seen: Vec<&str> = Vec::new();
            for wait in &process.waits {
                if seen.len() < 4 && !seen.contains(&wait.text.as_str()) {
                    seen.push(&wait.text);
                    self.text += &self.wrapped("    ", "    ", &wait.text);
                }
            }
        }
    }

    /// Adds a line of name, number and command, cut at the end of the line.
    fn add_process(&mut self, indent: &str, pid: i32) {
        let name = self.diagnosis.name(pid);
        let command = self.diagnosis.process(pid).and_then(shown_command);
        let line = |command: &str| format!("{indent}{name}  {command}");
        let line = match command {
            Some(command) if line(&command).chars().count() <= self.columns => line(&command),
            // What it was given says more than where it lies.
            Some(command) => line(without_directory(&command)),
            None => format!("{indent}{name}"),
        };
        let line = cut(&line, self.columns);
        // Unless it was cut before the end of the name.
        match line.strip_prefix(&format!("{indent}{name}")) {
            Some(rest) => {
                let name = self.painted(BOLD, &name);
                let _ = writeln!(self.text, "{indent}{name}{rest}");
            }
            None => {
                let _ = writeln!(self.text, "{line}");
            }
        }
    }

    /// `lines` in a colour, each of them by itself: whoever shows some of them, shows them right.
    fn painted(&self, code: &str, lines: &str) -> String {
        if !self.colours {
            return lines.to_owned();
        }
        let paint = |line: &str| match line.strip_suffix('\n') {
            Some(line) => format!("\x1b[{code}m{line}\x1b[0m\n"),
            None => format!("\x1b[{code}m{line}\x1b[0m"),
        };
        lines.split_inclusive('\n').map(paint).collect()
    }

    fn wrapped(&self, head: &str, indent: &str, text: &str) -> String {
        wrapped(self.columns.min(WIDTH), head, indent, text)
    }
}

fn counted(number: usize, one: &str, several: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {several}"),
    }
}

fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Proven => "31",
        Verdict::Possible | Verdict::Slow | Verdict::Stopped => "33",
        Verdict::Input => "36",
        Verdict::Busy | Verdict::Healthy => "32",
    }
}

/// The command, if it says more than the name does, safe for a terminal.
fn shown_command(process: &ProcessView) -> Option<String> {
    let command = process.command.as_ref()?;
    let safe = letters::safe(command);
    (safe != process.name).then_some(safe)
}

/// The command without the directory of its program.
fn without_directory(command: &str) -> &str {
    let program = command.split(' ').next().unwrap_or(command);
    match program.rfind('/') {
        Some(slash) => &command[slash + 1..],
        None => command,
    }
}

fn cut(line: &str, columns: usize) -> String {
    match line.chars().count() > columns {
        true => {
            let room = columns.saturating_sub(1);
            format!("{}…", line.chars().take(room).collect::<String>())
        }
        false => line.to_owned(),
    }
}

/// The words of `text`. A process and its number are one, as are `fd` and its own: apart from
/// each other, at the end of a line, they are harder to read.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_number = word
            .trim_start_matches('(')
            .starts_with(|letter: char| letter.is_ascii_digit());
        match words.last_mut() {
            Some(last) if is_number && (word.starts_with('(') || last.ends_with("fd")) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// `text` in lines of `width` columns at most, the first behind `head`, the others behind
/// `indent`.
fn wrapped(width: usize, head: &str, indent: &str, text: &str) -> String {
    let safe = letters::safe(text);
    let mut all = String::new();
    let mut line = head.to_owned();
    let mut empty = true;
    for word in words(&safe) {
        let length = line.chars().count() + usize::from(!empty) + word.chars().count();
        if length > width && !empty {
            all += line.trim_end();
            all.push('\n');
            line = indent.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += &word;
        empty = false;
    }
    all += line.trim_end();
    all.push('\n');
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Counts;
    use crate::finding::Link;
    use crate::pattern::Pattern;

    #[test]
    fn no_line_is_longer_than_80_columns_unless_a_word_is() {
        let text = wrapped(WIDTH, "  └─ ", "     ", &"word ".repeat(60));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("     word"))
        );
        assert_eq!(wrapped(WIDTH, "", "", "a\x1b[31mb"), "a\\u{1b}[31mb\n");
    }

    /// A finding with a way of `steps` processes, each with a long command.
    fn long_way(steps: i32) -> Diagnosis {
        let process = |pid| ProcessView {
            pid,
            ppid: 1,
            name: "make".to_owned(),
            command: Some("make --directory=".to_owned() + &"x".repeat(300)),
            verdict: Verdict::Proven,
            waits: Vec::new(),
        };
        let link = |from| Link {
            from,
            thread: from,
            to: from + 1,
            wait: "end",
            fd: None,
            other_fd: None,
            object: None,
            text: "waits for the end of its child, which goes on and on".to_owned(),
        };
        let finding = Finding {
            verdict: Verdict::Proven,
            pattern: Pattern::Circle,
            sentence: "each waits for the next".to_owned(),
            fix: "End one of them; the others go on then, as far as can be told.".to_owned(),
            processes: (1..=steps).collect(),
            links: (1..steps).map(link).collect(),
            circle: true,
            behind: Vec::new(),
            doubts: vec!["somebody was not looked at who could end it all".to_owned()],
        };
        Diagnosis {
            version: 1,
            verdict: Verdict::Proven,
            sentence: "Deadlock, proven: each waits for the next.".to_owned(),
            findings: vec![finding],
            processes: (1..=steps).map(process).collect(),
            waiting: None,
            counts: Counts {
                processes: 9,
                threads: 9,
                descriptors: 9,
                pipes: 9,
                asked: 9,
            },
            between_ms: 200,
            unseen: Vec::new(),
        }
    }

    #[test]
    fn a_number_stays_beside_whose_it_is() {
        assert_eq!(
            wrapped(
                20,
                "",
                "",
                "held by (at least) cat (4711) and sh (12, fd 3)"
            ),
            "held by (at least)\ncat (4711) and\nsh (12, fd 3)\n"
        );
    }

    #[test]
    fn a_command_that_is_too_long_loses_its_directory_first() {
        let command = "/usr/lib/python3 /a/b.py";
        let mut diagnosis = long_way(1);
        diagnosis.processes[0].command = Some(command.to_owned());
        let line = |columns| {
            let text = diagnosis.text_within(columns, false);
            let mut lines = text.lines();
            lines
                .find(|line| line.starts_with("  make"))
                .unwrap()
                .to_owned()
        };
        assert_eq!(line(80), format!("  make (1)  {command}"));
        assert_eq!(line(35), "  make (1)  python3 /a/b.py");
        assert_eq!(line(20), "  make (1)  python3…");
    }

    #[test]
    fn it_fits_the_terminal() {
        let widest = |columns| {
            let text = long_way(20).text_within(columns, false);
            text.lines().map(|line| line.chars().count()).max().unwrap()
        };
        assert_eq!(widest(80), 80);
        // The commands alone: sentences are as they were.
        assert_eq!(widest(160), 160);
        let prose = |columns| {
            let text = long_way(8).text_within(columns, false);
            let is_prose = |line: &&str| !line.contains("make (");
            text.lines().filter(is_prose).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(prose(160), prose(80));
        // However long the way is, half of the line is left for words.
        assert!(widest(50) <= 50, "{}", long_way(20).text_within(50, false));
        // None is too narrow to be shown something.
        for columns in 0..50 {
            assert!(long_way(8).text_within(columns, true).contains("Deadlock"));
        }
    }

    #[test]
    fn colours_end_on_their_lines_and_take_no_room() {
        for columns in [20, 80, 160] {
            let (plain, coloured) = (
                long_way(5).text_within(columns, false),
                long_way(5).text_within(columns, true),
            );
            assert_ne!(plain, coloured);
            let mut stripped = String::new();
            for line in coloured.lines() {
                let mut parts = line.split("\x1b[");
                stripped += parts.next().unwrap();
                let mut last = "0";
                for part in parts {
                    let (code, text) = part.split_once('m').unwrap();
                    last = code;
                    stripped += text;
                }
                assert_eq!(last, "0", "{line:?}");
                stripped.push('\n');
            }
            assert_eq!(stripped, plain);
        }
    }
}
