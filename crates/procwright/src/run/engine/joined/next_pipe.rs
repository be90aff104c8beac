//! The pipe to a run from a thread of ours.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use procwright_os::pipe::{self, EndsProbe, PipeEnds};
use procwright_os::wake::Wake;
use procwright_process::holders::{PipeId, Role, RunPipe};

/// The pipe to the run behind, whose end to write a thread of ours has.
pub(super) struct NextPipe {
    probe: Option<EndsProbe>,
    /// The name of the pipe, by which those are found that hold it.
    id: Option<PipeId>,
}

impl NextPipe {
    /// A pipe with its ends to read and to write. The latter does not block, so that a write
    /// which waits can be cut.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new() -> io::Result<(NextPipe, OwnedFd, OwnedFd)> {
        let (read, write) = pipe::pipe()?;
        pipe::set_nonblocking(&write)?;
        let next = NextPipe {
            probe: EndsProbe::new(read.as_fd(), write.as_fd()).ok(),
            id: PipeId::of(&read).ok(),
        };
        Ok((next, read, write))
    }

    pub(super) fn look(&self) -> Option<PipeEnds> {
        self.probe.as_ref()?.look().ok()
    }

    /// True if the run behind waits for more, false if that is not known.
    pub(super) fn is_empty(&self) -> bool {
        self.look().is_some_and(|ends| ends.is_empty)
    }

    /// The end that the program behind reads, and whoever has it from that program.
    pub(super) fn read_end(&self) -> Option<RunPipe> {
        let label = "the pipe from the stage before";
        Some(RunPipe::new(self.id?, Role::Reads, label))
    }
}

/// Rings also when the thread that has it panics.
pub(super) struct RingOnDrop(pub(super) Arc<Wake>);

impl Drop for RingOnDrop {
    fn drop(&mut self) {
        self.0.ring();
    }
}
