//! Reports of runs, as plain values of Ruby's.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use magnus::{Error, IntoValue, RArray, RHash, Ruby, Value};
use procwright::process::{Exit, Survivor};
use procwright::{Holder, Report, StreamInfo};

use crate::string::filesystem_string;

/// `Until::Exit` as it is written in Ruby.
pub(crate) const UNTIL_EXIT: &str = "until: :exit";

/// The report as a Hash, under the names of the result.
pub(crate) fn hash(ruby: &Ruby, report: &Report) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    let put = |name: &str, value: Value| hash.aset(ruby.to_symbol(name), value);
    let argv = ruby.ary_new();
    for word in &report.argv {
        argv.push(filesystem_string(ruby, word.as_bytes()))?;
    }
    put("argv", argv.into_value_with(ruby))?;
    put("pid", report.pid.into_value_with(ruby))?;
    put("status", status(ruby, report.status)?.into_value_with(ruby))?;
    put(
        "reason",
        ruby.to_symbol(report.reason.name()).into_value_with(ruby),
    )?;
    let ok_codes = ruby.ary_from_iter(report.ok_codes.iter().copied());
    put("ok_codes", ok_codes.into_value_with(ruby))?;
    put(
        "duration",
        report.duration.as_secs_f64().into_value_with(ruby),
    )?;
    put("cpu_user", secs(report.cpu_user).into_value_with(ruby))?;
    put("cpu_system", secs(report.cpu_system).into_value_with(ruby))?;
    put("max_rss_bytes", report.max_rss_bytes.into_value_with(ruby))?;
    put(
        "survivors",
        survivors(ruby, &report.survivors)?.into_value_with(ruby),
    )?;
    let processes = ruby.ary_new();
    for one in &report.processes {
        processes.push(one.as_str())?;
    }
    put("processes", processes.into_value_with(ruby))?;
    put("stdout_info", info(ruby, report.stdout_info.as_ref())?)?;
    put("stderr_info", info(ruby, report.stderr_info.as_ref())?)?;
    put("outcome", report.outcome().into_value_with(ruby))?;
    put("why", report.why().into_value_with(ruby))?;
    put("summary", report.summary().into_value_with(ruby))?;
    Ok(hash)
}

fn secs(duration: Option<Duration>) -> Option<f64> {
    duration.map(|duration| duration.as_secs_f64())
}

/// Pid, name and state of each.
pub(crate) fn survivors(ruby: &Ruby, survivors: &[Survivor]) -> Result<RArray, Error> {
    let array = ruby.ary_new();
    for one in survivors {
        let parts: [Value; 3] = [
            one.pid.into_value_with(ruby),
            one.name.as_str().into_value_with(ruby),
            one.state.to_string().into_value_with(ruby),
        ];
        array.push(ruby.ary_new_from_values(&parts))?;
    }
    Ok(array)
}

/// `[:exited, code]`, `[:signaled, number, name, core]` or `[:unknown, why]`.
pub(crate) fn status(ruby: &Ruby, exit: Exit) -> Result<RArray, Error> {
    let array = ruby.ary_new();
    match exit {
        Exit::Code(code) => {
            array.push(ruby.to_symbol("exited"))?;
            array.push(code)?;
        }
        Exit::Signal { signal, core } => {
            array.push(ruby.to_symbol("signaled"))?;
            array.push(signal.number())?;
            array.push(&*signal.name())?;
            array.push(core)?;
        }
        Exit::Unknown(why) => {
            array.push(ruby.to_symbol("unknown"))?;
            array.push(ruby.to_symbol(why.name()))?;
        }
        other => {
            array.push(ruby.to_symbol("unknown"))?;
            array.push(ruby.to_symbol(other.to_string()))?;
        }
    }
    Ok(array)
}

fn info(ruby: &Ruby, info: Option<&StreamInfo>) -> Result<Value, Error> {
    let Some(info) = info else {
        return Ok(ruby.qnil().into_value_with(ruby));
    };
    let hash = ruby.hash_new();
    let put = |name: &str, value: Value| hash.aset(ruby.to_symbol(name), value);
    put("bytes", info.bytes.into_value_with(ruby))?;
    put("kept_bytes", info.kept_bytes.into_value_with(ruby))?;
    put("dropped_bytes", info.dropped_bytes.into_value_with(ruby))?;
    put("dropped_at", info.dropped_at.into_value_with(ruby))?;
    put("blocked", secs(info.blocked).into_value_with(ruby))?;
    put("complete", info.complete.into_value_with(ruby))?;
    put(
        "held_by",
        holders(ruby, &info.held_by)?.into_value_with(ruby),
    )?;
    put(
        "held_by_complete",
        info.held_by_complete.into_value_with(ruby),
    )?;
    let kept_at = info.kept_at.as_ref();
    let kept_at = kept_at.map(|path| filesystem_string(ruby, path.as_os_str().as_bytes()));
    put("kept_at", kept_at.into_value_with(ruby))?;
    put(
        "kept_error",
        info.kept_error.as_deref().into_value_with(ruby),
    )?;
    put(
        "undelivered_bytes",
        info.undelivered_bytes.into_value_with(ruby),
    )?;
    Ok(hash.into_value_with(ruby))
}

/// Number and name of each, and its start and inode, nil where they are unknown.
pub(crate) fn holders(ruby: &Ruby, holders: &[Holder]) -> Result<RArray, Error> {
    let array = ruby.ary_new();
    for one in holders {
        let identity = one.identity();
        let parts: [Value; 3] = [
            one.pid.into_value_with(ruby),
            one.name.as_str().into_value_with(ruby),
            identity.into_value_with(ruby),
        ];
        array.push(ruby.ary_new_from_values(&parts))?;
    }
    Ok(array)
}
