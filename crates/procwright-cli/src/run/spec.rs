//! `--spec` and `--dry-run`: what is run, as text.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::path::Path;

use procwright::spec::Defaults;
use procwright::{Command, Sink, Spec, Stdin};
use serde::de::DeserializeSeed;

use crate::args::RunArgs;
use crate::exit::End;
use crate::message::say;

/// What is run where nothing is said: the program has our own streams.
pub(super) fn defaults(argv: Vec<OsString>) -> Spec {
    let mut spec = Spec::new(argv);
    spec.stdin = Stdin::Inherit;
    spec.stdout = Sink::Inherit;
    spec.stderr = Sink::Inherit;
    spec
}

/// Reads a file, or stdin if it is `-`. `argv` stands for one that is not in it.
///
/// # Errors
/// A text for people: the file, the line, the member, and what is wrong.
pub(super) fn read(path: &Path, argv: Option<Vec<OsString>>) -> Result<Spec, String> {
    let is_stdin = path.as_os_str() == "-";
    let name = match is_stdin {
        true => "stdin".to_owned(),
        false => path.display().to_string(),
    };
    let text = match is_stdin {
        true => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => std::fs::read_to_string(path),
    };
    let text = text.map_err(|error| format!("cannot read the spec {name}: {error}"))?;
    let defaults = Defaults {
        argv,
        // What is left of our stdin behind the spec is nothing.
        stdin: match is_stdin {
            true => Stdin::Null,
            false => Stdin::Inherit,
        },
        stdout: Sink::Inherit,
        stderr: Sink::Inherit,
    };
    let is_json = match path.extension() {
        Some(extension) if extension == "json" => true,
        Some(extension) if extension == "toml" => false,
        // No TOML begins with a brace, and no spec in JSON with anything else.
        _ => text.trim_start().starts_with('{'),
    };
    let parsed = match is_json {
        true => json(&text, defaults),
        false => toml(&text, defaults),
    };
    parsed.map_err(|wrong| wrong.told(&name))
}

/// What is wrong with a text, and where.
struct Wrong {
    line: usize,
    /// `stop.signal`; empty for the whole.
    member: String,
    what: String,
}

fn json(text: &str, defaults: Defaults) -> Result<Spec, Wrong> {
    let mut track = serde_path_to_error::Track::new();
    let mut json = serde_json::Deserializer::from_str(text);
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let parsed = defaults.deserialize(tracked);
    let parsed = parsed.and_then(|spec| json.end().map(|()| spec));
    parsed.map_err(|error| {
        let what = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        Wrong {
            line: error.line(),
            member: track.path().to_string(),
            what: what.strip_suffix(&place).unwrap_or(&what).to_owned(),
        }
    })
}

fn toml(text: &str, defaults: Defaults) -> Result<Spec, Wrong> {
    let mut track = serde_path_to_error::Track::new();
    let parsed = toml::Deserializer::parse(text).and_then(|toml| {
        defaults.deserialize(serde_path_to_error::Deserializer::new(toml, &mut track))
    });
    parsed.map_err(|error| Wrong {
        line: error.span().map_or(0, |span| {
            let before = text.get(..span.start).unwrap_or(text);
            before.matches('\n').count() + 1
        }),
        member: track.path().to_string(),
        what: error.message().to_owned(),
    })
}

impl Wrong {
    fn told(&self, name: &str) -> String {
        let mut told = name.to_owned();
        if self.line > 0 {
            let _ = write!(told, ", line {}", self.line);
        }
        // The error of a name that is no member has it already.
        let (what, hint) = match self.unknown_member() {
            Some((what, hint)) => (what, hint),
            None => {
                if !matches!(self.member.as_str(), "" | "." | "?") {
                    let _ = write!(told, ", {}", self.member);
                }
                (self.what.as_str(), self.hint())
            }
        };
        let _ = write!(told, ": {what}\n  hint: {hint}");
        told
    }

    fn hint(&self) -> String {
        if self.what.contains("missing field `argv`") {
            return "\"argv\" is the program and its arguments; or name them behind the options"
                .to_owned();
        }
        if self.member == "argv" {
            return "write a list: argv = [\"make\", \"all\"], in JSON \"argv\": [\"make\", \"all\"]"
                .to_owned();
        }
        "--dry-run prints all members, docs/reference/spec.md describes them".to_owned()
    }

    /// The error without its list of all members, and the one that was meant.
    fn unknown_member(&self) -> Option<(&str, String)> {
        let (what, known) = self.what.split_once(", expected one of ")?;
        let name = what.strip_prefix("unknown field `")?.strip_suffix('`')?;
        let known: Vec<&str> = known
            .split(", ")
            .map(|name| name.trim_matches('`'))
            .collect();
        let near = known
            .iter()
            .map(|known| (strsim::jaro_winkler(name, known), known))
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let hint = match near {
            Some((_, near)) => format!("did you mean {near}?"),
            None => format!("the members are {}", known.join(", ")),
        };
        Some((what, hint))
    }
}

/// Prints the spec, so that [`read`] takes it back.
pub(super) fn print(spec: Spec, args: &RunArgs) -> End {
    let command = Command::from_spec(spec);
    if let Err(error) = command.validate() {
        say(error);
        return End::TROUBLE;
    }
    let text = match serde_json::to_string_pretty(command.spec()) {
        Ok(text) => text,
        Err(error) => {
            say(format_args!("cannot be written as JSON: {error}"));
            return End::TROUBLE;
        }
    };
    let own = own_options(args);
    if !own.is_empty() {
        say(format_args!(
            "options of the command are no part of the spec: {}\n  \
             hint: give them beside --spec",
            own.join(", ")
        ));
    }
    let mut stdout = io::stdout();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    match written {
        Ok(()) => End::OK,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => End::BROKEN_PIPE,
        Err(error) => {
            say(format_args!("cannot write to stdout: {error}"));
            End::TROUBLE
        }
    }
}

/// The options that were given and that a [`Spec`] knows nothing of.
fn own_options(args: &RunArgs) -> Vec<&'static str> {
    // All are named, so that a new one is not forgotten.
    let RunArgs {
        timeout: _,
        idle_timeout: _,
        limit: _,
        until: _,
        stop: _,
        grace: _,
        scope: _,
        shell: _,
        cwd: _,
        env: _,
        stdin: _,
        pty: _,
        spec: _,
        dry_run: _,
        keep_full: _,
        command: _,
        retry,
        // These mean something only beside others.
        backoff: _,
        expect: _,
        log_times: _,
        log_size: _,
        log_keep: _,
        log_strict: _,
        tag,
        quiet,
        progress,
        log,
        report,
        report_to,
    } = args;
    let options = [
        ("--retry", *retry > 0),
        ("--tag", *tag),
        ("--quiet", *quiet),
        ("--progress", *progress),
        ("--log", log.is_some()),
        ("--report", report.is_some()),
        ("--report-to", report_to.is_some()),
    ];
    let given = options.into_iter().filter(|(_, given)| *given);
    given.map(|(name, _)| name).collect()
}
