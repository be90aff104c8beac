//! Items that would be code.
//!
//! No shell reads the words of a command, so that an item is never more than a word. A command
//! may be a shell all the same, and a word of it a line of code: an item inside of that is code
//! as well, whatever its file is called. GNU parallel quotes items for the shell; here no quoting
//! could be right, as a line may have quotes of its own around the place. So it is refused. An
//! item that is the whole line is what was asked for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::interpreters;
use super::shell_line::ShellLine;
use super::template::{Piece, Template, Word};

/// Looks for items inside of code.
///
/// # Errors
/// What is wrong, and what to type, in words for a person.
pub(super) fn check(words: &[OsString], template: &Template) -> Result<(), String> {
    if let [line] = words {
        return check_line(line, &template.pieces()[0]);
    }
    check_procwright(words, template)?;
    for (interpreter, program, codes) in interpreters::code(words) {
        let inside = codes
            .iter()
            .find(|code| has_item_inside(&template.pieces()[code.word], code.begin));
        let Some(code) = inside.map(|code| code.word) else {
            continue;
        };
        let pieces = &template.pieces()[code];
        let program = &words[program];
        let name = Path::new(program).file_name().unwrap_or(program);
        let hint = match interpreter.hint {
            Some(hint) => hint.to_owned(),
            None => match safe(&words[..code], pieces, &words[code + 1..]) {
                Some(command) => format!("type: {command}"),
                None => "have the line take it from \"$0\", and put {} behind the line".into(),
            },
        };
        return Err(refused(pieces, &name.to_string_lossy(), &hint));
    }
    Ok(())
}

/// Looks for items in the line of this command's own `run --shell`.
fn check_procwright(words: &[OsString], template: &Template) -> Result<(), String> {
    let name = Path::new(&words[0]).file_name();
    let is_run = name == Some(OsStr::new("procwright")) && words.get(1).is_some_and(|w| w == "run");
    let mut options = words.iter().take_while(|word| *word != "--");
    if !is_run || !options.any(|word| word == "--shell") {
        return Ok(());
    }
    let is_option = |word: &OsString| word.as_bytes().starts_with(b"-");
    let lines = words.iter().zip(template.pieces()).skip(2);
    let mut lines = lines.filter(|(word, pieces)| !is_option(word) && has_item_inside(pieces, 0));
    match lines.next() {
        Some((_, pieces)) => Err(refused(
            pieces,
            "procwright run --shell",
            "type: procwright run sh -c LINE {}, where LINE has \"$0\" for the item",
        )),
        None => Ok(()),
    }
}

