//! Files that two options name.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use procwright::{Spec, Stdin};

use super::report::ReportFile;
use crate::args::RunArgs;

/// Checks that no option writes to a file that another one reads or writes: the
/// file would be of no use, and its content would be lost.
///
/// # Errors
/// The two options, in words for a person.
pub(super) fn check(args: &RunArgs, spec: &Spec) -> Result<(), String> {
    let mut written: Vec<(&str, PathBuf)> = Vec::new();
    if let Some(path) = &args.log {
        written.push(("--log", path.clone()));
    }
    if let Some(path) = &spec.keep_full {
        let mut errors = OsString::from(path);
        errors.push(".stderr");
        written.push(("--keep-full", path.clone()));
        written.push(("--keep-full", errors.into()));
    }
    let report_to = args.report_to.as_ref();
    if let Some(path) = report_to.filter(|path| !ReportFile::is_stdout(path)) {
        written.push(("--report-to", path.clone()));
    }
    let read = match &spec.stdin {
        Stdin::File(path) => Some(("--stdin", path.clone())),
        _ => None,
    };
    let mut named: Vec<(&str, PathBuf)> = read.into_iter().collect();
    for (option, path) in written {
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

/// Returns whether both paths name one plain file. Devices and pipes take the output of
/// several writers.
fn conflict(a: &Path, b: &Path) -> bool {
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        // Neither file exists yet.
        (Err(_), Err(_)) => a == b,
        _ => false,
    }
}
