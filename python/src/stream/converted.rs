//! Lines and gaps as objects of Python's.

use procwright::stream::Item;
use pyo3::prelude::*;

/// An [`Item`] of a stream, with its bytes made into something.
pub(super) enum Converted<T> {
    Line(T),
    /// The number of bytes that were dropped here.
    Gap(u64),
    End,
}

impl<T> Converted<T> {
    pub(super) fn from_item(item: Item<'_>, make: impl FnOnce(&[u8]) -> T) -> Converted<T> {
        match item {
            Item::Line(bytes) => Converted::Line(make(bytes)),
            Item::Gap(n) => Converted::Gap(n),
            _ => Converted::End,
        }
    }
}

/// An iterator's item, None at the end.
pub(super) type NextItem<'py, T> = PyResult<Option<Bound<'py, T>>>;
