//! Durations, sizes and counts as people write them.

use std::num::NonZeroUsize;
use std::time::Duration;

use procwright::time::Timeout;
use rustix::process::{Resource, getrlimit};

/// Parses a time: `300ms`, `5s`, `2m`, `1h30m`, `1.5` (seconds), `inf`.
pub(crate) fn timeout(text: &str) -> Result<Timeout, String> {
    let parsed = text.parse::<Timeout>();
    parsed.map_err(|error| format!("this {}; {}", error.problem(), error.hint()))
}

/// Parses a [`timeout`] of a program. 0 is none: it means no limit to timeout(1) and its like, and
/// no time at all to the library.
pub(crate) fn time_limit(text: &str) -> Result<Timeout, String> {
    let parsed = timeout(text)?;
    match parsed.duration() {
        Some(Duration::ZERO) => Err(
            "0 means no limit to some and no time at all to others; write inf or 1ms".to_owned(),
        ),
        _ => Ok(parsed),
    }
}

/// Parses a [`timeout`] as a duration; `inf` is the longest one.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    Ok(timeout(text)?.duration().unwrap_or(Duration::MAX))
}

/// Parses the [`duration`] of a pause that is made again and again. None is none: it would take a
/// processor for itself; nor is one without an end.
pub(crate) fn pause(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("this is no pause at all; write 100ms or more".to_owned()),
        Duration::MAX => Err("this pause has no end; write 1h, say".to_owned()),
        pause => Ok(pause),
    }
}

/// Parses a size: `64KiB`, `8MiB`, `1GiB`, `4096` (bytes).
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = |problem: &str| {
        format!("{problem}; write 64KiB, 8MiB, 1GiB (or K, M, G), or a bare number of bytes")
    };
    let (number, unit) = split(text);
    let shift = match unit {
        "" | "B" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        "T" | "t" | "TiB" => 40,
        "kB" | "KB" | "MB" | "GB" | "TB" => {
            return Err(wrong(&format!(
                "{unit:?} is a power of 1000 to some and of 1024 to others"
            )));
        }
        _ if number.is_empty() => return Err(wrong("this is no size")),
        _ => return Err(wrong(&format!("{unit:?} is no unit of size"))),
    };
    let number = number
        .parse::<u64>()
        .map_err(|_| wrong("this is no whole number"))?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| wrong("this is more than can be counted"))
}

/// Parses a count: `0`, `1`, `2`.
pub(crate) fn count(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| "this is no whole number; write 0, 1, 2 and so on".to_owned())
}

/// Parses a count of at least one: `1`, `2`.
pub(crate) fn positive_count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| "this is no whole number above 0".to_owned())
}

/// Parses how many run at a time: `8`, or with the processors as a measure `50%`, `+2`, `-1`,
/// which mean what they mean to GNU parallel, as does 0: as many as can be had.
pub(crate) fn parallel(text: &str) -> Result<NonZeroUsize, String> {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let descriptors = getrlimit(Resource::Nofile).current;
    match text {
        "0" => Ok(most_at_a_time(descriptors)),
        _ => parallel_of(processors, text),
    }
}

/// How many commands can run at a time with so many descriptors, none for no limit.
fn most_at_a_time(descriptors: Option<u64>) -> NonZeroUsize {
    let commands = descriptors.map_or(MOST_AT_A_TIME, |descriptors| {
        descriptors.saturating_sub(OUR_DESCRIPTORS) / DESCRIPTORS_OF_A_COMMAND
    });
    let commands = commands.clamp(1, MOST_AT_A_TIME);
    usize::try_from(commands)
        .ok()
        .and_then(NonZeroUsize::new)
        .unwrap_or(NonZeroUsize::MIN)
}

/// As many as a map takes.
const MOST_AT_A_TIME: u64 = 100_000;
/// Descriptors of this process that are those of no command.
const OUR_DESCRIPTORS: u64 = 32;
/// Descriptors of a command that runs: of its outputs, its process, a bell and the set that waits
/// for them, and while it is started those of the other side.
const DESCRIPTORS_OF_A_COMMAND: u64 = 8;

