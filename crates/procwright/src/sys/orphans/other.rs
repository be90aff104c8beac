//! Elsewhere orphans go to init and nowhere else.

use std::io;

pub(crate) fn adopt() -> io::Result<()> {
    Err(crate::sys::unsupported("adopting orphans"))
}

pub(crate) fn children() -> Vec<i32> {
    Vec::new()
}

pub(crate) fn reap_ended(_except: i32) -> usize {
    0
}
