//! An invitation: a token on its way to another process.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use magnus::{Class, Error, Module, Object, RArray, RModule, Ruby, function, method};
use procwright::duplicate_fd;
use procwright::liveness;

use super::convert::liveness_error;
use crate::errors::{guarded, invalid_text, io_error, panic_error, system_error};
use crate::gvl::without_gvl_briefly;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("TokenInvitation", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("of_parts", function!(TokenInvitation::of_parts, 2))?;
    class.define_singleton_method("receive", function!(TokenInvitation::receive, 1))?;
    class.define_method("fds", method!(TokenInvitation::fds, 0))?;
    class.define_method("ticket", method!(TokenInvitation::ticket, 0))?;
    class.define_method("send_over", method!(TokenInvitation::send_over, 1))
}

#[magnus::wrap(class = "Procwright::Native::TokenInvitation", free_immediately)]
pub(crate) struct TokenInvitation(liveness::Invitation);

impl TokenInvitation {
    pub(super) fn of(invitation: liveness::Invitation) -> TokenInvitation {
        TokenInvitation(invitation)
    }

    /// Takes duplicates: the descriptors stay the caller's.
    fn of_parts(fds: Vec<RawFd>, ticket: String) -> Result<TokenInvitation, Error> {
        guarded(|| {
            let files = fds.into_iter().map(duplicate);
            let files: Vec<OwnedFd> = files.collect::<Result<_, _>>()?;
            let files = files.try_into().map_err(|given: Vec<OwnedFd>| {
                invalid_text(&format!(
                    "{} descriptors are not those of an invitation: pass what its `fds` gave, \
                     in that order",
                    given.len()
                ))
            })?;
            let invitation = liveness::Invitation::from_parts(files, &ticket);
            invitation
                .map(TokenInvitation)
                .map_err(|error| liveness_error(&error))
        })
    }

    /// The descriptors, which stay this object's.
    fn fds(ruby: &Ruby, this: &TokenInvitation) -> RArray {
        ruby.ary_from_iter(this.0.files().map(|file| file.as_raw_fd()))
    }

    fn ticket(&self) -> String {
        self.0.ticket()
    }

    /// Sends it over a socket that has room: tries once, and does not wait.
    fn send_over(&self, socket: RawFd) -> Result<(), Error> {
        guarded(|| {
            let socket = duplicate(socket)?;
            let sent = without_gvl_briefly(|| self.0.send(&socket))?;
            let sent = sent.map_err(|panic| panic_error(&*panic))?;
            sent.map_err(|error| liveness_error(&error.into()))
        })
    }

    /// Receives one from a socket that is readable.
    fn receive(socket: RawFd) -> Result<TokenInvitation, Error> {
        guarded(|| {
            let socket = duplicate(socket)?;
            let received = without_gvl_briefly(|| liveness::Invitation::receive(&socket))?;
            let received = received.map_err(|panic| panic_error(&*panic))?;
            received
                .map(TokenInvitation)
                .map_err(|error| liveness_error(&error))
        })
    }

    /// A second invitation to this token, for a monitor, which uses it up.
    pub(super) fn try_clone(&self) -> Result<liveness::Invitation, Error> {
        self.0.try_clone().map_err(|error| io_error(&error))
    }
}

fn duplicate(number: RawFd) -> Result<OwnedFd, Error> {
    duplicate_fd(number)
        .map_err(|error| system_error(&error, format!("descriptor {number}: {error}")))
}
