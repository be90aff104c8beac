//! The items that the command is run for.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use procwright::BoxError;
use rustix::fs::{FileType, fstat, stat};

use crate::message;

/// The word behind which items come, and the one behind which a file of them is named.
const SEPARATOR: &str = ":::";
const FILE_SEPARATOR: &str = "::::";

/// The file that is stdin.
const STDIN: &str = "-";

/// What GNU parallel has, and what has no meaning here: two lists that go side by side.
const LINKED: [&str; 2] = [":::+", "::::+"];

/// The items of one command: one of each list, in the order of the lists.
pub(super) type Row = Vec<OsString>;

/// Where the items come from.
pub(super) enum Items {
    /// One list that is read as there is room for commands.
    Read {
        from: Box<dyn BufRead + Send>,
        end: u8,
    },
    /// Lists of which each item meets each of the others.
    Product(Product),
}

/// A command line in its parts.
pub(super) struct Parted {
    pub(super) command: Vec<OsString>,
    pub(super) lists: Lists,
}

/// Lists of items of which no file has been opened; one at least.
pub(super) struct Lists {
    lists: Vec<List>,
    end: u8,
}

/// One list of items.
enum List {
    Given(Vec<OsString>),
    /// A file, and the option that names it.
    File(&'static str, PathBuf),
}

/// Parts a command line into the command and its items. `files` are those of `--arg-file`.
///
/// # Errors
/// What is wrong with it, in words for a person.
pub(super) fn parted(
    words: Vec<OsString>,
    files: &[PathBuf],
    is_null: bool,
) -> Result<Parted, String> {
    let is_separator = |word: &OsString| word == SEPARATOR || word == FILE_SEPARATOR;
    let mut words = words.into_iter().peekable();
    let mut command = Vec::new();
    while let Some(word) = words.next_if(|word| !is_separator(word)) {
        refuse_linked(&word)?;
        command.push(word);
    }
    if command.is_empty() {
        return Err(format!(
            "no command is named before {SEPARATOR}\n  \
             hint: as in: procwright map gzip -9 {{}} {SEPARATOR} *.log\n  \
             hint: items that are commands are run by a shell: procwright map sh -c {SEPARATOR} …"
        ));
    }
    let files = files.iter().cloned();
    let mut lists: Vec<List> = files.map(|path| List::File("--arg-file", path)).collect();
    while let Some(separator) = words.next() {
        let mut given = Vec::new();
        while let Some(word) = words.next_if(|word| !is_separator(word)) {
            refuse_linked(&word)?;
            given.push(word);
        }
        match separator == SEPARATOR {
            true => lists.push(List::Given(given)),
            false if given.is_empty() => {
                return Err(format!(
                    "no file is named behind {FILE_SEPARATOR}\n  \
                     hint: {FILE_SEPARATOR} FILE has its lines for items, - is stdin"
                ));
            }
            false => {
                let file = |name: OsString| List::File(FILE_SEPARATOR, name.into());
                lists.extend(given.into_iter().map(file));
            }
        }
    }
    let reads = lists.iter().any(|list| matches!(list, List::File(..)));
    if is_null && !lists.is_empty() && !reads {
        return Err(format!(
            "--null is for items that are read, and these stand behind {SEPARATOR}"
        ));
    }
    if lists.is_empty() {
        lists.push(List::File("stdin", STDIN.into()));
    }
    let lists = Lists {
        lists,
        end: if is_null { 0 } else { b'\n' },
    };
    lists.refuse_one_pipe_twice()?;
    Ok(Parted { command, lists })
}

fn refuse_linked(word: &OsString) -> Result<(), String> {
    match LINKED.iter().find(|linked| word == *linked) {
        Some(linked) => Err(format!(
            "{linked} is not there: each item of a list meets each of the others\n  \
             hint: have paste(1) make lines of what belongs together, and the command take them \
             apart"
        )),
        None => Ok(()),
    }
}

impl Lists {
    /// How many items a command gets: one of each list.
    pub(super) fn count(&self) -> usize {
        self.lists.len()
    }

    /// The files that items are read from but for stdin, with the options that name them.
    pub(super) fn files(&self) -> Vec<(&'static str, PathBuf)> {
        let named = self.lists.iter().filter_map(|list| match list {
            List::File(option, path) if path.as_os_str() != STDIN => Some((*option, path.clone())),
            _ => None,
        });
        named.collect()
    }

