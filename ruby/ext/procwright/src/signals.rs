//! How the main thread learns of a signal while it waits, in Rubies before 3.3.
//!
//! There a signal handler notes the signal, and writes to a descriptor of Ruby's own. It is
//! then up to some thread that happens to sleep in a way of Ruby's to read from it, and to
//! interrupt the main thread. Where all others are gone, or wait as we do, nobody does: a
//! Ctrl-C would be heard when the wait is over. So we look at that descriptor ourselves,
//! without taking anything out of it.
#![allow(unsafe_code)]

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::Signals;
#[cfg(target_os = "linux")]
pub(crate) use linux::Signals;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    use rustix::buffer::spare_capacity;
    use rustix::event::{Timespec, epoll};

    /// Readable once the bell rings or a signal has come.
    #[derive(Debug)]
    pub(crate) struct Signals(OwnedFd);

    impl Signals {
        /// None where Ruby interrupts the main thread in any case.
        ///
        /// # Errors
        /// When no descriptor is left.
        pub(crate) fn beside(bell: &OwnedFd) -> io::Result<Option<Signals>> {
            // SAFETY: a constant of Ruby's.
            let version = unsafe { rb_sys::ruby_api_version };
            if version[0] > 3 || (version[0] == 3 && version[1] >= 3) {
                return Ok(None);
            }
            let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let data = epoll::EventData::new_u64(0);
            epoll::add(&set, bell, data, epoll::EventFlags::IN)?;
            let mut found = false;
            for number in Signals::numbers() {
                // SAFETY: Ruby keeps it open for as long as the process lives.
                let fd = unsafe { BorrowedFd::borrow_raw(number) };
                // What was written is told once: it stays there for Ruby to read.
                let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
                found |= epoll::add(&set, fd, data, flags).is_ok();
            }
            Ok(found.then_some(Signals(set)))
        }

        /// Those that Ruby keeps for itself: made at its start, so among the first.
        fn numbers() -> impl Iterator<Item = i32> {
            // SAFETY: we have Ruby's lock; it only compares.
            (0..1 << 16).filter(|number| unsafe { rb_sys::rb_reserved_fd_p(*number) } != 0)
        }

        /// Forgets what it has told.
        pub(crate) fn silence(&self) {
            let mut events = Vec::with_capacity(4);
            let at_once = Timespec::default();
            let _ = epoll::wait(&self.0, spare_capacity(&mut events), Some(&at_once));
        }
    }

    impl AsFd for Signals {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    /// There is none: what Ruby does by itself has to do.
    #[derive(Debug)]
    pub(crate) enum Signals {}

    impl Signals {
        pub(crate) fn beside(_bell: &OwnedFd) -> io::Result<Option<Signals>> {
            Ok(None)
        }

        pub(crate) fn silence(&self) {}
    }

    impl AsFd for Signals {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match *self {}
        }
    }
}
