//! Which command is meant: a key that the order of the input does not change.

use serde_json::{Map, Value};

use super::error::JournalError;
use crate::spec::Spec;

/// Members of a spec that say how long one waits for the program, how it is stopped, what is
/// kept of its output and which of its ends is a success. A command that is run with others of
/// them is still that command. Ignored signals are among them since the command line passes on
/// those that its caller ignores.
const NOT_COUNTED: [&str; 11] = [
    "timeout",
    "idle_timeout",
    "stop",
    "until",
    "limit",
    "keep_full",
    "merged",
    "ok_codes",
    "stall_after",
    "die_with_parent",
    "ignored_signals",
];

/// Which command is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 16]);

impl Key {
    /// The key of `spec`: the first half of the SHA-256 of its text. Members that are as in an
    /// empty spec are no part of the text, or a member that a later version adds would change
    /// all keys.
    ///
    /// # Errors
    /// The spec has what cannot be written, such as a descriptor.
    pub(super) fn of(spec: &Spec) -> Result<Key, JournalError> {
        let members = |spec: &Spec| match serde_json::to_value(spec) {
            Ok(Value::Object(members)) => Ok(members),
            Ok(_) => Ok(Map::new()),
            Err(error) => Err(JournalError::Nameless {
                command: crate::quote::quote(&spec.argv),
                source: error,
            }),
        };
        let mut counted = members(spec)?;
        let default = members(&Spec::new([] as [&str; 0]))?;
        counted.retain(|name, value| {
            let is_output = name == "stdout" || name == "stderr";
            !NOT_COUNTED.contains(&name.as_str())
                && default.get(name) != Some(value)
                // A file is what the command makes. Whether its output is captured or shown is
                // the caller's affair.
                && (!is_output || value.is_object())
        });
        let mut text = String::new();
        write(&Value::Object(counted), &mut text);
        let mut half = [0; 16];
        half.copy_from_slice(&hmac_sha256::Hash::hash(text.as_bytes())[..16]);
        Ok(Key(half))
    }

    /// The key that is written so.
    pub(super) fn parse(text: &str) -> Option<Key> {
        // The standard library would take a sign, too.
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_hex.then(|| u128::from_str_radix(text, 16).ok())??;
        Some(Key(number.to_be_bytes()))
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Writes JSON with the members of each object in the order of their names, whatever order the
/// features of a build have `serde_json` keep.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            for (place, (name, value)) in members.into_iter().enumerate() {
                text.push(if place == 0 { '{' } else { ',' });
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        simple => text.push_str(&simple.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Sink, Stdin};
    use std::time::Duration;

    fn key(change: impl FnOnce(&mut Spec)) -> String {
        let mut spec = Spec::new(["gzip", "a.log"]);
        change(&mut spec);
        Key::of(&spec).unwrap().to_string()
    }

    #[test]
    fn what_is_run_counts_and_how_it_is_watched_does_not() {
        let plain = key(|_| {});
        assert_eq!(
            key(|spec| spec.timeout = Duration::from_secs(1).into()),
            plain
        );
        assert_eq!(key(|spec| spec.merged = true), plain);
        assert_eq!(key(|spec| spec.ok_codes = vec![1]), plain);
        assert_eq!(key(|spec| spec.stdout = Sink::Relay), plain);
        let changes: [fn(&mut Spec); 6] = [
            |spec| spec.argv.push("-9".into()),
            |spec| spec.argv = vec!["gzip a.log".into()],
            |spec| spec.cwd = Some("/".into()),
            |spec| spec.extra_env = vec![("A".into(), Some("1".into()))],
            |spec| spec.stdin = Stdin::Bytes("x".into()),
            |spec| {
                spec.stdout = Sink::File {
                    path: "out".into(),
                    append: false,
                }
            },
        ];
        let mut keys: Vec<String> = changes.into_iter().map(key).collect();
        keys.push(plain);
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 7);
    }

    /// Logs of one version are read by the next.
    #[test]
    fn keys_stay_what_they_are() {
        // By `printf '{"argv":["gzip","a.log"]}' | sha256sum | cut -c -32`.
        let expected = "43ee0c81b2a80c01b33cba8811bc5b57";
        assert_eq!(key(|_| {}), expected);
        let parsed = Key::parse(expected).unwrap();
        assert_eq!(parsed.to_string(), expected);
        assert_eq!(Key::parse("+0000000000000000000000000000000"), None);
        assert_eq!(Key::parse("00"), None);
    }

    #[test]
    fn a_descriptor_has_no_key() {
        let (read, _write) = std::io::pipe().unwrap();
        let mut spec = Spec::new(["cat"]);
        spec.stdin = Stdin::Fd(std::sync::Arc::new(read.into()));
        let error = Key::of(&spec).unwrap_err().to_string();
        assert!(
            error.contains("cat") && error.contains("descriptor"),
            "{error}"
        );
    }
}
