//! The items that the command is run for.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use procwright::BoxError;
use rustix::fs::{FileType, fstat, stat};

use crate::message;

/// The word behind which items come, and the one behind which a file of them is named.
const SEPARATOR: &str = ":::";
const FILE_SEPARATOR: &str = "::::";

/// What stands behind these for a list that goes side by side with the one before it.
const LINK: &str = "+";

/// The file that is stdin.
const STDIN: &str = "-";

/// The items of one command: one of each list, in the order of the lists.
pub(super) type Row = Vec<OsString>;

/// Where the items come from.
pub(super) enum Items {
    /// One list that is read as there is room for commands.
    Read { from: BufReader<File>, end: u8 },
    /// Groups of lists: lists of a group go side by side, and each row of a group meets each of
    /// the others.
    Product(Product),
}

/// A command line in its parts.
pub(super) struct Parted {
    pub(super) command: Vec<OsString>,
    pub(super) lists: Lists,
}

/// Lists of items of which no file has been opened; one at least.
pub(super) struct Lists {
    /// Groups of lists that go side by side.
    groups: Vec<Vec<List>>,
    end: u8,
}

/// One list of items.
enum List {
    Given(Vec<OsString>),
    /// A file, and the option that names it.
    File(&'static str, PathBuf),
}

/// Parts a command line into the command and its items. `files` are those of `--arg-file`; with
/// `links` all lists go side by side.
///
/// # Errors
/// What is wrong with it, in words for a person.
pub(super) fn parted(
    words: Vec<OsString>,
    files: &[PathBuf],
    is_null: bool,
    links: bool,
) -> Result<Parted, String> {
    let is_separator = |word: &OsString| separator(word).is_some();
    let mut words = words.into_iter().peekable();
    let mut command = Vec::new();
    while let Some(word) = words.next_if(|word| !is_separator(word)) {
        command.push(word);
    }
    if command.is_empty() {
        return Err(format!(
            "no command is named before {SEPARATOR}\n  \
             hint: as in: procwright map gzip -9 {{}} {SEPARATOR} *.log\n  \
             hint: items that are commands are run by a shell: procwright map sh -c {SEPARATOR} …"
        ));
    }
    let mut groups: Vec<Vec<List>> = Vec::new();
    let add = |groups: &mut Vec<Vec<List>>, list, is_linked: bool| match groups
        .last_mut()
        .filter(|_| is_linked || links)
    {
        Some(group) => group.push(list),
        None => groups.push(vec![list]),
    };
    for path in files {
        add(&mut groups, List::File("--arg-file", path.clone()), false);
    }
    while let Some((kind, is_linked)) = words.next().as_ref().and_then(separator) {
        if is_linked && groups.is_empty() {
            return Err(format!(
                "{kind}{LINK} puts a list beside the one before it, and there is none\n  \
                 hint: the first list stands behind {kind}"
            ));
        }
        let mut given = Vec::new();
        while let Some(word) = words.next_if(|word| !is_separator(word)) {
            given.push(word);
        }
        match kind == SEPARATOR {
            true => add(&mut groups, List::Given(given), is_linked),
            false if given.is_empty() => {
                return Err(format!(
                    "no file is named behind {kind}\n  \
                     hint: {kind} FILE has its lines for items, - is stdin"
                ));
            }
            false => given
                .into_iter()
                .for_each(|name| add(&mut groups, List::File(kind, name.into()), is_linked)),
        }
    }
    // With `links` all are of one group.
    if links && groups.first().is_none_or(|group| group.len() < 2) {
        return Err(format!(
            "--link puts lists side by side, and there is one\n  \
             hint: as in: procwright map --link echo {{1}} {{2}} {FILE_SEPARATOR} names ages"
        ));
    }
    let mut lists = groups.iter().flatten();
    let reads = lists.any(|list| matches!(list, List::File(..)));
    if is_null && !groups.is_empty() && !reads {
        return Err(format!(
            "--null is for items that are read, and these stand behind {SEPARATOR}"
        ));
    }
    if groups.is_empty() {
        groups.push(vec![List::File("stdin", STDIN.into())]);
    }
    let lists = Lists {
        groups,
        end: if is_null { 0 } else { b'\n' },
    };
    lists.refuse_one_pipe_twice()?;
    Ok(Parted { command, lists })
}

/// The separator that a word is, and whether its list goes side by side with the one before it.
fn separator(word: &OsString) -> Option<(&'static str, bool)> {
    let word = word.to_str()?;
    [FILE_SEPARATOR, SEPARATOR]
        .into_iter()
        .find_map(|kind| match word.strip_prefix(kind)? {
            "" => Some((kind, false)),
            LINK => Some((kind, true)),
            _ => None,
        })
}

impl Lists {
    /// How many items a command gets: one of each list.
    pub(super) fn count(&self) -> usize {
        self.lists().count()
    }

    fn lists(&self) -> impl Iterator<Item = &List> {
        self.groups.iter().flatten()
    }

    /// The files that items are read from but for stdin, with the options that name them.
    pub(super) fn files(&self) -> Vec<(&'static str, PathBuf)> {
        let named = self.lists().filter_map(|list| match list {
            List::File(option, path) if path.as_os_str() != STDIN => Some((*option, path.clone())),
            _ => None,
        });
        named.collect()
    }

