//! The right to clean up after a dead peer.

use std::cell::RefCell;

use magnus::{Error, Module, RModule, Ruby, Symbol, method};
use procwright::liveness::{self, Cleaner};

use super::convert::state_name;
use crate::errors::guarded;
use crate::gvl::ruby;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Claim", ruby.class_object())?;
    magnus::Class::undef_default_alloc_func(class);
    class.define_method("kind", method!(Claim::kind, 0))?;
    class.define_method("ours?", method!(Claim::is_ours, 0))?;
    class.define_method("done", method!(Claim::done, 0))?;
    class.define_method("give_back", method!(Claim::give_back, 0))
}

/// The answer to a request for the right to clean up.
#[magnus::wrap(class = "Procwright::Native::Claim", free_immediately)]
pub(crate) struct Claim {
    kind: ClaimKind,
    /// The right; none if it is not ours, or not any more.
    right: RefCell<Option<Cleaner>>,
}

#[derive(Clone, Copy)]
enum ClaimKind {
    Ours,
    Theirs,
    Done,
    NotDied(liveness::State),
}

impl Claim {
    pub(super) fn of(claim: liveness::Claim) -> Claim {
        let (kind, right) = match claim {
            liveness::Claim::Ours(right) => (ClaimKind::Ours, Some(right)),
            liveness::Claim::Theirs => (ClaimKind::Theirs, None),
            liveness::Claim::Done => (ClaimKind::Done, None),
            liveness::Claim::NotDied(state) => (ClaimKind::NotDied(state), None),
        };
        Claim {
            kind,
            right: RefCell::new(right),
        }
    }

    fn kind(&self) -> Symbol {
        match self.kind {
            ClaimKind::Ours => ruby().to_symbol("ours"),
            ClaimKind::Theirs => ruby().to_symbol("theirs"),
            ClaimKind::Done => ruby().to_symbol("done"),
            ClaimKind::NotDied(state) => state_name(state),
        }
    }

    fn is_ours(&self) -> bool {
        self.right.borrow().is_some()
    }

    /// False if the right was not ours, or not any more; so too `give_back`.
    fn done(&self) -> Result<bool, Error> {
        guarded(|| Ok(self.right.take().map(Cleaner::done).is_some()))
    }

    fn give_back(&self) -> Result<bool, Error> {
        guarded(|| Ok(self.right.take().map(drop).is_some()))
    }
}
