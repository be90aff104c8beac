//! The memory of a queue, as a process has it.
//!
//! Layers, lowest first: `queue_file`; `lane_mapping` and `receiver_page`.

mod lane_mapping;
mod queue_file;
mod receiver_page;

pub(crate) use lane_mapping::LaneMapping;
pub(crate) use queue_file::QueueFile;
pub(crate) use receiver_page::{BadPage, LivenessWord, ReceiverPage, section_of, socket_name};
