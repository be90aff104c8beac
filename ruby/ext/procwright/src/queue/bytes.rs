//! Messages that the caller has in strings of Ruby's.
#![allow(unsafe_code)]

use magnus::RString;

/// Lends the bytes to `using`, which keeps Ruby's lock and calls nothing of Ruby's.
pub(super) fn with_bytes<T>(string: RString, using: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: so no other thread changes or frees it meanwhile.
    using(unsafe { string.as_slice() })
}

/// The bytes of each string. The caller holds the strings, keeps Ruby's lock and calls nothing
/// of Ruby's while it has them.
pub(super) fn each(strings: &[RString]) -> impl Iterator<Item = &[u8]> {
    // SAFETY: so no other thread changes or frees them meanwhile.
    strings.iter().map(|string| unsafe { string.as_slice() })
}
