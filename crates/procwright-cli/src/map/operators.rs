//! Operators of a shell among the words of a command.
//!
//! No shell reads the words, so that `echo {} '|' wc -c` would print the bar. The shell at which it
//! is typed takes what is not quoted; what is quoted here was meant for a shell that is not there,
//! as GNU parallel has one. But a bar is an argument for many, as in `cut -d '|'` and `grep '>'`:
//! so it is refused only where a command or a file goes on behind it. Whoever means one all the
//! same passes it through a shell of his own, whose words are not looked at.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::interpreters;
use super::shell_line::ShellLine;
use super::template::{Piece, Template, Word};

/// Behind these another command begins.
const BETWEEN_COMMANDS: [&str; 5] = ["|", "||", "&&", ";", "|&"];

/// Behind these the name of a file follows.
const REDIRECTIONS: [&str; 6] = [">", ">>", "<", "2>", "2>>", "&>"];

/// Programs whose arguments are such words, or which hand their words on to a shell, here or
/// elsewhere.
const TAKE_OPERATORS: [&str; 30] = [
    "test",
    "[",
    "expr",
    "find",
    "fd",
    "fdfind",
    "tmux",
    "screen",
    "dc",
    "ssh",
    "autossh",
    "sshpass",
    "mosh",
    "rsh",
    "adb",
    "watch",
    "docker",
    "podman",
    "kubectl",
    "oc",
    "lxc",
    "incus",
    "vagrant",
    "gcloud",
    "flock",
    "script",
    "parallel",
    "sem",
    "entr",
    "hyperfine",
];

/// Builtins of the shell which are no programs.
const BUILTINS: [&str; 10] = [
    "cd", "exit", "export", "return", "set", "shift", "trap", "umask", "unset", "ulimit",
];

/// Looks for operators between the words.
///
/// # Errors
/// What is wrong, and what to type, in words for a person.
pub(super) fn check(words: &[OsString], template: &Template) -> Result<(), String> {
    let programs = interpreters::programs(words);
    let takes = |at: &usize| {
        let name = Path::new(&words[*at]).file_name();
        TAKE_OPERATORS
            .iter()
            .any(|one| name.is_some_and(|name| name == *one))
    };
    if programs.iter().any(takes) || !interpreters::code(words).is_empty() {
        return Ok(());
    }
    let program = programs.last().copied().unwrap_or(0);
    let operator = |place| operator(words, program, place);
    let found = (program + 1..words.len()).find_map(|place| Some((place, operator(place)?)));
    let Some((place, found)) = found else {
        return Ok(());
    };
    let hint = match line(template.pieces(), operator) {
        Some(command) => format!("type: {command}"),
        None => "sh -c 'LINE' {}, where LINE has \"$0\" for the item".to_owned(),
    };
    Err(format!(
        "{:?} would be passed on as a word, as there is no shell that takes {found:?} for more\n  \
         hint: ask for a shell, and {hint}",
        words[place]
    ))
}

/// The operator that the word at `place` is for a shell, ends with, or has behind a placeholder;
/// none if it may well be an argument of the program.
fn operator(words: &[OsString], program: usize, place: usize) -> Option<&str> {
    if place <= program {
        return None;
    }
    let word = words.get(place)?.to_str()?;
    let is_value = words[place - 1].as_bytes().starts_with(b"-");
    if begins_command(word) && !is_value {
        return Some(";");
    }
    let next = words.get(place + 1)?;
    if REDIRECTIONS.contains(&word) {
        // As the first word it is a pattern, as of grep.
        return (place > program + 1 && !is_value).then_some(word);
    }
    // Code ends with one as well: a value, several words in one, or the first word, as of sed.
    let is_code = word.contains(char::is_whitespace) || place == program + 1 && !word.contains('{');
    let ends_command = word.len() > 1 && word.ends_with(';') && !is_code;
    let is_between = BETWEEN_COMMANDS.contains(&word);
    if is_value || !(is_between || ends_command) || !is_command(next) {
        return None;
    }
    Some(if ends_command { ";" } else { word })
}

/// Whether a command begins in the word, right behind a placeholder: `{};ls`. A bar there is none
/// that a shell was to see, as `{}|sort` is of jq's.
fn begins_command(word: &str) -> bool {
    let parts = word.split_once("};");
    parts.is_some_and(|(place, rest)| {
        place.rfind('{') == Some(0) && !rest.is_empty() && is_command(OsStr::new(rest))
    })
}

