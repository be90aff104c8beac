//! The processes that belong to a run, found again and again.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use crate::Scope;
use crate::holders::{Role, RunPipe};
use crate::proc_id::ProcId;
use procwright_os::proc::{self, ProcStat, Scan};
use procwright_os::watchdog;

/// What a run is recognised by.
#[derive(Clone, Debug)]
pub struct StopTarget {
    /// The program that was started. It may have ended.
    pub root: ProcId,
    /// Whether the root was reaped, so that its number, and that of a group or session that
    /// it has led, may be another's. Then only its start is believed: what it left is found
    /// by the pipes.
    pub reaped: bool,
    /// The pipes between the run and this process that are still open.
    pub pipes: Vec<RunPipe>,
    /// Whether every child of this process that was started since the root belongs to
    /// the run: true for a process that makes one run, is a sub-reaper
    /// (`PR_SET_CHILD_SUBREAPER`) and so inherits the orphans.
    pub adopts: bool,
}

/// The processes of a run.
///
/// Under [`Scope::Tree`] a process belongs to the run if it
///
/// 1. is the root, or was found before;
/// 2. is a child of one that belongs;
/// 3. is in a session or process group that was made by one that belongs;
/// 4. holds the program's end of one of the run's pipes and not this process's, and was
///    started after the root;
/// 5. is a child of this process, was started after the root, and the target adopts.
///
/// 3 to 5 find orphans: processes whose parent has ended, so that the system
/// shows init as their parent. One that made no group, holds no pipe and cannot
/// be adopted is not found. Nothing in the system tells whose it was. (A mark in
/// the environment would, but the program sees it, can remove it, and an empty
/// environment would not be empty.)
///
/// Never members are: this process, its guard and its ancestors, process 1, kernel
/// threads, and descendants of another child of this process.
#[derive(Debug)]
pub struct ProcessTree {
    target: StopTarget,
    scope: Scope,
    own_pid: i32,
    /// Whether orphaned descendants become children of this process, not of process 1.
    inherits: bool,
    /// Start times of all members so far, by number. Ended ones stay: a group lives on
    /// after its leader, and its number is not given away before it is empty.
    known: HashMap<i32, u64>,
    /// Processes that were seen without any of the pipes. They are not looked at
    /// again: a descriptor comes by fork, at once, or through a socket, which is no
    /// reason to be killed.
    without_pipes: HashSet<(i32, u64)>,
    /// Groups that the run made, as of the latest survey.
    groups: HashSet<i32>,
    /// Sessions that the run made, as of the latest survey.
    sessions: HashSet<i32>,
    /// The latest survey may have missed a process.
    cut: bool,
    // Kept between surveys for their memory alone.
    rows: Vec<ProcessRow>,
    by_pid: HashMap<i32, usize>,
}

/// Longest time for which a survey goes after processes that were started since it
/// began, before it runs ahead of them. It reads some 100,000 a second, so that it
/// catches up with any but the fastest.
const CHASE_LIMIT: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
struct ProcessRow {
    stat: ProcStat,
    membership: Membership,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Membership {
    /// No rule has applied yet.
    Unknown,
    /// The process belongs to the run.
    Member,
    /// The process must not be touched.
    Excluded,
}

impl ProcessTree {
    /// The processes of `target`; none but its root is known yet.
    pub fn new(target: StopTarget, scope: Scope) -> ProcessTree {
        let root = (target.root.pid(), target.root.start_ticks());
        ProcessTree {
            known: HashMap::from_iter((!target.reaped).then_some(root)),
            inherits: target.adopts || proc::inherits_orphans(),
            target,
            scope,
            own_pid: rustix::process::getpid().as_raw_nonzero().get(),
            without_pipes: HashSet::new(),
            groups: HashSet::new(),
            sessions: HashSet::new(),
            cut: false,
            rows: Vec::new(),
            by_pid: HashMap::new(),
        }
    }

    pub(crate) fn target(&self) -> &StopTarget {
        &self.target
    }

    /// Whether the latest survey may have missed a process, because processes came and
    /// went faster than it looked.
    pub(crate) fn was_cut(&self) -> bool {
        self.cut
    }

