//! Results as JSON: one shape for every front end.
//!
//! `docs/reference/result.md` describes it, `docs/reference/result.schema.json`
//! says it exactly. A field whose value is not known or does not apply is
//! there and null.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::output::{Output, Report, StreamInfo};
use crate::drain::Segment;
use procwright_process::Survivor;
use procwright_process::holders::Holder;

impl Report {
    /// The report as a JSON object, without any data.
    ///
    /// ```
    /// use procwright::Command;
    ///
    /// let json = Command::new("true").run()?.report.to_json();
    /// assert_eq!(json["reason"], "finished");
    /// assert_eq!(json["status"]["code"], 0);
    /// # Ok::<(), procwright::Error>(())
    /// ```
    pub fn to_json(&self) -> Value {
        Value::Object(self.members())
    }

    /// The report as a JSON object, with the data in `stdout` and `stderr` (null where nothing was
    /// captured) and, in `merged`, the order in which they were read.
    pub fn to_json_with(
        &self,
        stdout: Option<&[u8]>,
        stderr: Option<&[u8]>,
        merged: Option<&[Segment]>,
    ) -> Value {
        let mut members = self.members();
        members.insert("stdout".into(), stdout.map_or(Value::Null, text));
        members.insert("stderr".into(), stderr.map_or(Value::Null, text));
        let merged = merged.map(|order| order.iter().map(segment).collect());
        members.insert("merged".into(), merged.map_or(Value::Null, Value::Array));
        Value::Object(members)
    }

    fn members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.to_owned(), value);
        put("argv", self.argv.iter().map(|arg| os_text(arg)).collect());
        put("pid", self.pid.into());
        put("status", self.status.to_json());
        put("reason", self.reason.name().into());
        put("outcome", self.outcome().into());
        put("why", self.why().into());
        put("duration_s", seconds(self.duration));
        put("cpu_user_s", self.cpu_user.map_or(Value::Null, seconds));
        put("cpu_system_s", self.cpu_system.map_or(Value::Null, seconds));
        put("max_rss_bytes", self.max_rss_bytes.into());
        put("survivors", self.survivors.iter().map(survivor).collect());
        put("processes", self.processes.iter().cloned().collect());
        put("stdout_info", stream(self.stdout_info.as_ref()));
        put("stderr_info", stream(self.stderr_info.as_ref()));
        members
    }
}

impl Output {
    /// The whole result as a JSON object. What is not UTF-8 is base64, as
    /// `{"base64": "…"}`.
    pub fn to_json(&self) -> Value {
        let data = |info: &Option<StreamInfo>, data| info.is_some().then_some(data);
        self.report.to_json_with(
            data(&self.report.stdout_info, &self.stdout[..]),
            data(&self.report.stderr_info, &self.stderr[..]),
            self.merged.as_deref(),
        )
    }
}

fn stream(info: Option<&StreamInfo>) -> Value {
    let Some(info) = info else {
        return Value::Null;
    };
    json!({
        "bytes": info.bytes,
        "kept_bytes": info.kept_bytes,
        "dropped_bytes": info.dropped_bytes,
        "dropped_at": info.dropped_at,
        "blocked_s": info.blocked.map(seconds),
        "complete": info.complete,
        "held_by": info.held_by.iter().map(holder).collect::<Vec<_>>(),
        "held_by_complete": info.held_by_complete,
        "kept_at": info.kept_at.as_ref().map(|path| os_text(path.as_os_str())),
        "kept_error": info.kept_error,
        "undelivered_bytes": info.undelivered_bytes,
    })
}

fn holder(holder: &Holder) -> Value {
    json!({"pid": holder.pid, "name": holder.name})
}

fn survivor(survivor: &Survivor) -> Value {
    json!({
        "pid": survivor.pid,
        "name": survivor.name,
        "state": survivor.state.to_string(),
    })
}

fn segment(segment: &Segment) -> Value {
    json!({
        "stream": segment.stream.name(),
        "bytes": segment.bytes,
        "ambiguous": segment.ambiguous,
        "at": seconds(segment.at.duration_since(UNIX_EPOCH).unwrap_or_default()),
    })
}

fn seconds(duration: Duration) -> Value {
    duration.as_secs_f64().into()
}

/// A path or argument as it stands in all our JSON: a string, or
/// `{"base64": "…"}` if it is not UTF-8.
///
/// ```
/// assert_eq!(procwright::text_to_json("build.log"), "build.log");
/// ```
pub fn text_to_json(text_or_not: impl AsRef<OsStr>) -> Value {
    os_text(text_or_not.as_ref())
}

fn os_text(text_or_not: &OsStr) -> Value {
    text(text_or_not.as_bytes())
}

/// A string where it can be one. Never one with replacement characters, which
/// could not be told from the truth.
pub(crate) fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({"base64": STANDARD.encode(bytes)}),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;
    use crate::run::{ReachedLimit, Reason};
    use crate::std_stream::StdStream;
    use procwright_process::{Exit, Signal};

    fn report() -> Report {
        Report {
            argv: vec!["prog".into(), OsString::from_vec(b"a\xffb".to_vec())],
            pid: 7,
            status: Exit::Signal {
                signal: Signal::TERM,
                core: false,
            },
            reason: Reason::Timeout,
            ok_codes: Vec::new(),
            limit: Some(ReachedLimit::Time(Duration::from_secs(1))),
            duration: Duration::from_millis(1500),
            stop_duration: Some(Duration::from_millis(500)),
            cpu_user: None,
            cpu_system: Some(Duration::ZERO),
            max_rss_bytes: None,
            oom_kills: None,
            survivors: vec![Survivor::new(8, "stuck".into(), 'D')],
            last_words_of: StdStream::Stderr,
            stdout_info: Some(StreamInfo {
                bytes: 3,
                kept_bytes: 3,
                held_by: vec![Holder::noted(8, "stuck".into(), None)],
                ..StreamInfo::default()
            }),
            stderr_info: None,
            processes: vec!["prog (pid 7) sleeps".into()],
            diagnosis: None,
            held_after_exit: false,
        }
    }

    #[test]
    fn names_and_shapes() {
        let order = [Segment {
            stream: StdStream::Stdout,
            bytes: 3,
            ambiguous: false,
            at: UNIX_EPOCH + Duration::from_millis(1500),
        }];
        let json = report().to_json_with(Some(b"\xffab"), None, Some(&order));
        assert_eq!(json["argv"], json!(["prog", {"base64": "Yf9i"}]));
        assert_eq!(
            json["status"],
            json!({"kind": "signaled", "signal": 15, "name": "SIGTERM", "core": false})
        );
        assert_eq!(json["reason"], "timeout");
        assert_eq!(json["outcome"], "timed out after 1 s (stopped in 0.5 s)");
        assert_eq!(json["duration_s"], 1.5);
        assert_eq!(json["cpu_user_s"], Value::Null);
        assert_eq!(json["cpu_system_s"], 0.0);
        assert_eq!(
            json["survivors"],
            json!([{"pid": 8, "name": "stuck", "state": "D"}])
        );
        assert_eq!(json["stdout"], json!({"base64": "/2Fi"}));
        assert_eq!(json["stderr"], Value::Null);
        assert_eq!(json["stderr_info"], Value::Null);
        assert_eq!(
            json["stdout_info"]["held_by"],
            json!([{"pid": 8, "name": "stuck"}])
        );
        assert_eq!(
            json["merged"],
            json!([{"stream": "stdout", "bytes": 3, "ambiguous": false, "at": 1.5}])
        );
    }
}
