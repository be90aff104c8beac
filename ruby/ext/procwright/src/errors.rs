//! Errors of the core as exceptions. `lib/procwright/errors.rb` has their classes and makes
//! them.

use std::any::Any;
use std::ffi::OsString;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use magnus::value::ReprValue;
use magnus::{
    ArgList, Error, Exception, IntoValue, Module, Object, RArray, RModule, Value, function,
};
use procwright::error::{Invalid, SpawnError, Step};
use procwright::pipeline;
use procwright::process::ProcessError;
use procwright::stream::{Broken, Closed, LineTooLong, Stalled};
use rustix::io::Errno;

use crate::gvl::ruby;
use crate::string::{filesystem_string, no_memory};

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("panic", function!(panic, 1))
}

/// Panics, for tests that a panic does no harm.
fn panic(message: String) -> Result<(), Error> {
    guarded(|| panic!("{message}"))
}

/// Runs the body of a method of ours: each is inside of this. A panic that got out would be a
/// `fatal`, which no `rescue` gets hold of.
pub(crate) fn guarded<T>(method: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    match catch_unwind(AssertUnwindSafe(method)) {
        Ok(done) => done,
        Err(panic) => Err(panic_error(&*panic)),
    }
}

/// `Procwright::InternalError`.
pub(crate) fn panic_error(panic: &(dyn Any + Send)) -> Error {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    exception(
        "internal_error",
        (words.unwrap_or("a panic without words"),),
    )
}

/// The exception that `function` of `Procwright::Native` makes.
pub(crate) fn exception(function: &str, args: impl ArgList) -> Error {
    let build = || -> Result<Exception, Error> {
        let module: RModule = ruby().class_object().const_get("Procwright")?;
        let native: RModule = module.const_get("Native")?;
        native.funcall(function, args)
    };
    build().map_or_else(|error| error, Error::from)
}

/// The exception for a value that cannot be used.
pub(crate) fn invalid_error(error: &Invalid) -> Error {
    exception(
        "refused_by_core",
        (error.what(), error.problem(), error.hint()),
    )
}

/// [`invalid_error`] with a text of ours.
pub(crate) fn invalid_text(words: &str) -> Error {
    exception("invalid_value", (words,))
}

/// The exception for a refusal of the system, in the system's words.
pub(crate) fn io_error(error: &io::Error) -> Error {
    match (error.raw_os_error(), error.kind()) {
        (None, io::ErrorKind::InvalidInput) => invalid_text(&error.to_string()),
        _ => system_error(error, error.to_string()),
    }
}

/// The exception for a word that is none of `choices`.
pub(crate) fn choice_error(what: &str, value: &str, choices: &str) -> Error {
    let problem = format!("is {value:?}");
    invalid_error(&Invalid::new(what, problem, format!("use {choices}")))
}

/// The exception for a program that did not start.
pub(crate) fn spawn_error(error: &procwright::Error) -> Error {
    let words = error.to_string();
    match error {
        procwright::Error::Spawn { source, .. } => step_error(source, words, None),
        procwright::Error::Invalid(error) => invalid_error(error),
        procwright::Error::Cancelled { .. } => exception("cancelled_before", (words,)),
        _ => exception("invalid_value", (words,)),
    }
}

/// The exception for a pipeline that did not start, with the place of the stage that it is about.
pub(crate) fn pipeline_error(error: &pipeline::Error) -> Error {
    let words = error.to_string();
    match error {
        pipeline::Error::Spawn { stage, source, .. } => step_error(source, words, Some(*stage)),
        pipeline::Error::Invalid { stage, source } => exception(
            "refused_by_core",
            (source.what(), source.problem(), source.hint(), *stage),
        ),
        pipeline::Error::Cancelled { .. } => exception("cancelled_before", (words,)),
        pipeline::Error::Stalled(error) => stalled_error(error),
        pipeline::Error::Forked { .. } => system_error(&Errno::CHILD.into(), words),
        _ => exception("internal_error", (words,)),
    }
}

