//! Options from Ruby as a [`Spec`].

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use magnus::{Error, RArray, RHash, RString, Ruby, Symbol, TryConvert, Value};
use procwright::error::Step;
use procwright::queue::Channel;
use procwright::spec::{Account, Limit, Rlimit};
use procwright::terminal::Size;
use procwright::{Beyond, Overflow, Sink, Spec, Stdin, duplicate_fd};
use rustix::io::Errno;

use crate::arguments::{seconds, signal, stop};
use crate::cancel::Cancel;
use crate::errors::{exception, invalid_error, start_refused, system_error};
use crate::setup;
use crate::string::to_vec;

/// A policy by its name, the bytes in memory and those on disk.
pub(crate) type OverflowParts = (Symbol, u64, Option<u64>);

/// The policy for bytes that are not taken.
pub(crate) fn overflow((policy, memory, disk): OverflowParts) -> Result<Overflow, Error> {
    Ok(match &*policy.name()? {
        "spill" => Overflow::Spill { memory, disk },
        "drop_oldest" => Overflow::DropOldest { memory },
        "drop_newest" => Overflow::DropNewest { memory },
        "fail" => Overflow::Fail { memory },
        other => return Err(unknown("overflow", other)),
    })
}

/// The options in the shapes that `lib/procwright/options.rb` gives them.
#[derive(Clone, Copy)]
pub(crate) struct Options<'a> {
    pub(crate) ruby: &'a Ruby,
    pub(crate) hash: RHash,
}

impl Options<'_> {
    pub(crate) fn get<T: TryConvert>(&self, name: &str) -> Result<T, Error> {
        self.hash.lookup(self.ruby.to_symbol(name))
    }

    fn path(&self, name: &str) -> Result<Option<PathBuf>, Error> {
        Ok(self.get::<Option<RString>>(name)?.map(path))
    }

    fn account(&self, name: &str) -> Result<Option<Account>, Error> {
        self.get::<Option<Value>>(name)?.map(account).transpose()
    }

    /// The options that `run` and `spawn` share.
    pub(crate) fn spec(&self) -> Result<Spec, Error> {
        let mut spec = self.spec_without_environment()?;
        // The copy is taken with Ruby's lock, and not in the middle of the run: other threads
        // set variables with the lock held.
        spec.env
            .get_or_insert_with(|| std::env::vars_os().collect());
        Ok(spec)
    }

    /// [`spec`](Options::spec), which has an environment only if one was given.
    pub(crate) fn spec_without_environment(&self) -> Result<Spec, Error> {
        let mut spec = Spec::new(each(self.get("argv")?, |word| {
            RString::try_convert(word).map(os)
        })?);
        let env = self.get::<Option<RArray>>("env")?.map(|env| {
            each(env, |pair| {
                let (key, value): (RString, RString) = TryConvert::try_convert(pair)?;
                Ok((os(key), os(value)))
            })
        });
        spec.env = env.transpose()?;
        spec.extra_env = each(self.get("extra_env")?, |pair| {
            let (key, value): (RString, Option<RString>) = TryConvert::try_convert(pair)?;
            Ok((os(key), value.map(os)))
        })?;
        spec.cwd = self.path("cwd")?;
        spec.user = self.account("user")?;
        spec.group = self.account("group")?;
        let groups = self.get::<Option<RArray>>("extra_groups")?;
        spec.extra_groups = groups.map(|groups| each(groups, account)).transpose()?;
        spec.umask = self.get("umask")?;
        spec.rlimits = each(self.get("rlimits")?, |limit| {
            let (resource, soft, hard) = TryConvert::try_convert(limit)?;
            Ok(Rlimit {
                resource,
                soft,
                hard,
            })
        })?;
        spec.nice = self.get("nice")?;
        spec.process_group = self.get("process_group")?;
        spec.new_session = self.get("new_session")?;
        let size = self.get::<Option<(u16, u16)>>("pty")?;
        spec.pty = size.map(|(rows, columns)| Size { rows, columns });
        let death = self.get::<Option<Value>>("die_with_parent")?;
        spec.die_with_parent = death.map(signal).transpose()?;
        spec.pass_fds = each(self.get("fds")?, |pair| {
            let (ours, theirs): (RawFd, RawFd) = TryConvert::try_convert(pair)?;
            Ok((fd("a descriptor", ours)?, theirs))
        })?;
        if let Some(parts) = self.get::<Option<RArray>>("stop")? {
            spec.stop = stop(parts)?;
        }
        spec.liveness = self.get("liveness")?;
        setup::apply(&mut spec, self.get("setup")?)?;
        spec.stdin = self.stdin()?;
        spec.stdout = self.sink("stdout")?;
        spec.stderr = self.sink("stderr")?;
        spec.merged = self.get("merged")?;
        spec.ok_codes = each(self.get("ok_codes")?, TryConvert::try_convert)?;
        spec.keep_full = self.path("keep_full")?;
        self.add_limits(&mut spec)?;
        Ok(spec)
    }

    fn add_limits(&self, spec: &mut Spec) -> Result<(), Error> {
        spec.timeout = seconds("timeout", self.get("timeout")?)?;
        spec.idle_timeout = seconds("idle_timeout", self.get("idle_timeout")?)?;
        let until: String = self.get("until")?;
        spec.until = until.parse().map_err(|error| invalid_error(&error))?;
        spec.limit = self
            .get::<Option<(u64, bool)>>("limit")?
            .map(|(bytes, fails)| Limit {
                bytes,
                beyond: match fails {
                    true => Beyond::Fail,
                    false => Beyond::HeadAndTail,
                },
            });
        Ok(())
    }

    /// The handle that cancels it.
    pub(crate) fn cancel(&self) -> Result<Option<procwright::Cancel>, Error> {
        let cancel = self.get::<Option<&Cancel>>("cancel")?;
        Ok(cancel.map(Cancel::handle))
    }

    /// Adds the options of `spawn` alone.
    pub(crate) fn add_spawn_options(&self, spec: &mut Spec) -> Result<(), Error> {
        spec.detach = self.get("detach")?;
        Ok(())
    }

    pub(crate) fn overflow(&self) -> Result<Option<Overflow>, Error> {
        let parts = self.get::<Option<OverflowParts>>("overflow")?;
        parts.map(overflow).transpose()
    }

    pub(crate) fn channel(&self) -> Result<Option<Channel>, Error> {
        let Some(way) = self.get::<Option<Symbol>>("channel")? else {
            return Ok(None);
        };
        match &*way.name()? {
            "from_child" => Ok(Some(Channel::FromChild)),
            "to_child" => Ok(Some(Channel::ToChild)),
            other => Err(unknown("channel", other)),
        }
    }

    fn stdin(&self) -> Result<Stdin, Error> {
        let (kind, value): (Symbol, Value) = self.get("stdin")?;
        Ok(match &*kind.name()? {
            "inherit" => Stdin::Inherit,
            "pipe" => Stdin::Pipe,
            "bytes" => Stdin::Bytes(Bytes::from(to_vec(RString::try_convert(value)?))),
            "file" => Stdin::File(path(RString::try_convert(value)?)),
            "fd" => Stdin::Fd(blocking_fd("stdin", RawFd::try_convert(value)?)?),
            _ => Stdin::Null,
        })
    }

    fn sink(&self, name: &str) -> Result<Sink, Error> {
        let (kind, value): (Symbol, Value) = self.get(name)?;
        Ok(match &*kind.name()? {
            "inherit" => Sink::Inherit,
            "null" => Sink::Null,
            "merged" => Sink::Merged,
            append @ ("file" | "append") => Sink::File {
                path: path(RString::try_convert(value)?),
                append: append == "append",
            },
            "fd" => Sink::Fd(blocking_fd(name, RawFd::try_convert(value)?)?),
            _ => Sink::Capture,
        })
    }
}

