//! A limit of how often something happens.

use std::time::{Duration, Instant};

/// Permits something so many times in a second; all of them may follow each other at
/// once.
#[derive(Debug)]
pub(super) struct RateLimit {
    per_second: u32,
    /// Times that are left in this second.
    left: u32,
    /// Begin of this second.
    since: Instant,
}

impl RateLimit {
    pub(super) fn new(per_second: u32, now: Instant) -> RateLimit {
        RateLimit {
            per_second,
            left: per_second,
            since: now,
        }
    }

    /// Returns whether it may happen now; counts it if so.
    pub(super) fn permits(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= Duration::from_secs(1) {
            *self = RateLimit::new(self.per_second, now);
        }
        let permits = self.left > 0;
        self.left = self.left.saturating_sub(1);
        permits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_drawn_again_so_often_a_second() {
        let now = Instant::now();
        let mut limit = RateLimit::new(10, now);
        assert_eq!((0..50).filter(|_| limit.permits(now)).count(), 10);
        assert!(limit.permits(now + Duration::from_secs(1)));
    }
}