/// The exception for a step of a start, that of a stage of a pipeline if there is one.
fn step_error(source: &SpawnError, words: String, stage: Option<usize>) -> Error {
    exception(
        "spawn_error",
        (
            source.errno(),
            filesystem_string(&ruby(), source.object.as_bytes()),
            source.step.name(),
            words,
            stage,
        ),
    )
}

/// The exception for a start that was refused on this side of the core: for want of
/// descriptors.
pub(crate) fn start_refused(
    argv: &[OsString],
    step: Step,
    object: &str,
    error: io::Error,
) -> Error {
    let words = argv.iter().map(|word| word.to_string_lossy());
    let command = words.collect::<Vec<_>>().join(" ");
    let source = SpawnError::new(step, object, error)
        .with_hint("this process has no descriptor left: raise RLIMIT_NOFILE or close some");
    spawn_error(&procwright::Error::Spawn { command, source })
}

/// A `SystemCallError` of the kind that its number says.
pub(crate) fn system_error(error: &io::Error, words: String) -> Error {
    let errno = match (error.raw_os_error(), error.kind()) {
        (Some(errno), _) => errno,
        (None, io::ErrorKind::Unsupported) => Errno::NOTSUP.raw_os_error(),
        (None, _) => 0,
    };
    exception("system_error", (errno, words))
}

/// The exception for a failure with a process.
pub(crate) fn process_error(error: &ProcessError) -> Error {
    let words = error.to_string();
    match error {
        ProcessError::Invalid(error) => invalid_error(error),
        ProcessError::Gone(id) => {
            let pid = id.map(|id| id.pid());
            exception("no_such_process", (pid, words))
        }
        ProcessError::System { source, .. } => system_error(source, words),
        _ => exception("system_error", (0, words)),
    }
}

/// The exception for a failure of the stream `name`. `was_waiting` is true if the call had
/// begun to wait.
pub(crate) fn stream_error(error: &io::Error, name: &str, was_waiting: bool) -> Error {
    if let Some(error) = Stalled::of(error) {
        return stalled_error(error);
    }
    if Closed::is(error) {
        return exception("stream_closed", (name, was_waiting));
    }
    let inner = error.get_ref();
    if let Some(long) = inner.and_then(|inner| inner.downcast_ref::<LineTooLong>()) {
        return exception("line_too_long", (name, long.max_length));
    }
    match (error.kind(), inner.and_then(|inner| inner.downcast_ref())) {
        (io::ErrorKind::Unsupported, _) => exception("stream_forked", (name,)),
        (io::ErrorKind::OutOfMemory, _) => no_memory(),
        (_, Some(Broken::Overflowed { offset })) => exception("stream_overflow", (name, *offset)),
        (
            _,
            Some(Broken::Lost {
                offset,
                length,
                source,
            }),
        ) => {
            let errno = source.raw_os_error();
            let reason = source.to_string();
            exception("stream_lost", (name, *offset, *length, errno, reason))
        }
        _ => system_error(error, format!("{name}: {error}")),
    }
}

pub(crate) fn stalled_error(error: &Stalled) -> Error {
    let ruby = ruby();
    let make = || -> Result<RArray, Error> {
        let streams = ruby.ary_new();
        for one in &error.streams {
            let parts: [Value; 3] = [
                one.name.into_value_with(&ruby),
                one.memory_bytes.into_value_with(&ruby),
                one.disk_bytes.into_value_with(&ruby),
            ];
            streams.push(ruby.ary_new_from_values(&parts))?;
        }
        Ok(streams)
    };
    match make() {
        Ok(streams) => exception(
            "stalled",
            (
                error.command.as_str(),
                streams,
                error.after.as_secs_f64(),
                error.writing,
            ),
        ),
        Err(error) => error,
    }
}
