//! Colour, where somebody sees it and wants it. It is never the only thing that
//! says something.

use std::io::{self, IsTerminal};

use crate::run::output::own::is_dumb;

/// Whether stderr is a terminal that shows colours, and nobody said no
/// (<https://no-color.org>).
pub(crate) fn on_stderr() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !unwanted && !is_dumb() && io::stderr().is_terminal()
}

/// `text` in green if it is good news and in red if not.
pub(crate) fn judged(text: &str, good: bool) -> String {
    let code = if good { 32 } else { 31 };
    format!("\x1b[{code}m{text}\x1b[0m")
}
