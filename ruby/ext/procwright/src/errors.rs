//! Errors of the core as exceptions. Their classes are Ruby's, made by
//! `lib/procwright/errors.rb`.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use magnus::value::ReprValue;
use magnus::{
    ArgList, Error, Exception, IntoValue, Module, Object, RArray, RModule, Ruby, Value, function,
};
use procwright::error::Invalid;
use procwright::process::ProcessError;
use procwright::stream::{Broken, Closed, LineTooLong, Stalled};

use crate::string::text;

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("panic", function!(panic, 1))
}

/// What a mistake in this library does, for those who test that it does no harm.
fn panic(message: String) -> Result<(), Error> {
    guarded(|| panic!("{message}"))
}

/// Every method of ours is inside of this. A panic that got out would be a `fatal`,
/// which no `rescue` gets hold of.
pub(crate) fn guarded<T>(method: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    match catch_unwind(AssertUnwindSafe(method)) {
        Ok(done) => done,
        Err(panic) => Err(panicked(&*panic)),
    }
}

/// `Procwright::InternalError`.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Error {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    made("internal", (words.unwrap_or("a panic without words"),))
}

/// Ruby, whose lock we have: every function here is called by it.
pub(crate) fn ruby() -> Ruby {
    Ruby::get().expect("called by Ruby")
}

/// What `function` of `Procwright::Native` makes.
pub(crate) fn made(function: &str, args: impl ArgList) -> Error {
    let make = || -> Result<Exception, Error> {
        let module: RModule = ruby().class_object().const_get("Procwright")?;
        let native: RModule = module.const_get("Native")?;
        native.funcall(function, args)
    };
    make().map_or_else(|error| error, Error::from)
}

/// `NoMemoryError`.
pub(crate) fn no_memory() -> Error {
    Error::new(ruby().exception_no_mem_error(), "failed to allocate memory")
}

/// The exception for a value that cannot be used.
pub(crate) fn invalid(error: &Invalid) -> Error {
    made("invalid", (error.to_string(),))
}

/// The same, in its own words.
pub(crate) fn invalid_words(words: &str) -> Error {
    made("invalid", (words,))
}

/// The exception for what the system refused, in the system's words.
pub(crate) fn refused(error: &io::Error) -> Error {
    match (error.raw_os_error(), error.kind()) {
        (None, io::ErrorKind::InvalidInput) => invalid_words(&error.to_string()),
        _ => system(error, error.to_string()),
    }
}

/// The exception for a word that is none of `choices`.
pub(crate) fn choice(what: &str, value: &str, choices: &str) -> Error {
    let problem = format!("is {value:?}");
    invalid(&Invalid::new(what, problem, format!("use {choices}")))
}

/// The exception for a program that did not start.
pub(crate) fn not_started(error: &procwright::Error) -> Error {
    let words = error.to_string();
    match error {
        procwright::Error::Spawn { source, .. } => made(
            "not_started",
            (
                source.errno(),
                text(&ruby(), source.object.as_bytes()),
                source.step.name(),
                words,
            ),
        ),
        _ => made("invalid", (words,)),
    }
}

/// A `SystemCallError` of the kind that its number says.
pub(crate) fn system(error: &io::Error, words: String) -> Error {
    let errno = match (error.raw_os_error(), error.kind()) {
        (Some(errno), _) => errno,
        (None, io::ErrorKind::Unsupported) => rustix::io::Errno::NOTSUP.raw_os_error(),
        (None, _) => 0,
    };
    made("system", (errno, words))
}

/// The exception for what went wrong with a process.
pub(crate) fn process(error: &ProcessError) -> Error {
    let words = error.to_string();
    match error {
        ProcessError::Invalid(error) => invalid(error),
        ProcessError::Gone(id) => {
            let pid = id.map(|id| id.pid());
            made("no_such_process", (pid, words))
        }
        ProcessError::System { source, .. } => system(source, words),
        _ => made("system", (0, words)),
    }
}

/// The exception for what a stream answers. `name` says which it is, `inside` whether
/// the call had begun to wait.
pub(crate) fn stream(error: &io::Error, name: &str, inside: bool) -> Error {
    if let Some(error) = Stalled::of(error) {
        return stalled(error);
    }
    if Closed::is(error) {
        return made("stream_closed", (name, inside));
    }
    let inner = error.get_ref();
    if let Some(long) = inner.and_then(|inner| inner.downcast_ref::<LineTooLong>()) {
        return made("line_too_long", (name, long.max_length));
    }
    match (error.kind(), inner.and_then(|inner| inner.downcast_ref())) {
        (io::ErrorKind::Unsupported, _) => made("stream_forked", (name,)),
        (io::ErrorKind::OutOfMemory, _) => no_memory(),
        (_, Some(Broken::Overflowed { offset })) => made("overflowed", (name, *offset)),
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
            made("lost", (name, *offset, *length, errno, reason))
        }
        _ => system(error, format!("{name}: {error}")),
    }
}

pub(crate) fn stalled(error: &Stalled) -> Error {
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
        Ok(streams) => made(
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
