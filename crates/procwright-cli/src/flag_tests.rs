//! Every flag is in the reference, the manual page and the completions.

use std::collections::BTreeSet;

use clap::Command;

use crate::args::{PageArg, ShellArg, definition};
use crate::{completions, man};

/// Subcommands with flags of their own, and their manual pages.
const NAMED: [(&str, PageArg); 9] = [
    ("run", PageArg::Run),
    ("map", PageArg::Map),
    ("pipe", PageArg::Pipe),
    ("wait", PageArg::Wait),
    ("buffer", PageArg::Buffer),
    ("queue send", PageArg::QueueSend),
    ("queue recv", PageArg::QueueRecv),
    ("queue stat", PageArg::QueueStat),
    ("doctor", PageArg::Doctor),
];

fn flags(command: &Command) -> Vec<String> {
    let flags: Vec<String> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .filter_map(|arg| arg.get_long())
        .map(|name| format!("--{name}"))
        .collect();
    assert!(flags.len() > 1, "{flags:?}");
    flags
}

fn subcommand(name: &str) -> Command {
    let mut definition = definition();
    definition.build();
    name.split(' ').fold(definition, |command, name| {
        command.find_subcommand(name).unwrap().clone()
    })
}

/// Returns whether `text` has `flag`, and not just a longer flag that begins with it.
fn has(text: &str, flag: &str) -> bool {
    text.match_indices(flag).any(|(at, _)| {
        let next = text[at + flag.len()..].chars().next();
        next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '-')
    })
}

#[test]
fn the_definition_is_sound() {
    definition().debug_assert();
}

#[test]
fn every_flag_is_in_the_reference() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/command.md"
    );
    let reference = std::fs::read_to_string(path).unwrap();
    for (name, _) in NAMED {
        let head = format!("## procwright {name}\n");
        let section = reference.split_once(&head).unwrap().1;
        let section = section.split("\n## ").next().unwrap();
        let rows: Vec<&str> = section.lines().filter(|l| l.starts_with("| `--")).collect();
        let documented: BTreeSet<&str> = rows
            .iter()
            .flat_map(|row| row.split('|').nth(1).unwrap().split('`'))
            .filter_map(|word| word.split([' ', '\\']).next())
            .filter(|word| word.starts_with("--"))
            .collect();
        let command = subcommand(name);
        let flags = flags(&command);
        for flag in &flags {
            assert!(
                documented.contains(flag.as_str()),
                "{name} {flag}: {documented:?}"
            );
        }
        for flag in documented {
            let known = flag == "--version" || flags.iter().any(|known| known == flag);
            assert!(known, "{name} has no {flag}");
        }
    }
}

#[test]
fn every_flag_is_in_the_manual_page_with_its_long_text() {
    for (name, page) in NAMED {
        let mut roff = Vec::new();
        man::write(Some(page), &mut roff).unwrap();
        // The text as people read it, without the escapes of dashes and apostrophes.
        let text = String::from_utf8(roff).unwrap();
        let text = text.replace("\\-", "-").replace("\\*(Aq", "'");
        let command = subcommand(name);
        for flag in flags(&command) {
            assert!(has(&text, &flag), "{name} {flag}");
        }
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let help = arg.get_long_help().or(arg.get_help()).unwrap().to_string();
            let last = help.split_whitespace().next_back().unwrap();
            assert!(text.contains(last), "{name} {}: {last}", arg.get_id());
        }
        assert!(text.contains("EXIT STATUS") && text.contains("PROCWRIGHT_TRACE"));
    }
}

#[test]
fn every_flag_is_completed() {
    for shell in [ShellArg::Bash, ShellArg::Zsh, ShellArg::Fish] {
        let mut text = Vec::new();
        completions::write(shell, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for (name, _) in NAMED {
            for flag in flags(&subcommand(name)) {
                let written = match shell {
                    ShellArg::Fish => format!("-l {}", &flag[2..]),
                    _ => flag,
                };
                assert!(has(&text, &written), "{shell:?} {name} {written}");
            }
        }
    }
}

#[test]
fn every_flag_has_a_short_text_and_no_heading_is_lonely() {
    let command = subcommand("run");
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let help = arg.get_help().unwrap().to_string();
        assert!(!help.contains('\n') && !help.ends_with('.'), "{help}");
    }
}

#[test]
fn the_help_names_the_flags_that_the_manual_alone_describes() {
    for name in ["run", "map", "pipe"] {
        let mut command = subcommand(name);
        let help = command.render_help().to_string();
        for flag in flags(&command) {
            assert!(has(&help, &flag), "{name} {flag}");
        }
    }
}
