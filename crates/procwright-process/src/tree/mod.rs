//! The processes that belong to a run, found again and again.
//!
//! # Why nobody else is ever taken for one of them
//!
//! What `/proc` shows is numbers, and a number may be another process's a moment
//! later: where there are few of them, within a clock tick, so that not even number and
//! start time name one process. Three facts of the kernel stand against that:
//!
//! 1. A pidfd means one process for ever. While that is not reaped, its number is its own;
//!    so what was read by the number *between* opening the pidfd and finding the process
//!    not reaped was read of it ([`ProcessHandle::hold`]).
//! 2. A number is given away only when no process, zombies included, has it as its own
//!    number, its group or its session. So while the maker of a group is not reaped, or
//!    its group has a member, that group's number means this group.
//! 3. A process gets its session from its parent or makes it; nobody can join one.
//!
//! A survey reads the numbers of all processes, which is no more than a search for
//! candidates. `Claim` has the rules; each is proven of the candidate in
//! the order *hold it, read it, find it not reaped, find that the anchor of the rule has its
//! number still*. So when the rule's numbers were read, each meant what
//! it was taken for. What cannot be proven is not signalled; what may belong to the run
//! nevertheless is told ([`ProcessTree::doubtful`]).

mod claim;
mod member;
mod scan;

use std::collections::{HashMap, HashSet};
use std::io;

use crate::Scope;
use crate::holders::RunPipe;
use crate::orphans;
use crate::proc_id::ProcId;
use crate::process_handle::ProcessHandle;
use procwright_os::proc::{self, Comm, ProcStat};

pub(crate) use member::Member;
use scan::{Membership, ProcessRow};

/// What a run is recognised by.
#[derive(Clone, Debug)]
pub struct StopTarget {
    /// The program that was started. It may have ended and been reaped.
    pub root: ProcId,
    /// The pipes between the run and this process that are still open.
    pub pipes: Vec<RunPipe>,
    /// The session in which the root was started, if that is known: any other session of
    /// a descendant was made by the run.
    pub session: Option<i32>,
    /// Whose the orphans are that become children of this process.
    pub orphans: Orphans,
}

/// Whose the orphans are that become children of this process.
#[derive(Clone, Debug, Default)]
pub enum Orphans {
    /// None come here, or anybody's do.
    #[default]
    Unknown,
    /// The run's: this process makes one run at a time, is a sub-reaper
    /// (`PR_SET_CHILD_SUBREAPER`), and had no child when it started the root.
    OfRun,
    /// The run's, or of those who were children of this process before.
    Mixed(Vec<ProcId>),
}

impl Orphans {
    /// What they will be if this process, a sub-reaper, starts a program now.
    pub fn of_a_run_from_now() -> Orphans {
        match orphans::children() {
            Some(before) if before.is_empty() => Orphans::OfRun,
            Some(before) => {
                let stats = before.into_iter().filter_map(|pid| proc::stat(pid).ok());
                Orphans::Mixed(stats.map(|stat| ProcId::from(&stat)).collect())
            }
            None => Orphans::Unknown,
        }
    }
}

/// The processes of a run.
///
/// Under [`Scope::Tree`] a process belongs to the run if it
///
/// 1. is the root, or was found before;
/// 2. is a child of one that belongs;
/// 3. is in a session that was made by one that belongs;
/// 4. is in a process group that was made by one that was seen to belong, and that no
///    other child of this process has joined;
/// 5. holds the program's end of one of the run's pipes and not this process's, and was
///    started after the root;
/// 6. is a child of this process, and all of these are the run's ([`Orphans`]).
///
/// 3 to 6 find orphans: processes whose parent has ended, so that the system
/// shows init as their parent. One that made no group, holds no pipe and cannot
/// be adopted is not found. Nothing in the system tells whose it was. (A mark in
/// the environment would, but the program sees it, can remove it, and an empty
/// environment would not be empty.)
///
/// Never members are: this process, its watchdog and its ancestors, process 1, kernel
/// threads, and by 4 and 5 descendants of another child of this process.
#[derive(Debug)]
pub struct ProcessTree {
    target: StopTarget,
    scope: Scope,
    own_pid: i32,
    /// Whether orphaned descendants become children of this process, not of process 1.
    inherits: bool,
    /// All members so far, the root first if it was there.
    members: Vec<Member>,
    has_root: bool,
    /// The latest member that has or had a number.
    by_number: HashMap<i32, usize>,
    /// Processes that were seen without any of the pipes. They are not looked at
    /// again: a descriptor comes by fork, at once, or through a socket, which is no
    /// reason to be killed.
    without_pipes: HashSet<(i32, u64)>,
    /// The latest survey may have missed a process.
    cut: bool,
    /// Every survey may, for tests of what follows from that.
    #[cfg(test)]
    pub(crate) always_cut: bool,
    // Found anew by each survey, and kept for their memory alone.
    ancestors: Vec<i32>,
    rows: Vec<ProcessRow>,
    by_pid: HashMap<i32, usize>,
}

