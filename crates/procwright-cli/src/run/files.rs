//! The files that the options name: one of them cannot be two things.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use procwright::{Spec, Stdin};

use crate::args::RunArgs;

/// # Errors
/// A text for people, if what one option writes is what another reads or writes:
/// nobody could make anything of it, and what was in it would be lost.
pub(super) fn are_apart(args: &RunArgs, spec: &Spec) -> Result<(), String> {
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
    if let Some(path) = &args.report_to {
        written.push(("--report-to", path.clone()));
    }
    let read = match &spec.stdin {
        Stdin::File(path) => Some(("--stdin", path.clone())),
        _ => None,
    };
    let mut seen: Vec<(&str, PathBuf)> = read.into_iter().collect();
    for (option, path) in written {
        if let Some((other, _)) = seen.iter().find(|(_, other)| is_same(other, &path)) {
            return Err(format!(
                "{other} and {option} name the same file, {:?}\n  hint: give each its own",
                path.display()
            ));
        }
        seen.push((option, path));
    }
    Ok(())
}

/// Devices, pipes and the like take what several write.
fn is_same(a: &Path, b: &Path) -> bool {
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        // Those that are not there yet.
        (Err(_), Err(_)) => a == b,
        _ => false,
    }
}
