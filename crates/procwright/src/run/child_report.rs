//! The report of a child that the caller holds: the shape of a run's.

use super::output::{ReachedLimit, Reason, Report, StreamInfo};
use crate::child::{Child, ReachedBound};
use crate::std_stream::PerStream;

impl Child {
    /// Why it was stopped, if that was for a limit of its own: a [`timeout`], an
    /// [`idle_timeout`], a [`limit`] or a [cancel]. None while that stop goes on. A program that has
    /// ended right behind its [`limit`], when nothing is left to be stopped, has passed it all the
    /// same: what came beyond is gone.
    ///
    /// ```
    /// use procwright::{Command, Reason};
    /// use std::time::Duration;
    ///
    /// let child = Command::new("sleep").arg("60").timeout(Duration::from_millis(10)).spawn()?;
    /// assert!(!child.wait(None)?.unwrap().success());
    /// assert_eq!(child.stopped_for(), Some(Reason::Timeout));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`timeout`]: crate::Command::timeout
    /// [`idle_timeout`]: crate::Command::idle_timeout
    /// [`limit`]: crate::Command::limit
    /// [cancel]: crate::Command::cancel_on
    pub fn stopped_for(&self) -> Option<Reason> {
        self.reached_bound().map(|reached| reason_of(reached).0)
    }

    /// True while it is being stopped for a limit of its own: [`wait`](Child::wait) is for the end
    /// of that as well, which is a grace and some moments away at most. It begins before the
    /// program gets the first signal, so that whoever finds a pipe broken by that stop finds this
    /// true or [`stopped_for`](Child::stopped_for) there.
    ///
    /// ```
    /// use procwright::Command;
    /// use std::time::Duration;
    ///
    /// let child = Command::new("sleep").arg("60").timeout(Duration::from_millis(10)).spawn()?;
    /// child.wait(None)?;
    /// assert!(!child.is_stopping() && child.stopped_for().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_stopping(&self) -> bool {
        self.has_limit_stop_under_way()
    }

    /// The report that a [`run`](crate::Command::run) gives, for a child that has ended;
    /// none while it is alive or being stopped for a limit. Reaps it, and does not wait.
    ///
    /// The reason is that of a run if it was stopped for a limit ([`timeout`], [`cancel_on`]
    /// and their like), with what the processes were doing and who held the streams then, and why
    /// the program did not end;
    /// [`Reason::Cancelled`] after another stop that came while the program lived, and else
    /// [`Reason::Finished`]: a program that had ended, whose processes were then stopped, has
    /// finished. The survivors are those of a stop that is over. The duration goes until the end
    /// was seen: by a wait, a stop or this call. The bytes of a bare pipe ([`spawn_with`] none)
    /// are those that the caller has read. The kept bytes are those that were or can still be
    /// read. A stream is complete once its end was seen, which is after the exit if other
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
    /// [`timeout`]: crate::Command::timeout
    /// [`cancel_on`]: crate::Command::cancel_on
    pub fn report(&self) -> Option<Report> {
        let end = self.end()?;
        let stop = end.limit_stop.as_ref();
        let open = stop.map(|stop| stop.open).unwrap_or_default();
        let held = stop.map_or(end.left, |stop| stop.holders.clone());
        let monitors = self.output_monitors().as_ref();
        let mut infos = PerStream::default();
        for (stream, (monitor, held)) in monitors.zip(held) {
            let Some(monitor) = monitor else { continue };
            let totals = monitor.totals();
            // A pipe that is held by nobody who was found is held by a process that cannot be
            // seen from here.
            let held_by_complete = match &held {
                Some(held) => held.complete && (open[stream] || !held.list.is_empty()),
                None => totals.complete,
            };
            let mut info = StreamInfo {
                bytes: totals.bytes,
                kept_bytes: totals.bytes - totals.dropped,
                dropped_bytes: totals.dropped,
                blocked: totals.refused,
                complete: totals.complete && !open[stream],
                held_by: held.map(|held| held.list).unwrap_or_default(),
                held_by_complete,
                ..StreamInfo::default()
            };
            for copy in self.copy_ends(stream) {
                info.note_copy(&copy.role, copy.error, copy.undelivered);
            }
            info.note_excess(totals.excess);
            infos[stream] = Some(info);
        }
        let reached = stop.map(|stop| stop.reached);
        let (reason, limit) = match reached.or_else(|| self.reached_bound()) {
            Some(reached) => reason_of(reached),
            None if end.was_cut_short => (Reason::Cancelled, None),
            None => (Reason::Finished, None),
        };
        let stop_duration = stop.map(|stop| stop.duration);
        let held_after_exit = stop.is_some_and(|stop| stop.held_after_exit);
        let (survivors, processes, diagnosis) = match end.limit_stop {
            // A stop that came later knows better who is left.
            Some(stop) => {
                let survivors = end.stopped.unwrap_or(stop.survivors);
                (survivors, stop.activities, stop.diagnosis)
            }
            None => (end.stopped.unwrap_or_default(), Vec::new(), None),
        };
        Some(Report {
            argv: self.argv().to_vec(),
            pid: self.pid(),
            status: end.exit,
            reason,
            ok_codes: self.ok_codes().to_vec(),
            limit,
            duration: end.duration,
            stop_duration,
            cpu_user: end.usage.map(|usage| usage.user),
            cpu_system: end.usage.map(|usage| usage.system),
            max_rss_bytes: end.max_rss,
            oom_kills: end.oom_kills,
            survivors,
            last_words_of: self.last_words_of(),
            stdout_info: infos.stdout,
            stderr_info: infos.stderr,
            processes,
            diagnosis,
            held_after_exit,
        })
    }
}

/// The reason of a run that was stopped for this, and the limit.
fn reason_of(reached: ReachedBound) -> (Reason, Option<ReachedLimit>) {
    match reached {
        ReachedBound::Timeout(time) => (Reason::Timeout, time.map(ReachedLimit::Time)),
        ReachedBound::IdleTimeout(time) => (Reason::IdleTimeout, time.map(ReachedLimit::Time)),
        ReachedBound::Bytes(bytes) => (Reason::OutputLimit, Some(ReachedLimit::Bytes(bytes))),
        ReachedBound::Cancel => (Reason::Cancelled, None),
    }
}
