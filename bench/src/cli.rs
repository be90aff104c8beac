//! `procwright-bench DIR [--only SUITE] [--quick | --rounds N]`.

use std::path::PathBuf;

use crate::round::Effort;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// What `ci/bench.sh` filled, and where results go.
    pub dir: PathBuf,
    /// One suite, or none for all.
    pub only: Option<String>,
    /// How long to measure.
    pub effort: Effort,
}

/// The suites that exist.
pub const SUITES: [&str; 7] = [
    "run", "wait", "streams", "command", "liveness", "queue", "ruby",
];

/// Reads the arguments, without the program's name.
///
/// # Errors
/// With a line for the user.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Request, String> {
    let (mut dir, mut only, mut effort) = (None, None, Effort::Rounds(15));
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
    let dir = dir.ok_or("usage: procwright-bench DIR [--only SUITE] [--quick | --rounds N]")?;
    Ok(Request { dir, only, effort })
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
            effort: Effort::Quick,
        };
        assert_eq!(request, Ok(expected));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        assert!(words("").is_err());
        assert!(words("a b").is_err());
        assert!(words("a --only none").is_err_and(|line| line.contains("run")));
    }
}
