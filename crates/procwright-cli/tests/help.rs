//! The help, the manual pages and the completions, as their readers take them.
//! That they have every flag is tested beside the definition.

mod common;

use std::io::Write;
use std::process::{Command, Stdio};

use common::{Ran, skip, subcommand};

fn said(name: &str, words: &[&str]) -> String {
    let ran = Ran::from(subcommand(name).args(words).output().unwrap());
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    ran.stdout
}

#[track_caller]
fn fits(text: &str, lines: usize) {
    assert!(text.lines().count() <= lines, "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_help_fits_a_screen() {
    for (name, lines) in [
        ("run", 54),
        ("map", 61),
        ("pipe", 52),
        ("wait", 30),
        ("buffer", 40),
        ("man", 15),
        ("queue", 24),
        ("doctor", 24),
    ] {
        let long = said(name, &["--help"]);
        fits(&long, lines);
        assert_eq!(long, said(name, &["-h"]));
        assert!(long.contains(&format!("Usage: procwright {name}")));
    }
    for name in ["send", "recv", "stat"] {
        let long = said("queue", &[name, "--help"]);
        fits(&long, 34);
        assert_eq!(long, said("queue", &[name, "-h"]));
        assert!(long.contains(&format!("Usage: procwright queue {name}")));
    }
    fits(&said("--help", &[]), 24);
}

#[test]
fn what_belongs_together_stands_together() {
    let help = said("run", &["--help"]);
    let headings: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_suffix(':'))
        .collect();
    assert_eq!(
        headings,
        ["Options", "Limits", "Program", "Output", "Report"]
    );
}

/// The program `name`, if there is one.
fn tool(test: &str, name: &str) -> Option<Command> {
    let found = Command::new(name)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        skip(test, &format!("there is no {name}"));
    }
    found.then(|| Command::new(name))
}

/// Output of a program for `input`; its stderr must be empty.
fn fed(mut command: Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A pipe may be smaller than what is to go in.
    let input = input.to_owned();
    let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr, "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn manual_pages_are_well_formed() {
    let pages: [&[&str]; 9] = [
        &[],
        &["run"],
        &["map"],
        &["pipe"],
        &["wait"],
        &["buffer"],
        &["queue"],
        &["queue-recv"],
        &["doctor"],
    ];
    for page in pages {
        let Some(mut groff) = tool("manual_pages_are_well_formed", "groff") else {
            return;
        };
        groff.args(["-man", "-ww", "-Tascii", "-P-c", "-P-b", "-P-u"]);
        let text = fed(groff, &said("man", page));
        for part in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "ENVIRONMENT",
            "SEE ALSO",
            "User Commands",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

/// Each list of all pages is written by hand: who installs them goes by it.
#[test]
fn every_manual_page_is_made_and_documented() {
    let refused = Ran::from(subcommand("man").arg("none").output().unwrap());
    let (_, pages) = refused.stderr.split_once("possible values: ").unwrap();
    let (pages, _) = pages.split_once(']').unwrap();
    let pages = pages.replace(", ", " ");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for file in ["Makefile", "docs/reference/command.md"] {
        let text = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
        let all = format!("for page in {pages};");
        assert!(text.contains(&all), "{file}: {all}");
    }
}

#[test]
fn texts_behind_the_options_are_not_wrapped_again() {
    for name in ["send", "recv", "stat"] {
        let help = said("queue", &[name, "--help"]);
        let (_, behind) = help.split_once("Print this").unwrap_or(("", &help));
        for line in behind.lines() {
            let is_left_over = !line.is_empty() && !line.contains(' ') && !line.ends_with('.');
            assert!(!is_left_over, "{name}: {line:?} alone in\n{help}");
        }
    }
}

#[test]
fn a_manual_page_has_what_the_help_leaves_out() {
    let page = said("man", &["run"]);
    assert!(page.contains("the silence is not the program"));
    assert!(page.contains("Everything after CMD belongs to the program"));
    assert!(!said("run", &["--help"]).contains("the silence is not the program"));
}

fn completed(line: &str) -> Vec<String> {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile"]);
    // Readline sets the words and the index of the last, and calls the function.
    let script = format!(
        "{}\nCOMP_WORDS=({line})\n[[ '{line}' != *' ' ]] || COMP_WORDS+=('')\n\
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\nCOMP_LINE='{line}'\n\
         _procwright_run procwright \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        said("completions", &["bash"])
    );
    let words = fed(bash, &script);
    words.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes() {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile"]);
    let script = said("completions", &["bash"]) + "\ncomplete -p procwright\n";
    let registered = fed(bash, &script);
    assert!(registered.contains("-F _procwright_run"), "{registered}");

    assert!(completed("procwright r").contains(&"run".to_owned()));
    let flags = completed("procwright run --ti");
    assert_eq!(flags, ["--timeout"]);
    assert!(completed("procwright run --scope ").contains(&"group".to_owned()));
    assert!(completed("procwright run --timeout = 5s --until ").contains(&"exit".to_owned()));
}

#[test]
fn bash_completes_the_program_and_leaves_its_arguments_to_it() {
    for line in [
        "procwright run prin",
        "procwright run --timeout 5s prin",
        "procwright run --shell --timeout = 5s prin",
        "procwright run --env A = b = c -- prin",
        "procwright map prin",
        "procwright map -j 8 --tag = x --timeout 5s prin",
        "procwright map --tag prin",
    ] {
        assert!(completed(line).contains(&"printf".to_owned()), "{line}");
    }
    // Ours would be wrong here.
    assert_eq!(completed("procwright run make --ti").concat(), "");
}

#[test]
fn zsh_and_fish_can_read_theirs() {
    for (shell, check) in [("zsh", "-n"), ("fish", "--no-execute")] {
        if let Some(mut command) = tool("zsh_and_fish_can_read_theirs", shell) {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, said("completions", &[shell])).unwrap();
            command.arg(check).arg(file.path());
            assert_eq!(fed(command, ""), "");
        }
    }
}

#[test]
fn what_nobody_reads_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    // The reader goes before the command starts: a page would fit into the pipe.
    drop(reader);
    let mut command = subcommand("man");
    command.arg("run").stdout(writer);
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.stderr, "");
    assert_eq!(ran.signal(), Some(13));
}
