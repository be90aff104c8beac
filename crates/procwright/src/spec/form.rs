//! A [`Spec`] as text: JSON, TOML or whatever serde has a format for.
//!
//! Only what differs from the defaults has to be written. Strings that are not
//! UTF-8 are `{"base64": "…"}`, times are seconds, null is "none" or "never". A
//! descriptor means something in one process only and cannot be written.
//!
//! `docs/reference/spec.md` describes it, `docs/reference/spec.schema.json` says
//! it exactly. What is wrong with a member is found while that is read, so that a
//! format that knows lines can name the line.

#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use serde::de::{DeserializeSeed, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Account, Beyond, Limit, Rlimit, Sink, Spec, Stdin, Until};
use crate::error::Invalid;
use crate::process::{Scope, Stop};
use crate::terminal::Size;
use values::{Ceiling, Name, Seconds, Text, Variable};

/// What stands for the members that the text of a [`Spec`] leaves out. The others
/// have one default everywhere.
///
/// For front ends whose defaults are not the library's: the command passes on what
/// a file says nothing about, and takes its arguments for those of the file. It is
/// a `DeserializeSeed` of serde, for any format.
///
/// ```
/// use procwright::{Sink, spec::Defaults};
/// use serde::de::DeserializeSeed;
///
/// let defaults = Defaults { stdout: Sink::Inherit, ..Defaults::default() };
/// let mut text = serde_json::Deserializer::from_str(r#"{"argv": ["make"]}"#);
/// let spec = defaults.deserialize(&mut text)?;
/// assert!(matches!(spec.stdout, Sink::Inherit));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// The program and its arguments; none if the text has to say.
    pub argv: Option<Vec<OsString>>,
    /// What the program reads.
    pub stdin: Stdin,
    /// Where its output goes.
    pub stdout: Sink,
    /// Where its error output goes.
    pub stderr: Sink,
}

/// The members of the text, all optional but `argv`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    #[serde(default, deserialize_with = "present")]
    argv: Option<Vec<Text>>,
    #[serde(default)]
    env: Option<BTreeMap<String, Text>>,
    #[serde(default)]
    extra_env: BTreeMap<String, Variable>,
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
    rlimits: BTreeMap<String, Ceilings>,
    #[serde(default)]
    nice: Option<i32>,
    #[serde(default)]
    process_group: Option<i32>,
    #[serde(default)]
    new_session: bool,
    #[serde(default)]
    foreground: bool,
    #[serde(default)]
    pty: Option<Size>,
    #[serde(default)]
    die_with_parent: Option<Name>,
    #[serde(default)]
    liveness: bool,
    #[serde(default, deserialize_with = "present")]
    stdin: Option<StdinForm>,
    #[serde(default, deserialize_with = "present")]
    stdout: Option<SinkForm>,
    #[serde(default, deserialize_with = "present")]
    stderr: Option<SinkForm>,
    #[serde(default)]
    timeout: Seconds,
    #[serde(default)]
    idle_timeout: Seconds,
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
    stall_after: Seconds,
}

fn stall_after() -> Seconds {
    super::STALL_AFTER.into()
}

/// Of a member that may be missing, but not null: that would leave open whether
/// nothing is meant or the default.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(text: D) -> Result<Option<T>, D::Error> {
    T::deserialize(text).map(Some)
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a name or a number")]
enum AccountForm {
    Id(u32),
    Name(String),
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "a pair, soft and hard")]
struct Ceilings(Ceiling, Ceiling);

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
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table with signal, grace and scope"
)]
struct StopForm {
    signal: Name,
    /// Null for no SIGKILL ever.
    grace: Seconds,
    scope: ScopeForm,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScopeForm {
    Process,
    Group,
    Tree,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UntilForm {
    #[default]
    Eof,
    Exit,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with bytes and beyond")]
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
            signal: Name(stop.signal()),
            grace: stop.grace().into(),
            scope: match stop.scope() {
                Scope::Process => ScopeForm::Process,
                Scope::Group => ScopeForm::Group,
                Scope::Tree => ScopeForm::Tree,
            },
        }
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
        Defaults::default().deserialize(deserializer)
    }
}

impl<'de> DeserializeSeed<'de> for Defaults {
    type Value = Spec;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Spec, D::Error> {
        let form = Form::deserialize(deserializer)?;
        form.spec(self)
            .ok_or_else(|| D::Error::missing_field("argv"))
    }
}

impl TryFrom<&Spec> for Form {
    type Error = Invalid;

