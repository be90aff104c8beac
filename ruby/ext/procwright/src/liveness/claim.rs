//! Who cleans up after a dead peer.

use std::cell::RefCell;

use magnus::{Error, Module, RModule, Ruby, Symbol, method};
use procwright::liveness::{self, Cleaner};

use super::name;
use crate::errors::{guarded, ruby};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Claim", ruby.class_object())?;
    magnus::Class::undef_default_alloc_func(class);
    class.define_method("kind", method!(Claim::kind, 0))?;
    class.define_method("ours?", method!(Claim::is_ours, 0))?;
    class.define_method("done", method!(Claim::done, 0))?;
    class.define_method("give_back", method!(Claim::give_back, 0))
}

/// What became of asking for the right to clean up.
#[magnus::wrap(class = "Procwright::Native::Claim", free_immediately)]
pub(crate) struct Claim {
    kind: Kind,
    /// None if it is not ours any more.
    right: RefCell<Option<Cleaner>>,
}

#[derive(Clone, Copy)]
enum Kind {
    Ours,
    Theirs,
    Done,
    NotDied(liveness::State),
}

impl Claim {
    pub(super) fn of(claim: liveness::Claim) -> Claim {
        let (kind, right) = match claim {
            liveness::Claim::Ours(right) => (Kind::Ours, Some(right)),
            liveness::Claim::Theirs => (Kind::Theirs, None),
            liveness::Claim::Done => (Kind::Done, None),
            liveness::Claim::NotDied(state) => (Kind::NotDied(state), None),
        };
        Claim {
            kind,
            right: RefCell::new(right),
        }
    }

    fn kind(&self) -> Symbol {
        match self.kind {
            Kind::Ours => ruby().to_symbol("ours"),
            Kind::Theirs => ruby().to_symbol("theirs"),
            Kind::Done => ruby().to_symbol("done"),
            Kind::NotDied(state) => name(state),
        }
    }

    fn is_ours(&self) -> bool {
        self.right.borrow().is_some()
    }

    /// False if it was not ours any more; so too below.
    fn done(&self) -> Result<bool, Error> {
        guarded(|| Ok(self.right.take().map(Cleaner::done).is_some()))
    }

    fn give_back(&self) -> Result<bool, Error> {
        guarded(|| Ok(self.right.take().map(drop).is_some()))
    }
}
