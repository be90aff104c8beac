//! Time: a [`Deadline`] inside the crates, a [`Timeout`] at their interfaces.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::Invalid;

#[cfg(not(target_os = "netbsd"))]
const THREAD_CLOCK: rustix::time::ClockId = rustix::time::ClockId::ThreadCPUTime;
/// The crate knows none for threads there, so what is bounded by work is bounded by time.
#[cfg(target_os = "netbsd")]
const THREAD_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// Processor time that the calling thread has used: a measure of work done, which does
/// not run on while others have the processor. On NetBSD, time that has passed.
#[doc(alias = "CLOCK_THREAD_CPUTIME_ID")]
pub fn thread_cpu() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(THREAD_CLOCK)).unwrap_or_default()
}

/// A time that something may take, as a caller says it.
///
/// Zero or less has expired before it began; infinity and [`Timeout::NEVER`]
/// never expire. Both are ordinary values and no errors: a caller that computes
/// "what is left of my budget" passes the result on as it is.
///
/// ```
/// use procwright_os::time::Timeout;
///
/// assert!(Timeout::from_secs_f64(f64::INFINITY)?.is_never());
/// assert!(Timeout::from_secs_f64(-3.0)?.has_expired());
/// assert!(Timeout::from_secs_f64(f64::NAN).is_err());
/// # Ok::<(), procwright_os::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(Option<Duration>);

impl Timeout {
    /// A timeout that never expires. The default.
    pub const NEVER: Timeout = Timeout(None);

    /// A timeout that expires `duration` after it is started.
    pub const fn after(duration: Duration) -> Timeout {
        Timeout(Some(duration))
    }

    /// A timeout that expires `secs` seconds after it is started.
    ///
    /// Zero and negative numbers have expired, infinity never does, and so
    /// does any number of seconds that the clock cannot count.
    ///
    /// # Errors
    /// [`Invalid`] for NaN, which is the result of a mistake and nothing that
    /// could be waited for.
    pub fn from_secs_f64(secs: f64) -> Result<Timeout, Invalid> {
        if secs.is_nan() {
            return Err(Invalid::new(
                "timeout",
                "is not a number (NaN)",
                "pass seconds, infinity or none for no limit",
            ));
        }
        if secs <= 0.0 {
            return Ok(Timeout(Some(Duration::ZERO)));
        }
        Ok(Timeout(Duration::try_from_secs_f64(secs).ok()))
    }

    /// True if this never expires.
    pub const fn is_never(self) -> bool {
        self.0.is_none()
    }

    /// True if this has expired before it was started.
    pub fn has_expired(self) -> bool {
        self.0 == Some(Duration::ZERO)
    }

    /// The time that it allows, none if unlimited.
    pub const fn duration(self) -> Option<Duration> {
        self.0
    }

    /// The deadline of a timeout that starts at `now`.
    pub fn starting(self, now: Instant) -> Deadline {
        // A sum that the clock cannot hold lies further ahead than anyone will
        // wait, so it is "never" and not an overflow (CPython's wait(timeout)
        // raised OverflowError for infinity for years).
        Deadline(self.0.and_then(|d| now.checked_add(d)))
    }
}

/// A number of seconds, or numbers with their units, the larger unit first: `300ms`, `5s`,
/// `2m`, `1h30m`, `1.5`, `inf`.
impl FromStr for Timeout {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Timeout, Invalid> {
        let wrong = |problem: &str| {
            let forms = "write 300ms, 5s, 2m, 1h30m, a bare number of seconds such as 1.5, or inf";
            Invalid::new("timeout", problem, forms)
        };
        if matches!(text, "inf" | "infinity") {
            return Ok(Timeout::NEVER);
        }
        let (mut sum, mut last_unit) = (0.0, None);
        let mut rest = text;
        loop {
            let (part, behind) = part_of(rest);
            let end = part.find(|c: char| !is_of_number(c));
            let (number, unit) = part.split_at(end.unwrap_or(part.len()));
            let seconds = match unit.trim() {
                "ns" => 1e-9,
                "us" | "µs" => 1e-6,
                "ms" => 1e-3,
                "" if last_unit.is_some() => {
                    return Err(wrong(&format!("has {number} without a unit")));
                }
                "" | "s" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                "d" => 86400.0,
                _ if number.is_empty() => return Err(wrong("is no duration")),
                unit => return Err(wrong(&format!("has {unit:?}, which is no unit of time"))),
            };
            if last_unit.is_some_and(|last| seconds >= last) {
                return Err(wrong("has not its larger unit first"));
            }
            // Half an hour and ten minutes more are a slip.
            if number.contains('.') && !behind.is_empty() {
                return Err(wrong("has a fraction in front of a smaller unit"));
            }
            sum += seconds * number.parse::<f64>().map_err(|_| wrong("is no duration"))?;
            if behind.is_empty() {
                return Timeout::from_secs_f64(sum);
            }
            (last_unit, rest) = (Some(seconds), behind);
        }
    }
}

