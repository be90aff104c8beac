//! `--tag`: what stands in front of the lines of a command.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use procwright_os::sync::Mutex;

use super::template::{Syntax, Template};

/// Tags of the commands that have not ended, by their places in the input.
#[derive(Debug)]
pub(super) struct Tags {
    template: Template,
    waiting: Mutex<HashMap<u64, OsString>>,
}

impl Tags {
    /// # Errors
    /// A placeholder for which there is nothing, in words for a person.
    pub(super) fn new(tag: &OsStr, syntax: Syntax<'_>) -> Result<Arc<Tags>, String> {
        Ok(Arc::new(Tags {
            template: Template::of_word(tag, syntax)?,
            waiting: Mutex::default(),
        }))
    }

    /// Keeps the tag of the command at `index` for these items.
    pub(super) fn put(&self, index: u64, items: &[OsString]) {
        let tag = self.template.word(items, index + 1);
        self.waiting.lock().insert(index, tag);
    }

    /// Takes it out.
    pub(super) fn take(&self, index: u64) -> Option<OsString> {
        self.waiting.lock().remove(&index)
    }
}
