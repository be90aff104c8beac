//! Waking a receiver without a message.

use std::sync::Weak;

use super::Receiver;
use procwright_os::fork;
use procwright_os::wake::Wake;

/// Makes a receiver's descriptor readable from any thread, while another has the receiver:
/// for hosts that close what a thread waits for. See [`Receiver::waker`].
///
/// Each call is good for one wake-up, until the receiver is used the next time; a thread
/// that waits with the descriptor then looks what has happened. A waker keeps no part of
/// the receiver alive.
#[doc(alias = "eventfd")]
#[derive(Clone, Debug)]
pub struct Waker {
    wake: Weak<Wake>,
    generation: u32,
}

impl Waker {
    /// Wakes the receiver. Nothing happens if it is gone, and in a fork, whose copy belongs
    /// to the other process.
    pub fn wake(&self) {
        if self.generation == fork::generation()
            && let Some(wake) = self.wake.upgrade()
        {
            wake.ring();
        }
    }
}

impl Receiver {
    /// Returns a handle that wakes this receiver when it sleeps on its
    /// [descriptor](Receiver::readiness_fd).
    pub fn waker(&self) -> Waker {
        Waker {
            wake: self.links.wake_handle(),
            generation: fork::generation(),
        }
    }
}
