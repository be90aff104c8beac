//! Items that would be code.
//!
//! No shell reads the words of a command, so that an item is never more than a word. A command
//! may be a shell all the same, and a word of it a line of code: an item inside of that is code
//! as well, whatever its file is called. GNU parallel quotes items for the shell; here no quoting
//! could be right, as a line may have quotes of its own around the place. So it is refused. An
//! item that is the whole line is what was asked for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::quoted::quoted;
use super::template::{Piece, Template, Word};

/// Programs whose word behind such an option is code, and what names an argument there. A shell
/// has `$0`.
const INTERPRETERS: [(&[&str], u8, Option<&str>); 5] = [
    (
        &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash"],
        b'c',
        None,
    ),
    (&["python", "python3", "pypy3"], b'c', Some("sys.argv[1]")),
    (&["perl"], b'e', Some("$ARGV[0]")),
    (&["ruby"], b'e', Some("ARGV[0]")),
    (&["node"], b'e', Some("process.argv[1]")),
];

/// Looks for items inside of code.
///
/// # Errors
/// What is wrong, and what to type, in words for a person.
pub(super) fn check(words: &[OsString], template: &Template) -> Result<(), String> {
    if let [line] = words {
        return check_line(line, &template.pieces()[0]);
    }
    for (at, program) in words.iter().enumerate() {
        let name = Path::new(program).file_name().unwrap_or(program);
        let known = INTERPRETERS
            .iter()
            .find(|(names, ..)| names.iter().any(|known| name == *known));
        let Some((_, option, argument)) = known else {
            continue;
        };
        let Some(code) = code_behind(words, at, *option) else {
            continue;
        };
        let pieces = &template.pieces()[code];
        if !has_item_inside(pieces) {
            continue;
        }
        let name = name.to_string_lossy();
        let hint = match (argument, safe(&words[..code], pieces, &words[code + 1..])) {
            (None, Some(command)) => format!("type: {command}"),
            (None, None) => "have the line take it from \"$0\", and put {} behind the line".into(),
            (Some(argument), _) => {
                format!("have the code take it from {argument}, and put {{}} behind the code")
            }
        };
        return Err(format!(
            "{} is inside of code for {name}, where an item would be code as well\n  hint: {hint}",
            first_place(pieces)
        ));
    }
    Ok(())
}

/// A command of one word that has blanks is a line as parallel takes it, unless a file has that
/// name.
fn check_line(line: &OsStr, pieces: &Word) -> Result<(), String> {
    let has_blanks = pieces.iter().any(|piece| match piece {
        Piece::Literal(text) => text.contains(&b' '),
        Piece::Place(_) => false,
    });
    if !has_blanks || Path::new(line).exists() {
        return Ok(());
    }
    let shell = ["sh", "-c"].map(OsString::from);
    let hint = match safe(&shell, pieces, &[]) {
        Some(command) => format!("type: {command}"),
        None => "sh -c 'LINE' {}, where LINE has \"$0\" for the item".to_owned(),
    };
    Err(format!(
        "{line:?} is one word, and there is no shell that would make several of it\n  \
         hint: leave the quotes out; or ask for a shell, and {hint}"
    ))
}

/// The place of the code that the program at `at` gets behind `option`.
fn code_behind(words: &[OsString], at: usize, option: u8) -> Option<usize> {
    let mut is_next = false;
    let mut is_value = false;
    for (place, word) in words.iter().enumerate().skip(at + 1) {
        let word = word.as_bytes();
        let is_option = word.starts_with(b"-") || word.starts_with(b"+");
        if is_option {
            is_next |= !word.starts_with(b"--") && word.contains(&option);
            is_value = word.ends_with(b"o") || word.ends_with(b"O");
        } else if !std::mem::take(&mut is_value) {
            return is_next.then_some(place);
        }
    }
    None
}

