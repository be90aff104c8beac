//! Is the peer alive? As `lib/procwright/liveness.rb` completes it.

mod claim;
mod invitation;
mod monitor;
mod token;

pub(crate) use monitor::Monitor;

use magnus::{Error, IntoValue, RArray, RModule, Ruby, Symbol, Value};
use procwright::liveness::{self, Guarantee, Mechanism, Names, State};

use crate::errors::{invalid_words, made, refused, ruby};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    token::define(ruby, native)?;
    invitation::define(ruby, native)?;
    monitor::define(ruby, native)?;
    claim::define(ruby, native)
}

/// The word for a state.
fn name(state: State) -> Symbol {
    ruby().to_symbol(match state {
        State::Alive => "alive",
        State::Released => "released",
        State::Died => "died",
    })
}

/// The parts of a `LivenessGuarantee`.
fn parts(ruby: &Ruby, guarantee: Guarantee) -> RArray {
    let names = match guarantee.names {
        Names::Image => "image",
        Names::Process => "process",
        Names::Thread => "thread",
        _ => "other",
    };
    let mechanism = match guarantee.mechanism {
        Mechanism::RobustWord => "robust_word",
        Mechanism::Watcher => "watcher",
        _ => "other",
    };
    let parts: [Value; 2] = [names, mechanism].map(|one| ruby.to_symbol(one).into_value_with(ruby));
    ruby.ary_new_from_values(&parts)
}

#[cold]
fn failed(error: &liveness::Error) -> Error {
    let words = error.to_string();
    let reason = match error {
        liveness::Error::Unsupported(_) => "unsupported",
        liveness::Error::Full(_) => "full",
        liveness::Error::Stale(_) => "stale",
        liveness::Error::Forked => "forked",
        liveness::Error::NoParent(_) => "no_parent",
        liveness::Error::NotMain => "not_main",
        liveness::Error::Invalid(_) => return invalid_words(&words),
        liveness::Error::Io(source) => return refused(source),
        _ => "other",
    };
    made("liveness_failed", (reason, words))
}
