//! A line for a shell that has its items as `"$0"`, `"$1"` and so on, and these behind it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::quoted::quoted;

#[derive(Default)]
pub(super) struct ShellLine<'t> {
    line: Vec<u8>,
    /// The placeholders, each once.
    arguments: Vec<&'t [u8]>,
}

impl<'t> ShellLine<'t> {
    /// Adds what stands in the line as it is.
    pub(super) fn push(&mut self, text: &[u8]) {
        self.line.extend_from_slice(text);
    }

    /// Adds what a placeholder stands for.
    pub(super) fn push_place(&mut self, text: &'t [u8]) {
        let known = self.arguments.iter().position(|known| *known == text);
        let number = known.unwrap_or_else(|| {
            self.arguments.push(text);
            self.arguments.len() - 1
        });
        self.push(format!("\"${number}\"").as_bytes());
    }

    pub(super) fn has_places(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// The command as it is typed, of which `shell` are the words before the line.
    pub(super) fn command(self, shell: impl IntoIterator<Item = OsString>) -> String {
        let arguments = self.arguments.into_iter();
        let arguments = arguments.map(|text| OsStr::from_bytes(text).to_owned());
        let line = OsString::from_vec(self.line);
        let words: Vec<OsString> = shell.into_iter().chain([line]).chain(arguments).collect();
        // Braces need no quotes, and nobody types them with quotes.
        String::from_utf8_lossy(&quoted(&words)).into_owned()
    }
}
