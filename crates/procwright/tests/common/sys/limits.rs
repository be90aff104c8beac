//! What a process may have.

use super::check;

/// Sets the limit on addresses.
pub(crate) fn limit_addresses(bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    check(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) });
}
