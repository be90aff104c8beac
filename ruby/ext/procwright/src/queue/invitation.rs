//! An invitation: what a sender needs of a queue, on its way to another process.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use magnus::{Class, Error, Module, Object, RArray, RModule, Ruby, function, method};
use procwright::duplicate_fd;
use procwright::queue;

use super::blocking::briefly;
use super::errors::{Side, end_closed_error, queue_error};
use crate::errors::{guarded, invalid_text, io_error, panic_error, system_error};
use crate::gvl::without_gvl_briefly;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Invitation", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("of_parts", function!(Invitation::of_parts, 2))?;
    class.define_singleton_method("receive", function!(Invitation::receive, 1))?;
    class.define_method("fds", method!(Invitation::fds, 0))?;
    class.define_method("ticket", method!(Invitation::ticket, 0))?;
    class.define_method("send_over", method!(Invitation::send_over, 1))?;
    class.define_method("close", method!(Invitation::close, 0))?;
    class.define_method("closed?", method!(Invitation::is_closed, 0))
}

/// A place at a queue. None once it is used up, or closed.
#[magnus::wrap(class = "Procwright::Native::Invitation", free_immediately)]
pub(crate) struct Invitation(RefCell<Option<queue::Invitation>>);

impl Invitation {
    pub(super) fn of(invitation: queue::Invitation) -> Invitation {
        Invitation(RefCell::new(Some(invitation)))
    }

    /// Takes duplicates: the descriptors stay the caller's.
    fn of_parts(fds: Vec<RawFd>, ticket: String) -> Result<Invitation, Error> {
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
            let invitation = queue::Invitation::from_parts(files, &ticket);
            let invitation = invitation.map_err(|error| queue_error(&error, Side::Invitation))?;
            Ok(Invitation::of(invitation))
        })
    }

    /// The descriptors, which stay this object's.
    fn fds(ruby: &Ruby, this: &Invitation) -> Result<RArray, Error> {
        guarded(|| {
            let files =
                this.with(|invitation| Ok(invitation.files().map(|file| file.as_raw_fd())))?;
            Ok(ruby.ary_from_iter(files))
        })
    }

    fn ticket(&self) -> Result<String, Error> {
        guarded(|| self.with(|invitation| Ok(invitation.ticket())))
    }

    /// Sends it over a socket that has room: tries once, and does not wait.
    fn send_over(&self, socket: RawFd) -> Result<(), Error> {
        guarded(|| {
            let socket = duplicate(socket)?;
            let invitation = self.try_clone()?;
            let sent = without_gvl_briefly(|| invitation.send(&socket))?;
            let sent = sent.map_err(|panic| panic_error(&*panic))?;
            sent.map_err(|error| io_error(&error))
        })
    }

    /// Receives one from a socket that is readable.
    fn receive(socket: RawFd) -> Result<Invitation, Error> {
        guarded(|| {
            let socket = duplicate(socket)?;
            let received = briefly(Side::Invitation, || queue::Invitation::receive(&socket));
            received.map(Invitation::of)
        })
    }

    /// Gives the place back, unless another process has it too.
    pub(super) fn close(&self) {
        let place = self.0.take();
        drop(place);
    }

    fn is_closed(&self) -> bool {
        self.0.borrow().is_none()
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&queue::Invitation) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &*self.0.borrow() {
            Some(invitation) => work(invitation),
            None => Err(end_closed_error(Side::Invitation, false)),
        }
    }

    /// A second invitation to this place, for an attempt to attach: that uses it up, and if it
    /// fails, the first is still there.
    pub(super) fn try_clone(&self) -> Result<queue::Invitation, Error> {
        self.with(|invitation| {
            let files = invitation.files().map(|file| file.try_clone_to_owned());
            let files: io::Result<Vec<OwnedFd>> = files.into_iter().collect();
            let files = files.map_err(|error| io_error(&error))?;
            let files = files.try_into().expect("as many as there were");
            let clone = queue::Invitation::from_parts(files, &invitation.ticket());
            clone.map_err(|error| queue_error(&error, Side::Invitation))
        })
    }
}

fn duplicate(number: RawFd) -> Result<OwnedFd, Error> {
    duplicate_fd(number)
        .map_err(|error| system_error(&error, format!("descriptor {number}: {error}")))
}
