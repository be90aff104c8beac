//! The pass over all processes: rows of numbers, and the members that can be told while
//! it goes on.

use std::io;
use std::time::Duration;

use super::{Member, ProcessTree};
use crate::Scope;
use crate::chase::is_newborn;
use procwright_os::proc::{self, ProcStat, Scan};
use procwright_os::time;
use procwright_os::watchdog;

/// Processor time for which a survey goes after processes that were started since it
/// began, before it runs ahead of them. It reads some 100,000 a second, so that it
/// catches up with any but the fastest.
const CHASE_LIMIT: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessRow {
    pub(super) stat: ProcStat,
    pub(super) membership: Membership,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    /// No rule has applied yet.
    Unknown,
    /// The process belongs to the run, in this place among its members.
    Member(usize),
    /// The process must not be touched.
    Excluded,
}

/// A row and the place of its member.
pub(super) type Found = Vec<(usize, usize)>;

impl ProcessTree {
    /// Reads all rows, and marks the members that can be told at once.
    pub(super) fn read_all(
        &mut self,
        found: &mut Found,
        seen: &mut dyn FnMut(usize, &mut Member),
    ) -> io::Result<()> {
        self.rows.clear();
        self.by_pid.clear();
        self.read_ancestors();
        let begun = proc::now_ticks();
        let first = proc::last_pid();
        let mut chased: Option<Duration> = None;
        proc::each_pid(&mut |pid, is_above| {
            let stat = match proc::stat(pid) {
                Ok(stat) => Some(stat),
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                Err(e) => return Err(e),
            };
            let is_newborn = is_newborn(is_above, stat, begun);
            if is_newborn {
                let spent = time::thread_cpu();
                let since = *chased.get_or_insert(spent);
                if spent.saturating_sub(since) > CHASE_LIMIT {
                    chased = None;
                    self.cut = true;
                    return Ok(Scan::Skip);
                }
            }
            // A new process that is gone already may have left a child below the
            // position of this scan.
            self.cut |= is_newborn && stat.is_none_or(|stat| stat.is_gone());
            if let Some(stat) = stat {
                self.read_row(stat, found, seen);
            }
            Ok(Scan::Next)
        })?;
        // Numbers have begun again meanwhile: who was started since is where the scan had
        // been.
        self.cut |= proc::last_pid() < first;
        Ok(())
    }

    fn read_row(
        &mut self,
        stat: ProcStat,
        found: &mut Found,
        seen: &mut dyn FnMut(usize, &mut Member),
    ) {
        let guards = stat.ppid == self.own_pid && watchdog::is_watchdog(stat.pid);
        // A root that is above this process was asked for by name.
        let is_ancestor = stat.pid != self.target.root.pid() && self.ancestors.contains(&stat.pid);
        let untouchable = stat.pid == 1
            || stat.pid == self.own_pid
            || stat.kernel_thread
            || guards
            || is_ancestor;
        let row = self.rows.len();
        self.by_pid.insert(stat.pid, row);
        let membership = match untouchable {
            true => Membership::Excluded,
            false => Membership::Unknown,
        };
        self.rows.push(ProcessRow { stat, membership });
        if untouchable {
            return;
        }
        // Not reaped now, it had its number when the row was read.
        if let Some(place) = self.place_of(stat.pid) {
            self.see(row, place, found, seen);
            return;
        }
        if self.scope != Scope::Tree || stat.is_gone() {
            return;
        }
        self.judge_at_sight(row, found, seen);
    }

    /// Notes that the process of a row is a member.
    pub(super) fn see(
        &mut self,
        row: usize,
        place: usize,
        found: &mut Found,
        seen: &mut dyn FnMut(usize, &mut Member),
    ) {
        let ProcessRow { stat, membership } = &mut self.rows[row];
        *membership = Membership::Member(place);
        let member = &mut self.members[place];
        member.state = stat.state;
        found.push((row, place));
        if !stat.is_gone() {
            seen(place, member);
        }
    }

    pub(super) fn index(&self, pid: i32) -> Option<usize> {
        self.by_pid.get(&pid).copied()
    }

    /// Reads the numbers of the ancestors of this process, which no stop may touch. They
    /// are older than most runs, but a stop of any process may begin above this one.
    fn read_ancestors(&mut self) {
        self.ancestors.clear();
        let mut pid = self.own_pid;
        while let Ok(stat) = proc::stat(pid) {
            // Numbers that are reused meanwhile could make a circle.
            if stat.ppid <= 1 || self.ancestors.contains(&stat.ppid) {
                return;
            }
            self.ancestors.push(stat.ppid);
            pid = stat.ppid;
        }
    }
}