impl ProcessTree {
    /// The processes of `target`, of which none but the root is known yet. `root` is
    /// none if nothing of it can be had any more. It may be reaped: its descriptor tells
    /// of its group even then.
    pub fn new(target: StopTarget, scope: Scope, root: Option<ProcessHandle>) -> ProcessTree {
        let mut this = ProcessTree {
            inherits: !matches!(target.orphans, Orphans::Unknown) || proc::inherits_orphans(),
            scope,
            own_pid: rustix::process::getpid().as_raw_nonzero().get(),
            members: Vec::new(),
            by_number: HashMap::new(),
            without_pipes: HashSet::new(),
            cut: false,
            #[cfg(test)]
            always_cut: false,
            has_root: root.is_some(),
            ancestors: Vec::new(),
            rows: Vec::new(),
            by_pid: HashMap::new(),
            target,
        };
        if let Some(handle) = root {
            let stat = handle.stat();
            let (name, state) = stat.map_or((Comm::new(b"?"), '?'), |s| (s.name, s.state));
            this.push(Member {
                gone: handle.has_exited(),
                handle,
                name,
                state,
                descends: true,
            });
        }
        this
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(crate) fn members_mut(&mut self) -> &mut [Member] {
        &mut self.members
    }

    /// The place of the member that has this number now.
    pub(crate) fn place_of(&self, pid: i32) -> Option<usize> {
        let place = self.by_number.get(&pid).copied();
        place.filter(|&place| !self.members[place].handle.is_reaped())
    }

    /// The root, unless nothing of it could be had at first.
    pub(crate) fn root(&self) -> Option<&Member> {
        self.members.first().filter(|_| self.has_root)
    }

    /// Whether the latest survey may have missed a process, because processes came and
    /// went faster than it looked.
    pub(crate) fn was_cut(&self) -> bool {
        #[cfg(test)]
        if self.always_cut {
            return true;
        }
        self.cut
    }

    /// Finds the members. A look, and no more.
    ///
    /// # Errors
    /// Those of a failed list of the processes: no `/proc`, or no descriptor free.
    pub fn look(&mut self) -> io::Result<()> {
        self.survey(&mut |_, _| {}).map(drop)
    }

    /// The living members that were found, as `/proc` shows them now.
    pub fn living(&self) -> Vec<ProcStat> {
        let living = self.members.iter().filter(|member| !member.gone);
        living
            .filter_map(|member| member.handle.stat().ok())
            .collect()
    }

    /// The processes that may hold one of the pipes, as of the latest look: those that were
    /// started since the root, and not seen without a pipe. Who is older could have one
    /// only through a socket, and belongs to nobody who is stopped.
    pub fn possible_holders(&self) -> Vec<i32> {
        let since = self.target.root.start_ticks();
        let young = self.rows.iter().map(|row| &row.stat).filter(|stat| {
            stat.start_ticks >= since
                && stat.pid != self.own_pid
                && !stat.kernel_thread
                && !stat.is_gone()
                && !self.without_pipes.contains(&(stat.pid, stat.start_ticks))
        });
        young.map(|stat| stat.pid).collect()
    }

    /// Brings the members up to date, and returns the places of those that were seen,
    /// parents before their children.
    ///
    /// `seen` is called for each that has not ended as soon as it is known to be one,
    /// mostly some microseconds after it was read: a process that lives for less than a
    /// survey takes can be caught only so.
    ///
    /// The result is no snapshot; the module `stop` says how a changing tree is caught.
    ///
    /// # Errors
    /// If the processes cannot be listed: no `/proc`, or no descriptor free.
    pub(crate) fn survey(
        &mut self,
        seen: &mut dyn FnMut(usize, &mut Member),
    ) -> io::Result<Vec<usize>> {
        self.cut = false;
        if self.scope == Scope::Process {
            return self.look_at_root(seen);
        }
        let mut found = Vec::new();
        self.read_all(&mut found, seen)?;
        self.find_the_rest(&mut found, seen);
        self.release_numbers();
        found.sort_by_cached_key(|(row, _)| self.depth(&self.rows[*row].stat));
        Ok(found.into_iter().map(|(_, member)| member).collect())
    }

    fn look_at_root(&mut self, seen: &mut dyn FnMut(usize, &mut Member)) -> io::Result<Vec<usize>> {
        let Some(root) = self.members.first_mut().filter(|_| self.has_root) else {
            return Ok(Vec::new());
        };
        match root.handle.stat() {
            Ok(stat) => {
                root.state = stat.state;
                if !stat.is_gone() {
                    seen(0, root);
                }
                Ok(vec![0])
            }
            Err(e) if is_gone(&e) => Ok(Vec::new()),
            Err(e) => Err(e),
        }
    }

    fn push(&mut self, member: Member) -> usize {
        let place = self.members.len();
        self.by_number.insert(member.pid(), place);
        self.members.push(member);
        place
    }

    /// Lets go of ended members whose numbers no process has as its group or session.
    fn release_numbers(&mut self) {
        let mut used: HashSet<i32> = HashSet::new();
        for row in &self.rows {
            used.insert(row.stat.pgrp);
            used.insert(row.stat.session);
        }
        for (place, member) in self.members.iter_mut().enumerate() {
            let pid = member.pid();
            // The root stays: its descriptor means its group, also after its end.
            if !member.gone || used.contains(&pid) || (place == 0 && self.has_root) {
                continue;
            }
            member.handle.release();
            if self.by_number.get(&pid) == Some(&place) {
                self.by_number.remove(&pid);
            }
        }
    }

    /// The number of members above it.
    fn depth(&self, stat: &ProcStat) -> usize {
        let mut ppid = stat.ppid;
        // Bounded, because numbers reused during the scan could make a circle.
        (0..self.rows.len())
            .find(|_| match self.index(ppid).map(|i| &self.rows[i]) {
                Some(ProcessRow {
                    stat,
                    membership: Membership::Member(_),
                }) => {
                    ppid = stat.ppid;
                    false
                }
                _ => true,
            })
            .unwrap_or(0)
    }
}

/// Whether a look has failed because the process is no more.
fn is_gone(error: &io::Error) -> bool {
    let gone = rustix::io::Errno::SRCH.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(gone)
}
