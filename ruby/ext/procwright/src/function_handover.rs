//! Functions between two programs of a pipeline: the core calls them on threads of its own, and
//! Ruby's threads do it.

use std::io;
use std::sync::Arc;

use magnus::{Class, Error, Module, Object, RArray, RModule, Ruby, Symbol, function, method};
use procwright::BoxError;
use procwright::pipeline::{StageInput, StageOutput};
use procwright::stream;
use procwright_os::fork::ProcessOwned;

use crate::errors::{guarded, io_error};
use crate::exchange::Exchange;
use crate::reader::Reader;
use crate::writer::Writer;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("FunctionHandover", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("new", function!(FunctionHandover::new, 1))?;
    class.define_method("take", method!(FunctionHandover::take, 0))?;
    class.define_method("answer", method!(FunctionHandover::answer, 1))?;
    class.define_method("close", method!(FunctionHandover::close, 0))
}

/// What the function reads and writes, and how it came out.
pub(crate) type FunctionCall = Exchange<(stream::Reader, stream::Writer), Answer>;

/// How a call of a function came out.
pub(crate) enum Answer {
    Returned,
    /// It has raised Errno::EPIPE; the core knows whether that was of its output.
    BrokenPipe,
    Raised,
}

/// Hands over the one call of a function.
#[magnus::wrap(class = "Procwright::Native::FunctionHandover", free_immediately)]
pub(crate) struct FunctionHandover {
    call: ProcessOwned<Arc<FunctionCall>>,
    /// The stage that it is behind, from 0.
    behind: usize,
}

impl FunctionHandover {
    fn new(behind: usize) -> Result<FunctionHandover, Error> {
        guarded(|| {
            let call = Exchange::new().map_err(|error| io_error(&error))?;
            Ok(FunctionHandover {
                call: ProcessOwned::new(Arc::new(call)),
                behind,
            })
        })
    }

    /// Waits until it is to be called, and gives its input and its output; nil if the pipeline is
    /// over, or was not started, and in a fork.
    fn take(ruby: &Ruby, this: &FunctionHandover) -> Result<Option<RArray>, Error> {
        guarded(|| {
            let Some((reader, writer)) = this.call.take(|| this.call.is_ours())? else {
                return Ok(None);
            };
            let stage = this.behind + 1;
            let name = |end| format!("{end} of the function behind stage {stage}");
            let ends = ruby.ary_new();
            ends.push(Reader::new(reader, name("input"))?)?;
            ends.push(Writer::new(writer, name("output")))?;
            Ok(Some(ends))
        })
    }

    /// Says how it came out. A fork, which the function may have made, has nobody to say it to.
    fn answer(&self, how: Symbol) -> Result<(), Error> {
        guarded(|| {
            if self.call.is_ours() {
                self.call.answer(match &*how.name()? {
                    "returned" => Answer::Returned,
                    "broken_pipe" => Answer::BrokenPipe,
                    _ => Answer::Raised,
                });
            }
            Ok(())
        })
    }

    /// It is called no more, and nobody waits for it.
    fn close(&self) {
        if self.call.is_ours() {
            self.call.close();
        }
    }

    pub(crate) fn call(&self) -> Arc<FunctionCall> {
        Arc::clone(&self.call)
    }
}

/// The function for the core, called on its thread.
pub(crate) fn hook(
    call: &Arc<FunctionCall>,
) -> impl FnOnce(&mut StageInput, &mut StageOutput) -> Result<(), BoxError> + Send + 'static {
    let call = Arc::clone(call);
    move |input, output| match call.ask((input.reader()?, output.writer()?)) {
        Some(Answer::Returned) => Ok(()),
        Some(Answer::BrokenPipe) => Err(io::Error::from(io::ErrorKind::BrokenPipe).into()),
        Some(Answer::Raised) => Err("it has raised".into()),
        None => Err("its thread has ended".into()),
    }
}
