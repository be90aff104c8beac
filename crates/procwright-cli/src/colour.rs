//! Colour, where a person sees it and wants it. Everything that colour says is
//! said in words as well.

use std::io::{self, IsTerminal};

use crate::tty;

/// Returns whether a terminal may get colours, see <https://no-color.org>.
#[doc(alias = "NO_COLOR")]
pub(crate) fn is_wanted() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !unwanted && !tty::is_dumb()
}

/// Returns whether stderr is a terminal that gets colours.
pub(crate) fn on_stderr() -> bool {
    is_wanted() && io::stderr().is_terminal()
}

/// `text` in green if it is good news, else in red.
pub(crate) fn green_or_red(text: &str, good: bool) -> String {
    let code = if good { 32 } else { 31 };
    format!("\x1b[{code}m{text}\x1b[0m")
}
