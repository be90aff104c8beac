//! Which processes belong to a run.

use std::collections::HashSet;
use std::io;

use crate::holders::{Role, RunPipe};
use crate::ident::ProcId;
use crate::process::Scope;
use crate::sys::proc::{self, Stat};

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
/// Never: our own process, its ancestors, process 1, kernel threads, and what
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
    known: Vec<ProcId>,
    /// Processes that were seen not to hold our pipes. A descriptor comes by
    /// fork, at once, or through a socket, which is no reason to be killed.
    strangers: HashSet<(i32, u64)>,
    // Kept between surveys for their memory alone.
    pids: Vec<i32>,
    rows: Vec<Row>,
}

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
            known: vec![target.root],
            inherits: target.adopts || proc::inherits_orphans(),
            target,
            scope,
            own_pid: rustix::process::getpid().as_raw_nonzero().get(),
            strangers: HashSet::new(),
            pids: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Everyone who belongs now, zombies too, parents before their children.
    ///
    /// No snapshot: see [`crate::process::stop`] for how a changing tree is
    /// caught.
    ///
    /// # Errors
    /// If the processes cannot be listed: no `/proc`, or no descriptor free.
    pub(crate) fn survey(&mut self) -> io::Result<Vec<Stat>> {
        let mut found = Vec::new();
        if self.scope == Scope::Process {
            match proc::stat(self.target.root.pid()) {
                Ok(stat) if self.target.root.is(&stat) => found.push(stat),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
            return Ok(found);
        }
        self.read_all()?;
        self.mark_never();
        for i in 0..self.rows.len() {
            let stat = self.rows[i].stat;
            if self.rows[i].belongs == Belongs::Open && self.known.iter().any(|id| id.is(&stat)) {
                self.rows[i].belongs = Belongs::Run;
                found.push(stat);
            }
        }
        // Known first, root foremost, in the order in which they were found.
        found.sort_by_key(|stat| self.known.iter().position(|id| id.is(stat)));
        match self.scope {
            Scope::Process => {}
            Scope::Group => self.find_group(&mut found),
            Scope::Tree => self.find_tree(&mut found),
        }
        for stat in &found {
            if !self.known.iter().any(|id| id.is(stat)) {
                self.known.push(ProcId::from(stat));
            }
        }
        Ok(found)
    }

    fn read_all(&mut self) -> io::Result<()> {
        proc::pids(&mut self.pids)?;
        self.rows.clear();
        for &pid in &self.pids {
            match proc::stat(pid) {
                Ok(stat) => self.rows.push(Row {
                    stat,
                    belongs: Belongs::Open,
                }),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        self.rows.sort_unstable_by_key(|row| row.stat.pid);
        Ok(())
    }

    fn index(&self, pid: i32) -> Option<usize> {
        self.rows
            .binary_search_by_key(&pid, |row| row.stat.pid)
            .ok()
    }

    /// Marks whom no rule may reach.
    fn mark_never(&mut self) {
        let mut pid = self.own_pid;
        // Bounded by the number of rows: numbers reused during the scan could
        // otherwise make a circle.
        for _ in 0..=self.rows.len() {
            let Some(i) = self.index(pid) else { break };
            self.rows[i].belongs = Belongs::Never;
            pid = self.rows[i].stat.ppid;
        }
        for row in &mut self.rows {
            if row.stat.pid == 1 || row.stat.kernel_thread {
                row.belongs = Belongs::Never;
            }
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
        // Groups and sessions that were made inside, by number.
        let mut groups: HashSet<i32> = HashSet::new();
        let mut sessions: HashSet<i32> = HashSet::new();
        let mut judged = 0;
        loop {
            while let Some(stat) = found.get(judged).copied() {
                judged += 1;
                let Some(own) = own else { continue };
                if stat.pgrp != own.pgrp && self.made_inside(stat.pgrp, |s| s.pgrp) {
                    groups.insert(stat.pgrp);
                }
                if stat.session != own.session && self.made_inside(stat.session, |s| s.session) {
                    sessions.insert(stat.session);
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
                    || groups.contains(&stat.pgrp)
                    || sessions.contains(&stat.session)
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
            None => self.known.iter().any(|id| id.pid() == stat.ppid),
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
        if number == root.pid() || self.known.iter().any(|id| id.pid() == number) {
            return true;
        }
        self.rows
            .iter()
            .filter(|row| of(&row.stat) == number)
            .all(|row| row.belongs != Belongs::Never && row.stat.start_ticks >= root.start_ticks())
    }

    /// Finds orphans that hold one of the run's pipes.
    fn find_by_pipe(&mut self, found: &mut Vec<Stat>) -> bool {
        if self.target.pipes.is_empty() {
            return false;
        }
        let inodes: Vec<u64> = self.target.pipes.iter().map(|p| p.id.inode()).collect();
        let mut any = false;
        for i in 0..self.rows.len() {
            let Row { stat, belongs } = self.rows[i];
            if belongs != Belongs::Open
                || stat.start_ticks < self.target.root.start_ticks()
                || stat.is_gone()
                || self.strangers.contains(&(stat.pid, stat.start_ticks))
                || self.descends_from_other_child(&stat)
            {
                continue;
            }
            let (mut theirs, mut ours) = (false, false);
            let seen = proc::each_pipe(stat.pid, &inodes, &mut |fd| {
                for pipe in &self.target.pipes {
                    if pipe.id.inode() != fd.inode {
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
                continue;
            }
            // Who holds our end as well is a copy of our own process: forked
            // by another thread, on its way to an exec that closes them.
            if theirs && !ours {
                self.rows[i].belongs = Belongs::Run;
                found.push(stat);
                any = true;
            } else if !ours {
                self.strangers.insert((stat.pid, stat.start_ticks));
            }
        }
        any
    }

    /// Whether it is below us by way of a child that is not of this run.
    ///
    /// Our direct children are that themselves, unless orphans come to us: then
    /// a direct child can be anyone's, and its pipes decide.
    fn descends_from_other_child(&self, stat: &Stat) -> bool {
        let mut at = *stat;
        for depth in 0..self.rows.len() {
            if at.ppid == self.own_pid {
                return depth > 0 || !self.inherits;
            }
            match self.index(at.ppid) {
                Some(parent) => at = self.rows[parent].stat,
                None => return false,
            }
        }
        false
    }
}