pub(crate) fn each<T>(
    array: RArray,
    item: impl Fn(Value) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    array.into_iter().map(item).collect()
}

fn os(string: RString) -> OsString {
    OsString::from_vec(to_vec(string))
}

pub(crate) fn path(string: RString) -> PathBuf {
    os(string).into()
}

fn account(value: Value) -> Result<Account, Error> {
    match RString::from_value(value) {
        Some(name) => Ok(Account::Name(name.to_string()?)),
        None => Ok(Account::Id(u32::try_convert(value)?)),
    }
}

/// The exception for a word that Ruby has checked already, with its own hint.
fn unknown(option: &str, word: &str) -> Error {
    exception("internal_error", (format!("{option} is {word}"),))
}

/// A duplicate of the caller's descriptor, which the caller may close meanwhile.
pub(crate) fn fd(name: &str, number: RawFd) -> Result<Arc<std::os::fd::OwnedFd>, Error> {
    let duplicate = duplicate_fd(number).map(Arc::new);
    duplicate.map_err(|error| {
        let shown = format!("{name} is descriptor {number}");
        match error.raw_os_error() == Some(Errno::BADF.raw_os_error()) {
            true => system_error(&error, format!("{shown}: {error}")),
            // That there are none left is no fault of the number.
            false => start_refused(&[], Step::Dup, &shown, error),
        }
    })
}

/// A duplicate that becomes stdin, stdout or stderr. A program expects that it blocks, and
/// Ruby's pipes do not: `cat` would fail where it had to wait. The mode belongs to the end of
/// the pipe and not to one descriptor, so it changes for us too, as by Process.spawn; Ruby can
/// wait in either.
fn blocking_fd(name: &str, number: RawFd) -> Result<Arc<std::os::fd::OwnedFd>, Error> {
    let fd = fd(name, number)?;
    // A file without that mode blocks.
    let _ = rustix::io::ioctl_fionbio(&fd, false);
    Ok(fd)
}
