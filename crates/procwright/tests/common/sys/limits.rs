//! What a process may have.

use super::check;

/// Sets the soft limit on addresses.
pub(crate) fn limit_addresses(bytes: u64) {
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_AS, &mut limit));
        limit.rlim_cur = bytes.min(limit.rlim_max);
        check(libc::setrlimit(libc::RLIMIT_AS, &limit));
    }
}
