//! A program that was started: from a [`Spec`](crate::Spec) to a [`Child`].
//!
//! ```text
//! communicate · wait · channel_ends · explanation   calls of a Child
//! child                          Child, and spawn, which makes one
//! stdin_feed                     its input, written in the background
//! supervision                    what a start needs for a child with limits
//! supervisor                     the thread that ends children for their limits
//! supervised                     one of these children
//! shared_child                   what Child, its feed and the supervisor hold together
//! limit_stop · limits            the stop for a limit; what is a limit
//! streams · channel              queues and readers behind its pipes
//! copies                         who gets copies of its outputs
//! processes                      who holds pipes, and what all are doing
//! start                          one start, for a run and a spawn
//! child_process                  the process, until it is reaped
//! spawner · foreground           the threads that children shall not outlive; the lent terminal
//! plan · advice                  what is done between clone and exec; what to do where that is refused
//! inheritance · stdio            the descriptors that it gets
//! captured_output · unstarted    outputs read to their end; why there is no child
//! ```

mod advice;
mod captured_output;
mod channel;
mod channel_ends;
#[allow(
    clippy::module_inception,
    reason = "readers look for Child in child.rs"
)]
mod child;
mod child_process;
mod communicate;
mod copies;
mod explanation;
mod foreground;
mod inheritance;
mod limit_stop;
mod limits;
mod plan;
mod processes;
mod shared_child;
mod spawner;
mod start;
mod stdin_feed;
mod stdio;
mod streams;
mod supervised;
mod supervision;
mod supervisor;
mod unstarted;
mod wait;

pub use captured_output::{CapturedOutput, OutputCapture};
pub use child::Child;
pub(crate) use child::{ABOUT_TO_END, spawn};
pub(crate) use child_process::ChildProcess;
pub use communicate::Communication;
pub(crate) use limits::ReachedBound;
pub(crate) use processes::{Before, stream_of, writers_of};
pub(crate) use start::{PreparedStart, RefusedStart, given_up, prepare};
pub(crate) use stdin_feed::StdinProducer;
#[cfg(procwright_fault)]
pub(crate) use stdio::OutputEnd;
pub use stdio::duplicate_fd;
pub(crate) use stdio::pipe_error;
pub(crate) use stdio::{JoinEnds, OurEnds};
pub(crate) use streams::{InputListener, StreamListener, hook as queue_hook};
pub(crate) use unstarted::Unstarted;
pub use wait::{ChildSleep, ChildWait, WaitError};
