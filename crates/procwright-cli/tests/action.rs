//! The step for GitHub Actions, run as GitHub runs it: `bash -eo pipefail` over a file, with the
//! inputs in the environment, and files for the summary and the outputs.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{kill, wait_gone_or_zombie, watchdog};
use rustix::process::Signal;
use tempfile::TempDir;

fn action() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../action")
}

/// What the file of the action says: no more of YAML than it uses.
struct Definition {
    /// Inputs with their defaults.
    inputs: Vec<(String, String)>,
    /// Variables of the step with the inputs that they have.
    env: Vec<(String, String)>,
    run: String,
}

impl Definition {
    fn read() -> Definition {
        let text = std::fs::read_to_string(action().join("action.yml")).unwrap();
        let mut definition = Definition {
            inputs: Vec::new(),
            env: Vec::new(),
            run: String::new(),
        };
        let mut part = "";
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            let Some((name, value)) = line.trim().split_once(':') else {
                continue;
            };
            let value = value.trim();
            match (part, indent, name) {
                (_, 0, name) => part = name,
                ("inputs", 2, name) => {
                    definition.inputs.push((name.to_owned(), String::new()));
                }
                ("inputs", 4, "default") => {
                    let (_, default) = definition.inputs.last_mut().unwrap();
                    *default = value.trim_matches('"').to_owned();
                }
                ("runs", 6, "run") => definition.run = value.to_owned(),
                ("runs", 8, name) => {
                    let input = value.strip_prefix("${{ inputs.").unwrap();
                    let input = input.strip_suffix(" }}").unwrap();
                    definition.env.push((name.to_owned(), input.to_owned()));
                }
                _ => {}
            }
        }
        definition
    }
}

/// A job with this step.
struct Job {
    folder: TempDir,
}

impl Job {
    fn new() -> Job {
        watchdog();
        let folder = tempfile::tempdir().unwrap();
        for file in ["summary", "output"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        Job { folder }
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// The step with these inputs, and the directory that `PATH` begins with.
    fn step(&self, inputs: &[(&str, &str)], programs: &Path) -> Command {
        let definition = Definition::read();
        let at = |name: &str| self.folder.path().join(name);
        std::fs::write(at("step.sh"), &definition.run).unwrap();
        let mut step = Command::new("bash");
        step.args(["--noprofile", "--norc", "-e", "-o", "pipefail"]);
        step.arg(at("step.sh")).current_dir(self.folder.path());
        for (variable, input) in &definition.env {
            let given = inputs.iter().find(|(name, _)| name == input);
            let known = definition.inputs.iter().find(|(name, _)| name == input);
            let (_, default) = known.expect("an input that there is");
            step.env(variable, given.map_or(default.as_str(), |(_, value)| value));
        }
        let path = std::env::var("PATH").unwrap();
        step.env("PATH", format!("{}:{path}", programs.display()))
            .env("GITHUB_ACTION_PATH", action())
            .env("GITHUB_STEP_SUMMARY", at("summary"))
            .env("GITHUB_OUTPUT", at("output"))
            .env("RUNNER_TEMP", self.folder.path())
            .stdin(Stdio::null());
        step
    }

    fn run(&self, inputs: &[(&str, &str)]) -> Output {
        let programs = Path::new(env!("CARGO_BIN_EXE_procwright"));
        let mut step = self.step(inputs, programs.parent().unwrap());
        step.output().unwrap()
    }

    /// The file that the output of the step names.
    fn explanation(&self) -> String {
        let output = self.file("output");
        let path = output.trim_end().strip_prefix("explanation=").unwrap();
        std::fs::read_to_string(path).unwrap()
    }
}

#[test]
fn each_input_is_used_and_there() {
    let definition = Definition::read();
    let text = std::fs::read_to_string(action().join("action.yml")).unwrap();
    for (input, _) in &definition.inputs {
        assert!(
            text.contains(&format!("${{{{ inputs.{input} }}}}")),
            "{input}"
        );
    }
    assert_eq!(definition.env.len(), 3);
    assert!(definition.run.contains("run.sh"));
}

#[test]
fn commands_that_end_leave_no_summary() {
    let job = Job::new();
    let output = job.run(&[(
        "run",
        "word='a  b'\necho \"$word\" '${{ x }}' | cat\necho two >&2",
    )]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, b"a  b ${{ x }}\n");
    assert_eq!(output.stderr, b"two\n");
    assert_eq!(job.file("summary") + &job.file("output"), "");
    // What one of them fails with ends them.
    let output = job.run(&[("run", "sh -c 'exit 3' | cat\necho never")]);
    assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b""[..]));
    assert_eq!(job.file("summary") + &job.file("output"), "");
}

#[test]
fn why_they_hang_stands_in_the_summary() {
    for limit in ["timeout", "idle-timeout"] {
        let job = Job::new();
        let output = job.run(&[("run", "sleep 1000 | cat"), (limit, "2s")]);
        assert_eq!(output.status.code(), Some(124), "{output:?}");
        let (summary, explanation) = (job.file("summary"), job.explanation());
        let begin = "### It did not end by itself: exit code 124\n\n```text\n";
        assert!(summary.starts_with(begin), "{summary}");
        assert!(summary.contains(&explanation), "{summary}");
        assert!(summary.ends_with("\n```\n"), "{summary}");
        // A machine that is too busy to look says so instead.
        let is_told = explanation.contains("sleep") || explanation.contains("busy");
        assert!(is_told, "{explanation}");
    }
}

/// A `procwright` that does what this script does.
fn stand_in(folder: &Path, script: &str) {
    let path = folder.join("procwright");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn no_text_ends_its_block_in_the_summary() {
    let job = Job::new();
    let programs = tempfile::tempdir().unwrap();
    stand_in(
        programs.path(),
        "while [ \"$1\" != --explain-to ]; do shift; done\n\
         printf '%s' 'a ``` b ```` c' > \"$2\"; exit 124",
    );
    let mut step = job.step(&[("run", "true")], programs.path());
    assert_eq!(step.status().unwrap().code(), Some(124));
    let text = "\n`````text\na ``` b ```` c\n`````\n";
    assert!(
        job.file("summary").ends_with(text),
        "{}",
        job.file("summary")
    );
}

#[test]
fn a_job_that_is_cancelled_ends_what_it_has_started() {
    for signal in [Signal::INT, Signal::TERM] {
        let job = Job::new();
        let programs = Path::new(env!("CARGO_BIN_EXE_procwright"));
        let inputs = [("run", "sleep 1000 & echo $!\nwait")];
        let mut step = job.step(&inputs, programs.parent().unwrap());
        // As from a runner: not ignored.
        let mut step = step
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = step.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        kill(step.id().cast_signed(), signal);
        assert_eq!(step.wait().unwrap().code(), Some(128 + libc::SIGTERM));
        wait_gone_or_zombie(line.trim().parse().unwrap());
    }
}

#[test]
fn a_job_without_procwright_is_told_so() {
    let job = Job::new();
    let programs = tempfile::tempdir().unwrap();
    for program in ["bash", "mktemp"] {
        let found = std::env::var("PATH").unwrap();
        let mut found = found.split(':').map(|one| Path::new(one).join(program));
        let found = found.find(|one| one.exists()).unwrap();
        std::os::unix::fs::symlink(found, programs.path().join(program)).unwrap();
    }
    let mut step = job.step(&[("run", "true")], programs.path());
    let output = step.env("PATH", programs.path()).output().unwrap();
    // `env` of the first line is named by its path, and finds bash.
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("::error title=procwright is not in PATH"),
        "{told}"
    );
}
