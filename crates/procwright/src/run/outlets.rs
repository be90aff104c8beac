//! Outputs that go to readers of the caller's while a run goes on, in the place of memory.

use std::sync::Arc;

use crate::spool::elastic::ElasticProducer;
use crate::std_stream::PerStream;
use procwright_os::wake::Wake;

/// The queues to the readers of a run's outputs.
#[derive(Debug)]
pub(crate) struct Outlets {
    /// Rung by a queue that has room again, and by one whose reader wants no more.
    pub(crate) wake: Arc<Wake>,
    pub(crate) queues: PerStream<Option<ElasticProducer>>,
}
