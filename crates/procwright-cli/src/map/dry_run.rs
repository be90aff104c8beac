//! `--dry-run`: the commands, and nothing is started.

use super::items::Items;
use super::quoted::quoted;
use super::template::Template;
use crate::exit::Termination;
use crate::stdout;

/// Prints each command on a line, as a shell takes it.
///
/// # Errors
/// Items that cannot be read, and a failed write.
pub(super) fn print(items: Items, template: &Template) -> Result<Termination, Termination> {
    for (number, items) in (1..).zip(items) {
        let items = items.map_err(Termination::trouble)?;
        let mut line = quoted(&template.words(&items, number));
        line.push(b'\n');
        stdout::print(&line)?;
    }
    Ok(Termination::OK)
}
