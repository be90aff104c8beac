//! Commands as a shell takes them, for messages.

use std::ffi::OsString;

/// Characters of a command that are shown at most.
const MOST_SHOWN: usize = 400;

/// Characters at the end that are shown of a longer one: file names stand there.
const OF_THE_END: usize = 120;

/// One line that a shell would split into these words again.
pub(crate) fn quote_whole(argv: &[OsString]) -> String {
    shell_words::join(argv.iter().map(|word| word.to_string_lossy()))
}

/// The line of [`quote_whole`]; of a long one the beginning and the end, and between them how
/// much is left out.
pub(crate) fn quote(argv: &[OsString]) -> String {
    let line = quote_whole(argv);
    let count = line.chars().count();
    if count <= MOST_SHOWN {
        return line;
    }
    let split = |at| line.char_indices().nth(at).map_or(line.len(), |(at, _)| at);
    let head = &line[..split(MOST_SHOWN - OF_THE_END)];
    let tail = &line[split(count - OF_THE_END)..];
    let left_out = count - MOST_SHOWN;
    format!("{head} [… {left_out} characters …] {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_shows_its_beginning_and_its_end() {
        let spaced =
            |letters| ["sh", "-c", &format!("{} ", "ä".repeat(letters))].map(OsString::from);
        let most = spaced(MOST_SHOWN - 9);
        assert_eq!(
            quote(&most),
            format!("sh -c '{} '", "ä".repeat(MOST_SHOWN - 9))
        );
        let more = quote(&spaced(MOST_SHOWN - 8));
        assert!(more.contains(" [… 1 characters …] "), "{more}");
        let long: Vec<OsString> = (0..100_000).map(|n| format!("{n}").into()).collect();
        let shown = quote(&long);
        assert!(shown.starts_with("0 1 2 3"), "{shown}");
        assert!(shown.ends_with(" 99998 99999"), "{shown}");
        let left_out = 588_889 - MOST_SHOWN;
        assert!(
            shown.contains(&format!(" [… {left_out} characters …] ")),
            "{shown}"
        );
        assert!(shown.chars().count() < MOST_SHOWN + 40, "{shown}");
    }
}
