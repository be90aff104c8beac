//! The values in the text of a spec. Each refuses what it cannot mean while it is
//! read.

use std::ffi::OsString;
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::spec::Account;
use procwright_os::Invalid;
use procwright_os::time::Timeout;
use procwright_process::Signal;

/// A form in which a `T` is written.
pub(super) trait Written<T>: Sized {
    /// # Errors
    /// A value that means nothing in a text.
    fn from_value(value: &T) -> Result<Self, Invalid>;

    fn into_value(self) -> T;
}

impl<T, W: Written<T>> Written<Option<T>> for Option<W> {
    fn from_value(value: &Option<T>) -> Result<Self, Invalid> {
        value.as_ref().map(W::from_value).transpose()
    }

    fn into_value(self) -> Option<T> {
        self.map(W::into_value)
    }
}

impl<T, W: Written<T>> Written<Vec<T>> for Vec<W> {
    fn from_value(values: &Vec<T>) -> Result<Self, Invalid> {
        values.iter().map(W::from_value).collect()
    }

    fn into_value(self) -> Vec<T> {
        self.into_iter().map(W::into_value).collect()
    }
}

/// Reads and writes a member as a `W`: `#[serde(with = "As::<W>")]`.
pub(super) struct As<W>(PhantomData<W>);

impl<W> As<W> {
    pub(super) fn serialize<T, S>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        W: Written<T> + Serialize,
        S: Serializer,
    {
        let written = W::from_value(value).map_err(S::Error::custom)?;
        written.serialize(serializer)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        W: Written<T> + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        W::deserialize(deserializer).map(W::into_value)
    }
}

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
}

impl Written<OsString> for Text {
    fn from_value(text: &OsString) -> Result<Text, Invalid> {
        Ok(Text::new(text.as_bytes()))
    }

    fn into_value(self) -> OsString {
        OsString::from_vec(self.0)
    }
}

impl Written<PathBuf> for Text {
    fn from_value(path: &PathBuf) -> Result<Text, Invalid> {
        Ok(Text::new(path.as_os_str().as_bytes()))
    }

    fn into_value(self) -> PathBuf {
        OsString::from_vec(self.0).into()
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
pub(super) struct Variable(Option<Text>);

impl Written<Option<OsString>> for Variable {
    fn from_value(value: &Option<OsString>) -> Result<Variable, Invalid> {
        Written::from_value(value).map(Variable)
    }

    fn into_value(self) -> Option<OsString> {
        self.0.into_value()
    }
}

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

/// The number of an account; not the one that means none.
pub(in crate::spec) fn account_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<u32, D::Error> {
    let id = u32::deserialize(deserializer)?;
    match id <= Account::GREATEST_ID {
        true => Ok(id),
        false => Err(D::Error::custom("this number is nobody's")),
    }
}

/// A value by the word that it is shown as.
pub(super) struct Word<T>(T);

impl<T: Clone> Written<T> for Word<T> {
    fn from_value(value: &T) -> Result<Word<T>, Invalid> {
        Ok(Word(value.clone()))
    }

    fn into_value(self) -> T {
        self.0
    }
}

impl<T: fmt::Display> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err = Invalid>> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word<T>, D::Error> {
        let word = String::deserialize(deserializer)?;
        word.parse().map(Word).map_err(D::Error::custom)
    }
}

/// A signal by its name.
pub(super) struct SignalName(pub(super) Signal);

impl Written<Signal> for SignalName {
    fn from_value(signal: &Signal) -> Result<SignalName, Invalid> {
        Ok(SignalName(*signal))
    }

    fn into_value(self) -> Signal {
        self.0
    }
}

impl Serialize for SignalName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.name())
    }
}

impl<'de> Deserialize<'de> for SignalName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SignalName, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map(SignalName).map_err(D::Error::custom)
    }
}

/// A time in seconds; null and infinity for one without end.
#[derive(Clone, Copy, Default)]
pub(super) struct SecondsText(Timeout);

impl SecondsText {
    pub(super) fn duration(self) -> Duration {
        self.0.duration().unwrap_or(Duration::MAX)
    }
}

impl Written<Timeout> for SecondsText {
    fn from_value(timeout: &Timeout) -> Result<SecondsText, Invalid> {
        Ok(SecondsText(*timeout))
    }

    fn into_value(self) -> Timeout {
        self.0
    }
}

impl From<Duration> for SecondsText {
    fn from(duration: Duration) -> SecondsText {
        SecondsText(Timeout::after(duration))
    }
}

impl Serialize for SecondsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let seconds = self.0.duration().map(|duration| duration.as_secs_f64());
        // A time that could not be read back is as good as never.
        let seconds = seconds.filter(|&s| Duration::try_from_secs_f64(s).is_ok());
        seconds.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SecondsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SecondsText, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = SecondsText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seconds as a number, such as 300 or 1.5")
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<SecondsText, E> {
                Timeout::from_secs_f64(seconds)
                    .map(SecondsText)
                    .map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<SecondsText, E> {
                self.visit_f64(seconds as f64)
            }

            fn visit_i64<E: Error>(self, seconds: i64) -> Result<SecondsText, E> {
                self.visit_f64(seconds as f64)
            }

            fn visit_unit<E: Error>(self) -> Result<SecondsText, E> {
                Ok(SecondsText(Timeout::NEVER))
            }
        }
        deserializer.deserialize_any(Number)
    }
}
