//! What the commands of a map tell while they run, for a thread of Ruby's: events, and pieces
//! of output.

use std::sync::Arc;

use magnus::{
    Class, Error, IntoValue, Module, Object, RArray, RModule, Ruby, Value, function, method,
};
use procwright::{BoxError, Event, Piece, StdStream, Tap};
use procwright_os::fork::ProcessOwned;

use crate::errors::{guarded, system_error};
use crate::event;
use crate::exchange::Exchange;

pub(super) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("MapCallbacks", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("new", function!(MapCallbacks::new, 0))?;
    class.define_method("take", method!(MapCallbacks::take, 0))?;
    class.define_method("answer", method!(MapCallbacks::answer, 1))?;
    class.define_method("close", method!(MapCallbacks::close, 0))
}

/// What one command has to tell.
pub(super) enum News {
    Event(Event),
    /// Bytes of a stream, or with none the end of both.
    Piece(Option<StdStream>, Vec<u8>),
}

/// Asks with the place of a command, and is answered by whether the callback has returned.
pub(super) type Calls = Exchange<(u64, News), bool>;

/// Hands over one thing at a time, as [`EventHandover`](crate::event_handover::EventHandover).
#[magnus::wrap(class = "Procwright::Native::MapCallbacks", free_immediately)]
pub(crate) struct MapCallbacks(ProcessOwned<Arc<Calls>>);

impl MapCallbacks {
    fn new() -> Result<MapCallbacks, Error> {
        guarded(|| {
            let made = Exchange::new();
            let made = made.map_err(|error| system_error(&error, format!("callbacks: {error}")))?;
            Ok(MapCallbacks(ProcessOwned::new(Arc::new(made))))
        })
    }

    /// Waits for what comes next: the place of a command, and the parts of an event; or the
    /// number of a stream (0 for the end) and bytes. nil when the map is over, and in a fork.
    fn take(ruby: &Ruby, rb_self: &MapCallbacks) -> Result<Option<RArray>, Error> {
        guarded(|| {
            let Some((index, news)) = rb_self.0.take(|| rb_self.0.is_ours())? else {
                return Ok(None);
            };
            let parts = ruby.ary_new();
            parts.push(index)?;
            match news {
                News::Event(event) => parts.push(event::parts(ruby, &event)?)?,
                News::Piece(stream, bytes) => {
                    let number = stream.map_or(0, StdStream::fd);
                    let number: Value = number.into_value_with(ruby);
                    parts.push(number)?;
                    parts.push(ruby.str_from_slice(&bytes))?;
                }
            }
            Ok(Some(parts))
        })
    }

    /// Says that the callback has returned, or, with false, raised.
    fn answer(&self, returned: bool) {
        if self.0.is_ours() {
            self.0.answer(returned);
        }
    }

    /// Nobody takes anything any more.
    fn close(&self) {
        if self.0.is_ours() {
            self.0.close();
        }
    }

    pub(super) fn calls(&self) -> Arc<Calls> {
        Arc::clone(&self.0)
    }
}

/// Tells Ruby's thread, and waits until it has called back.
pub(super) fn tell(calls: &Calls, index: u64, news: News) -> Result<(), BoxError> {
    match calls.ask((index, news)) {
        Some(true) => Ok(()),
        Some(false) => Err("it has raised".into()),
        None => Err("its thread has ended".into()),
    }
}

/// Hands the output of one command over.
pub(super) struct LineTap {
    pub(super) calls: Arc<Calls>,
    pub(super) index: u64,
}

impl Tap for LineTap {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        let news = News::Piece(Some(piece.stream), piece.bytes.to_vec());
        tell(&self.calls, self.index, news)
    }

    fn end(&mut self) -> Result<(), BoxError> {
        tell(&self.calls, self.index, News::Piece(None, Vec::new()))
    }
}
