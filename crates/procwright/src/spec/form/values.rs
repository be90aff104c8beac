//! The values in the text of a spec. Each refuses what it cannot mean while it is
//! read.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::process::Signal;
use crate::time::Timeout;

/// Bytes that are mostly text.
#[derive(Deserialize)]
#[serde(try_from = "TextForm")]
pub(super) struct Text(Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a string, or {\"base64\": \"…\"} for what is not UTF-8"
)]
enum TextForm {
    Plain(String),
    Encoded { base64: String },
}

impl Text {
    pub(super) fn new(bytes: &[u8]) -> Text {
        Text(bytes.to_vec())
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn os(self) -> OsString {
        OsString::from_vec(self.0)
    }
}

impl From<&OsString> for Text {
    fn from(text: &OsString) -> Text {
        Text::new(text.as_bytes())
    }
}

impl TryFrom<TextForm> for Text {
    type Error = String;

    fn try_from(form: TextForm) -> Result<Text, String> {
        match form {
            TextForm::Plain(text) => Ok(Text(text.into_bytes())),
            TextForm::Encoded { base64 } => STANDARD
                .decode(base64)
                .map(Text)
                .map_err(|error| format!("this is no base64 with padding: {error}")),
        }
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => TextForm::Encoded {
                base64: STANDARD.encode(&self.0),
            }
            .serialize(serializer),
        }
    }
}

/// A variable that is set, or removed: null, and false where there is no null.
pub(super) struct Variable(pub(super) Option<Text>);

impl Serialize for Variable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Variable, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected a string, or null (in TOML false) to remove the variable"
        )]
        enum Form {
            Set(TextForm),
            Removed(bool),
            Null(()),
        }
        match Form::deserialize(deserializer)? {
            Form::Set(text) => Text::try_from(text)
                .map(|text| Variable(Some(text)))
                .map_err(D::Error::custom),
            Form::Removed(false) | Form::Null(()) => Ok(Variable(None)),
            Form::Removed(true) => Err(D::Error::custom(
                "true is no value of a variable: write a string, or false to remove it",
            )),
        }
    }
}

/// The most of a resource; null, and "unlimited" where there is no null, for no
/// limit.
pub(super) struct Ceiling(pub(super) u64);

impl Serialize for Ceiling {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0 != u64::MAX).then_some(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ceiling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ceiling, D::Error> {
        #[derive(Deserialize)]
        enum Word {
            #[serde(rename = "unlimited")]
            Unlimited,
        }
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected a number, or null or \"unlimited\" for no limit"
        )]
        enum Form {
            Number(u64),
            Unlimited(Word),
            Null(()),
        }
        Ok(Ceiling(match Form::deserialize(deserializer)? {
            Form::Number(number) => number,
            Form::Unlimited(Word::Unlimited) | Form::Null(()) => u64::MAX,
        }))
    }
}

/// A signal by its name.
pub(super) struct Name(pub(super) Signal);

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.name())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map(Name).map_err(D::Error::custom)
    }
}

/// A time in seconds; null and infinity for one without end.
#[derive(Clone, Copy, Default)]
pub(super) struct Seconds(Timeout);

impl Seconds {
    pub(super) fn duration(self) -> Duration {
        self.0.duration().unwrap_or(Duration::MAX)
    }
}

impl From<Timeout> for Seconds {
    fn from(timeout: Timeout) -> Seconds {
        Seconds(timeout)
    }
}

impl From<Duration> for Seconds {
    fn from(duration: Duration) -> Seconds {
        Seconds(Timeout::after(duration))
    }
}

impl From<Seconds> for Timeout {
    fn from(seconds: Seconds) -> Timeout {
        seconds.0
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let seconds = self.0.duration().map(|duration| duration.as_secs_f64());
        // What would not come back is as good as never.
        let seconds = seconds.filter(|&s| Duration::try_from_secs_f64(s).is_ok());
        seconds.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Seconds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seconds as a number, such as 300 or 1.5")
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<Seconds, E> {
                Timeout::from_secs_f64(seconds)
                    .map(Seconds)
                    .map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<Seconds, E> {
                self.visit_f64(seconds as f64)
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<Seconds, E> {
                self.visit_f64(seconds as f64)
            }

            fn visit_unit<E: Error>(self) -> Result<Seconds, E> {
                Ok(Seconds(Timeout::NEVER))
            }
        }
        deserializer.deserialize_any(Number)
    }
}
