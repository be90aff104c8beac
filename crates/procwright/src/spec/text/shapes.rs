//! How the members of a spec are written that are more than one value.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::holds_a_descriptor;
use super::values::{Ceiling, SecondsText, SignalName, Text, Written};
use crate::spec::{Rlimit, Sink, Stdin};
use procwright_os::Invalid;
use procwright_process::{Scope, Stop};

/// Variables by their names.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Variables<V>(BTreeMap<String, V>);

impl<T, V: Written<T>> Written<Vec<(OsString, T)>> for Variables<V> {
    fn from_value(variables: &Vec<(OsString, T)>) -> Result<Self, Invalid> {
        let pairs = variables
            .iter()
            .map(|(name, value)| Ok((writable_name(name)?.to_owned(), V::from_value(value)?)));
        pairs.collect::<Result<_, _>>().map(Variables)
    }

    fn into_value(self) -> Vec<(OsString, T)> {
        let pairs = self.0.into_iter();
        pairs
            .map(|(name, value)| (name.into(), value.into_value()))
            .collect()
    }
}

/// The name of a variable as it is written.
pub(super) fn writable_name(name: &OsStr) -> Result<&str, Invalid> {
    name.to_str().ok_or_else(|| {
        Invalid::new(
            "env",
            format!("has the name {name:?}, which is not UTF-8"),
            "such a name cannot be written",
        )
    })
}

/// Resource limits by their names.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Limits(BTreeMap<String, SoftAndHard>);

#[derive(Serialize, Deserialize)]
#[serde(expecting = "a pair, soft and hard")]
struct SoftAndHard(Ceiling, Ceiling);

impl Written<Vec<Rlimit>> for Limits {
    fn from_value(limits: &Vec<Rlimit>) -> Result<Limits, Invalid> {
        let pairs = limits.iter().map(|limit| {
            let pair = SoftAndHard(Ceiling(limit.soft), Ceiling(limit.hard));
            (limit.resource.clone(), pair)
        });
        Ok(Limits(pairs.collect()))
    }

    fn into_value(self) -> Vec<Rlimit> {
        let pairs = self.0.into_iter();
        pairs
            .map(|(resource, SoftAndHard(soft, hard))| Rlimit {
                resource,
                soft: soft.0,
                hard: hard.0,
            })
            .collect()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StdinShape {
    Null,
    Inherit,
    Pipe,
    Bytes(Text),
    File(Text),
}

impl Written<Stdin> for StdinShape {
    fn from_value(stdin: &Stdin) -> Result<StdinShape, Invalid> {
        Ok(match stdin {
            Stdin::Null => StdinShape::Null,
            Stdin::Inherit => StdinShape::Inherit,
            Stdin::Pipe => StdinShape::Pipe,
            Stdin::Bytes(bytes) => StdinShape::Bytes(Text::new(bytes)),
            Stdin::File(path) => StdinShape::File(Text::from_value(path)?),
            Stdin::Fd(_) => return Err(holds_a_descriptor("stdin")),
        })
    }

    fn into_value(self) -> Stdin {
        match self {
            StdinShape::Null => Stdin::Null,
            StdinShape::Inherit => Stdin::Inherit,
            StdinShape::Pipe => Stdin::Pipe,
            StdinShape::Bytes(text) => Stdin::Bytes(text.bytes().into()),
            StdinShape::File(path) => Stdin::File(path.into_value()),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SinkShape {
    Capture,
    Inherit,
    Relay,
    Null,
    Merged,
    File(Text),
    Append(Text),
}

impl Written<Sink> for SinkShape {
    fn from_value(sink: &Sink) -> Result<SinkShape, Invalid> {
        Ok(match sink {
            Sink::Capture => SinkShape::Capture,
            Sink::Inherit => SinkShape::Inherit,
            Sink::Relay => SinkShape::Relay,
            Sink::Null => SinkShape::Null,
            Sink::Merged => SinkShape::Merged,
            Sink::File { path, append } => match append {
                true => SinkShape::Append(Text::from_value(path)?),
                false => SinkShape::File(Text::from_value(path)?),
            },
            Sink::Fd(_) => return Err(holds_a_descriptor("stdout or stderr")),
        })
    }

    fn into_value(self) -> Sink {
        let file = |path: Text, append| {
            let path: PathBuf = path.into_value();
            Sink::File { path, append }
        };
        match self {
            SinkShape::Capture => Sink::Capture,
            SinkShape::Inherit => Sink::Inherit,
            SinkShape::Relay => Sink::Relay,
            SinkShape::Null => Sink::Null,
            SinkShape::Merged => Sink::Merged,
            SinkShape::File(path) => file(path, false),
            SinkShape::Append(path) => file(path, true),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table with signal, grace and scope"
)]
pub(super) struct StopShape {
    signal: SignalName,
    /// Null for no SIGKILL ever.
    grace: SecondsText,
    scope: Scope,
}

impl Default for StopShape {
    fn default() -> StopShape {
        StopShape::from(Stop::default())
    }
}

impl From<Stop> for StopShape {
    fn from(stop: Stop) -> StopShape {
        StopShape {
            signal: SignalName(stop.signal()),
            grace: stop.grace().into(),
            scope: stop.scope(),
        }
    }
}

impl Written<Stop> for StopShape {
    fn from_value(stop: &Stop) -> Result<StopShape, Invalid> {
        Ok(StopShape::from(*stop))
    }

    fn into_value(self) -> Stop {
        Stop::new()
            .with_signal(self.signal.0)
            .with_grace(self.grace.duration())
            .with_scope(self.scope)
    }
}
