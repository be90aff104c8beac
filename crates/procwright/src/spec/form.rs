//! A [`Spec`] as text: JSON, TOML or whatever serde has a format for.
//!
//! Only what differs from the defaults has to be written. Strings that are not
//! UTF-8 are `{"base64": "…"}`, times are seconds, null is "none" or "never". A
//! descriptor means something in one process only and cannot be written.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Account, Beyond, Limit, Rlimit, Sink, Spec, Stdin, Until};
use crate::error::Invalid;
use crate::process::{Scope, Signal, Stop};
use crate::time::Timeout;

/// The members of the text, all optional but `argv`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    argv: Vec<Text>,
    #[serde(default)]
    env: Option<BTreeMap<String, Text>>,
    #[serde(default)]
    extra_env: BTreeMap<String, Option<Text>>,
    #[serde(default)]
    cwd: Option<Text>,
    #[serde(default)]
    user: Option<AccountForm>,
    #[serde(default)]
    group: Option<AccountForm>,
    #[serde(default)]
    extra_groups: Option<Vec<AccountForm>>,
    #[serde(default)]
    umask: Option<u32>,
    /// Soft and hard; null for no limit.
    #[serde(default)]
    rlimits: BTreeMap<String, (Option<u64>, Option<u64>)>,
    #[serde(default)]
    nice: Option<i32>,
    #[serde(default)]
    process_group: Option<i32>,
    #[serde(default)]
    new_session: bool,
    #[serde(default)]
    foreground: bool,
    #[serde(default)]
    die_with_parent: Option<String>,
    #[serde(default)]
    stdin: StdinForm,
    #[serde(default)]
    stdout: SinkForm,
    #[serde(default)]
    stderr: SinkForm,
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    idle_timeout: Option<f64>,
    #[serde(default)]
    stop: StopForm,
    #[serde(default)]
    until: UntilForm,
    #[serde(default)]
    limit: Option<LimitForm>,
    #[serde(default)]
    keep_full: Option<Text>,
    #[serde(default)]
    merged: bool,
    /// Null for never; what stands nowhere is the default.
    #[serde(default = "stall_after")]
    stall_after: Option<f64>,
}

fn stall_after() -> Option<f64> {
    Some(super::STALL_AFTER.as_secs_f64())
}

