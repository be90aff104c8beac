//! The time of day, and spans between looks, as they are shown.

use std::time::Duration;

use jiff::Zoned;

use crate::human::HumanDuration;

/// `17:40:31`, here.
pub(super) fn time_of_day() -> String {
    Zoned::now().strftime("%H:%M:%S").to_string()
}

/// A line that stands before a report, or after the last: `--- 17:40:31 ended`.
pub(super) fn mark(what: &str) -> String {
    format!("--- {} {what}\n", time_of_day())
}

/// `0.25 s`, `2 s`, `60 s`, `1 h 1 min`: no more digits than anybody can use.
pub(super) fn span(time: Duration) -> String {
    match time.as_secs() {
        0 | 1 => HumanDuration(time).short(),
        seconds @ 2..120 => format!("{seconds} s"),
        _ => HumanDuration(time).short(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_few_digits() {
        for (time, text) in [
            (Duration::from_secs(2), "2 s"),
            (Duration::from_millis(2717), "2 s"),
            (Duration::from_micros(250_017), "0.25 s"),
            (Duration::from_secs(60), "60 s"),
            (Duration::from_secs(3660), "1 h 1 min"),
        ] {
            assert_eq!(span(time), text);
        }
    }
}
