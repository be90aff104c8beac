//! `--spec`: a file that says what is run, in JSON or TOML.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::Path;

use procwright::spec::Defaults;
use procwright::{Sink, Spec, Stdin};
use serde::de::DeserializeSeed;

/// Spec without any options: the program has the streams of this command.
pub(super) fn defaults(argv: Vec<OsString>) -> Spec {
    let mut spec = Spec::new(argv);
    spec.stdin = Stdin::Inherit;
    spec.stdout = Sink::Inherit;
    spec.stderr = Sink::Inherit;
    spec
}

/// Reads a file, or stdin if `path` is `-`. `argv` takes the place of an argv that
/// the file lacks.
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
        // Nothing is left of stdin behind the spec.
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
        // No TOML begins with a brace, and every spec in JSON does.
        _ => text.trim_start().starts_with('{'),
    };
    let parsed = match is_json {
        true => json(&text, defaults),
        false => toml(&text, defaults),
    };
    parsed.map_err(|error| error.explanation(&name))
}

/// A text that is no spec.
struct SpecFileError {
    /// Line of the error, 0 if it is not known.
    line: usize,
    /// Path of the member, such as `stop.signal`; empty for the whole.
    member: String,
    what: String,
}

fn json(text: &str, defaults: Defaults) -> Result<Spec, SpecFileError> {
    let mut track = serde_path_to_error::Track::new();
    let mut json = serde_json::Deserializer::from_str(text);
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let parsed = defaults.deserialize(tracked);
    let parsed = parsed.and_then(|spec| json.end().map(|()| spec));
    parsed.map_err(|error| {
        let what = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        SpecFileError {
            line: error.line(),
            member: track.path().to_string(),
            what: what.strip_suffix(&place).unwrap_or(&what).to_owned(),
        }
    })
}

fn toml(text: &str, defaults: Defaults) -> Result<Spec, SpecFileError> {
    let mut track = serde_path_to_error::Track::new();
    let parsed = toml::Deserializer::parse(text).and_then(|toml| {
        defaults.deserialize(serde_path_to_error::Deserializer::new(toml, &mut track))
    });
    parsed.map_err(|error| SpecFileError {
        line: error.span().map_or(0, |span| {
            let before = text.get(..span.start).unwrap_or(text);
            before.matches('\n').count() + 1
        }),
        member: track.path().to_string(),
        what: error.message().to_owned(),
    })
}

impl SpecFileError {
    /// The error for a person. `name` is that of the file.
    fn explanation(&self, name: &str) -> String {
        let mut text = name.to_owned();
        if self.line > 0 {
            let _ = write!(text, ", line {}", self.line);
        }
        // The error about an unknown member names the member already.
        let (what, hint) = match self.unknown_member() {
            Some((what, hint)) => (what, hint),
            None => {
                if !matches!(self.member.as_str(), "" | "." | "?") {
                    let _ = write!(text, ", {}", self.member);
                }
                (self.what.as_str(), self.hint())
            }
        };
        let _ = write!(text, ": {what}\n  hint: {hint}");
        text
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

    /// Error about an unknown member without the list of all members, and a hint at
    /// the one that was meant.
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
