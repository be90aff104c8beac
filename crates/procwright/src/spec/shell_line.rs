//! Which words behind a line for a shell the line uses, as far as that is certain.

/// What a line for a shell does with the words behind it, which a shell drops without an error if
/// the line asks for none of them.
///
/// ```
/// use procwright::spec::ShellWords;
///
/// assert_eq!(ShellWords::behind(b"ls \"$1\"", &["sh", "/tmp"]), ShellWords::Used);
/// assert_eq!(ShellWords::behind(b"ls", &["/tmp"]), ShellWords::Unused);
/// assert_eq!(ShellWords::behind(b"ls \"$1\"", &["/tmp"]), ShellWords::TakenForOne);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShellWords {
    /// It may use them.
    Used,
    /// It has none of `$0`, `$1`, `$@`, `$*`, `$#` and `${1}`.
    Unused,
    /// It takes the one word behind it for `$1`, while that is `$0`: it uses `$1`, which is not
    /// there, and never the word. Of several words the first may be a name that is meant, and the
    /// others as many as there are.
    TakenForOne,
}

/// What people put first for the sake of `$0` alone.
const NAMES: [&[u8]; 8] = [b"_", b"-", b"--", b"sh", b"bash", b"dash", b"ksh", b"zsh"];

/// Words of a line that may give the shell other words than those behind it, or ask whether there
/// is one.
const OTHERS: [&[u8]; 6] = [b"set", b"function", b"eval", b"source", b"alias", b"test"];

impl ShellWords {
    /// What `line` does with these words behind it.
    pub fn behind(line: &[u8], words: &[impl AsRef<[u8]>]) -> ShellWords {
        let mut parameters = parameters(line).peekable();
        if parameters.peek().is_none() {
            return ShellWords::Unused;
        }
        let takes_the_word = parameters.any(|name| !(b'1'..=b'9').contains(&name));
        match words {
            [word]
                if !is_a_name(word.as_ref())
                    && !takes_the_word
                    && !may_have_others(line)
                    && uses_one(line) == Some(true) =>
            {
                ShellWords::TakenForOne
            }
            _ => ShellWords::Used,
        }
    }

    /// The name that front ends go by.
    pub const fn name(self) -> &'static str {
        match self {
            ShellWords::Used => "used",
            ShellWords::Unused => "unused",
            ShellWords::TakenForOne => "taken_for_one",
        }
    }
}

fn is_a_name(word: &[u8]) -> bool {
    let base = word.rsplit(|byte| *byte == b'/').next();
    base.is_some_and(|base| NAMES.contains(&base))
}

/// The first characters of the names of the parameters that are about the words behind the line,
/// wherever they stand: digits, `@`, `*` and `#`, of `$1`, `${1}`, `${#1}`, `${!1}`.
fn parameters(line: &[u8]) -> impl Iterator<Item = u8> {
    let is_one = |byte: &u8| byte.is_ascii_digit() || b"@*#".contains(byte);
    let dollars = line.iter().enumerate().filter(|(_, byte)| **byte == b'$');
    dollars.flat_map(move |(at, _)| {
        let name = &line[at + 1..];
        let name = name.strip_prefix(b"{").unwrap_or(name);
        // Of `$#1`, both: the number of the words, and a digit behind it.
        let behind = name.strip_prefix(b"#").or_else(|| name.strip_prefix(b"!"));
        let firsts = [name.first(), behind.and_then(<[u8]>::first)];
        firsts.into_iter().flatten().copied().filter(is_one)
    })
}

/// Whether something may give the shell other words than those behind the line, asks whether there
/// is one, or says that a `$` may be one of another program: functions, `set`, tests, comments, here
/// documents, `$'...'`.
fn may_have_others(line: &[u8]) -> bool {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'\x0b';
    let after_space = |from: usize| line[from..].iter().find(|byte| !is_space(byte));
    let mut words = line.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    if words.any(|word| OTHERS.contains(&word)) {
        return true;
    }
    line.iter().enumerate().any(|(at, byte)| match byte {
        b'[' => true,
        b'(' => after_space(at + 1) == Some(&b')'),
        b'<' | b'$' => {
            let second = if *byte == b'<' { b'<' } else { b'\'' };
            line.get(at + 1) == Some(&second)
        }
        b'#' => at == 0 || is_space(&line[at - 1]),
        // The command that reads another file.
        b'.' => {
            let before = line[..at].iter().rposition(|byte| !is_space(byte));
            let is_first = match before {
                None => true,
                Some(before) => {
                    b";&|({".contains(&line[before]) || line[before + 1..at].contains(&b'\n')
                }
            };
            is_first && line.get(at + 1).is_some_and(is_space)
        }
        _ => false,
    })
}

/// Whether the shell puts in the first argument whatever else is true; none if what is quoted cannot
/// be told.
fn uses_one(line: &[u8]) -> Option<bool> {
    let mut found = false;
    let mut rest = line;
    while let Some((first, behind)) = rest.split_first() {
        rest = match first {
            // A text in single quotes is left out.
            b'\'' => &behind[behind.iter().position(|byte| *byte == b'\'')? + 1..],
            b'\\' => behind.get(1..).unwrap_or_default(),
            b'"' => {
                let text = &behind[..quoted(behind)?];
                found |= uses_one(text).unwrap_or(false);
                &behind[text.len() + 1..]
            }
            b'`' => return None,
            b'$' => match behind {
                [b'$', behind @ ..] => behind,
                [number @ b'1'..=b'9', behind @ ..] => {
                    found |= *number == b'1';
                    behind
                }
                [b'{', b'1', b'}', behind @ ..] => {
                    found = true;
                    behind
                }
                behind => behind,
            },
            _ => behind,
        };
    }
    Some(found)
}

/// The length of a text in double quotes, by what stands behind the first of these; none if it has
/// other quotes in it, or a command.
fn quoted(behind: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match behind.get(at)? {
            b'"' => return Some(at),
            b'\'' | b'`' | b'(' => return None,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands in `conformance/shell.json`, for Python and Ruby as well.
    #[test]
    #[cfg(feature = "serde")]
    fn the_cases_of_all_front_ends() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/shell.json");
        let cases = std::fs::read_to_string(path).unwrap();
        let cases: serde_json::Value = serde_json::from_str(&cases).unwrap();
        for expected in [
            ShellWords::Used,
            ShellWords::Unused,
            ShellWords::TakenForOne,
        ] {
            let cases = cases[expected.name()].as_array().unwrap();
            assert!(!cases.is_empty());
            for case in cases {
                let words: Vec<String> = serde_json::from_value(case.clone()).unwrap();
                let (line, words) = words.split_first().unwrap();
                let found = ShellWords::behind(line.as_bytes(), words);
                assert_eq!(found, expected, "{line} {words:?}");
            }
        }
    }

    #[test]
    fn what_is_not_whole_cannot_be_told() {
        for line in [
            "echo $1 'x",
            "echo $1 \"x",
            "echo $1 `x",
            "echo $1 \"$(x)\"",
            "\\",
        ] {
            assert_ne!(
                ShellWords::behind(line.as_bytes(), &["x"]),
                ShellWords::TakenForOne,
                "{line}"
            );
        }
        for line in ["$1", "\"\\\"$1\"", "$$$1", "a '$2' ${1}", "\\$1 $1", "$2$1"] {
            assert_eq!(
                ShellWords::behind(line.as_bytes(), &["x"]),
                ShellWords::TakenForOne,
                "{line}"
            );
        }
    }
}
