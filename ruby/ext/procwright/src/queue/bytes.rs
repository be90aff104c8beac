//! Messages that a caller brings.
#![allow(unsafe_code)]

use magnus::RString;

/// Lends the bytes to `using`, which keeps Ruby's lock and calls nothing of Ruby's.
pub(super) fn with_bytes<T>(string: RString, using: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: so nobody changes or frees it meanwhile.
    using(unsafe { string.as_slice() })
}

/// The bytes of each, for who does the same, and whose caller holds the strings.
pub(super) fn each(strings: &[RString]) -> impl Iterator<Item = &[u8]> {
    // SAFETY: as above.
    strings.iter().map(|string| unsafe { string.as_slice() })
}
