//! The report of a child that the caller holds: the shape of a run's.

use super::output::{Reason, Report, StreamInfo};
use crate::child::Child;

impl Child {
    /// What a [`run`](crate::Command::run) reports, of a child that has ended;
    /// none while it is alive. Reaps it, and does not wait.
    ///
    /// The reason is [`Reason::Cancelled`] after a stop, and else
    /// [`Reason::Finished`]. The duration goes until the end was seen: by a wait,
    /// a stop or this. Of a stream that its reader keeps to itself ([`spawn_with`]
    /// none) what was read is counted. What is kept is what was or can still be
    /// read. A stream is complete once its end was seen, which is after the exit
    /// if others hold it still; who they are is not looked for here.
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
        let [stdout_info, stderr_info] = self.outlets().each_ref().map(|outlet| {
            let passed = outlet.as_ref()?.passed();
            Some(StreamInfo {
                bytes: passed.bytes,
                kept_bytes: passed.bytes - passed.dropped,
                dropped_bytes: passed.dropped,
                blocked: passed.refused,
                complete: passed.complete,
                held_by_complete: passed.complete,
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
            duration: end.duration,
            cpu_user: end.usage.map(|usage| usage.user),
            cpu_system: end.usage.map(|usage| usage.system),
            max_rss_bytes: end.max_rss,
            survivors: end.stopped.unwrap_or_default(),
            stdout_info,
            stderr_info,
            processes: Vec::new(),
        })
    }
}
