//! The lines of a journal. `docs/reference/map-journal.md` describes them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::identity::Key;
use crate::map::past::PastEnd;
use crate::text_to_json;
use procwright_process::Exit;

/// The version of the form.
const VERSION: u64 = 1;

/// Which command of an input is meant: those with one key are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Nth {
    pub(super) key: Key,
    /// 1 for the first command of this key, 2 for the second.
    pub(super) number: u64,
}

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// A map begins.
    Map { cwd: PathBuf },
    /// A command is about to be started.
    Started { nth: Nth, at: f64 },
    /// A command has ended.
    Ended { nth: Nth, end: PastEnd },
}

pub(super) fn map(cwd: &Path, at: f64) -> Value {
    json!({
        "event": "map",
        "version": VERSION,
        "cwd": text_to_json(cwd),
        "pid": std::process::id(),
        "at": at,
    })
}

pub(super) fn started(nth: Nth, index: u64, argv: &[impl AsRef<OsStr>], at: f64) -> Value {
    json!({
        "event": "started",
        "key": nth.key.to_string(),
        "nth": nth.number,
        "index": index,
        "argv": argv.iter().map(text_to_json).collect::<Vec<_>>(),
        "at": at,
    })
}

/// What there is to say of an end.
pub(super) struct End<'a> {
    pub(super) past: &'a PastEnd,
    pub(super) at: f64,
    /// None if it was not started.
    pub(super) reason: Option<&'static str>,
    pub(super) stdout_bytes: Option<u64>,
    pub(super) stderr_bytes: Option<u64>,
}

pub(super) fn ended(nth: Nth, index: u64, end: &End<'_>) -> Value {
    json!({
        "event": "ended",
        "key": nth.key.to_string(),
        "nth": nth.number,
        "index": index,
        "at": end.at,
        "duration_s": end.past.duration.as_secs_f64(),
        "success": end.past.success,
        "stopped": end.past.stopped,
        "reason": end.reason,
        "status": end.past.status.map(Exit::to_json),
        "outcome": end.past.words,
        "stdout_bytes": end.stdout_bytes,
        "stderr_bytes": end.stderr_bytes,
    })
}

/// Reads a line.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(text: &[u8]) -> Result<Line, String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let lacking = |name: &str| format!("it has no usable {name:?}");
    let number = |name: &str| value[name].as_f64().ok_or_else(|| lacking(name));
    let nth = || {
        let key = value["key"].as_str().and_then(Key::parse);
        let number = value["nth"].as_u64().filter(|&number| number > 0);
        Ok::<_, String>(Nth {
            key: key.ok_or_else(|| lacking("key"))?,
            number: number.ok_or_else(|| lacking("nth"))?,
        })
    };
    match value["event"].as_str() {
        Some("map") => match value["version"].as_u64() {
            Some(VERSION) => Ok(Line::Map {
                cwd: path(&value["cwd"]).ok_or_else(|| lacking("cwd"))?,
            }),
            _ => Err(format!("it is of version {}", value["version"])),
        },
        Some("started") => Ok(Line::Started {
            nth: nth()?,
            at: number("at")?,
        }),
        Some("ended") => {
            let duration = Duration::try_from_secs_f64(number("duration_s")?);
            Ok(Line::Ended {
                nth: nth()?,
                end: PastEnd {
                    success: value["success"]
                        .as_bool()
                        .ok_or_else(|| lacking("success"))?,
                    stopped: value["stopped"]
                        .as_bool()
                        .ok_or_else(|| lacking("stopped"))?,
                    duration: duration.map_err(|error| error.to_string())?,
                    status: status(&value["status"])?,
                    words: value["outcome"].as_str().unwrap_or("ended").to_owned(),
                },
            })
        }
        _ => Err(lacking("event")),
    }
}

/// How a program ended; none of one that was not started.
fn status(value: &Value) -> Result<Option<Exit>, String> {
    match value {
        Value::Null => Ok(None),
        value => match Exit::from_json(value) {
            None => Err(r#"it has no usable "status""#.to_owned()),
            status => Ok(status),
        },
    }
}

/// A path as `text_to_json` wrote it.
fn path(value: &Value) -> Option<PathBuf> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Object(members) => {
            let bytes = STANDARD.decode(members.get("base64")?.as_str()?).ok()?;
            Some(std::ffi::OsString::from_vec(bytes).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let nth = Nth {
            key: Key::parse("00112233445566778899aabbccddeeff").unwrap(),
            number: 2,
        };
        let read = |value: &Value| parse(value.to_string().as_bytes()).unwrap();
        let odd = Path::new(OsStr::from_bytes(b"/a\xffb"));
        for cwd in [odd, Path::new("/x y")] {
            assert_eq!(read(&map(cwd, 1.0)), Line::Map { cwd: cwd.into() });
        }
        let line = started(nth, 7, &["a", "b"], 12.5);
        assert_eq!(read(&line), Line::Started { nth, at: 12.5 });
        for status in [None, Some(Exit::Code(0)), Some(Exit::Code(3))] {
            let past = PastEnd {
                success: status == Some(Exit::Code(0)),
                stopped: status == Some(Exit::Code(3)),
                duration: Duration::from_millis(1500),
                status,
                words: "exited with code 0".into(),
            };
            let end = End {
                past: &past,
                at: 14.0,
                reason: Some("finished"),
                stdout_bytes: Some(3),
                stderr_bytes: None,
            };
            assert_eq!(read(&ended(nth, 7, &end)), Line::Ended { nth, end: past });
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "",
            "{",
            "[]",
            r#"{"event":"other"}"#,
            r#"{"event":"map","version":2,"cwd":"/"}"#,
            r#"{"event":"map","version":1}"#,
            r#"{"event":"started","key":"zz","nth":1,"at":0}"#,
            r#"{"event":"started","key":"00112233445566778899aabbccddeeff","nth":0,"at":0}"#,
            r#"{"event":"ended","key":"00112233445566778899aabbccddeeff","nth":1,"at":0}"#,
            r#"{"event":"ended","key":"00112233445566778899aabbccddeeff","nth":1,"at":0,
                "duration_s":1,"success":false,"status":{"kind":"other"}}"#,
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