    /// Refuses two lists of lines that come once: one of them would be empty, and then there is
    /// no item at all, or the open of a FIFO would wait for another writer.
    fn refuse_one_pipe_twice(&self) -> Result<(), String> {
        let mut seen = Vec::new();
        for list in &self.lists {
            let List::File(_, path) = list else {
                continue;
            };
            let is_stdin = path.as_os_str() == STDIN;
            let found = match is_stdin {
                true => fstat(io::stdin()),
                false => stat(path),
            };
            // An open that fails will say why.
            let Ok(found) = found else {
                continue;
            };
            let is_pipe = FileType::from_raw_mode(found.st_mode) == FileType::Fifo;
            if !is_stdin && !is_pipe {
                continue;
            }
            let place = (found.st_dev, found.st_ino);
            if seen.contains(&place) {
                return Err(format!(
                    "two lists have the lines of {path:?}, which come once\n  \
                     hint: write them to a file, and name it twice"
                ));
            }
            seen.push(place);
        }
        Ok(())
    }

    /// Opens the files, and reads those of several lists.
    ///
    /// # Errors
    /// Why a file cannot be read, in words for a person.
    pub(super) fn open(self) -> Result<Items, String> {
        let Lists { lists, end } = self;
        if let [List::File(option, path)] = &*lists {
            if *option == "stdin" && io::stdin().is_terminal() {
                message::print(format_args!(
                    "the items are read from the terminal, a line each; Ctrl-D ends them\n  \
                     hint: {SEPARATOR} stands before items on the command line"
                ));
            }
            let from = open(path)?;
            return Ok(Items::Read { from, end });
        }
        let lists = lists.into_iter().map(|list| match list {
            List::Given(items) => Ok(items),
            // All of it is needed again for each item of the lists before.
            List::File(_, path) => {
                let mut from = open(&path)?;
                let items = std::iter::from_fn(|| read(&mut from, end).transpose());
                items
                    .collect::<io::Result<Vec<_>>>()
                    .map_err(|error| format!("cannot read items from {path:?}: {error}"))
            }
        });
        Ok(Items::Product(Product::new(
            lists.collect::<Result<_, String>>()?,
        )))
    }
}

fn open(path: &Path) -> Result<Box<dyn BufRead + Send>, String> {
    if path.as_os_str() == STDIN {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(BufReader::new(file))),
        Err(error) => Err(format!("cannot read items from {path:?}: {error}")),
    }
}

impl Iterator for Items {
    type Item = Result<Row, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Items::Product(product) => product.next().map(Ok),
            Items::Read { from, end } => match read(from, *end) {
                Ok(item) => item.map(|item| Ok(vec![item])),
                Err(error) => Some(Err(error.into())),
            },
        }
    }
}

/// The next item that is not empty.
fn read(from: &mut impl BufRead, end: u8) -> io::Result<Option<OsString>> {
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

/// Each item of one list with each of the others; the last list changes first.
pub(super) struct Product {
    lists: Vec<Vec<OsString>>,
    /// Places of the next row's items; none when there are no more rows.
    next: Option<Vec<usize>>,
}

impl Product {
    fn new(lists: Vec<Vec<OsString>>) -> Product {
        let has_rows = lists.iter().all(|list| !list.is_empty());
        Product {
            next: has_rows.then(|| vec![0; lists.len()]),
            lists,
        }
    }
}

impl Iterator for Product {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let places = self.next.as_mut()?;
        let row = self.lists.iter().zip(&*places);
        let row = row.map(|(list, place)| list[*place].clone()).collect();
        for (list, place) in self.lists.iter().zip(places).rev() {
            *place += 1;
            if *place < list.len() {
                return Some(row);
            }
            *place = 0;
        }
        self.next = None;
        Some(row)
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

    #[test]
    fn each_item_of_a_list_meets_each_of_the_others() {
        let lists = |lists: &[&[&str]]| -> Vec<String> {
            let lists = lists
                .iter()
                .map(|list| list.iter().map(OsString::from).collect());
            Product::new(lists.collect())
                .map(|row| row.join("".as_ref()).into_string().unwrap())
                .collect()
        };
        assert_eq!(lists(&[&["a", "b"]]), ["a", "b"]);
        assert_eq!(
            lists(&[&["a", "b"], &["1", "2"], &["x"]]),
            ["a1x", "a2x", "b1x", "b2x"]
        );
        assert!(lists(&[&["a"], &[]]).is_empty());
        assert!(lists(&[&[]]).is_empty());
    }
}
