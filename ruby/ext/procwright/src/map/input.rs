//! The commands of a map, which a thread of Ruby's takes from what the caller gave.

use std::sync::Arc;

use magnus::{Class, Error, Module, Object, RHash, RModule, Ruby, function, method};
use procwright::{BoxError, Spec};
use procwright_os::fork::ProcessOwned;

use crate::errors::{guarded, system_error};
use crate::exchange::Exchange;
use crate::options::Options;

pub(super) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("MapInput", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("new", function!(MapInput::new, 0))?;
    class.define_method("asked?", method!(MapInput::is_asked, 0))?;
    class.define_method("give", method!(MapInput::give, 1))?;
    class.define_method("end", method!(MapInput::end, 1))?;
    class.define_method("close", method!(MapInput::close, 0))
}

/// What the caller's collection has.
pub(super) enum Answer {
    Command(Box<Spec>),
    End,
    /// It has raised.
    Failed,
}

/// Asks for the next command.
pub(super) type Asking = Exchange<(), Answer>;

#[magnus::wrap(class = "Procwright::Native::MapInput", free_immediately)]
pub(crate) struct MapInput(ProcessOwned<Arc<Asking>>);

impl MapInput {
    fn new() -> Result<MapInput, Error> {
        guarded(|| {
            let made = Exchange::new();
            let made = made.map_err(|error| system_error(&error, format!("commands: {error}")))?;
            Ok(MapInput(ProcessOwned::new(Arc::new(made))))
        })
    }

    /// Waits until there is a place for a command; false when no more will be started, and in
    /// a fork.
    fn is_asked(&self) -> Result<bool, Error> {
        guarded(|| Ok(self.0.take(|| self.0.is_ours())?.is_some()))
    }

    /// Gives the command that was asked for.
    fn give(ruby: &Ruby, rb_self: &MapInput, hash: RHash) -> Result<(), Error> {
        guarded(|| {
            let options = Options { ruby, hash };
            let spec = options.spec_without_environment()?;
            rb_self.answer(Answer::Command(Box::new(spec)));
            Ok(())
        })
    }

    /// There is no command any more: all were given, or, with false, it has raised.
    fn end(&self, all_given: bool) {
        self.answer(match all_given {
            true => Answer::End,
            false => Answer::Failed,
        });
    }

    fn answer(&self, answer: Answer) {
        if self.0.is_ours() {
            self.0.answer(answer);
        }
    }

    /// Nothing more will be started.
    fn close(&self) {
        if self.0.is_ours() {
            self.0.close();
        }
    }

    pub(super) fn asking(&self) -> Arc<Asking> {
        Arc::clone(&self.0)
    }
}

/// The commands for the core, which asks on threads of its own.
pub(super) struct Commands(pub(super) Arc<Asking>);

impl Iterator for Commands {
    type Item = Result<Spec, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.ask(())? {
            Answer::Command(spec) => Some(Ok(*spec)),
            Answer::End => None,
            Answer::Failed => Some(Err("they have raised".into())),
        }
    }
}
