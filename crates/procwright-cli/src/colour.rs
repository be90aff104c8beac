//! Colour, where somebody sees it and wants it. It is never the only thing that
//! says something.

use std::io::{self, IsTerminal};

/// Whether the terminal knows nothing but text, as far as the environment says.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// Whether a terminal may get colours: nobody said no (<https://no-color.org>).
pub(crate) fn is_wanted() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !unwanted && !is_dumb()
}

/// Whether stderr is a terminal that gets colours.
pub(crate) fn on_stderr() -> bool {
    is_wanted() && io::stderr().is_terminal()
}

/// `text` in green if it is good news and in red if not.
pub(crate) fn judged(text: &str, good: bool) -> String {
    let code = if good { 32 } else { 31 };
    format!("\x1b[{code}m{text}\x1b[0m")
}