    /// Finds all members, zombies too, parents before their children.
    ///
    /// `seen` is called for each as soon as it is known to be one, mostly some
    /// microseconds after it was read: a process that lives for less than a survey
    /// takes can be caught only so.
    ///
    /// The result is no snapshot; the module `stop` says how a changing tree is caught.
    ///
    /// # Errors
    /// If the processes cannot be listed: no `/proc`, or no descriptor free.
    pub fn survey(&mut self, seen: &mut dyn FnMut(&ProcStat)) -> io::Result<Vec<ProcStat>> {
        let mut found = Vec::new();
        self.cut = false;
        if self.target.reaped && self.scope != Scope::Tree {
            return Ok(found);
        }
        if self.scope == Scope::Process {
            match proc::stat(self.target.root.pid()) {
                Ok(stat) if self.target.root.is(&stat) => {
                    seen(&stat);
                    found.push(stat);
                }
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
            return Ok(found);
        }
        self.read_all(&mut found, seen)?;
        self.mark_ancestors();
        let sighted = found.len();
        match self.scope {
            Scope::Process => {}
            Scope::Group => self.find_group(&mut found),
            Scope::Tree => self.find_tree(&mut found),
        }
        found[sighted..].iter().for_each(seen);
        for stat in &found {
            self.known.insert(stat.pid, stat.start_ticks);
        }
        found.sort_by_cached_key(|stat| self.depth(stat));
        Ok(found)
    }

    /// Reads all rows, and marks the members that can be told at once.
    fn read_all(
        &mut self,
        found: &mut Vec<ProcStat>,
        seen: &mut dyn FnMut(&ProcStat),
    ) -> io::Result<()> {
        self.rows.clear();
        self.by_pid.clear();
        let begun = proc::now_ticks();
        let mut chased: Option<Instant> = None;
        proc::each_pid(&mut |pid, new| {
            let stat = match proc::stat(pid) {
                Ok(stat) => Some(stat),
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                Err(e) => return Err(e),
            };
            // A number above the last one may also be that of an old process, from
            // before the numbers went around; not if it is gone already.
            let newborn = new && stat.is_none_or(|stat| stat.start_ticks >= begun);
            if newborn && chased.get_or_insert_with(Instant::now).elapsed() > CHASE_LIMIT {
                chased = None;
                self.cut = true;
                return Ok(Scan::Skip);
            }
            // A new process that is gone already may have left a child below the
            // position of this scan.
            self.cut |= new && stat.is_none_or(|stat| stat.is_gone());
            let Some(stat) = stat else {
                return Ok(Scan::Next);
            };
            let guards = stat.ppid == self.own_pid && watchdog::is_watchdog(pid);
            let untouchable = pid == 1 || pid == self.own_pid || stat.kernel_thread || guards;
            self.by_pid.insert(pid, self.rows.len());
            self.rows.push(ProcessRow {
                stat,
                membership: if untouchable {
                    Membership::Excluded
                } else {
                    Membership::Unknown
                },
            });
            if !untouchable && self.belongs_at_first_sight(&stat) {
                let last = self.rows.len() - 1;
                self.rows[last].membership = Membership::Member;
                seen(&stat);
                found.push(stat);
            }
            Ok(Scan::Next)
        })
    }

    /// Whether a process is a member by what is known before all rows are read.
    fn belongs_at_first_sight(&mut self, stat: &ProcStat) -> bool {
        if self.known.get(&stat.pid) == Some(&stat.start_ticks) {
            return true;
        }
        self.scope == Scope::Tree
            && stat.start_ticks >= self.target.root.start_ticks()
            && (self
                .index(stat.ppid)
                .is_some_and(|parent| self.rows[parent].membership == Membership::Member)
                || self.groups.contains(&stat.pgrp)
                || self.sessions.contains(&stat.session)
                || (self.target.adopts && stat.ppid == self.own_pid)
                || self.holds_pipe(stat))
    }

    fn index(&self, pid: i32) -> Option<usize> {
        self.by_pid.get(&pid).copied()
    }

    /// The number of members above it.
    fn depth(&self, stat: &ProcStat) -> usize {
        let mut ppid = stat.ppid;
        // Bounded, because numbers reused during the scan could make a circle.
        (0..self.rows.len())
            .find(|_| match self.index(ppid).map(|i| &self.rows[i]) {
                Some(row) if row.membership == Membership::Member => {
                    ppid = row.stat.ppid;
                    false
                }
                _ => true,
            })
            .unwrap_or(0)
    }

    /// Excludes the ancestors of this process. No rule reaches them, since they are
    /// older than the run; this makes it certain.
    fn mark_ancestors(&mut self) {
        let mut pid = self.own_pid;
        for _ in 0..self.rows.len() {
            let Some(i) = self.index(pid) else { break };
            self.rows[i].membership = Membership::Excluded;
            pid = self.rows[i].stat.ppid;
        }
    }

    /// Finds the members of the root's group, which has the root's number.
    fn find_group(&mut self, found: &mut Vec<ProcStat>) {
        let root = self.target.root;
        match self.index(root.pid()) {
            // The number has gone to another process, so the group is empty: a group
            // keeps its number from being given away.
            Some(i) if !root.is(&self.rows[i].stat) => return,
            // The root has no group of its own.
            Some(i) if self.rows[i].stat.pgrp != root.pid() => return,
            _ => {}
        }
        for row in &mut self.rows {
            if row.membership == Membership::Unknown
                && row.stat.pgrp == root.pid()
                && row.stat.start_ticks >= root.start_ticks()
            {
                row.membership = Membership::Member;
                found.push(row.stat);
            }
        }
    }

    fn find_tree(&mut self, found: &mut Vec<ProcStat>) {
        let root_start = self.target.root.start_ticks();
        let own = self.index(self.own_pid).map(|i| self.rows[i].stat);
        // Found anew each time: the number of an empty group may have gone to others.
        self.groups.clear();
        self.sessions.clear();
        let mut judged = 0;
        loop {
            while let Some(stat) = found.get(judged).copied() {
                judged += 1;
                let Some(own) = own else { continue };
                if stat.pgrp != own.pgrp && self.was_made_by_run(stat.pgrp, |s| s.pgrp) {
                    self.groups.insert(stat.pgrp);
                }
                if stat.session != own.session && self.was_made_by_run(stat.session, |s| s.session)
                {
                    self.sessions.insert(stat.session);
                }
            }
            for i in 0..self.rows.len() {
                let ProcessRow { stat, membership } = self.rows[i];
                // All members are younger than the root, which alone rules out nearly
                // all processes of a machine.
                if membership != Membership::Unknown || stat.start_ticks < root_start {
                    continue;
                }
                if self.has_known_parent(&stat)
                    || self.groups.contains(&stat.pgrp)
                    || self.sessions.contains(&stat.session)
                    || (self.target.adopts && stat.ppid == self.own_pid)
                {
                    self.rows[i].membership = Membership::Member;
                    found.push(stat);
                }
            }
            if judged == found.len() && !self.find_by_pipe(found) {
                return;
            }
        }
    }

    fn has_known_parent(&self, stat: &ProcStat) -> bool {
        match self.index(stat.ppid) {
            Some(parent) => self.rows[parent].membership == Membership::Member,
            // The parent went away between the reading of the list and now. If it was
            // a member, then so is the child.
            None => self.known.contains_key(&stat.ppid),
        }
    }

    /// Whether the group or session `number` of a member was made by the run and not
    /// joined.
    ///
    /// Its leader, which has the same number, tells. If the leader is gone, it must
    /// have been a known member, or the group must hold no process older than the run,
    /// as the login session and the other jobs of a shell always do.
    fn was_made_by_run(&self, number: i32, of: fn(&ProcStat) -> i32) -> bool {
        if number <= 1 {
            return false;
        }
        if let Some(leader) = self.index(number) {
            return self.rows[leader].membership == Membership::Member;
        }
        let root = self.target.root;
        if self.known.contains_key(&number) {
            return true;
        }
        self.rows
            .iter()
            .filter(|row| of(&row.stat) == number)
            .all(|row| {
                row.membership != Membership::Excluded && row.stat.start_ticks >= root.start_ticks()
            })
    }

    /// Finds orphans that hold one of the pipes; false if there are none.
    fn find_by_pipe(&mut self, found: &mut Vec<ProcStat>) -> bool {
        let mut any = false;
        for i in 0..self.rows.len() {
            let ProcessRow { stat, membership } = self.rows[i];
            if membership == Membership::Unknown
                && stat.start_ticks >= self.target.root.start_ticks()
                && self.holds_pipe(&stat)
            {
                self.rows[i].membership = Membership::Member;
                found.push(stat);
                any = true;
            }
        }
        any
    }

    /// Whether a process holds the program's end of one of the pipes and is not of
    /// another run.
    fn holds_pipe(&mut self, stat: &ProcStat) -> bool {
        let id = (stat.pid, stat.start_ticks);
        if self.target.pipes.is_empty()
            || stat.is_gone()
            || self.without_pipes.contains(&id)
            || self.descends_from_other_child(stat)
        {
            return false;
        }
        let wanted: Vec<_> = self.target.pipes.iter().map(|p| p.id.conduit()).collect();
        let (mut theirs, mut ours) = (false, false);
        let seen = proc::each_pipe(stat.pid, &wanted, &mut |fd| {
            for pipe in &self.target.pipes {
                if pipe.id.conduit() != fd.of {
                    continue;
                }
                let (near, far) = match pipe.role {
                    Role::Reads => (fd.read, fd.write),
                    Role::Writes => (fd.write, fd.read),
                };
                theirs |= near;
                ours |= far;
            }
        });
        if seen.is_err() {
            return false;
        }
        // A process that holds this process's end as well is a copy of this process,
        // forked by another thread and on its way to an exec that closes both.
        if !theirs && !ours {
            self.without_pipes.insert(id);
        }
        theirs && !ours
    }

    /// Whether a process descends from a child of this process that is not of the run.
    ///
    /// A direct child is such a child itself, unless orphans become children of this
    /// process: then it can be anyone's, and its pipes decide.
    fn descends_from_other_child(&self, stat: &ProcStat) -> bool {
        let mut ppid = stat.ppid;
        for depth in 0..=self.rows.len() {
            if ppid == self.own_pid {
                return depth > 0 || !self.inherits;
            }
            if ppid <= 1 {
                return false;
            }
            ppid = match self.index(ppid) {
                Some(i) if self.rows[i].membership == Membership::Member => return false,
                Some(i) => self.rows[i].stat.ppid,
                // The parent is not read yet, or gone.
                None => match proc::stat(ppid) {
                    Ok(parent) => parent.ppid,
                    Err(_) => return false,
                },
            };
        }
        false
    }
}