/// A number with its unit, and what is behind it.
fn part_of(text: &str) -> (&str, &str) {
    let unit = text.find(|c: char| !is_of_number(c));
    let unit = unit.unwrap_or(text.len());
    let next = text[unit..].find(is_of_number);
    text.split_at(next.map_or(text.len(), |next| unit + next))
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

impl Default for Timeout {
    fn default() -> Timeout {
        Timeout::NEVER
    }
}

impl From<Duration> for Timeout {
    fn from(duration: Duration) -> Timeout {
        Timeout::after(duration)
    }
}

impl From<Option<Duration>> for Timeout {
    fn from(duration: Option<Duration>) -> Timeout {
        Timeout(duration)
    }
}

/// A point on the monotonic clock, or never.
///
/// Everything below the public interface passes deadlines and not durations, so
/// that a wait that is interrupted and taken up again does not start anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// A deadline that never comes.
    pub const NEVER: Deadline = Deadline(None);

    /// The deadline at `instant`.
    pub const fn at(instant: Instant) -> Deadline {
        Deadline(Some(instant))
    }

    /// True if the deadline has come at `now`.
    pub fn reached(self, now: Instant) -> bool {
        self.0.is_some_and(|at| at <= now)
    }

    /// The time from `now` until it comes: none for never, zero once reached.
    pub fn remaining(self, now: Instant) -> Option<Duration> {
        self.0.map(|at| at.saturating_duration_since(now))
    }

    /// The instant at which it comes.
    pub const fn instant(self) -> Option<Instant> {
        self.0
    }

    /// The earlier of two.
    pub fn min(self, other: Deadline) -> Deadline {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Deadline(Some(a.min(b))),
            (a, b) => Deadline(a.or(b)),
        }
    }
}

/// A duration for people: `2 s`, `0.25 s`, `3 min 5 s`.
#[derive(Clone, Copy)]
pub struct Seconds(pub Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0.as_secs();
        if secs >= 60 {
            return write!(f, "{} min {} s", secs / 60, secs % 60);
        }
        let text = format!("{:.3}", self.0.as_secs_f64());
        write!(f, "{} s", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_timeouts() {
        let now = Instant::now();
        let never = |s: f64| Timeout::from_secs_f64(s).unwrap().starting(now) == Deadline::NEVER;
        let expired = |s: f64| {
            Timeout::from_secs_f64(s)
                .unwrap()
                .starting(now)
                .reached(now)
        };
        assert!(never(f64::INFINITY) && never(1e300));
        assert!(expired(0.0) && expired(-0.0) && expired(-1.0) && expired(f64::NEG_INFINITY));
        assert!(!expired(1e-9) && !expired(1e10) && !expired(1e18));
        assert!(Timeout::from_secs_f64(f64::NAN).is_err());
    }

    #[test]
    fn the_earlier_deadline_wins_and_never_loses() {
        let now = Instant::now();
        let later = Deadline::at(now + Duration::from_secs(1));
        assert_eq!(Deadline::at(now).min(later), Deadline::at(now));
        assert_eq!(Deadline::NEVER.min(later), later);
        assert_eq!(later.min(Deadline::NEVER), later);
        assert_eq!(Deadline::NEVER.min(Deadline::NEVER), Deadline::NEVER);
    }
}