/// Bytes that are mostly text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Plain(String),
    Encoded { base64: String },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum AccountForm {
    Id(u32),
    Name(String),
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StdinForm {
    #[default]
    Null,
    Inherit,
    Pipe,
    Bytes(Text),
    File(Text),
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SinkForm {
    #[default]
    Capture,
    Inherit,
    Relay,
    Null,
    Merged,
    File(Text),
    Append(Text),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StopForm {
    signal: String,
    grace: f64,
    scope: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UntilForm {
    #[default]
    Eof,
    Exit,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitForm {
    bytes: u64,
    #[serde(default)]
    beyond: BeyondForm,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BeyondForm {
    #[default]
    HeadAndTail,
    Fail,
}

impl Default for StopForm {
    fn default() -> StopForm {
        StopForm::from(Stop::default())
    }
}

impl From<Stop> for StopForm {
    fn from(stop: Stop) -> StopForm {
        StopForm {
            signal: stop.signal().name().into_owned(),
            grace: stop.grace().as_secs_f64(),
            scope: stop.scope().name().to_owned(),
        }
    }
}

impl Text {
    fn new(bytes: &[u8]) -> Text {
        match std::str::from_utf8(bytes) {
            Ok(text) => Text::Plain(text.to_owned()),
            Err(_) => Text::Encoded {
                base64: STANDARD.encode(bytes),
            },
        }
    }

    fn bytes(self) -> Result<Vec<u8>, Invalid> {
        match self {
            Text::Plain(text) => Ok(text.into_bytes()),
            Text::Encoded { base64 } => STANDARD.decode(base64).map_err(|error| {
                Invalid::new("base64", error.to_string(), "encode the bytes with padding")
            }),
        }
    }

    fn os(self) -> Result<OsString, Invalid> {
        self.bytes().map(OsString::from_vec)
    }
}

impl From<&OsString> for Text {
    fn from(text: &OsString) -> Text {
        Text::new(text.as_bytes())
    }
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Form::try_from(self)
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Spec, D::Error> {
        let form = Form::deserialize(deserializer)?;
        Spec::try_from(form).map_err(D::Error::custom)
    }
}

impl TryFrom<&Spec> for Form {
    type Error = Invalid;

    fn try_from(spec: &Spec) -> Result<Form, Invalid> {
        if !spec.extra_fds.is_empty() {
            return Err(descriptor("extra_fds"));
        }
        let name = |name: &OsString| {
            name.to_str().map(str::to_owned).ok_or_else(|| {
                Invalid::new(
                    "env",
                    format!("has the name {name:?}, which is not UTF-8"),
                    "such a name cannot be written",
                )
            })
        };
        let seconds = |timeout: Timeout| timeout.duration().map(|d| d.as_secs_f64());
        let env = match &spec.env {
            None => None,
            Some(env) => Some(
                env.iter()
                    .map(|(key, value)| Ok((name(key)?, value.into())))
                    .collect::<Result<_, Invalid>>()?,
            ),
        };
        let extra_env = spec.extra_env.iter();
        Ok(Form {
            argv: spec.argv.iter().map(Text::from).collect(),
            env,
            extra_env: extra_env
                .map(|(key, value)| Ok((name(key)?, value.as_ref().map(Text::from))))
                .collect::<Result<_, Invalid>>()?,
            cwd: spec
                .cwd
                .as_ref()
                .map(|cwd| Text::new(cwd.as_os_str().as_bytes())),
            user: spec.user.as_ref().map(AccountForm::from),
            group: spec.group.as_ref().map(AccountForm::from),
            extra_groups: spec
                .extra_groups
                .as_ref()
                .map(|groups| groups.iter().map(AccountForm::from).collect()),
            umask: spec.umask,
            rlimits: spec
                .rlimits
                .iter()
                .map(|limit| {
                    (
                        limit.resource.clone(),
                        (finite(limit.soft), finite(limit.hard)),
                    )
                })
                .collect(),
            nice: spec.nice,
            process_group: spec.process_group,
            new_session: spec.new_session,
            foreground: spec.foreground,
            die_with_parent: spec
                .die_with_parent
                .map(|signal| signal.name().into_owned()),
            stdin: StdinForm::try_from(&spec.stdin)?,
            stdout: SinkForm::try_from(&spec.stdout)?,
            stderr: SinkForm::try_from(&spec.stderr)?,
            timeout: seconds(spec.timeout),
            idle_timeout: seconds(spec.idle_timeout),
            stop: spec.stop.into(),
            until: match spec.until {
                Until::Eof => UntilForm::Eof,
                Until::Exit => UntilForm::Exit,
            },
            limit: spec.limit.map(|limit| LimitForm {
                bytes: limit.bytes,
                beyond: match limit.beyond {
                    Beyond::HeadAndTail => BeyondForm::HeadAndTail,
                    Beyond::Fail => BeyondForm::Fail,
                },
            }),
            keep_full: spec
                .keep_full
                .as_ref()
                .map(|path| Text::new(path.as_os_str().as_bytes())),
            merged: spec.merged,
            stall_after: seconds(spec.stall_after),
        })
    }
}

impl TryFrom<Form> for Spec {
    type Error = Invalid;

    fn try_from(form: Form) -> Result<Spec, Invalid> {
        let argv = form.argv.into_iter().map(Text::os);
        let mut spec = Spec::new(argv.collect::<Result<Vec<_>, _>>()?);
        if let Some(env) = form.env {
            let pairs = env
                .into_iter()
                .map(|(key, value)| Ok((key.into(), value.os()?)));
            spec.env = Some(pairs.collect::<Result<_, Invalid>>()?);
        }
        for (key, value) in form.extra_env {
            let value = value.map(Text::os).transpose()?;
            spec.extra_env.push((key.into(), value));
        }
        spec.cwd = form.cwd.map(Text::os).transpose()?.map(Into::into);
        spec.user = form.user.map(Account::from);
        spec.group = form.group.map(Account::from);
        spec.extra_groups = form
            .extra_groups
            .map(|groups| groups.into_iter().map(Account::from).collect());
        spec.umask = form.umask;
        for (resource, (soft, hard)) in form.rlimits {
            spec.rlimits.push(Rlimit {
                resource,
                soft: soft.unwrap_or(u64::MAX),
                hard: hard.unwrap_or(u64::MAX),
            });
        }
        spec.nice = form.nice;
        spec.process_group = form.process_group;
        spec.new_session = form.new_session;
        spec.foreground = form.foreground;
        spec.die_with_parent = match form.die_with_parent {
            Some(name) => Some(name.parse()?),
            None => None,
        };
        spec.stdin = Stdin::try_from(form.stdin)?;
        spec.stdout = Sink::try_from(form.stdout)?;
        spec.stderr = Sink::try_from(form.stderr)?;
        let timeout = |secs: Option<f64>| secs.map_or(Ok(Timeout::NEVER), Timeout::from_secs_f64);
        spec.timeout = timeout(form.timeout)?;
        spec.idle_timeout = timeout(form.idle_timeout)?;
        spec.stall_after = timeout(form.stall_after)?;
        spec.stop = Stop::try_from(form.stop)?;
        spec.until = match form.until {
            UntilForm::Eof => Until::Eof,
            UntilForm::Exit => Until::Exit,
        };
        spec.limit = form.limit.map(|limit| Limit {
            bytes: limit.bytes,
            beyond: match limit.beyond {
                BeyondForm::HeadAndTail => Beyond::HeadAndTail,
                BeyondForm::Fail => Beyond::Fail,
            },
        });
        spec.keep_full = form.keep_full.map(Text::os).transpose()?.map(Into::into);
        spec.merged = form.merged;
        Ok(spec)
    }
}

fn finite(limit: u64) -> Option<u64> {
    (limit != u64::MAX).then_some(limit)
}

fn descriptor(what: &str) -> Invalid {
    Invalid::new(
        what,
        "has a descriptor, which means nothing elsewhere",
        "name a file, or add the descriptor after reading the spec",
    )
}

impl From<&Account> for AccountForm {
    fn from(account: &Account) -> AccountForm {
        match account {
            Account::Id(id) => AccountForm::Id(*id),
            Account::Name(name) => AccountForm::Name(name.clone()),
        }
    }
}

impl From<AccountForm> for Account {
    fn from(form: AccountForm) -> Account {
        match form {
            AccountForm::Id(id) => Account::Id(id),
            AccountForm::Name(name) => Account::Name(name),
        }
    }
}

impl TryFrom<&Stdin> for StdinForm {
    type Error = Invalid;

    fn try_from(stdin: &Stdin) -> Result<StdinForm, Invalid> {
        Ok(match stdin {
            Stdin::Null => StdinForm::Null,
            Stdin::Inherit => StdinForm::Inherit,
            Stdin::Pipe => StdinForm::Pipe,
            Stdin::Bytes(bytes) => StdinForm::Bytes(Text::new(bytes)),
            Stdin::File(path) => StdinForm::File(Text::new(path.as_os_str().as_bytes())),
            Stdin::Fd(_) => return Err(descriptor("stdin")),
        })
    }
}

impl TryFrom<StdinForm> for Stdin {
    type Error = Invalid;

    fn try_from(form: StdinForm) -> Result<Stdin, Invalid> {
        Ok(match form {
            StdinForm::Null => Stdin::Null,
            StdinForm::Inherit => Stdin::Inherit,
            StdinForm::Pipe => Stdin::Pipe,
            StdinForm::Bytes(text) => Stdin::Bytes(text.bytes()?.into()),
            StdinForm::File(path) => Stdin::File(path.os()?.into()),
        })
    }
}

impl TryFrom<&Sink> for SinkForm {
    type Error = Invalid;

    fn try_from(sink: &Sink) -> Result<SinkForm, Invalid> {
        Ok(match sink {
            Sink::Capture => SinkForm::Capture,
            Sink::Inherit => SinkForm::Inherit,
            Sink::Relay => SinkForm::Relay,
            Sink::Null => SinkForm::Null,
            Sink::Merged => SinkForm::Merged,
            Sink::File { path, append } => {
                let path = Text::new(path.as_os_str().as_bytes());
                match append {
                    true => SinkForm::Append(path),
                    false => SinkForm::File(path),
                }
            }
            Sink::Fd(_) => return Err(descriptor("stdout or stderr")),
        })
    }
}

impl TryFrom<SinkForm> for Sink {
    type Error = Invalid;

    fn try_from(form: SinkForm) -> Result<Sink, Invalid> {
        let file = |path: Text, append| {
            let path = path.os()?.into();
            Ok(Sink::File { path, append })
        };
        match form {
            SinkForm::Capture => Ok(Sink::Capture),
            SinkForm::Inherit => Ok(Sink::Inherit),
            SinkForm::Relay => Ok(Sink::Relay),
            SinkForm::Null => Ok(Sink::Null),
            SinkForm::Merged => Ok(Sink::Merged),
            SinkForm::File(path) => file(path, false),
            SinkForm::Append(path) => file(path, true),
        }
    }
}

impl TryFrom<StopForm> for Stop {
    type Error = Invalid;

    fn try_from(form: StopForm) -> Result<Stop, Invalid> {
        let signal: Signal = form.signal.parse()?;
        let grace = Duration::try_from_secs_f64(form.grace).map_err(|error| {
            Invalid::new("stop.grace", error.to_string(), "write seconds, 0 or more")
        })?;
        let scopes = [Scope::Process, Scope::Group, Scope::Tree];
        let scope = scopes.into_iter().find(|scope| scope.name() == form.scope);
        let scope = scope.ok_or_else(|| {
            Invalid::new(
                "stop.scope",
                format!("is {:?}", form.scope),
                "write process, group or tree",
            )
        })?;
        Ok(Stop::new()
            .with_signal(signal)
            .with_grace(grace)
            .with_scope(scope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that can be written, away from its default.
    fn full() -> Spec {
        let mut spec = Spec::new(["prog", "-x"]);
        spec.argv.push(OsString::from_vec(vec![b'b', 0xff]));
        spec.env = Some(vec![("A".into(), OsString::from_vec(vec![0xfe]))]);
        spec.extra_env = vec![("B".into(), Some("c".into())), ("D".into(), None)];
        spec.cwd = Some("/tmp".into());
        spec.user = Some(Account::Name("nobody".into()));
        spec.group = Some(Account::Id(7));
        spec.extra_groups = Some(vec![Account::Id(1)]);
        spec.umask = Some(0o27);
        spec.rlimits = vec![Rlimit {
            resource: "nofile".into(),
            soft: 5,
            hard: u64::MAX,
        }];
        spec.nice = Some(3);
        spec.process_group = Some(0);
        spec.new_session = true;
        spec.foreground = true;
        spec.die_with_parent = Some(Signal::KILL);
        spec.stdin = Stdin::Bytes(vec![0, 255].into());
        spec.stdout = Sink::File {
            path: "out".into(),
            append: true,
        };
        spec.stderr = Sink::Merged;
        spec.timeout = Duration::from_millis(1500).into();
        spec.idle_timeout = Duration::from_secs(2).into();
        spec.stop = Stop::kill().with_scope(Scope::Group);
        spec.until = Until::Exit;
        spec.limit = Some(Limit {
            bytes: 9,
            beyond: Beyond::Fail,
        });
        spec.keep_full = Some("full".into());
        spec.merged = true;
        spec.stall_after = Timeout::NEVER;
        spec
    }

    #[test]
    fn what_is_written_comes_back() {
        for spec in [full(), Spec::new(["true"])] {
            let text = serde_json::to_string(&spec).unwrap();
            let back: Spec = serde_json::from_str(&text).unwrap();
            assert_eq!(format!("{spec:?}"), format!("{back:?}"), "{text}");
        }
    }

    #[test]
    fn only_argv_is_needed() {
        let spec: Spec = serde_json::from_str(r#"{"argv": ["true"]}"#).unwrap();
        assert_eq!(format!("{spec:?}"), format!("{:?}", Spec::new(["true"])));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (text, part) in [
            (r#"{"argv": ["a"], "timeot": 1}"#, "timeot"),
            (r#"{"argv": ["a"], "stop": {"signal": "NONE"}}"#, "NONE"),
            (
                r#"{"argv": ["a"], "stop": {"scope": "all"}}"#,
                "process, group or tree",
            ),
            (r#"{"argv": [{"base64": "%"}]}"#, "base64"),
        ] {
            let error = serde_json::from_str::<Spec>(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let mut spec = Spec::new(["a"]);
        let null = std::fs::File::open("/dev/null").unwrap();
        spec.stdin = Stdin::Fd(std::sync::Arc::new(null.into()));
        let error = serde_json::to_string(&spec).unwrap_err().to_string();
        assert!(error.contains("descriptor"), "{error}");
    }
}
