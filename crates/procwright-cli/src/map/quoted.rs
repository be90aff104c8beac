//! Commands as a shell takes them, byte by byte.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// One line that a shell splits into these words again.
pub(super) fn quoted(words: &[OsString]) -> Vec<u8> {
    let mut line = Vec::new();
    for word in words {
        if !line.is_empty() {
            line.push(b' ');
        }
        let word = word.as_bytes();
        // A brace by itself, and those without a comma or two dots, are no shell's.
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,={}#".contains(byte);
        // Of the first word it would be a variable.
        let is_assignment = line.is_empty() && word.contains(&b'=');
        let is_expanded = word.contains(&b'{') && (word.contains(&b',') || has_range(word));
        if !word.is_empty()
            && word.iter().all(is_plain)
            && !is_expanded
            && !is_assignment
            && !matches!(word[0], b'#' | b'=')
        {
            line.extend_from_slice(word);
            continue;
        }
        line.push(b'\'');
        for byte in word {
            match byte {
                b'\'' => line.extend_from_slice(b"'\\''"),
                byte => line.push(*byte),
            }
        }
        line.push(b'\'');
    }
    line
}

fn has_range(word: &[u8]) -> bool {
    word.windows(2).any(|pair| pair == b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> String {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        String::from_utf8(quoted(&words)).unwrap()
    }

    #[test]
    fn what_a_shell_would_change_stands_in_quotes() {
        assert_eq!(line(&["gzip", "-9", "a/b.c", "{}"]), "gzip -9 a/b.c {}");
        assert_eq!(line(&["a b", "", "it's", "$x"]), r"'a b' '' 'it'\''s' '$x'");
        assert_eq!(
            line(&["{a,b}", "{1..3}", "#x", "=x"]),
            "'{a,b}' '{1..3}' '#x' '=x'"
        );
        assert_eq!(line(&["~", "*", "ä"]), "'~' '*' 'ä'");
    }
}
