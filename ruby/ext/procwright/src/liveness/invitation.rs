//! A token on its way to another process.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use magnus::{Class, Error, Module, Object, RArray, RModule, Ruby, function, method};
use procwright::duplicate_fd;
use procwright::liveness;

use super::failed;
use crate::errors::{guarded, invalid_words, panicked, refused, system};
use crate::gvl::briefly_unlocked;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("TokenInvitation", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("of_parts", function!(Invitation::of_parts, 2))?;
    class.define_singleton_method("receive", function!(Invitation::receive, 1))?;
    class.define_method("fds", method!(Invitation::fds, 0))?;
    class.define_method("ticket", method!(Invitation::ticket, 0))?;
    class.define_method("send_over", method!(Invitation::send_over, 1))
}

#[magnus::wrap(class = "Procwright::Native::TokenInvitation", free_immediately)]
pub(crate) struct Invitation(liveness::Invitation);

impl Invitation {
    pub(super) fn of(invitation: liveness::Invitation) -> Invitation {
        Invitation(invitation)
    }

    /// Of duplicates: the descriptors stay the caller's.
    fn of_parts(fds: Vec<RawFd>, ticket: String) -> Result<Invitation, Error> {
        guarded(|| {
            let files = fds.into_iter().map(duplicate);
            let files: Vec<OwnedFd> = files.collect::<Result<_, _>>()?;
            let files = files.try_into().map_err(|given: Vec<OwnedFd>| {
                invalid_words(&format!(
                    "{} descriptors are not those of an invitation: pass what its `fds` gave, \
                     in that order",
                    given.len()
                ))
            })?;
            let invitation = liveness::Invitation::from_parts(files, &ticket);
            invitation.map(Invitation).map_err(|error| failed(&error))
        })
    }

    /// Its descriptors. They stay this object's.
    fn fds(ruby: &Ruby, this: &Invitation) -> RArray {
        ruby.ary_from_iter(this.0.files().map(|file| file.as_raw_fd()))
    }

    fn ticket(&self) -> String {
        self.0.ticket()
    }

    /// Over a socket that has room: once, without a wait.
    fn send_over(&self, socket: RawFd) -> Result<(), Error> {
        guarded(|| {
            let socket = duplicate(socket)?;
            let sent = briefly_unlocked(|| self.0.send(&socket))?;
            let sent = sent.map_err(|panic| panicked(&*panic))?;
            sent.map_err(|error| failed(&error.into()))
        })
    }

    /// From a socket on which something has come.
    fn receive(socket: RawFd) -> Result<Invitation, Error> {
        guarded(|| {
            let socket = duplicate(socket)?;
            let received = briefly_unlocked(|| liveness::Invitation::receive(&socket))?;
            let received = received.map_err(|panic| panicked(&*panic))?;
            received.map(Invitation).map_err(|error| failed(&error))
        })
    }

    /// Another of the same: it is used up by whoever accepts it.
    pub(super) fn again(&self) -> Result<liveness::Invitation, Error> {
        self.0.try_clone().map_err(|error| refused(&error))
    }
}

fn duplicate(number: RawFd) -> Result<OwnedFd, Error> {
    duplicate_fd(number).map_err(|error| system(&error, format!("descriptor {number}: {error}")))
}
