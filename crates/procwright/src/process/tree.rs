//! Which processes belong to a run.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use crate::holders::{Role, RunPipe};
use crate::ident::ProcId;
use crate::process::Scope;
use crate::sys::guard;
use crate::sys::proc::{self, Next, Stat};

/// What a run is known by.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The program that was started. It may have ended and been reaped.
    pub(crate) root: ProcId,
    /// The pipes between the run and us that are still open.
    pub(crate) pipes: Vec<RunPipe>,
    /// Whether every child of ours that was started since the root belongs to
    /// the run: true for a process that makes one run, is a sub-reaper
    /// (`PR_SET_CHILD_SUBREAPER`) and so inherits the orphans.
    pub(crate) adopts: bool,
}

/// The processes of a run, found again and again.
///
/// Under [`Scope::Tree`] a process belongs to the run if it
///
/// 1. is the root, or was found before;
/// 2. is a child of one that belongs;
/// 3. is in a session or process group that was made by one that belongs;
/// 4. holds the program's end, and not ours, of one of the run's pipes, and was
///    started after the root;
/// 5. is our child, was started after the root, and we adopt.
///
/// 3 to 5 find orphans: processes whose parent has ended, so that the system
/// shows init as their parent. One that made no group, holds no pipe and cannot
/// be adopted is not found. Nothing in the system tells whose it was. (A mark in
/// the environment would, but the program sees it, can remove it, and an empty
/// environment would not be empty.)
///
/// Never: our own process, its guard and its ancestors, process 1, kernel threads, and what
/// descends from another child of ours.
#[derive(Debug)]
pub(crate) struct Tree {
    target: Target,
    scope: Scope,
    own_pid: i32,
    /// Whether orphans below us come to us and not to process 1.
    inherits: bool,
    /// What was found so far, ended ones too: a group lives on after its
    /// leader, and its number is not given away before it is empty.
    /// Start time by number.
    known: HashMap<i32, u64>,
    /// Processes that were seen not to hold our pipes. A descriptor comes by
    /// fork, at once, or through a socket, which is no reason to be killed.
    strangers: HashSet<(i32, u64)>,
    /// Groups and sessions that the run made, as of the latest survey.
    groups: HashSet<i32>,
    sessions: HashSet<i32>,
    /// The latest survey may have missed someone.
    cut: bool,
    // Kept between surveys for their memory alone.
    rows: Vec<Row>,
    by_pid: HashMap<i32, usize>,
}

