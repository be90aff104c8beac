//! A [`Spec`] as text: JSON, TOML or whatever serde has a format for.
//!
//! A text has to say only what differs from the defaults. Strings that are not
//! UTF-8 are `{"base64": "…"}`, times are seconds, null is "none" or "never". A
//! descriptor means something in one process only and cannot be written.
//!
//! `docs/reference/spec.md` describes it, `docs/reference/spec.schema.json` says
//! it exactly. A faulty member is found while it is read, so that a format that
//! knows lines can name the line.

mod defaults;
mod shapes;
#[cfg(test)]
mod tests;
mod values;

pub use defaults::Defaults;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Account, IoPriority, Limit, Rlimit, SchedPolicy, Sink, Spec, Stdin, Until};
use crate::terminal::{Modes, Size};
use procwright_os::Invalid;
use procwright_os::time::Timeout;
use procwright_process::{Signal, Stop};
use procwright_queue::Channel;
use shapes::{Limits, SinkShape, StdinShape, StopShape, Variables, writable_name};
pub(super) use values::account_id;
use values::{As, SecondsText, SignalName, Text, Variable, Word};

/// The members of the text, in their order. serde makes a [`Spec`] of them and
/// back: a field that is missing here does not compile.
///
/// A member whose value serde knows needs no more than its name. For others
/// [`As`] names what is written in their place.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Spec", deny_unknown_fields, default = "library_defaults")]
struct Members {
    #[serde(with = "As::<Vec<Text>>")]
    argv: Vec<OsString>,
    #[serde(with = "As::<Option<Variables<Text>>>")]
    env: Option<Vec<(OsString, OsString)>>,
    #[serde(with = "As::<Variables<Variable>>")]
    extra_env: Vec<(OsString, Option<OsString>)>,
    #[serde(with = "As::<Option<Text>>")]
    cwd: Option<PathBuf>,
    user: Option<Account>,
    group: Option<Account>,
    extra_groups: Option<Vec<Account>>,
    umask: Option<u32>,
    #[serde(with = "As::<Limits>")]
    rlimits: Vec<Rlimit>,
    nice: Option<i32>,
    process_group: Option<i32>,
    new_session: bool,
    #[serde(skip)]
    detach: bool,
    foreground: bool,
    pty: Option<Size>,
    #[serde(skip)]
    pty_modes: Option<Modes>,
    #[serde(with = "As::<Option<SignalName>>")]
    die_with_parent: Option<Signal>,
    #[serde(with = "As::<Vec<SignalName>>")]
    blocked_signals: Vec<Signal>,
    #[serde(with = "As::<Vec<SignalName>>")]
    ignored_signals: Vec<Signal>,
    #[serde(with = "As::<Vec<SignalName>>")]
    default_signals: Vec<Signal>,
    cpu_affinity: Option<Vec<u32>>,
    #[serde(with = "As::<Option<Word<SchedPolicy>>>")]
    sched_policy: Option<SchedPolicy>,
    #[serde(with = "As::<Option<Word<IoPriority>>>")]
    ionice: Option<IoPriority>,
    oom_score_adj: Option<i32>,
    #[serde(with = "As::<Option<Text>>")]
    cgroup: Option<PathBuf>,
    #[serde(with = "As::<Option<Text>>")]
    chroot: Option<PathBuf>,
    no_new_privs: bool,
    new_keyring: bool,
    liveness: bool,
    #[serde(skip)]
    channel: Option<Channel>,
    #[serde(skip)]
    channel_options: procwright_queue::Options,
    #[serde(with = "As::<StdinShape>")]
    stdin: Stdin,
    #[serde(with = "As::<SinkShape>")]
    stdout: Sink,
    #[serde(with = "As::<SinkShape>")]
    stderr: Sink,
    #[serde(skip)]
    pass_fds: Vec<(Arc<OwnedFd>, i32)>,
    #[serde(with = "As::<SecondsText>")]
    timeout: Timeout,
    #[serde(with = "As::<SecondsText>")]
    idle_timeout: Timeout,
    #[serde(with = "As::<StopShape>")]
    stop: Stop,
    until: Until,
    limit: Option<Limit>,
    #[serde(with = "As::<Option<Text>>")]
    keep_full: Option<PathBuf>,
    merged: bool,
    ok_codes: Vec<i32>,
    #[serde(with = "As::<SecondsText>")]
    stall_after: Timeout,
}

fn library_defaults() -> Spec {
    Spec::new([] as [OsString; 0])
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Before the first byte: a format that writes as it goes cannot take one back.
        self.check_writable().map_err(S::Error::custom)?;
        Members::serialize(self, serializer)
    }
}

impl Spec {
    /// Refuses what has no text.
    fn check_writable(&self) -> Result<(), Invalid> {
        let of_spawn = [("channel", self.channel.is_some()), ("detach", self.detach)];
        if let Some((what, _)) = of_spawn.into_iter().find(|(_, is_set)| *is_set) {
            return Err(Invalid::new(
                what,
                "is for a child of spawn()",
                "leave it out: what is written as text is for others to run",
            ));
        }
        let is_fd = |sink: &Sink| matches!(sink, Sink::Fd(_));
        let holding = [
            ("pass_fds", !self.pass_fds.is_empty()),
            ("stdin", matches!(self.stdin, Stdin::Fd(_))),
            ("stdout", is_fd(&self.stdout)),
            ("stderr", is_fd(&self.stderr)),
        ];
        if let Some((what, _)) = holding.into_iter().find(|(_, holds)| *holds) {
            return Err(holds_a_descriptor(what));
        }
        let set = self.env.iter().flatten().map(|(name, _)| name);
        let mut names = set.chain(self.extra_env.iter().map(|(name, _)| name));
        names.try_for_each(|name| writable_name(name).map(drop))
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Spec, D::Error> {
        use serde::de::DeserializeSeed as _;
        Defaults::default().deserialize(deserializer)
    }
}

fn holds_a_descriptor(what: &str) -> Invalid {
    Invalid::new(
        what,
        "has a descriptor, which means nothing elsewhere",
        "name a file, or add the descriptor after reading the spec",
    )
}
