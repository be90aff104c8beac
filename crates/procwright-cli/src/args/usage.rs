//! Wrong usage in words: clap's, and our own where clap misses what was meant.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::Termination;
use crate::message;

/// Prints what clap has to say. Help and version are no errors.
pub(crate) fn print_usage_error(error: &clap::Error) -> Termination {
    if !error.use_stderr() {
        // A help that cannot be printed (the pipe is closed) is no failure.
        let _ = error.print();
        return Termination::OK;
    }
    // Clap's text is the whole help, if no subcommand was given.
    match error.to_string().starts_with("error: ") {
        true => message::print(explanation(error)),
        false => drop(error.print()),
    }
    Termination::TROUBLE
}

/// Explains what is wrong, and what to do.
fn explanation(error: &clap::Error) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        _ => "",
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = context(ContextKind::InvalidSubcommand);
            let hint = match (context(ContextKind::SuggestedSubcommand), name) {
                ("", "help") => "try --help, or procwright run --help".to_owned(),
                ("", name) => format!(
                    "to run a program of that name: procwright run {name}; \
                     --help lists the subcommands"
                ),
                // Either may be meant: `make` is a program, and close to `man`.
                (near, name) => format!(
                    "did you mean {near}? To run a program of that name: procwright run {name}"
                ),
            };
            format!("there is no subcommand {name:?}\n  hint: {hint}")
        }
        ErrorKind::MissingRequiredArgument if context(ContextKind::InvalidArg) == "<CMD>..." => {
            "no program is named\n  \
             hint: it comes behind the options, as in: procwright run --timeout 5m make test"
                .to_owned()
        }
        _ => shortened(&error.to_string()),
    }
}

/// Clap's own text, with its last paragraph as a hint.
fn shortened(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text).trim_end();
    let advice = "For more information, try '--help'.";
    let (text, hint) = match text.strip_suffix(advice) {
        Some(text) => (text.trim_end(), "\n  hint: try --help"),
        None => (text, ""),
    };
    // Clap offers `-- OPTION` for a misspelt option, which is not meant.
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("  tip: to pass '"))
        .collect();
    let text = lines.join("\n").replace("\n\n\n", "\n\n");
    format!("{text}{hint}")
}
