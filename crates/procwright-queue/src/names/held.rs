//! The name that a receiver has.

use std::sync::Arc;

use super::name::QueueName;
use crate::shm::QueueFile;

/// The name of a queue, held by its receiver. Dropping it removes the name's file, but not
/// in a fork.
#[derive(Debug)]
pub(crate) struct HeldName {
    name: QueueName,
    queue: Arc<QueueFile>,
}

impl HeldName {
    pub(crate) fn new(name: &QueueName, queue: &Arc<QueueFile>) -> HeldName {
        HeldName {
            name: name.clone(),
            queue: Arc::clone(queue),
        }
    }
}

impl Drop for HeldName {
    fn drop(&mut self) {
        if self.queue.is_here() {
            self.name.remove(self.queue.header.nonce);
        }
    }
}
