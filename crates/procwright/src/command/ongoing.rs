//! A run whose caller takes turns with it.

use crate::run::{Collected, Demand, Error, Run};
use crate::spool::Memory;
use procwright_os::fork::ProcessOwned;

/// A run that was started, and whose caller takes turns with it: what
/// [`Command::begin_into`](crate::Command::begin_into) gives.
///
/// Hosts need it whose language has to be entered to learn what has happened, and may
/// throw something then that unwinds whatever frames it finds: nothing of the run is on
/// the stack meanwhile. The run's [`Watch`](crate::Watch) asks for the turn, with
/// [`Demand::Pause`].
///
/// No deadline is looked at between two turns, and nothing is read but by the thread that
/// helps while both streams carry much. Dropped before its end, it closes its streams and
/// leaves the program to itself: [`kill`](Ongoing::kill) and [`finish`](Ongoing::finish)
/// it instead. One that panicked in the middle of a turn, in a hook of the caller's, has
/// its program killed when it is dropped.
///
/// In a fork of the process that has begun it there is nothing of it: it says that it is
/// over, its drop does nothing, and its result is [`Error::Forked`].
///
/// ```
/// use procwright::{BoxError, Command, Demand, Moment, Watch};
/// use std::io::{PipeReader, Read, Write};
/// use std::os::fd::{AsFd, BorrowedFd};
///
/// /// Asks for a turn for each byte that comes.
/// struct Bell(PipeReader);
///
/// impl Watch for Bell {
///     fn fd(&self) -> BorrowedFd<'_> {
///         self.0.as_fd()
///     }
///     fn ready(&mut self, _moment: Moment<'_>) -> Result<Demand, BoxError> {
///         self.0.read_exact(&mut [0])?;
///         Ok(Demand::Pause)
///     }
/// }
///
/// let (bell, mut ring) = std::io::pipe()?;
/// let mut run = Command::new("cat")
///     .arg("/dev/zero")
///     .stdout(procwright::Sink::Null)
///     .watch(Bell(bell))
///     .begin_into::<Vec<u8>>()?;
/// ring.write_all(&[1])?;
/// assert!(!run.proceed()); // our turn
/// run.kill();
/// let collected = run.finish()?;
/// assert_eq!(collected.report.reason, procwright::Reason::Cancelled);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Ongoing<'a, M>(ProcessOwned<Run<'a, M>>);

impl<'a, M: Memory> Ongoing<'a, M> {
    pub(super) fn new(run: Run<'a, M>) -> Ongoing<'a, M> {
        Ongoing(ProcessOwned::new(run))
    }

    /// Goes on until the watch asks for a pause, and returns whether the run is over.
    ///
    /// # Blocking
    /// Until then.
    pub fn proceed(&mut self) -> bool {
        self.0.drive() || !self.0.is_ours()
    }

    /// Has it stopped, as a cancel does. Nothing more if it is being stopped, or over.
    pub fn stop(&mut self) {
        self.0.demand(Demand::Stop);
    }

    /// Has it stopped without more grace, unless it is over.
    pub fn kill(&mut self) {
        self.0.demand(Demand::Kill);
    }

    /// Goes on to the end, without pauses, and gives what came of it.
    ///
    /// # Blocking
    /// Until then.
    ///
    /// # Errors
    /// [`Error::Forked`] only.
    pub fn finish(mut self) -> Result<Collected<M>, Error> {
        while !self.proceed() {}
        match self.0.is_ours() {
            true => Ok(self.0.into_inner().conclude()),
            false => Err(self.0.fork_error()),
        }
    }
}

impl<M> std::fmt::Debug for Ongoing<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ongoing").finish_non_exhaustive()
    }
}
