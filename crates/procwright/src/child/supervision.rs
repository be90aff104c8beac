//! What a start needs for a child with limits: all that can be refused is had before.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::child_process::ChildProcess;
use super::limit_stop::LimitStop;
use super::limits::Limits;
use super::shared_child::SharedChild;
use super::streams::{FlowNews, WatchedFlow};
use super::supervised::SupervisedChild;
use super::supervisor::SupervisorPlace;
use crate::drain::News;
use crate::error::{SpawnError, Step};
use crate::std_stream::PerStream;
use crate::stream::StallWatch;
use procwright_os::fd;

/// The supervision of a child that is not started yet.
pub(super) struct Supervision {
    limits: Limits,
    place: SupervisorPlace,
    limit_stop: LimitStop,
    /// A descriptor that becomes that of the process.
    pidfd: OwnedFd,
    cancel: Option<OwnedFd>,
}

/// That of one that has been started.
pub(super) struct BegunSupervision {
    limits: Limits,
    place: SupervisorPlace,
    pidfd: OwnedFd,
    cancel: Option<OwnedFd>,
}

impl Supervision {
    /// # Errors
    /// When no descriptor or thread can be had.
    pub(super) fn prepare(limits: Limits) -> Result<Supervision, SpawnError> {
        let no_descriptor = |error| SpawnError::new(Step::Pipe, "", error);
        let place = SupervisorPlace::get()?;
        let cancel = limits.cancel.as_ref();
        let cancel = cancel.map(|cancel| cancel.as_fd().try_clone_to_owned());
        Ok(Supervision {
            limit_stop: LimitStop::new(place.news()).map_err(no_descriptor)?,
            pidfd: place.placeholder()?,
            cancel: cancel.transpose().map_err(no_descriptor)?,
            place,
            limits,
        })
    }

    /// Who is to be told of the child's copies.
    pub(super) fn news(&self) -> News {
        self.place.news()
    }

    /// Who is to be told of the child's outputs.
    pub(super) fn flow_news(&self) -> FlowNews {
        FlowNews {
            limit: self.limits.bytes,
            news: self.place.news(),
        }
    }

    /// That of `running`, and the stop that it may begin.
    ///
    /// # Errors
    /// None that is to be expected.
    pub(super) fn of(self, running: &ChildProcess) -> io::Result<(BegunSupervision, LimitStop)> {
        let pidfd = match running.pidfd() {
            Some(pidfd) => fd::replace(self.pidfd, pidfd)?,
            None => self.pidfd,
        };
        let begun = BegunSupervision {
            limits: self.limits,
            place: self.place,
            pidfd,
            cancel: self.cancel,
        };
        Ok((begun, self.limit_stop))
    }
}

impl BegunSupervision {
    /// Has the child looked after from now on.
    pub(super) fn begin(
        self,
        child: &Arc<SharedChild>,
        flows: PerStream<Option<WatchedFlow>>,
        full: &Arc<StallWatch>,
    ) {
        let BegunSupervision {
            limits,
            place,
            pidfd,
            cancel,
        } = self;
        let (child, full) = (Arc::clone(child), Arc::clone(full));
        let news = place.news();
        place.take(SupervisedChild::new(
            limits, child, flows, full, pidfd, cancel, news,
        ));
    }
}
