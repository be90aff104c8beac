//! The report of a child that the caller holds: the shape of a run's.

use super::output::{Reason, Report, StreamInfo};
use crate::child::Child;

impl Child {
    /// The report that a [`run`](crate::Command::run) gives, for a child that has ended;
    /// none while it is alive. Reaps it, and does not wait.
    ///
    /// The reason is [`Reason::Cancelled`] after a stop, and else
    /// [`Reason::Finished`]. The duration goes until the end was seen: by a wait,
    /// a stop or this call. The bytes of a bare pipe ([`spawn_with`] none) are those
    /// that the caller has read. The kept bytes are those that were or can still be read. A
    /// stream is complete once its end was seen, which is after the exit if other
    /// processes still hold it; their names are left out here.
    ///
    /// ```
    /// use procwright::Command;
    ///
    /// let child = Command::new("echo").arg("hello").spawn()?;
    /// child.wait(None)?;
    /// let report = child.report().unwrap();
    /// assert!(report.success());
    /// assert_eq!(report.argv[1], "hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`spawn_with`]: crate::Command::spawn_with
    pub fn report(&self) -> Option<Report> {
        let end = self.end()?;
        let infos = self.output_monitors().as_ref().map(|monitor| {
            let totals = monitor.as_ref()?.totals();
            Some(StreamInfo {
                bytes: totals.bytes,
                kept_bytes: totals.bytes - totals.dropped,
                dropped_bytes: totals.dropped,
                blocked: totals.refused,
                complete: totals.complete,
                held_by_complete: totals.complete,
                ..StreamInfo::default()
            })
        });
        Some(Report {
            argv: self.argv().to_vec(),
            pid: self.pid(),
            status: end.exit,
            reason: match end.stopped {
                Some(_) => Reason::Cancelled,
                None => Reason::Finished,
            },
            limit: None,
            duration: end.duration,
            stop_duration: None,
            cpu_user: end.usage.map(|usage| usage.user),
            cpu_system: end.usage.map(|usage| usage.system),
            max_rss_bytes: end.max_rss,
            survivors: end.stopped.unwrap_or_default(),
            stdout_info: infos.stdout,
            stderr_info: infos.stderr,
            processes: Vec::new(),
            held_after_exit: false,
        })
    }
}
