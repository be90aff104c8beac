//! Waking a receiver by nothing that is received.

use std::sync::Weak;

use crate::queue::Receiver;
use crate::sys::fork;
use crate::sys::wake::Wake;

/// Makes a receiver's descriptor readable from any thread, while another has the
/// receiver: for hosts that close what somebody waits for. See [`Receiver::waker`].
///
/// Once for each call, until the receiver is used the next time; who waits with a
/// descriptor looks then what has happened. It keeps nothing of the receiver there.
#[derive(Clone, Debug)]
pub struct Waker {
    wake: Weak<Wake>,
    generation: u32,
}

impl Waker {
    /// Wakes it. Nothing happens if it is gone, and in a fork: what that has is the
    /// other process's.
    pub fn wake(&self) {
        if self.generation == fork::generation()
            && let Some(wake) = self.wake.upgrade()
        {
            wake.ring();
        }
    }
}

impl Receiver {
    /// What wakes it when it sleeps on its [descriptor](Receiver::readiness_fd).
    pub fn waker(&self) -> Waker {
        Waker {
            wake: self.guests.bell(),
            generation: fork::generation(),
        }
    }
}
