//! Wrong usage in words: what clap says, and ours where that misses what was meant.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What is wrong, and what to do.
pub(crate) fn wrong_usage(error: &clap::Error) -> String {
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        _ => "",
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = of(ContextKind::InvalidSubcommand);
            let hint = match (of(ContextKind::SuggestedSubcommand), name) {
                ("", "help") => "try --help, or procwright run --help".to_owned(),
                ("", name) => format!(
                    "to run a program of that name: procwright run {name}; \
                     --help lists the subcommands"
                ),
                // Nobody knows which: make is a program, and like man.
                (meant, name) => format!(
                    "did you mean {meant}? To run a program of that name: procwright run {name}"
                ),
            };
            format!("there is no subcommand {name:?}\n  hint: {hint}")
        }
        ErrorKind::MissingRequiredArgument if of(ContextKind::InvalidArg) == "<CMD>..." => {
            "no program is named\n  \
             hint: it comes behind the options, as in: procwright run --timeout 5m make test"
                .to_owned()
        }
        _ => of_clap(&error.to_string()),
    }
}

fn of_clap(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text).trim_end();
    // Clap's last paragraph is the same advice always.
    let advice = "For more information, try '--help'.";
    let (text, hint) = match text.strip_suffix(advice) {
        Some(text) => (text.trim_end(), "\n  hint: try --help"),
        None => (text, ""),
    };
    // An option that is misspelt is not meant to be the name of a program.
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("  tip: to pass '"))
        .collect();
    let text = lines.join("\n").replace("\n\n\n", "\n\n");
    format!("{text}{hint}")
}
