//! Ruby's own descriptor for signals, which the main thread watches while it waits, in Rubies
//! before 3.3.
//!
//! 1. A signal handler of Ruby notes the signal, and writes to that descriptor.
//! 2. Some thread that happens to sleep in a way of Ruby's reads from it, and interrupts the
//!    main thread.
//! 3. If all other threads are gone, or wait as ours do, there is no such thread: a Ctrl-C
//!    would take effect when the wait is over.
//!
//! Therefore the main thread watches the descriptor itself, without taking anything out of it.
#![allow(unsafe_code)]

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::SignalPipe;
#[cfg(target_os = "linux")]
pub(crate) use linux::SignalPipe;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    use rustix::buffer::spare_capacity;
    use rustix::event::{Timespec, epoll};

    /// An epoll set that is readable once the wake descriptor is, or a signal has come.
    #[derive(Debug)]
    pub(crate) struct SignalPipe(OwnedFd);

    impl SignalPipe {
        /// Nothing in Rubies that interrupt the main thread in any case.
        ///
        /// # Errors
        /// When no descriptor is left.
        pub(crate) fn beside(wake_fd: &OwnedFd) -> io::Result<Option<SignalPipe>> {
            // SAFETY: a constant of Ruby's.
            let version = unsafe { rb_sys::ruby_api_version };
            if version[0] > 3 || (version[0] == 3 && version[1] >= 3) {
                return Ok(None);
            }
            let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let data = epoll::EventData::new_u64(0);
            epoll::add(&set, wake_fd, data, epoll::EventFlags::IN)?;
            let mut found = false;
            for number in SignalPipe::numbers() {
                // SAFETY: Ruby keeps it open for as long as the process lives.
                let fd = unsafe { BorrowedFd::borrow_raw(number) };
                // Edge-triggered, since what was written stays there for Ruby to read.
                let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
                found |= epoll::add(&set, fd, data, flags).is_ok();
            }
            Ok(found.then_some(SignalPipe(set)))
        }

        /// The descriptors that Ruby keeps for itself. It has made them at its start, so their
        /// numbers are small.
        fn numbers() -> impl Iterator<Item = i32> {
            // SAFETY: we have Ruby's lock; it only compares.
            (0..1 << 16).filter(|number| unsafe { rb_sys::rb_reserved_fd_p(*number) } != 0)
        }

        /// Makes it unreadable again.
        pub(crate) fn clear(&self) {
            let mut events = Vec::with_capacity(4);
            let at_once = Timespec::default();
            let _ = epoll::wait(&self.0, spare_capacity(&mut events), Some(&at_once));
        }
    }

    impl AsFd for SignalPipe {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    /// Nothing outside of Linux: the main thread relies on step 2.
    #[derive(Debug)]
    pub(crate) enum SignalPipe {}

    impl SignalPipe {
        pub(crate) fn beside(_wake_fd: &OwnedFd) -> io::Result<Option<SignalPipe>> {
            Ok(None)
        }

        pub(crate) fn clear(&self) {}
    }

    impl AsFd for SignalPipe {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match *self {}
        }
    }
}
