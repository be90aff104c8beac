//! Commands as a shell takes them, for messages.

use std::ffi::OsString;

/// One line that a shell would split into these words again.
pub(crate) fn quote(argv: &[OsString]) -> String {
    let words = argv.iter().map(|word| word.to_string_lossy());
    shell_words::join(words)
}
