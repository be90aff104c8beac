//! The watched side.

use std::cell::RefCell;

use magnus::{Class, Error, Module, Object, RArray, RModule, Ruby, function, method};
use procwright::liveness::{self, Error as Refusal, Guarantee, PortableToken};

use super::convert::{guarantee_parts, liveness_error};
use super::invitation::TokenInvitation;
use crate::errors::{choice_error, exception, guarded, panic_error};
use crate::gvl::without_gvl_briefly;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Token", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("hold", function!(Token::hold, 1))?;
    class.define_method("invite", method!(Token::invite, 0))?;
    class.define_method("guarantee", method!(Token::guarantee, 0))?;
    class.define_method("release", method!(Token::release, 0))?;
    class.define_method("released?", method!(Token::is_released, 0))
}

/// Tells monitors that this process lives. None once released.
#[magnus::wrap(class = "Procwright::Native::Token", free_immediately)]
struct Token(RefCell<Option<HeldToken>>);

enum HeldToken {
    Process(liveness::Token),
    Thread(PortableToken),
}

impl HeldToken {
    fn invite(&self) -> Result<liveness::Invitation, Refusal> {
        match self {
            HeldToken::Process(token) => token.invite(),
            HeldToken::Thread(place) => place.invite(),
        }
    }

    fn guarantee(&self) -> Result<Guarantee, Refusal> {
        match self {
            HeldToken::Process(token) => Ok(token.guarantee()),
            HeldToken::Thread(place) => place.guarantee(),
        }
    }
}

impl Token {
    fn hold(holder: String) -> Result<Token, Error> {
        guarded(|| {
            let held = match &*holder {
                "process" => {
                    without_gvl_briefly(|| liveness::Token::new().map(HeldToken::Process))?
                }
                "thread" => without_gvl_briefly(|| PortableToken::new().map(HeldToken::Thread))?,
                other => return Err(choice_error("holder", other, ":process or :thread")),
            };
            let held = held.map_err(|panic| panic_error(&*panic))?;
            let held = held.map_err(|error| liveness_error(&error))?;
            Ok(Token(RefCell::new(Some(held))))
        })
    }

    fn invite(&self) -> Result<TokenInvitation, Error> {
        guarded(|| self.with(HeldToken::invite).map(TokenInvitation::of))
    }

    fn guarantee(ruby: &Ruby, this: &Token) -> Result<RArray, Error> {
        guarded(|| Ok(guarantee_parts(ruby, this.with(HeldToken::guarantee)?)))
    }

    fn release(&self) -> Result<(), Error> {
        guarded(|| {
            let mut kept = self.0.borrow_mut();
            if let Some(HeldToken::Thread(place)) = &*kept
                && !place.release()
            {
                return Err(token_error(&Refusal::NotMain));
            }
            drop(kept.take());
            Ok(())
        })
    }

    fn is_released(&self) -> bool {
        self.0.borrow().is_none()
    }

    fn with<T>(&self, work: impl FnOnce(&HeldToken) -> Result<T, Refusal>) -> Result<T, Error> {
        match &*self.0.borrow() {
            Some(holder) => work(holder).map_err(|error| token_error(&error)),
            None => Err(exception(
                "liveness_error",
                ("released", "the token was released"),
            )),
        }
    }
}

/// The exception for a failure with a token that exists.
fn token_error(error: &Refusal) -> Error {
    match error {
        Refusal::NotMain => exception(
            "liveness_error",
            (
                "not_main",
                "the main thread holds this token, and no other can do anything with it",
            ),
        ),
        error => liveness_error(error),
    }
}
