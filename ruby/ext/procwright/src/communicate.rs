//! Writing stdin and reading all outputs at once, on one thread: the core's
//! `Communication`, with outputs that become strings.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use magnus::{
    Class, Error, IntoValue, Module, Object, RArray, RModule, RString, Ruby, TryConvert, Value,
    function, method,
};
use procwright::OutputCapture;
use procwright::stream::{Closed, Patience, Readiness};

use crate::arguments::seconds;
use crate::child::Child;
use crate::errors::{guarded, invalid_error, stream_error};
use crate::interruptible::block_without_gvl;
use crate::options::each;
use crate::pipeline_child::PipelineChild;
use crate::read_buffer::ReadBuffer;
use crate::reader::Reader;
use crate::shared_reader::SharedReader;
use crate::string::{string_from_vec, to_vec};
use crate::writer::Writer;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Communication", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("new", function!(Communication::new, 4))?;
    class.define_method("go_on", method!(Communication::go_on, 1))?;
    class.define_method("take", method!(Communication::take, 0))?;
    class.define_method("peek", method!(Communication::peek, 0))
}

/// The progress of one `communicate`, so that it can be taken up again.
///
/// `go_on` lets go of Ruby's lock. A second thread that comes meanwhile finds none, and is
/// refused.
#[magnus::wrap(class = "Procwright::Native::Communication", free_immediately)]
struct Communication(RefCell<Option<Talk>>);

type Talk = procwright::Communication<Output>;

/// An output, and what was read of it.
struct Output {
    source: Arc<SharedReader>,
    data: ReadBuffer,
}

/// Bytes that are read in one turn, so that the other streams have theirs soon.
const PIECE: usize = 256 * 1024;

/// The bytes of an end, more than a message quotes.
const END: usize = 4096;

impl Communication {
    fn new(
        started: Value,
        input: RString,
        stdin: Option<&Writer>,
        outputs: RArray,
    ) -> Result<Communication, Error> {
        guarded(|| {
            let outputs = each(outputs, <Option<&Reader>>::try_convert)?;
            let output = |reader: &Reader| Output {
                source: reader.shared(),
                data: ReadBuffer::default(),
            };
            let outputs = outputs.into_iter().map(|reader| reader.map(output));
            let stdin = stdin.map(|stdin| stdin.writer.clone());
            let input = to_vec(input);
            let talk = match <&Child>::try_convert(started) {
                Ok(child) => child.child.communicate_with(stdin, input, outputs),
                Err(_) => {
                    let pipeline = <&PipelineChild>::try_convert(started)?;
                    pipeline.child.communicate_with(stdin, input, outputs)
                }
            };
            Ok(Communication(RefCell::new(Some(talk))))
        })
    }

    /// Goes on until all is written and read; false if the timeout came first.
    fn go_on(&self, timeout: Option<f64>) -> Result<bool, Error> {
        guarded(|| {
            let deadline = seconds("timeout", timeout)?.starting(Instant::now());
            let mut lent = Lent(&self.0, Some(self.taken()?));
            let talk = lent.1.as_mut().expect("only drop takes it");
            let done = block_without_gvl(deadline, |patience| proceed(talk, patience))?;
            match done {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
                Err(error) => {
                    let closed = talk.closed_output();
                    let name = closed.map_or("a stream", |output| &output.source.name);
                    Err(stream_error(&error, name, true))
                }
            }
        })
    }

    /// The bytes that were read of each output. Ends it.
    fn take(ruby: &Ruby, this: &Communication) -> Result<RArray, Error> {
        guarded(|| {
            let talk = this.taken()?;
            let array = ruby.ary_new();
            for output in talk.into_captures() {
                let data = output.map(|output| string_from_vec(output.data.into_vec()));
                array.push(data.transpose()?.into_value_with(ruby))?;
            }
            Ok(array)
        })
    }

    /// The ends of the bytes that were read of each output so far.
    fn peek(ruby: &Ruby, this: &Communication) -> Result<RArray, Error> {
        guarded(|| {
            let lent = Lent(&this.0, Some(this.taken()?));
            let array = ruby.ary_new();
            let captures = lent.1.iter().flat_map(|talk| talk.captures());
            for output in captures {
                let end = output.map(|output| {
                    let read = output.data.as_slice();
                    ruby.str_from_slice(&read[read.len().saturating_sub(END)..])
                });
                array.push(end.into_value_with(ruby))?;
            }
            Ok(array)
        })
    }

    fn taken(&self) -> Result<Talk, Error> {
        let busy = || {
            let problem = "is busy with another call";
            let hint = "wait for that, or close the streams";
            invalid_error(&procwright::error::Invalid::new(
                "communicate",
                problem,
                hint,
            ))
        };
        self.0.borrow_mut().take().ok_or_else(busy)
    }
}

/// The progress while `go_on` has it: goes back when this is dropped, also after an error.
struct Lent<'a>(&'a RefCell<Option<Talk>>, Option<Talk>);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.replace(self.1.take());
    }
}

/// Goes on. An output that another thread closes before its end is an error, of each call;
/// stdin may be closed.
fn proceed(talk: &mut Talk, patience: Patience<'_>) -> io::Result<()> {
    loop {
        if talk.closed_output().is_some() {
            return Err(io::Error::other(Closed));
        }
        match talk.proceed(patience) {
            // Told once of each stream, so this does not go on for ever.
            Err(error) if Closed::is(&error) => {}
            done => return done,
        }
    }
}

impl OutputCapture for Output {
    fn read_some(&mut self, patience: Patience<'_>) -> io::Result<bool> {
        self.source.fill(&mut self.data, PIECE, patience)
    }

    fn readiness(&self) -> io::Result<Readiness> {
        self.source.lines.reader().readiness()
    }
}