fn refused(pieces: &Word, name: &str, hint: &str) -> String {
    format!(
        "{} is inside of code for {name}, where an item would be code as well\n  hint: {hint}",
        first_place(pieces)
    )
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

/// True if the part of a word that begins at the byte `begin` has an item and something beside
/// it.
fn has_item_inside(pieces: &Word, begin: usize) -> bool {
    let is_item = |piece: &Piece| matches!(piece, Piece::Place(place) if place.is_of_items());
    let is_option = matches!(pieces.first(), Some(Piece::Literal(text)) if text.len() == begin);
    let pieces = &pieces[usize::from(is_option)..];
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
    let mut line = ShellLine::default();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => line.push(text),
            Piece::Place(place) => line.push_place(&place.text),
        }
    }
    if !line.has_places() {
        line.push(b" ");
        line.push_place(b"{}");
    }
    Some(line.command(before.to_vec()))
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
            (
                &["bash", "--rcfile", "/dev/null", "-c", "echo {}"],
                "bash --rcfile /dev/null -c 'echo \"$0\"' {}",
            ),
            (&["bash", "-ceo", "pipefail", "echo {}"], "'echo \"$0\"' {}"),
            (&["sh", "-c", "--", "echo {}"], "'echo \"$0\"' {}"),
            (&["ksh93", "-c", "echo {}"], "'echo \"$0\"' {}"),
            (
                &[
                    "env", "-i", "-u", "A", "B=c", "timeout", "-s", "INT", "5", "sh", "-c",
                    "echo {}",
                ],
                "sh -c 'echo \"$0\"' {}",
            ),
            (
                &["sudo", "-u", "me", "sh", "-c", "echo {}"],
                "'echo \"$0\"' {}",
            ),
            (&["python3", "-cprint('{}')"], "from sys.argv[1]"),
            (&["python3.11", "-c", "print('{}')"], "from sys.argv[1]"),
            (
                &["python3", "-W", "ignore", "-Ec", "print('{}')"],
                "from sys.argv[1]",
            ),
            (
                &[
                    "python3",
                    "--check-hash-based-pycs",
                    "never",
                    "-c",
                    "f('{}')",
                ],
                "from sys.argv[1]",
            ),
            (&["perl", "-e print qq[{}]"], "from $ARGV[0]"),
            (&["perl", "-e", "1;", "-e", "print '{}'"], "from $ARGV[0]"),
            (
                &["perl", "-e", "1;", "-Mre", "-we", "f('{}')"],
                "from $ARGV[0]",
            ),
            (&["perl", "-E", "say '{}'"], "from $ARGV[0]"),
            (
                &["perl", "-I", "lib", "-0777ne", "f('{}')"],
                "from $ARGV[0]",
            ),
            (&["ruby", "-r", "json", "-e", "p '{}'"], "from ARGV[0]"),
            (&["ruby3.1", "-rjson", "-ne", "p '{}'"], "from ARGV[0]"),
            (&["node", "--eval", "f('{}')"], "from process.argv[1]"),
            (&["node", "--eval=f('{}')"], "from process.argv[1]"),
            (&["node", "-pe", "f('{}')"], "from process.argv[1]"),
            (
                &["node", "--require", "x", "-p", "f('{}')"],
                "from process.argv[1]",
            ),
            (&["fish", "-c", "echo {}"], "from $argv[1]"),
            (&["su", "me", "-c", "echo {}"], "su USER -- SCRIPT {}"),
            (&["su", "--comm=echo {}", "me"], "su USER -- SCRIPT {}"),
            (&["env", "-S", "echo {}"], "leave that option out"),
            (&["nice", "env", "-iSecho {}"], "leave that option out"),
            (
                &["procwright", "run", "--timeout", "5", "--shell", "echo {}"],
                "procwright run sh -c LINE {}",
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
            &["sh", "-c", "mv \"$0\" \"$1\"", "{}", "{.}.old"],
            &["bash", "-eu", "x.sh", "-c", "{}.conf"],
            &["bash", "-o", "errexit", "x.sh", "-c", "{}.conf"],
            &["python3", "-u", "x.py", "-c", "{}.conf"],
            &["python3", "-m", "x", "-c", "{}.conf"],
            &["python3", "-c", "f()", "-c", "{}.conf"],
            &["python3", "-cf()", "-c", "{}.conf"],
            &["python3", "-c{}"],
            &["perl", "-ne", "print", "{}.log"],
            &["perl", "-pi.e", "x.pl", "{}.log"],
            &["node", "--inspect", "--", "x.js", "-e", "{}.x"],
            &["grep", "sh", "-c", "{}.log"],
            &["nice", "grep", "sh", "-c", "{}.log"],
            &["timeout", "5", "grep", "sh", "-c", "{}.log"],
            &["env", "A={}.x", "printenv"],
            &["env", "-u", "sh", "grep", "-S", "{}.x"],
            &["procwright", "run", "--", "x", "--shell", "{}.x"],
            &["procwright", "run", "--report-to={}.json", "--shell", "x"],
            &["{}"],
            &["./{}/run"],
        ] {
            assert_eq!(checked(words), Ok(()), "{words:?}");
        }
    }
}
