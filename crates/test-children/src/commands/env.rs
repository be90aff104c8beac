//! `env`: every entry of the environment as it was passed, each followed by a NUL.
//!
//! Duplicates and entries without `=` are shown too.

use std::ffi::{CStr, c_char};

use crate::process::{STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "env",
    usage: "",
    about: "writes each entry of its environment, followed by a NUL",
    run,
};

unsafe extern "C" {
    /// The environment, kept by the C library: a list that ends with null.
    static environ: *const *const c_char;
}

fn run(args: Args) -> Outcome {
    args.finish()?;
    let mut bytes = Vec::new();
    // SAFETY: nothing in this program changes the environment or starts a
    // thread that could, and the C library set the pointer before `main`.
    let mut entry = unsafe { environ };
    while !entry.is_null() {
        // SAFETY: `entry` points into the list, at most at the null at its end.
        let text = unsafe { *entry };
        if text.is_null() {
            break;
        }
        // SAFETY: an entry that is not null is a NUL-terminated string.
        bytes.extend(unsafe { CStr::from_ptr(text) }.to_bytes_with_nul());
        // SAFETY: the entry was not the last, which is null.
        entry = unsafe { entry.add(1) };
    }
    write_all(STDOUT, &bytes)?;
    Ok(0)
}