    /// Refuses two lists of lines that come once: one of them would be empty, and then there is
    /// no item at all, or the open of a FIFO would wait for another writer.
    fn refuse_one_pipe_twice(&self) -> Result<(), String> {
        let mut seen = Vec::new();
        for list in self.lists() {
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
    /// Why a file cannot be read, and that lists are not equally long which go side by side, in
    /// words for a person.
    pub(super) fn open(self) -> Result<Items, String> {
        let Lists { groups, end } = self;
        if let [group] = &*groups
            && let [List::File(option, path)] = &**group
        {
            if *option == "stdin" && io::stdin().is_terminal() {
                message::print(format_args!(
                    "the items are read from the terminal, a line each; Ctrl-D ends them\n  \
                     hint: {SEPARATOR} stands before items on the command line"
                ));
            }
            let from = open(path)?;
            return Ok(Items::Read { from, end });
        }
        let groups = groups.into_iter().map(|group| rows(group, end));
        Ok(Items::Product(Product::new(
            groups.collect::<Result<_, String>>()?,
        )))
    }
}

/// The rows of lists that go side by side.
fn rows(group: Vec<List>, end: u8) -> Result<Vec<Row>, String> {
    // Beside another list an empty line has its place.
    let keeps_empty = group.len() > 1;
    let mut rows: Option<Vec<Row>> = None;
    for list in group {
        let items = list.items(end, keeps_empty)?;
        match &mut rows {
            Some(rows) => link(rows, items)?,
            None => rows = Some(items.into_iter().map(|item| vec![item]).collect()),
        }
    }
    Ok(rows.unwrap_or_default())
}

impl List {
    /// All of them, of a file too: they are needed again for each item of the lists before.
    fn items(self, end: u8, keeps_empty: bool) -> Result<Vec<OsString>, String> {
        let path = match self {
            List::Given(items) => return Ok(items),
            List::File(_, path) => path,
        };
        let mut from = open(&path)?;
        let next = || match keeps_empty {
            true => read_any(&mut from, end).transpose(),
            false => read(&mut from, end).transpose(),
        };
        std::iter::from_fn(next)
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| format!("cannot read items from {path:?}: {error}"))
    }
}

/// Puts the items of a list beside those of the lists before it.
///
/// # Errors
/// They are not equally many. GNU parallel begins the shorter list again, and pairs what does not
/// belong together.
fn link(rows: &mut [Row], items: Vec<OsString>) -> Result<(), String> {
    if rows.len() != items.len() {
        return Err(format!(
            "lists that go side by side have {} and {} items\n  \
             hint: make them equally long; none is begun again from its beginning",
            rows.len(),
            items.len()
        ));
    }
    for (row, item) in rows.iter_mut().zip(items) {
        row.push(item);
    }
    Ok(())
}

fn open(path: &Path) -> Result<BufReader<File>, String> {
    let opened = match path.as_os_str() == STDIN {
        true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        false => File::open(path),
    };
    match opened {
        Ok(file) => Ok(BufReader::new(file)),
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
pub(super) fn read(from: &mut impl BufRead, end: u8) -> io::Result<Option<OsString>> {
    loop {
        let item = read_any(from, end)?;
        if item.as_ref().is_none_or(|item| !item.is_empty()) {
            return Ok(item);
        }
    }
}

/// The next item, empty or not.
fn read_any(from: &mut impl BufRead, end: u8) -> io::Result<Option<OsString>> {
    let mut item = Vec::new();
    if from.read_until(end, &mut item)? == 0 {
        return Ok(None);
    }
    item.pop_if(|last| *last == end);
    Ok(Some(OsString::from_vec(item)))
}

/// Each row of one group with each of the others; the last group changes first.
pub(super) struct Product {
    groups: Vec<Vec<Row>>,
    /// Places of the next row's items; none when there are no more rows.
    next: Option<Vec<usize>>,
}

impl Product {
    fn new(groups: Vec<Vec<Row>>) -> Product {
        let has_rows = groups.iter().all(|group| !group.is_empty());
        Product {
            next: has_rows.then(|| vec![0; groups.len()]),
            groups,
        }
    }

    /// How many rows there are; none of more than can be counted.
    pub(super) fn rows(&self) -> Option<u64> {
        let mut lengths = self.groups.iter().map(|group| group.len() as u64);
        lengths.try_fold(1, u64::checked_mul)
    }
}

impl Iterator for Product {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let places = self.next.as_mut()?;
        let row = self.groups.iter().zip(&*places);
        let row = row.flat_map(|(group, place)| group[*place].iter().cloned());
        let row = row.collect();
        for (group, place) in self.groups.iter().zip(places).rev() {
            *place += 1;
            if *place < group.len() {
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
            let row = |item: &&str| vec![OsString::from(item)];
            let lists = lists.iter().map(|list| list.iter().map(row).collect());
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
        let row = || vec![OsString::new()];
        let product = Product::new(vec![vec![row(); 3], vec![row(); 2]]);
        assert_eq!(product.rows(), Some(6));
        assert_eq!(Product::new(vec![vec![row()], vec![]]).rows(), Some(0));
        assert!(lists(&[&[]]).is_empty());
    }
}
