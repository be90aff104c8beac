//! A diagnosis for people: 80 columns, one sentence first.

use std::fmt::Write as _;

use crate::diagnosis::{Diagnosis, ProcessView};
use crate::finding::Finding;
use crate::letters;
use crate::verdict::Verdict;

/// Columns of a line at most.
const WIDTH: usize = 80;

/// Processes without a finding that are listed at most.
const MOST_LISTED: usize = 24;

impl Diagnosis {
    /// The diagnosis for people, in lines of 80 columns at most; with colours, or without.
    pub fn text(&self, colours: bool) -> String {
        let mut text = String::new();
        let code = match self.verdict {
            Verdict::Proven => "31",
            Verdict::Possible | Verdict::Slow | Verdict::Stopped => "33",
            Verdict::Input => "36",
            Verdict::Busy | Verdict::Healthy => "32",
        };
        let (on, off) = match colours {
            true => (format!("\x1b[1;{code}m"), "\x1b[0m"),
            false => (String::new(), ""),
        };
        let _ = writeln!(
            text,
            "{on}{}{off}",
            wrapped("", "", &self.sentence).trim_end()
        );
        for (number, finding) in self.findings.iter().enumerate() {
            text.push('\n');
            if number > 0 {
                text += &wrapped("", "", &format!("Also: {}", finding.sentence));
                text.push('\n');
            }
            self.add_finding(&mut text, finding);
        }
        if self.findings.is_empty() {
            self.add_processes(&mut text);
        }
        text.push('\n');
        let counts = &self.counts;
        text += &wrapped(
            "",
            "",
            &format!(
                "Looked twice, {} ms apart; at {} processes with {} threads and {} pipes; asked for {}.",
                self.between_ms, counts.processes, counts.threads, counts.pipes, counts.asked
            ),
        );
        for unseen in &self.unseen {
            text += &wrapped("", "", &format!("Not seen: {unseen}."));
        }
        text
    }

    fn add_finding(&self, text: &mut String, finding: &Finding) {
        let mut indent = String::from("  ");
        for (number, link) in finding.links.iter().enumerate() {
            if number == 0 {
                *text += &self.process_line(&indent, link.from);
            }
            let head = format!("{indent}└─ ");
            indent += "   ";
            *text += &wrapped(&head, &indent, &format!("{}:", link.text));
            match finding.circle && number + 1 == finding.links.len() {
                true => {
                    let first = self.process(link.to).map_or("", |one| one.name.as_str());
                    let _ = writeln!(text, "{indent}{first} ({}) ◄── the circle", link.to);
                }
                false => *text += &self.process_line(&indent, link.to),
            }
        }
        if finding.links.is_empty() {
            for &pid in &finding.processes {
                *text += &self.process_line(&indent, pid);
            }
        }
        let listed: Vec<i32> = finding.links.iter().map(|link| link.from).collect();
        let others: Vec<String> = finding
            .behind
            .iter()
            .filter(|pid| !listed.contains(pid))
            .map(|&pid| self.name(pid))
            .collect();
        if !others.is_empty() {
            let more = others.len().saturating_sub(12);
            let mut names = others[..others.len() - more].join(", ");
            if more > 0 {
                let _ = write!(names, " and {more} more");
            }
            *text += &wrapped("  ", "  ", &format!("Behind it wait: {names}."));
        }
        text.push('\n');
        for doubt in &finding.doubts {
            *text += &wrapped("Not proven: ", "  ", doubt);
        }
        *text += &wrapped("To do: ", "  ", &finding.fix);
    }

    fn add_processes(&self, text: &mut String) {
        // Of many that are well, the numbers say enough.
        if self.processes.len() > MOST_LISTED {
            return;
        }
        text.push('\n');
        for process in &self.processes {
            *text += &self.process_line("  ", process.pid);
            let mut seen: Vec<&str> = Vec::new();
            for wait in &process.waits {
                if seen.len() < 4 && !seen.contains(&wait.text.as_str()) {
                    seen.push(&wait.text);
                    *text += &wrapped("    ", "    ", &wait.text);
                }
            }
        }
    }

    fn name(&self, pid: i32) -> String {
        match self.process(pid) {
            Some(process) => format!("{} ({pid})", process.name),
            None => format!("({pid})"),
        }
    }

    /// Name, number and command, cut at the end of the line.
    fn process_line(&self, indent: &str, pid: i32) -> String {
        let name = self.name(pid);
        let command = self.process(pid).and_then(shown_command);
        let line = match command {
            Some(command) => format!("{indent}{name}  {command}"),
            None => format!("{indent}{name}"),
        };
        match line.chars().count() > WIDTH {
            true => format!("{}…\n", line.chars().take(WIDTH - 1).collect::<String>()),
            false => format!("{line}\n"),
        }
    }
}

/// The command, if it says more than the name does, safe for a terminal.
fn shown_command(process: &ProcessView) -> Option<String> {
    let command = process.command.as_ref()?;
    let safe = letters::safe(command);
    (safe != process.name).then_some(safe)
}

/// `text` in lines of 80 columns at most, the first behind `head`, the others behind
/// `indent`.
fn wrapped(head: &str, indent: &str, text: &str) -> String {
    let safe = letters::safe(text);
    let mut all = String::new();
    let mut line = head.to_owned();
    let mut empty = true;
    for word in safe.split_whitespace() {
        let length = line.chars().count() + usize::from(!empty) + word.chars().count();
        if length > WIDTH && !empty {
            all += line.trim_end();
            all.push('\n');
            line = indent.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    all += line.trim_end();
    all.push('\n');
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_80_columns_unless_a_word_is() {
        let text = wrapped("  └─ ", "     ", &"word ".repeat(60));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("     word"))
        );
        assert_eq!(wrapped("", "", "a\x1b[31mb"), "a\\u{1b}[31mb\n");
    }
}
