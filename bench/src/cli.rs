//! `procwright-bench DIR [--only SUITE [--part PART]] [--quick | --rounds N]`.

use std::path::PathBuf;

use crate::queue;
use crate::round::Effort;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// What `ci/bench.sh` filled, and where results go.
    pub dir: PathBuf,
    /// One suite, or none for all.
    pub only: Option<String>,
    /// One part of that suite, or none for all.
    pub part: Option<String>,
    /// How long to measure.
    pub effort: Effort,
}

/// The suites that exist.
pub const SUITES: [&str; 7] = [
    "run", "wait", "streams", "command", "liveness", "queue", "ruby",
];

/// The parts of the suite `run`, in their order.
pub const RUN_PARTS: [&str; 5] = ["start", "spawn", "limit", "capture", "cold"];

/// The parts of a suite that can be run alone.
fn parts(suite: &str) -> &'static [&'static str] {
    match suite {
        "run" => &RUN_PARTS,
        "queue" => &queue::PARTS,
        _ => &[],
    }
}

/// Reads the arguments, without the program's name.
///
/// # Errors
/// With a line for the user.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Request, String> {
    let (mut dir, mut only, mut part) = (None, None, None);
    let mut effort = Effort::Rounds(15);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => effort = Effort::Quick,
            "--rounds" => {
                let count = words
                    .next()
                    .and_then(|word| word.parse().ok())
                    .filter(|n| *n > 0);
                effort = Effort::Rounds(count.ok_or("--rounds needs a number above 0")?);
            }
            "--only" => only = Some(words.next().ok_or("--only needs the name of a suite")?),
            "--part" => part = Some(words.next().ok_or("--part needs the name of a part")?),
            _ if dir.is_none() && !word.starts_with('-') => dir = Some(PathBuf::from(word)),
            _ => return Err(format!("cannot make sense of {word:?}")),
        }
    }
    if let Some(name) = only.as_deref().filter(|name| !SUITES.contains(name)) {
        return Err(format!(
            "there is no suite {name:?}; there are: {}",
            SUITES.join(", ")
        ));
    }
    let known = parts(only.as_deref().unwrap_or_default());
    if let Some(part) = part.as_deref().filter(|part| !known.contains(part)) {
        return Err(format!(
            "there is no part {part:?} of that suite; there are: {}",
            known.join(", ")
        ));
    }
    let usage = "usage: procwright-bench DIR [--only SUITE [--part PART]] [--quick | --rounds N]";
    Ok(Request {
        dir: dir.ok_or(usage)?,
        only,
        part,
        effort,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Request, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn understands_its_options() {
        let request = words("target/bench --only run --quick");
        let expected = Request {
            dir: "target/bench".into(),
            only: Some("run".into()),
            part: None,
            effort: Effort::Quick,
        };
        assert_eq!(request, Ok(expected));
        let request = words("target/bench --only queue --part first").unwrap();
        assert_eq!(request.part.as_deref(), Some("first"));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        assert!(words("").is_err());
        assert!(words("a b").is_err());
        assert!(words("a --only none").is_err_and(|line| line.contains("run")));
        assert!(words("a --only run --part first").is_err_and(|line| line.contains("cold")));
        assert!(words("a --part cold").is_err());
    }
}
