//! The time in front of a line, in the local time zone.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Writes times. The date, time and offset of a second are kept for the next time in
/// it: a program may write a million lines a second.
#[derive(Debug)]
pub(super) struct TimestampFormat {
    zone: TimeZone,
    second: Option<i64>,
    date: String,
    time: String,
    offset: String,
}

impl TimestampFormat {
    pub(super) fn local() -> TimestampFormat {
        TimestampFormat::with_zone(TimeZone::system())
    }

    fn with_zone(zone: TimeZone) -> TimestampFormat {
        TimestampFormat {
            zone,
            second: None,
            date: String::new(),
            time: String::new(),
            offset: String::new(),
        }
    }

    /// Appends `2026-01-02T03:04:05.678+01:00`.
    pub(super) fn push_rfc3339(&mut self, at: SystemTime, text: &mut Vec<u8>) {
        let millis = self.enter_second(at);
        text.extend_from_slice(self.date.as_bytes());
        text.push(b'T');
        self.push_with_millis(millis, text);
        text.extend_from_slice(self.offset.as_bytes());
    }

    /// Appends `03:04:05.678`.
    pub(super) fn push_time_of_day(&mut self, at: SystemTime, text: &mut Vec<u8>) {
        let millis = self.enter_second(at);
        self.push_with_millis(millis, text);
    }

    /// Appends the time of day.
    fn push_with_millis(&self, millis: u32, text: &mut Vec<u8>) {
        text.extend_from_slice(self.time.as_bytes());
        // Formatted by hand, as it is done for each line.
        let digit = |power: u32| b'0' + (millis / power % 10) as u8;
        text.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
    }

    /// Updates the kept texts if `at` is in another second, and returns its
    /// milliseconds.
    fn enter_second(&mut self, at: SystemTime) -> u32 {
        // The system clock may be before 1970, if it was never set.
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let second = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        if self.second != Some(second) {
            let at = Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
            let at = at.to_zoned(self.zone.clone());
            self.date = at.strftime("%Y-%m-%d").to_string();
            self.time = at.strftime("%H:%M:%S").to_string();
            self.offset = at.strftime("%:z").to_string();
            self.second = Some(second);
        }
        since.subsec_millis()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_same_moment_in_two_places() {
        let at = UNIX_EPOCH + Duration::from_millis(1_767_323_045_006);
        for (hours, date) in [
            (0, "2026-01-02T03:04:05.006+00:00"),
            (-5, "2026-01-01T22:04:05.006-05:00"),
        ] {
            let mut clock = TimestampFormat::with_zone(TimeZone::fixed(jiff::tz::offset(hours)));
            let mut text = Vec::new();
            clock.push_rfc3339(at, &mut text);
            clock.push_rfc3339(at + Duration::from_millis(1), &mut text);
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text, format!("{date}{}", date.replace(".006", ".007")));
        }
        let mut text = Vec::new();
        TimestampFormat::with_zone(TimeZone::UTC)
            .push_time_of_day(at + Duration::from_secs(1), &mut text);
        assert_eq!(text, b"03:04:06.006");
    }
}