/// True if a word has an item and something beside it.
fn has_item_inside(pieces: &Word) -> bool {
    let is_item = |piece: &Piece| matches!(piece, Piece::Place(place) if place.is_of_items());
    pieces.len() > 1 && pieces.iter().any(is_item)
}

fn first_place(pieces: &Word) -> String {
    let mut texts = pieces.iter().filter_map(|piece| match piece {
        Piece::Place(place) if place.is_of_items() => Some(&place.text),
        _ => None,
    });
    String::from_utf8_lossy(texts.next().map_or(b"{}".as_slice(), |text| text)).into_owned()
}

/// The command with its items behind the line for a shell; none if that has quotes in which they
/// would stand, or words behind it.
fn safe(before: &[OsString], pieces: &Word, behind: &[OsString]) -> Option<String> {
    let has_quotes = pieces.iter().any(|piece| match piece {
        Piece::Literal(text) => text.iter().any(|byte| b"'\"`\\".contains(byte)),
        Piece::Place(_) => false,
    });
    if has_quotes || !behind.is_empty() {
        return None;
    }
    let mut line = Vec::new();
    let mut arguments: Vec<&[u8]> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => line.extend_from_slice(text),
            Piece::Place(place) => {
                let known = arguments.iter().position(|text| *text == place.text);
                let number = known.unwrap_or_else(|| {
                    arguments.push(&place.text);
                    arguments.len() - 1
                });
                line.extend_from_slice(format!("\"${number}\"").as_bytes());
            }
        }
    }
    if arguments.is_empty() {
        arguments.push(b"{}");
        line.extend_from_slice(b" \"$0\"");
    }
    let mut words = before.to_vec();
    words.push(OsString::from_vec(line));
    words.extend(
        arguments
            .iter()
            .map(|text| OsStr::from_bytes(text).to_owned()),
    );
    // Braces need no quotes, and nobody types them with quotes.
    let text = quoted(&words);
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::template::Syntax;
    use super::*;

    fn checked(words: &[&str]) -> Result<(), String> {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        let syntax = Syntax {
            mark: None,
            lists: 1,
        };
        check(&words, &Template::of_command(&words, syntax).unwrap())
    }

    #[test]
    fn an_item_inside_of_code_is_refused_with_what_to_type() {
        for (words, typed) in [
            (
                &["sh", "-c", "echo {} | wc -c"][..],
                "sh -c 'echo \"$0\" | wc -c' {}",
            ),
            (
                &[
                    "nice",
                    "/bin/bash",
                    "-o",
                    "pipefail",
                    "-ec",
                    "mv {} {.}.old; touch {}",
                ],
                "nice /bin/bash -o pipefail -ec 'mv \"$0\" \"$1\".old; touch \"$0\"' {} {.}",
            ),
            (&["sh", "-c", "echo '{}'"], "from \"$0\""),
            (&["sh", "-c", "echo {} $0", "x"], "from \"$0\""),
            (&["python3", "-c", "print('{}')"], "from sys.argv[1]"),
            (&["perl", "-ne", "print '{}'"], "from $ARGV[0]"),
            (&["echo {} | wc -c"], "sh -c 'echo \"$0\" | wc -c' {}"),
            (&["gzip -9"], "sh -c 'gzip -9 \"$0\"' {}"),
        ] {
            let refused = checked(words).unwrap_err();
            assert!(refused.contains(typed), "{words:?}: {refused}");
        }
    }

    #[test]
    fn an_item_that_is_a_word_or_the_whole_line_is_well() {
        for words in [
            &["sh", "-c", "echo \"$0\"", "{}"][..],
            &["sh", "-c", "{}"],
            &["sh", "-c"],
            &["sh", "-c", "echo {#}"],
            &["sh", "{}.sh", "-c", "{}.conf"],
            &["gzip", "-c", "{}.log"],
            &["echo", "sh -c {}"],
            &["perl", "-w", "x.pl", "-e", "{}.x"],
            &["{}"],
            &["./{}/run"],
        ] {
            assert_eq!(checked(words), Ok(()), "{words:?}");
        }
    }
}
