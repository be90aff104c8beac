//! Files that two options name.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::fstat;

/// Checks that no option writes to a file that another one, or this command's own streams,
/// read or write: the file would be of no use, and its content would be lost. `written` and
/// `read` are options with their files; `reads_stdin` tells that the stdin of this command is
/// read as well.
///
/// # Errors
/// The two options, in words for a person.
pub(crate) fn check(
    written: Vec<(&str, PathBuf)>,
    read: Vec<(&str, PathBuf)>,
    reads_stdin: bool,
) -> Result<(), String> {
    let mut named = read;
    for (option, path) in written {
        if let Some(name) = own_stream(&path, reads_stdin, option) {
            return Err(format!(
                "{option} names the file that {name} is already, {:?}\n  \
                 hint: one of the two is enough, or name another file",
                path.display()
            ));
        }
        if let Some((other, _)) = named.iter().find(|(_, other)| conflict(other, &path)) {
            return Err(format!(
                "{other} and {option} name the same file, {:?}\n  hint: give each its own",
                path.display()
            ));
        }
        named.push((option, path));
    }
    Ok(())
}

/// The standard stream of this command that a path leads to as well, if it is a plain file:
/// a report and a file of all output take the place of what is in it, and a program that
/// copies its input to a log of the same name would never come to an end. A log may not be a
/// FIFO twice either: its lines would come twice. Terminals and devices take all.
fn own_stream(path: &Path, reads_stdin: bool, option: &str) -> Option<&'static str> {
    let named = path.metadata().ok()?;
    let mixes_in_a_fifo = option == "--log" && named.file_type().is_fifo();
    if !(named.is_file() || mixes_in_a_fifo) {
        return None;
    }
    let is_named = |own: BorrowedFd<'_>| {
        fstat(own).is_ok_and(|own| (own.st_dev, own.st_ino) == (named.dev(), named.ino()))
    };
    if reads_stdin && named.is_file() && is_named(io::stdin().as_fd()) {
        Some("stdin")
    } else if is_named(io::stdout().as_fd()) {
        Some("stdout")
    } else if is_named(io::stderr().as_fd()) {
        Some("stderr")
    } else {
        None
    }
}

/// Returns whether both paths name one plain file. Devices and pipes take the output of
/// several writers.
fn conflict(a: &Path, b: &Path) -> bool {
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        // Neither file exists yet.
        (Err(_), Err(_)) => place(a) == place(b),
        _ => false,
    }
}

/// Where a file would be made that is not there: `a` and `./a` are one place, and so are a link
/// and what it leads to. A path that leads nowhere is itself.
fn place(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // So many links are followed by Linux; the end of a ring is never found.
    for _ in 0..40 {
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let (Ok(parent), Some(name)) = (parent.canonicalize(), path.file_name()) else {
            break;
        };
        let place = parent.join(name);
        match place.read_link() {
            // A target that begins at the root takes the place of the whole path.
            Ok(target) => path = parent.join(target),
            Err(_) => return place,
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_file_that_is_not_there_are_one_place() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, at(name));
        link("sub", "dir").unwrap();
        link("../a", "sub/first").unwrap();
        link("dir/first", "second").unwrap();
        link("ring", "ring").unwrap();
        for other in ["./a", "sub/../a", "dir/../a", "dir/first", "second"] {
            assert!(conflict(&at("a"), &at(other)), "{other}");
            assert!(conflict(&at(other), &at("a")), "{other}");
        }
        for other in ["b", "sub/a", "ring", "none/a", "sub/.."] {
            assert!(!conflict(&at("a"), &at(other)), "{other}");
        }
    }
}
