//! A diagnosis as a graph for dot(1).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::diagnosis::Diagnosis;
use crate::verdict::Verdict;

impl Diagnosis {
    /// Who waits for whom in the findings, in the language of dot(1).
    pub fn dot(&self) -> String {
        let mut text = String::from("digraph waits {\n  node [shape=box];\n");
        let mut nodes = BTreeSet::new();
        for finding in &self.findings {
            nodes.extend(finding.processes.iter().chain(&finding.behind));
            for link in &finding.links {
                nodes.extend([link.from, link.to]);
            }
        }
        for pid in nodes {
            let process = self.process(pid);
            let name = process.map_or("", |one| one.name.as_str());
            let colour = match process.map(|one| one.verdict) {
                Some(Verdict::Proven) => "red",
                Some(Verdict::Possible | Verdict::Slow | Verdict::Stopped) => "orange",
                Some(Verdict::Input) => "blue",
                _ => "black",
            };
            let label = quoted(&format!("{name} ({pid})"));
            let _ = writeln!(text, "  p{pid} [label={label}, color={colour}];");
        }
        for finding in &self.findings {
            for link in &finding.links {
                let mut words = String::from(link.wait);
                if let Some(object) = &link.object {
                    let _ = write!(words, " {object}");
                }
                let style = if finding.circle { ", color=red" } else { "" };
                let label = quoted(&words);
                let _ = writeln!(
                    text,
                    "  p{} -> p{} [label={label}{style}];",
                    link.from, link.to
                );
            }
        }
        text.push_str("}\n");
        text
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted.extend(letter.escape_default()),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
