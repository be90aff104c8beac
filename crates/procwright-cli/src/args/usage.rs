//! Wrong usage in words: clap's, and our own where clap misses what was meant.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::habits;
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
        true => message::print(explanation(error, &subcommand())),
        false => drop(error.print()),
    }
    Termination::TROUBLE
}

/// The subcommand of this process, which no option stands before.
fn subcommand() -> String {
    let name = std::env::args_os().nth(1).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Explains what is wrong with the words behind `subcommand`, and what to do.
fn explanation(error: &clap::Error, subcommand: &str) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        _ => "",
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = context(ContextKind::InvalidSubcommand);
            if subcommand == "queue" {
                let hint = habits::subcommand_instead(name)
                    .unwrap_or("there are recv, send and stat; try procwright queue --help");
                return format!("procwright queue has no {name:?}\n  hint: {hint}");
            }
            if let Some(instead) = habits::command_instead(name) {
                return format!(
                    "there is no subcommand {name:?}\n  \
                     hint: {instead}; to run a program of that name: procwright run {name}"
                );
            }
            let hint = match (context(ContextKind::SuggestedSubcommand), name) {
                (_, "help") => match std::env::args_os().nth(2) {
                    Some(page) => {
                        let page = page.display();
                        format!("procwright {page} --help; procwright man {page} says all")
                    }
                    None => "try --help, or procwright run --help".to_owned(),
                },
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
            let example = match subcommand {
                "map" => {
                    "procwright map -j 8 gzip -9 {} ::: *.log\n  \
                     hint: lines that are commands are run by a shell: procwright map sh -c < FILE"
                }
                "pipe" => "procwright pipe zcat log.gz --to grep -c 500",
                _ => "procwright run --timeout 5m make test",
            };
            format!("no program is named\n  hint: it comes behind the options, as in: {example}")
        }
        ErrorKind::MissingRequiredArgument
            if subcommand == "map" && context(ContextKind::InvalidArg) == "--journal <FILE>" =>
        {
            "there is no journal to write or to read\n  \
             hint: add --journal FILE, which --joblog, --resume and --sync go with"
                .to_owned()
        }
        ErrorKind::MissingRequiredArgument => {
            let with = context(ContextKind::InvalidArg);
            match goes_with(with) {
                Some((who, what)) => {
                    format!("{who} for {what}, which takes {with}\n  hint: add {with}")
                }
                None => shortened(&error.to_string(), true),
            }
        }
        ErrorKind::TooManyValues => {
            let name = context(ContextKind::InvalidArg);
            let value = context(ContextKind::InvalidValue);
            let hint = match name {
                "--shell" => format!(
                    "it is for /bin/sh; another shell is a program like any other: \
                     procwright run {value} -c 'LINE'"
                ),
                _ => format!("leave it out: {name} alone is enough"),
            };
            format!("{name} takes no value, and here is {value:?}\n  hint: {hint}")
        }
        ErrorKind::UnknownArgument => {
            let name = context(ContextKind::InvalidArg);
            match habits::instead(subcommand, name) {
                Some(hint) => format!("procwright {subcommand} has no {name}\n  hint: {hint}"),
                None => {
                    let near = context(ContextKind::SuggestedArg);
                    shortened(&error.to_string(), is_meant(near, name))
                }
            }
        }
        ErrorKind::ArgumentConflict => {
            let text = as_typed(shortened(&error.to_string(), true));
            match habits::in_place_of_both(subcommand, &text) {
                Some(hint) => text.replace("hint: try --help", &format!("hint: {hint}")),
                None => text,
            }
        }
        ErrorKind::InvalidValue if context(ContextKind::InvalidArg).starts_with("--report ") => {
            let value = context(ContextKind::InvalidValue);
            format!(
                "--report takes text or json, and not {value:?}\n  \
                 hint: --report-to FILE writes the report to a file"
            )
        }
        _ => shortened(&error.to_string(), true),
    }
}

/// Clap's text, in which an option that was typed by another of its names has that name, too.
fn as_typed(mut text: String) -> String {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut whole = super::definition();
    // How many values an option takes, which it is shown with, is known then.
    whole.build();
    let (mut command, mut rest) = (&whole, words.as_slice());
    while let Some((word, behind)) = rest.split_first()
        && let Some(inner) = command.find_subcommand(word)
    {
        (command, rest) = (inner, behind);
    }
    for option in command.get_arguments() {
        let Some(long) = option.get_long() else {
            continue;
        };
        // As clap shows it, with its value or without.
        for shown in [format!("'--{long}'"), format!("'{option}'")] {
            if text.contains(&shown)
                && let Some(typed) = typed(option, rest)
            {
                text = text.replace(&shown, &format!("'{typed}' (--{long})"));
            }
        }
    }
    text
}

/// The name, other than its own, by which an option stands among these words.
fn typed(option: &clap::Arg, words: &[String]) -> Option<String> {
    let longs = option.get_all_aliases().unwrap_or_default();
    let shorts: Vec<char> = option
        .get_short()
        .into_iter()
        .chain(option.get_all_short_aliases().unwrap_or_default())
        .collect();
    let options = words.iter().take_while(|word| *word != "--");
    for word in options {
        if let Some(name) = word.strip_prefix("--") {
            let name = name.split('=').next().unwrap_or(name);
            if Some(name) == option.get_long() {
                return None;
            }
            if longs.contains(&name) {
                return Some(format!("--{name}"));
            }
        } else if let Some(letters) = word.strip_prefix('-')
            && let Some(letter) = letters.chars().find(|letter| shorts.contains(letter))
        {
            return Some(format!("-{letter}"));
        }
    }
    None
}

/// Options that make no sense without another, and what they are for.
fn goes_with(required: &str) -> Option<(&'static str, &'static str)> {
    Some(match required {
        "--resume" => (
            "--rerun-failed and --rerun-unknown are",
            "a map that is taken up again",
        ),
        "--log <FILE>" => ("--log-times, --log-size and --log-strict are", "a log"),
        "--log-size <SIZE>" => ("--log-keep is", "logs of a size"),
        "--retry <N>" => ("--backoff is", "further attempts"),
        "--progress" => ("--expect is", "a line of progress"),
        _ => return None,
    })
}

/// Returns whether `near`, which clap offers, may be what a person meant by `name`. Clap offers
/// what shares half of its letters.
fn is_meant(near: &str, name: &str) -> bool {
    let bare = |option: &str| option.trim_start_matches('-').to_owned();
    let (near, name) = (bare(near), bare(name));
    strsim::damerau_levenshtein(&near, &name) <= 2
        || near.starts_with(&name)
        || name.starts_with(&near)
}

/// Clap's own text, with its last paragraph as a hint, and what it takes for near if `with_near`.
fn shortened(text: &str, with_near: bool) -> String {
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
        .filter(|line| with_near || !line.starts_with("  tip: "))
        .collect();
    let text = lines.join("\n").replace("\n\n\n", "\n\n");
    format!("{text}{hint}")
}
