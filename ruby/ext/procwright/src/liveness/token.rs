//! The watched side.

use std::cell::RefCell;

use magnus::{Class, Error, Module, Object, RArray, RModule, Ruby, function, method};
use procwright::liveness::{self, Error as Refusal, Guarantee, PortableToken};

use super::invitation::Invitation;
use super::{failed, parts};
use crate::errors::{choice, guarded, made, panicked};
use crate::gvl::briefly_unlocked;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Token", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("hold", function!(Token::hold, 1))?;
    class.define_method("invite", method!(Token::invite, 0))?;
    class.define_method("guarantee", method!(Token::guarantee, 0))?;
    class.define_method("release", method!(Token::release, 0))?;
    class.define_method("released?", method!(Token::is_released, 0))
}

/// Says that this process lives. None once released.
#[magnus::wrap(class = "Procwright::Native::Token", free_immediately)]
struct Token(RefCell<Option<Holder>>);

enum Holder {
    Process(liveness::Token),
    Thread(PortableToken),
}

impl Holder {
    fn invite(&self) -> Result<liveness::Invitation, Refusal> {
        match self {
            Holder::Process(token) => token.invite(),
            Holder::Thread(place) => place.invite(),
        }
    }

    fn guarantee(&self) -> Result<Guarantee, Refusal> {
        match self {
            Holder::Process(token) => Ok(token.guarantee()),
            Holder::Thread(place) => place.guarantee(),
        }
    }
}

impl Token {
    fn hold(holder: String) -> Result<Token, Error> {
        guarded(|| {
            let held = match &*holder {
                "process" => briefly_unlocked(|| liveness::Token::new().map(Holder::Process))?,
                "thread" => briefly_unlocked(|| PortableToken::new().map(Holder::Thread))?,
                other => return Err(choice("holder", other, ":process or :thread")),
            };
            let held = held.map_err(|panic| panicked(&*panic))?;
            let held = held.map_err(|error| failed(&error))?;
            Ok(Token(RefCell::new(Some(held))))
        })
    }

    fn invite(&self) -> Result<Invitation, Error> {
        guarded(|| self.ask(Holder::invite).map(Invitation::of))
    }

    fn guarantee(ruby: &Ruby, this: &Token) -> Result<RArray, Error> {
        guarded(|| Ok(parts(ruby, this.ask(Holder::guarantee)?)))
    }

    fn release(&self) -> Result<(), Error> {
        guarded(|| {
            let mut kept = self.0.borrow_mut();
            if let Some(Holder::Thread(place)) = &*kept
                && !place.release()
            {
                return Err(refused(&Refusal::NotMain));
            }
            drop(kept.take());
            Ok(())
        })
    }

    fn is_released(&self) -> bool {
        self.0.borrow().is_none()
    }

    fn ask<T>(&self, work: impl FnOnce(&Holder) -> Result<T, Refusal>) -> Result<T, Error> {
        match &*self.0.borrow() {
            Some(holder) => work(holder).map_err(|error| refused(&error)),
            None => Err(made(
                "liveness_failed",
                ("released", "the token was released"),
            )),
        }
    }
}

/// The exception for what cannot be done with a token that there is.
fn refused(error: &Refusal) -> Error {
    match error {
        Refusal::NotMain => made(
            "liveness_failed",
            (
                "not_main",
                "the main thread holds this token, and no other can do anything with it",
            ),
        ),
        error => failed(error),
    }
}