/// Whether the word is the name of a program, or of a builtin of the shell.
fn is_command(word: &OsStr) -> bool {
    if word.as_bytes().contains(&b'/') {
        return is_executable(Path::new(word));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    BUILTINS.iter().any(|name| word == *name)
        || std::env::split_paths(&path).any(|folder| is_executable(&folder.join(word)))
}

fn is_executable(path: &Path) -> bool {
    let found = path.metadata();
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The words as a line of a shell's, with the items behind it; none if one would need quotes.
/// `operator` says which word has one at its end, or in it.
fn line<'a>(words: &[Word], operator: impl Fn(usize) -> Option<&'a str>) -> Option<String> {
    let mut line = ShellLine::default();
    for (place, word) in words.iter().enumerate() {
        if place > 0 {
            line.push(b" ");
        }
        let operator = operator(place).unwrap_or_default();
        if word.is_empty() {
            return None;
        }
        for (nth, piece) in word.iter().enumerate() {
            match piece {
                Piece::Literal(text) => {
                    let last = if nth + 1 == word.len() { operator } else { "" };
                    let at = find(text, last.as_bytes());
                    let (before, behind) = text.split_at(at);
                    let behind = behind.strip_prefix(last.as_bytes()).unwrap_or(behind);
                    let mut rest = before.iter().chain(behind);
                    if text.is_empty() || rest.any(is_special) {
                        return None;
                    }
                    line.push(before);
                    line.push(last.as_bytes());
                    line.push(behind);
                }
                Piece::Place(place) => line.push_place(&place.text),
            }
        }
    }
    Some(line.command(["sh".into(), "-c".into()]))
}

/// Where a text has an operator, its end where it has none.
fn find(text: &[u8], operator: &[u8]) -> usize {
    let mut places = text.windows(operator.len().max(1));
    places
        .position(|part| part == operator)
        .unwrap_or(text.len())
}

/// Whether a shell takes a byte for more than itself.
fn is_special(byte: &u8) -> bool {
    b" \t\n'\"`\\$*?[](){}#~!&;<>|".contains(byte)
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
    fn what_was_meant_for_a_shell_is_refused_with_what_to_type() {
        for (words, typed) in [
            (
                &["echo", "{};", "exit", "{}"][..],
                "type: sh -c 'echo \"$0\"; exit \"$0\"' {}",
            ),
            (
                &["echo", "{}", "|", "cat"],
                "type: sh -c 'echo \"$0\" | cat' {}",
            ),
            (
                &["mv", "{}", "{.}.old", "&&", "ls", "{}"],
                "type: sh -c 'mv \"$0\" \"$1\".old && ls \"$0\"' {} {.}",
            ),
            (
                &["echo", "{}", ">", "{.}.txt"],
                "type: sh -c 'echo \"$0\" > \"$1\".txt' {} {.}",
            ),
            (&["echo", "it's", "|", "cat"], "sh -c 'LINE' {}"),
            (&["curl", "h/a&b", "|", "cat"], "sh -c 'LINE' {}"),
            (&["curl", "h;a", "{}", ">", "b"], "sh -c 'LINE' {}"),
            (&["cut", "-d", "|", "{}", "|", "cat"], "sh -c 'LINE' {}"),
            (&["echo", "", "{}", "|", "cat"], "sh -c 'LINE' {}"),
            (
                &["nice", "-n", "5", "echo", "{}", "|", "cat"],
                "type: sh -c 'nice -n 5 echo \"$0\" | cat' {}",
            ),
            (
                &["gzip", "{};ls", "-l"],
                "type: sh -c 'gzip \"$0\";ls -l' {}",
            ),
            (&["gzip", "{.};exit"], "type: sh -c 'gzip \"$0\";exit' {.}"),
            (
                &["true", ";", "/bin/sh"],
                "type: sh -c 'true ; /bin/sh \"$0\"' {}",
            ),
        ] {
            let told = checked(words).unwrap_err();
            assert!(
                told.ends_with(typed) || told.contains(typed),
                "{words:?}: {told}"
            );
        }
    }

    #[test]
    fn what_may_be_an_argument_goes_through() {
        for words in [
            &["cut", "-d", "|", "-f1", "{}"][..],
            &["grep", ">", "{}"],
            &["grep", "-c", ">", "{}"],
            &["tr", "|", ","],
            &["find", "{}", "-exec", "ls", ";", "-print"],
            &["find", "{}", "-exec", "ls", ";"],
            &["[", "{}", ">", "a", "]"],
            &["echo", "{};"],
            &["jq", "{}|sort"],
            &["echo", "{};no-program-has-this-name"],
            &["curl", "h/{};ls"],
            &["mysql", "-e", "{};ls"],
            &["echo", "a;", "no-program-has-this-name"],
            &["ssh", "{}", "df", "-h", "|", "cat"],
            &["sudo", "-u", "me", "ssh", "{}", "ls", ">", "a"],
            &["watch", "ls", "{}", "|", "cat"],
            &["kubectl", "exec", "{}", "--", "ls", "&&", "cat"],
            &["timeout", "5", "[", "{}", ">", "b", "]"],
            &["env", "A=1", "nice", "-n", "5", "test", "{}", ">", "b"],
            &["nohup", "grep", ">", "{}"],
            &["mysql", "-e", "show;", "cat", "{}"],
            &["mysql", "show tables;", "cat", "{}"],
            &["psql", "-c", "vacuum;", "cat"],
            &["sed", "-i", "s/a/b/;", "/bin/sh", "{}"],
            &["sed", "s/a/b/;", "/bin/sh"],
            &["sh", "-c", "\"$@\"", "sh", "echo", "|", "cat"],
        ] {
            assert_eq!(checked(words), Ok(()), "{words:?}");
        }
    }
}