fn parallel_of(processors: usize, text: &str) -> Result<NonZeroUsize, String> {
    let wrong = |problem: &str| {
        format!("{problem}; write a number from 1 on, or of the processors 50%, +2 or -1")
    };
    let no_number = |_| wrong("this is no whole number");
    let number = |digits: &str| match digits.starts_with(['+', '-']) {
        true => Err(wrong("this is no whole number")),
        false => digits.parse::<usize>().map_err(no_number),
    };
    let count = if let Some(more) = text.strip_prefix('+') {
        processors.saturating_add(number(more)?)
    } else if let Some(less) = text.strip_prefix('-') {
        processors.saturating_sub(number(less)?).max(1)
    } else if let Some(percent) = text.strip_suffix('%') {
        (processors.saturating_mul(number(percent)?) / 100).max(1)
    } else {
        number(text)?
    };
    NonZeroUsize::new(count).ok_or_else(|| wrong("this is none"))
}

/// Splits a text into the number and the unit behind it.
fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    (number, unit.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let is = |text: &str, millis| {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        };
        is("300ms", 300);
        is("5s", 5000);
        is("2m", 120_000);
        is("1h", 3_600_000);
        is("1.5", 1500);
        is("0", 0);
        is("0.25s", 250);
        is("2 min", 120_000);
        is("1h30m", 5_400_000);
        is("1h 30m 0.5s", 5_400_500);
        is("2d1ms", 172_800_001);
        assert_eq!(timeout("inf"), Ok(Timeout::NEVER));
        assert_eq!(duration("inf"), Ok(Duration::MAX));
        assert_eq!(duration("99999999999999999999d"), Ok(Duration::MAX));
        for wrong in [
            "", "s", "five", "5x", "-1", "1.2.3", "nan", "1e3", ".", "1h30", "30m1h", "1m1m",
            "1.5h10m", "1h-30m", "1h,30m", "inf1s",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(pause("0.25s"), Ok(Duration::from_millis(250)));
        for wrong in ["0", "0ms", "inf", "five", "-1"] {
            assert!(pause(wrong).is_err(), "{wrong}");
        }
        // What follows the first part is told of by its own fault.
        let refused = duration("1h30").unwrap_err();
        assert!(refused.contains("30 without a unit"), "{refused}");
        let refused = duration("30m1h").unwrap_err();
        assert!(refused.contains("larger unit first"), "{refused}");
    }

    #[test]
    fn how_many_at_a_time() {
        let of_four = |text: &str| parallel_of(4, text).map(NonZeroUsize::get);
        for (text, count) in [
            ("1", 1),
            ("100", 100),
            ("+0", 4),
            ("+2", 6),
            ("-1", 3),
            ("-9", 1),
            ("100%", 4),
            ("50%", 2),
            ("1%", 1),
        ] {
            assert_eq!(of_four(text), Ok(count), "{text}");
        }
        for wrong in ["", "00", "+", "-", "%", "++1", "+-1", "1.5", "many", "-1%"] {
            assert!(of_four(wrong).is_err(), "{wrong}");
        }
        let most = |descriptors| most_at_a_time(descriptors).get();
        assert_eq!(most(Some(1024)), 124);
        assert_eq!(most(Some(0)), 1);
        assert_eq!(most(Some(u64::MAX)), 100_000);
        assert_eq!(most(None), 100_000);
        assert!(parallel("0").is_ok());
    }

    #[test]
    fn sizes() {
        let is = |text: &str, bytes| assert_eq!(size(text), Ok(bytes), "{text}");
        is("4096", 4096);
        is("0", 0);
        is("64KiB", 64 << 10);
        is("8MiB", 8 << 20);
        is("1GiB", 1 << 30);
        is("1K", 1 << 10);
        is("2M", 2 << 20);
        is("3G", 3 << 30);
        is("1k", 1 << 10);
        is("2m", 2 << 20);
        is("1 KiB", 1 << 10);
        for wrong in ["", "K", "1.5M", "1MB", "1kB", "-1", "1X", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
