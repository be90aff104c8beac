//! The streams of a child, as `procwright/_stream.py` and `_text.py` complete them.
//!
//! Whatever is here already is given out with the interpreter lock held, which
//! costs no more than to make the object. Only who has to wait lets go of it.

mod merged;
mod patient;
mod reader;
mod source;
mod text;
mod writer;

pub(crate) use merged::Merged;
pub(crate) use patient::{Watcher, patiently};
pub(crate) use reader::{Frame, Reader};
pub(crate) use source::{Source, failed, stalled};
pub(crate) use text::TextReader;
pub(crate) use writer::Writer;

use procwright::stream::Item;
use pyo3::prelude::*;

use source::Inside;

/// What a line or a gap has become.
enum Given<T> {
    It(T),
    /// So many bytes were dropped here.
    Gap(u64),
    End,
}

impl<T> Given<T> {
    fn of(item: Item<'_>, make: impl FnOnce(&[u8]) -> T) -> Given<T> {
        match item {
            Item::Line(bytes) => Given::It(make(bytes)),
            Item::Gap(n) => Given::Gap(n),
            _ => Given::End,
        }
    }
}

/// An iterator's item.
type Next<'py, T> = PyResult<Option<Bound<'py, T>>>;
