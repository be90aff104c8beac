//! The items that the command is run for.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::os::unix::ffi::OsStringExt;

use procwright::BoxError;

use crate::message;

/// The word behind which the items come.
const SEPARATOR: &str = ":::";

/// Where the items come from.
#[derive(Debug)]
pub(super) enum Items {
    /// From the command line.
    Given(std::vec::IntoIter<OsString>),
    /// From stdin, read as there is room for their commands.
    Read { from: BufReader<io::Stdin>, end: u8 },
}

/// Parts a command line into the command and its items.
///
/// # Errors
/// What is wrong with it, in words for a person.
pub(super) fn parted(
    mut words: Vec<OsString>,
    is_null: bool,
) -> Result<(Vec<OsString>, Items), String> {
    let at = words.iter().position(|word| word == SEPARATOR);
    let given = at.map(|at| words.split_off(at).split_off(1));
    let command = words;
    if command.is_empty() {
        return Err(format!(
            "no command is named before {SEPARATOR}\n  \
             hint: as in: procwright map gzip -9 {{}} {SEPARATOR} *.log"
        ));
    }
    if given.iter().flatten().any(|word| word == SEPARATOR) {
        return Err(format!(
            "there is more than one {SEPARATOR}\n  hint: an item that is {SEPARATOR} itself can \
             come from stdin"
        ));
    }
    let items = match given {
        Some(_) if is_null => {
            return Err(format!(
                "--null is for items on stdin, and these stand behind {SEPARATOR}"
            ));
        }
        Some(given) => Items::Given(given.into_iter()),
        None => {
            if io::stdin().is_terminal() {
                message::print(format_args!(
                    "the items are read from the terminal, a line each; Ctrl-D ends them\n  \
                     hint: {SEPARATOR} stands before items on the command line"
                ));
            }
            Items::Read {
                from: BufReader::new(io::stdin()),
                end: if is_null { 0 } else { b'\n' },
            }
        }
    };
    Ok((command, items))
}

impl Iterator for Items {
    type Item = Result<OsString, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Items::Given(items) => items.next().map(Ok),
            Items::Read { from, end } => read(from, *end).transpose(),
        }
    }
}

/// The next item that is not empty.
fn read(from: &mut impl BufRead, end: u8) -> Result<Option<OsString>, BoxError> {
    loop {
        let mut item = Vec::new();
        if from.read_until(end, &mut item)? == 0 {
            return Ok(None);
        }
        item.pop_if(|last| *last == end);
        if !item.is_empty() {
            return Ok(Some(OsString::from_vec(item)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_are_no_items() {
        let mut from: &[u8] = b"\na b\n\n\nc\r\nlast";
        let items = std::iter::from_fn(|| read(&mut from, b'\n').unwrap());
        assert_eq!(items.collect::<Vec<_>>(), ["a b", "c\r", "last"]);
        let mut from: &[u8] = b"a\nb\0\0c\0";
        let items = std::iter::from_fn(|| read(&mut from, 0).unwrap());
        assert_eq!(items.collect::<Vec<_>>(), ["a\nb", "c"]);
    }
}
