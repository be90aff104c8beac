//! The text of the line: items, the most important first.

use std::time::Duration;

/// A part of the line.
#[derive(Debug)]
pub(crate) struct ProgressItem {
    text: String,
    /// Text behind the item, which is left out of all items unless the whole line
    /// has room.
    more: String,
}

impl ProgressItem {
    pub(crate) fn new(text: impl Into<String>) -> ProgressItem {
        ProgressItem::with_more(text, "")
    }

    pub(crate) fn with_more(text: impl Into<String>, more: impl Into<String>) -> ProgressItem {
        let (text, more) = (text.into(), more.into());
        ProgressItem { text, more }
    }
}

/// The items that there is room for. One column stays free: on some terminals a
/// cursor behind the last column is in the next line.
pub(super) fn fitting(items: &[ProgressItem], columns: usize) -> String {
    let whole: Vec<String> = items
        .iter()
        .map(|item| format!("{}{}", item.text, item.more))
        .collect();
    let whole = whole.join(", ");
    // Bytes are columns: all of the text is ASCII.
    if whole.len() < columns {
        return whole;
    }
    let mut line = String::new();
    for ProgressItem { text, .. } in items {
        let gap = if line.is_empty() { "" } else { ", " };
        if line.len() + gap.len() + text.len() >= columns {
            break;
        }
        line.extend([gap, text]);
    }
    line
}

/// Part of the expected time that is over, and the rest of it.
pub(crate) fn outlook(elapsed: Duration, expected: Duration) -> String {
    match expected.checked_sub(elapsed) {
        Some(left) if !left.is_zero() => {
            let part = elapsed.as_secs_f64() / expected.as_secs_f64() * 100.0;
            // Rounded up, so that both times add up to the expected one.
            let left = Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0));
            // No more than 99 %: the run is not over.
            format!("{:.0} %, {} left", part.min(99.0).floor(), brief(left))
        }
        _ => format!("over by {}", brief(elapsed.saturating_sub(expected))),
    }
}

/// A time in at most two units, written as the options take it.
pub(crate) fn brief(time: Duration) -> String {
    let secs = time.as_secs();
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m {}s", secs / 60, secs % 60),
        3600..86400 => format!("{}h {}m", secs / 3600, secs / 60 % 60),
        _ => format!("{}d {}h", secs / 86400, secs / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut items = ["12s", "40 %, 18s left", "out 5 bytes"].map(ProgressItem::new);
        items[2].more = " 2 lines".into();
        assert_eq!(
            fitting(&items, 80),
            "12s, 40 %, 18s left, out 5 bytes 2 lines"
        );
        for columns in 0..80 {
            let line = fitting(&items, columns);
            assert!(line.len() < columns.max(1), "{columns}: {line:?}");
        }
        assert_eq!(fitting(&items, 33), "12s, 40 %, 18s left, out 5 bytes");
        assert_eq!(fitting(&items, 20), "12s, 40 %, 18s left");
        assert_eq!(fitting(&items, 19), "12s");
    }

    #[test]
    fn the_outlook_is_never_done_before_the_end() {
        let secs = Duration::from_secs;
        assert_eq!(outlook(secs(0), secs(10)), "0 %, 10s left");
        assert_eq!(outlook(secs(4), secs(10)), "40 %, 6s left");
        assert_eq!(
            outlook(Duration::from_millis(9999), secs(10)),
            "99 %, 1s left"
        );
        assert_eq!(outlook(secs(10), secs(10)), "over by 0s");
        assert_eq!(outlook(secs(95), secs(10)), "over by 1m 25s");
        assert_eq!(outlook(secs(95), secs(0)), "over by 1m 35s");
        assert_eq!(brief(secs(3661)), "1h 1m");
        assert_eq!(brief(secs(90000)), "1d 1h");
    }
}
