//! Letters that are safe to show.

/// `text` with what would change how a terminal shows it escaped: control characters, those
/// without a width, and those that turn the direction of what follows.
pub(crate) fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() || is_invisible(letter) {
            true => safe.extend(letter.escape_default()),
            false => safe.push(letter),
        }
    }
    safe
}

fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn what_turns_or_hides_text_is_escaped() {
        assert_eq!(
            safe("a\u{202e}b\u{200b}c\u{2066}\x1b"),
            r"a\u{202e}b\u{200b}c\u{2066}\u{1b}"
        );
        assert_eq!(safe("Grüße …"), "Grüße …");
    }
}