/// How long a survey goes after processes that were started since it began,
/// before it runs ahead of them. It gets on at some 100,000 a second, so that it
/// comes up with any but the fastest.
const CHASE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
struct Row {
    stat: Stat,
    belongs: Belongs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belongs {
    /// Not as far as is known.
    Open,
    /// To this run.
    Run,
    /// Must not be touched.
    Never,
}

impl Tree {
    pub(crate) fn new(target: Target, scope: Scope) -> Tree {
        Tree {
            known: HashMap::from([(target.root.pid(), target.root.start_ticks())]),
            inherits: target.adopts || proc::inherits_orphans(),
            target,
            scope,
            own_pid: rustix::process::getpid().as_raw_nonzero().get(),
            strangers: HashSet::new(),
            groups: HashSet::new(),
            sessions: HashSet::new(),
            cut: false,
            rows: Vec::new(),
            by_pid: HashMap::new(),
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Whether the latest survey may have missed someone because processes came
    /// and went faster than it looked.
    pub(crate) fn was_cut(&self) -> bool {
        self.cut
    }

    /// Everyone who belongs now, zombies too, parents before their children.
    ///
    /// `seen` is called for each of them as soon as that is known, mostly some
    /// microseconds after it was looked at: who lives for less than a survey
    /// takes can be caught only so.
    ///
    /// No snapshot: see [`crate::process::stop`] for how a changing tree is
    /// caught.
    ///
    /// # Errors
    /// If the processes cannot be listed: no `/proc`, or no descriptor free.
    pub(crate) fn survey(&mut self, seen: &mut dyn FnMut(&Stat)) -> io::Result<Vec<Stat>> {
        let mut found = Vec::new();
        self.cut = false;
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

    /// Reads all rows, and marks those that can be told at once.
    fn read_all(&mut self, found: &mut Vec<Stat>, seen: &mut dyn FnMut(&Stat)) -> io::Result<()> {
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
            // A number above the last one may be an old process's too, from
            // before the numbers went around. One that is gone already is not.
            let newborn = new && stat.is_none_or(|stat| stat.start_ticks >= begun);
            if newborn && chased.get_or_insert_with(Instant::now).elapsed() > CHASE {
                chased = None;
                self.cut = true;
                return Ok(Next::Ahead);
            }
            // A new one that is gone already may have left a child that this
            // scan has passed.
            self.cut |= new && stat.is_none_or(|stat| stat.is_gone());
            let Some(stat) = stat else {
                return Ok(Next::On);
            };
            let guards = stat.ppid == self.own_pid && guard::is_ours(pid);
            let untouchable = pid == 1 || pid == self.own_pid || stat.kernel_thread || guards;
            self.by_pid.insert(pid, self.rows.len());
            self.rows.push(Row {
                stat,
                belongs: if untouchable {
                    Belongs::Never
                } else {
                    Belongs::Open
                },
            });
            if !untouchable && self.is_plain(&stat) {
                let last = self.rows.len() - 1;
                self.rows[last].belongs = Belongs::Run;
                seen(&stat);
                found.push(stat);
            }
            Ok(Next::On)
        })
    }

    /// Whether a process belongs by what is known before all rows are read.
    fn is_plain(&mut self, stat: &Stat) -> bool {
        if self.known.get(&stat.pid) == Some(&stat.start_ticks) {
            return true;
        }
        self.scope == Scope::Tree
            && stat.start_ticks >= self.target.root.start_ticks()
            && (self
                .index(stat.ppid)
                .is_some_and(|parent| self.rows[parent].belongs == Belongs::Run)
                || self.groups.contains(&stat.pgrp)
                || self.sessions.contains(&stat.session)
                || (self.target.adopts && stat.ppid == self.own_pid)
                || self.holds_pipe(stat))
    }

    fn index(&self, pid: i32) -> Option<usize> {
        self.by_pid.get(&pid).copied()
    }

    /// How many members are above it.
    fn depth(&self, stat: &Stat) -> usize {
        let mut ppid = stat.ppid;
        // Bounded: numbers reused during the scan could make a circle.
        (0..self.rows.len())
            .find(|_| match self.index(ppid).map(|i| &self.rows[i]) {
                Some(row) if row.belongs == Belongs::Run => {
                    ppid = row.stat.ppid;
                    false
                }
                _ => true,
            })
            .unwrap_or(0)
    }

    /// Marks those above us, whom no rule may reach. (No rule does: they are
    /// older than the run. This is the second lock on that door.)
    fn mark_ancestors(&mut self) {
        let mut pid = self.own_pid;
        for _ in 0..self.rows.len() {
            let Some(i) = self.index(pid) else { break };
            self.rows[i].belongs = Belongs::Never;
            pid = self.rows[i].stat.ppid;
        }
    }

    /// The root's group, which has the root's number.
    fn find_group(&mut self, found: &mut Vec<Stat>) {
        let root = self.target.root;
        match self.index(root.pid()) {
            // The number has gone to someone else, so the group is empty: a
            // group keeps its number from being given away.
            Some(i) if !root.is(&self.rows[i].stat) => return,
            // It has no group of its own.
            Some(i) if self.rows[i].stat.pgrp != root.pid() => return,
            _ => {}
        }
        for row in &mut self.rows {
            if row.belongs == Belongs::Open
                && row.stat.pgrp == root.pid()
                && row.stat.start_ticks >= root.start_ticks()
            {
                row.belongs = Belongs::Run;
                found.push(row.stat);
            }
        }
    }

    fn find_tree(&mut self, found: &mut Vec<Stat>) {
        let root_start = self.target.root.start_ticks();
        let own = self.index(self.own_pid).map(|i| self.rows[i].stat);
        // Found anew each time: an empty one's number may have gone to others.
        self.groups.clear();
        self.sessions.clear();
        let mut judged = 0;
        loop {
            while let Some(stat) = found.get(judged).copied() {
                judged += 1;
                let Some(own) = own else { continue };
                if stat.pgrp != own.pgrp && self.made_inside(stat.pgrp, |s| s.pgrp) {
                    self.groups.insert(stat.pgrp);
                }
                if stat.session != own.session && self.made_inside(stat.session, |s| s.session) {
                    self.sessions.insert(stat.session);
                }
            }
            for i in 0..self.rows.len() {
                let Row { stat, belongs } = self.rows[i];
                // Everything of the run is younger than its root; this alone
                // spares nearly all of a machine's processes the rest.
                if belongs != Belongs::Open || stat.start_ticks < root_start {
                    continue;
                }
                if self.is_child_of_known(&stat)
                    || self.groups.contains(&stat.pgrp)
                    || self.sessions.contains(&stat.session)
                    || (self.target.adopts && stat.ppid == self.own_pid)
                {
                    self.rows[i].belongs = Belongs::Run;
                    found.push(stat);
                }
            }
            if judged == found.len() && !self.find_by_pipe(found) {
                return;
            }
        }
    }

    fn is_child_of_known(&self, stat: &Stat) -> bool {
        match self.index(stat.ppid) {
            Some(parent) => self.rows[parent].belongs == Belongs::Run,
            // The parent went away between the reading of the list and now.
            // If it was ours, then so is the child.
            None => self.known.contains_key(&stat.ppid),
        }
    }

    /// Whether the group or session `number` of one that belongs was made by
    /// the run and not joined.
    ///
    /// By its leader, who has the same number. If the leader is gone, it must
    /// be one that we knew, or the group must hold no one older than the run:
    /// our own login session, or a shell's other job, always does.
    fn made_inside(&self, number: i32, of: fn(&Stat) -> i32) -> bool {
        if number <= 1 {
            return false;
        }
        if let Some(leader) = self.index(number) {
            return self.rows[leader].belongs == Belongs::Run;
        }
        let root = self.target.root;
        if self.known.contains_key(&number) {
            return true;
        }
        self.rows
            .iter()
            .filter(|row| of(&row.stat) == number)
            .all(|row| row.belongs != Belongs::Never && row.stat.start_ticks >= root.start_ticks())
    }

    /// Finds orphans that hold one of the run's pipes.
    fn find_by_pipe(&mut self, found: &mut Vec<Stat>) -> bool {
        let mut any = false;
        for i in 0..self.rows.len() {
            let Row { stat, belongs } = self.rows[i];
            if belongs == Belongs::Open
                && stat.start_ticks >= self.target.root.start_ticks()
                && self.holds_pipe(&stat)
            {
                self.rows[i].belongs = Belongs::Run;
                found.push(stat);
                any = true;
            }
        }
        any
    }

    /// Whether it holds the program's end of one of the run's pipes and is not
    /// of another run.
    fn holds_pipe(&mut self, stat: &Stat) -> bool {
        let id = (stat.pid, stat.start_ticks);
        if self.target.pipes.is_empty()
            || stat.is_gone()
            || self.strangers.contains(&id)
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
        // Who holds our end as well is a copy of our own process: forked by
        // another thread, on its way to an exec that closes them.
        if !theirs && !ours {
            self.strangers.insert(id);
        }
        theirs && !ours
    }

    /// Whether it is below us by way of a child that is not of this run.
    ///
    /// Our direct children are that themselves, unless orphans come to us: then
    /// a direct child can be anyone's, and its pipes decide.
    fn descends_from_other_child(&self, stat: &Stat) -> bool {
        let mut ppid = stat.ppid;
        for depth in 0..=self.rows.len() {
            if ppid == self.own_pid {
                return depth > 0 || !self.inherits;
            }
            if ppid <= 1 {
                return false;
            }
            ppid = match self.index(ppid) {
                Some(i) if self.rows[i].belongs == Belongs::Run => return false,
                Some(i) => self.rows[i].stat.ppid,
                // Not read yet, or gone.
                None => match proc::stat(ppid) {
                    Ok(parent) => parent.ppid,
                    Err(_) => return false,
                },
            };
        }
        false
    }
}
