//! Values and errors of liveness, for Ruby.

use magnus::{Error, IntoValue, RArray, Ruby, Symbol, Value};
use procwright::liveness::{self, Guarantee, Mechanism, Names, State};

use crate::errors::{exception, invalid_text, io_error};
use crate::gvl::ruby;

/// The symbol for a state.
pub(super) fn state_name(state: State) -> Symbol {
    ruby().to_symbol(match state {
        State::Alive => "alive",
        State::Released => "released",
        State::Died => "died",
    })
}

/// The parts of a `LivenessGuarantee`.
pub(super) fn guarantee_parts(ruby: &Ruby, guarantee: Guarantee) -> RArray {
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

/// The exception for an error of the core's.
#[cold]
pub(super) fn liveness_error(error: &liveness::Error) -> Error {
    let words = error.to_string();
    let reason = match error {
        liveness::Error::Unsupported(_) => "unsupported",
        liveness::Error::Full(_) => "full",
        liveness::Error::Stale(_) => "stale",
        liveness::Error::Forked => "forked",
        liveness::Error::NoParent(_) => "no_parent",
        liveness::Error::NotMain => "not_main",
        liveness::Error::Invalid(_) => return invalid_text(&words),
        liveness::Error::Io(source) => return io_error(source),
        _ => "other",
    };
    exception("liveness_error", (reason, words))
}
