//! Times and sizes as people read them.

use std::time::Duration;

/// A time for people: `2.345 s`, `2 min 5 s`, `2 h 1 min`.
pub(crate) struct HumanDuration(pub(crate) Duration);

impl std::fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let secs = self.0.as_secs();
        match secs {
            0..60 => write!(f, "{:.3} s", self.0.as_secs_f64()),
            60..3600 => write!(f, "{} min {} s", secs / 60, secs % 60),
            _ => write!(f, "{} h {} min", secs / 3600, secs / 60 % 60),
        }
    }
}

impl HumanDuration {
    /// Text without trailing zeros: `2 s`, `1.5 s`.
    pub(crate) fn short(self) -> String {
        let text = self.to_string();
        match text.strip_suffix(" s") {
            Some(number) if number.contains('.') => {
                let number = number.trim_end_matches('0').trim_end_matches('.');
                format!("{number} s")
            }
            _ => text,
        }
    }
}

/// A number of bytes for people: `1 byte`, `1.5 KiB`.
pub(crate) struct HumanBytes(pub(crate) u64);

impl std::fmt::Display for HumanBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        if self.0 == 1 {
            return f.write_str("1 byte");
        }
        if self.0 < 1024 {
            return write!(f, "{} bytes", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1024.0 && unit < UNITS.len() - 1 {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_for_people() {
        assert_eq!(HumanBytes(1).to_string(), "1 byte");
        assert_eq!(HumanBytes(1536).to_string(), "1.5 KiB");
        assert_eq!(HumanBytes(10 << 30).to_string(), "10.0 GiB");
        assert_eq!(
            HumanDuration(Duration::from_millis(1500)).to_string(),
            "1.500 s"
        );
        assert_eq!(HumanDuration(Duration::from_secs(2)).short(), "2 s");
        assert_eq!(HumanDuration(Duration::from_millis(1500)).short(), "1.5 s");
        assert_eq!(HumanDuration(Duration::from_secs(120)).short(), "2 min 0 s");
        assert_eq!(
            HumanDuration(Duration::from_secs(125)).to_string(),
            "2 min 5 s"
        );
        assert_eq!(
            HumanDuration(Duration::from_secs(7260)).to_string(),
            "2 h 1 min"
        );
    }
}