    fn try_from(spec: &Spec) -> Result<Form, Invalid> {
        if !spec.extra_fds.is_empty() {
            return Err(descriptor("extra_fds"));
        }
        if spec.channel.is_some() {
            return Err(Invalid::new(
                "channel",
                "is for a child of spawn()",
                "leave it out: what is written as text is for others to run",
            ));
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
            argv: Some(spec.argv.iter().map(Text::from).collect()),
            env,
            extra_env: extra_env
                .map(|(key, value)| Ok((name(key)?, Variable(value.as_ref().map(Text::from)))))
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
                        Ceilings(Ceiling(limit.soft), Ceiling(limit.hard)),
                    )
                })
                .collect(),
            nice: spec.nice,
            process_group: spec.process_group,
            new_session: spec.new_session,
            foreground: spec.foreground,
            pty: spec.pty,
            die_with_parent: spec.die_with_parent.map(Name),
            liveness: spec.liveness,
            stdin: Some(StdinForm::try_from(&spec.stdin)?),
            stdout: Some(SinkForm::try_from(&spec.stdout)?),
            stderr: Some(SinkForm::try_from(&spec.stderr)?),
            timeout: spec.timeout.into(),
            idle_timeout: spec.idle_timeout.into(),
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
            stall_after: spec.stall_after.into(),
        })
    }
}

impl Form {
    /// None if there is no program in it.
    fn spec(self, defaults: Defaults) -> Option<Spec> {
        let argv = match self.argv {
            Some(argv) => argv.into_iter().map(Text::os).collect(),
            None => defaults.argv?,
        };
        let mut spec = Spec::new(argv);
        spec.env = self.env.map(|env| {
            let pairs = env.into_iter();
            pairs.map(|(key, value)| (key.into(), value.os())).collect()
        });
        let extra_env = self.extra_env.into_iter();
        spec.extra_env = extra_env
            .map(|(key, Variable(value))| (key.into(), value.map(Text::os)))
            .collect();
        spec.cwd = self.cwd.map(|cwd| cwd.os().into());
        spec.user = self.user.map(Account::from);
        spec.group = self.group.map(Account::from);
        spec.extra_groups = self
            .extra_groups
            .map(|groups| groups.into_iter().map(Account::from).collect());
        spec.umask = self.umask;
        for (resource, Ceilings(Ceiling(soft), Ceiling(hard))) in self.rlimits {
            spec.rlimits.push(Rlimit {
                resource,
                soft,
                hard,
            });
        }
        spec.nice = self.nice;
        spec.process_group = self.process_group;
        spec.new_session = self.new_session;
        spec.foreground = self.foreground;
        spec.pty = self.pty;
        spec.die_with_parent = self.die_with_parent.map(|Name(signal)| signal);
        spec.liveness = self.liveness;
        spec.stdin = self.stdin.map_or(defaults.stdin, Stdin::from);
        spec.stdout = self.stdout.map_or(defaults.stdout, Sink::from);
        spec.stderr = self.stderr.map_or(defaults.stderr, Sink::from);
        spec.timeout = self.timeout.into();
        spec.idle_timeout = self.idle_timeout.into();
        spec.stall_after = self.stall_after.into();
        spec.stop = self.stop.into();
        spec.until = match self.until {
            UntilForm::Eof => Until::Eof,
            UntilForm::Exit => Until::Exit,
        };
        spec.limit = self.limit.map(|limit| Limit {
            bytes: limit.bytes,
            beyond: match limit.beyond {
                BeyondForm::HeadAndTail => Beyond::HeadAndTail,
                BeyondForm::Fail => Beyond::Fail,
            },
        });
        spec.keep_full = self.keep_full.map(|path| path.os().into());
        spec.merged = self.merged;
        Some(spec)
    }
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

impl From<StdinForm> for Stdin {
    fn from(form: StdinForm) -> Stdin {
        match form {
            StdinForm::Null => Stdin::Null,
            StdinForm::Inherit => Stdin::Inherit,
            StdinForm::Pipe => Stdin::Pipe,
            StdinForm::Bytes(text) => Stdin::Bytes(text.bytes().into()),
            StdinForm::File(path) => Stdin::File(path.os().into()),
        }
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

impl From<SinkForm> for Sink {
    fn from(form: SinkForm) -> Sink {
        let file = |path: Text, append| Sink::File {
            path: path.os().into(),
            append,
        };
        match form {
            SinkForm::Capture => Sink::Capture,
            SinkForm::Inherit => Sink::Inherit,
            SinkForm::Relay => Sink::Relay,
            SinkForm::Null => Sink::Null,
            SinkForm::Merged => Sink::Merged,
            SinkForm::File(path) => file(path, false),
            SinkForm::Append(path) => file(path, true),
        }
    }
}

impl From<StopForm> for Stop {
    fn from(form: StopForm) -> Stop {
        let Name(signal) = form.signal;
        Stop::new()
            .with_signal(signal)
            .with_grace(form.grace.duration())
            .with_scope(match form.scope {
                ScopeForm::Process => Scope::Process,
                ScopeForm::Group => Scope::Group,
                ScopeForm::Tree => Scope::Tree,
            })
    }
}
