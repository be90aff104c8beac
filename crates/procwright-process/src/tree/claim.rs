//! The rules by which a process belongs to a run, and the proof of each.

use std::collections::{HashMap, HashSet};

use super::scan::{Found, Membership, ProcessRow};
use super::{Member, Orphans, ProcessTree};
use crate::holders::{Role, RunPipe};
use crate::process_handle::ProcessHandle;
use crate::{Scope, joined_groups};
use procwright_os::proc::{self, ProcStat};
use procwright_os::{job_control, watchdog};

/// What numbers suggest of a process. The places are those of members.
#[derive(Clone, Copy, Debug)]
pub(super) enum Claim {
    /// Its parent is this member. *Anchor:* the member, not reaped.
    ///
    /// A parent is the process that forked it, or an ancestor of that which adopts
    /// orphans: in either case it descends from the member.
    ChildOf(usize),
    /// Its session was made by this member, which has the session's number. *Anchor:*
    /// the member's number is still its own.
    SessionOf(usize),
    /// It is in the session of this member, which descends from the root and is not in
    /// the session that the root was started in. So a process between the two made that
    /// session, and everybody in it descends from that one. *Anchor:* the member, in the
    /// session still.
    SessionWith(usize),
    /// Its group was made by this member, which has the group's number. *Anchor:* as for
    /// a session.
    ///
    /// Groups can be joined, by processes of the same session. So it may not descend
    /// from another child of ours, and nobody may be known to have joined. A
    /// group of which no maker was seen proves nothing.
    GroupOf(usize),
    /// It is an orphan that came to this process. *Anchor:* this process.
    Adopted,
}

impl ProcessTree {
    /// Looks at a living process before all rows are read, and takes it in if it belongs.
    pub(super) fn judge_at_sight(
        &mut self,
        row: usize,
        found: &mut Found,
        seen: &mut dyn FnMut(usize, &mut Member),
    ) {
        let stat = self.rows[row].stat;
        // All members are younger than the root, which alone rules out nearly all
        // processes of a machine.
        if stat.start_ticks < self.target.root.start_ticks() {
            return;
        }
        let none = HashMap::new();
        // Groups are judged when it is known who else is in them.
        let is_candidate = self
            .claims(&stat, &none)
            .any(|claim| !matches!(claim, Claim::GroupOf(_)));
        if !(is_candidate && self.admit(row, &none, found, seen)) && self.holds_pipe(&stat) {
            self.admit_by_pipe(row, found, seen);
        }
    }

    /// What the numbers of a process suggest.
    fn claims(
        &self,
        stat: &ProcStat,
        witnesses: &HashMap<i32, usize>,
    ) -> impl Iterator<Item = Claim> + use<> {
        let is_tree = self.scope == Scope::Tree;
        let is_of_scope = is_tree || (self.has_root && stat.pgrp == self.target.root.pid());
        let member = |number: i32| self.by_number.get(&number).copied();
        let adopts = matches!(self.target.orphans, Orphans::OfRun);
        let of_tree = [
            member(stat.session).map(Claim::SessionOf),
            witnesses
                .get(&stat.session)
                .copied()
                .map(Claim::SessionWith),
            (stat.ppid == self.own_pid && adopts).then_some(Claim::Adopted),
        ];
        let of_any = [
            member(stat.ppid).map(Claim::ChildOf),
            member(stat.pgrp).map(Claim::GroupOf),
        ];
        let of_tree = of_tree.into_iter().flatten().filter(move |_| is_tree);
        let of_any = of_any.into_iter().flatten().filter(move |_| is_of_scope);
        of_tree.chain(of_any)
    }

    /// Takes the process of a row in as a member, if what its numbers suggest can be
    /// proven.
    fn admit(
        &mut self,
        row: usize,
        witnesses: &HashMap<i32, usize>,
        found: &mut Found,
        seen: &mut dyn FnMut(usize, &mut Member),
    ) -> bool {
        let Some((handle, stat)) = ProcessHandle::hold(&self.rows[row].stat) else {
            // Gone since it was read, and nobody knows whom it has left.
            self.cut = true;
            return false;
        };
        let mut claims = self.claims(&stat, witnesses);
        let Some(descends) = claims.find_map(|claim| self.prove(claim, &stat)) else {
            return false;
        };
        self.take_in(row, handle, stat, descends, found, seen);
        true
    }

    /// Takes in a process that was seen to hold a pipe, if it is the one that does.
    fn admit_by_pipe(
        &mut self,
        row: usize,
        found: &mut Found,
        seen: &mut dyn FnMut(usize, &mut Member),
    ) -> bool {
        let Some((handle, stat)) = ProcessHandle::hold(&self.rows[row].stat) else {
            self.cut = true;
            return false;
        };
        // Descriptors are read by number, so it has to be there still.
        if !self.holds_pipe(&stat) || handle.is_reaped() {
            self.cut = true;
            return false;
        }
        self.take_in(row, handle, stat, false, found, seen);
        true
    }

    fn take_in(
        &mut self,
        row: usize,
        mut handle: ProcessHandle,
        stat: ProcStat,
        descends: bool,
        found: &mut Found,
        seen: &mut dyn FnMut(usize, &mut Member),
    ) {
        handle.release_if_scarce();
        let place = self.push(Member {
            gone: stat.is_gone(),
            handle,
            name: stat.name,
            state: stat.state,
            descends,
        });
        self.rows[row].stat = stat;
        self.see(row, place, found, seen);
    }

    /// Proves a claim of a process that is held, and was read as `stat` while it was.
    /// Whether forks alone lead to it from the root; none if there is no proof.
    fn prove(&self, claim: Claim, stat: &ProcStat) -> Option<bool> {
        let (is_proven, descends) = match claim {
            Claim::ChildOf(place) => {
                let parent = &self.members[place];
                let is_child = stat.ppid == parent.pid() && !parent.handle.is_reaped();
                (is_child, parent.descends)
            }
            Claim::SessionOf(place) => {
                let leader = &self.members[place];
                let is_its = stat.session == leader.pid() && leader.keeps_number();
                (is_its, leader.descends)
            }
            Claim::SessionWith(place) => {
                let witness = &self.members[place];
                // This look fails if the witness is reaped.
                let still = witness.handle.stat().ok()?;
                let is_same = still.session == stat.session && self.made_session(witness, &still);
                (is_same, true)
            }
            Claim::GroupOf(place) => {
                let leader = &self.members[place];
                let is_its = stat.pgrp == leader.pid() && leader.keeps_number();
                (is_its && self.may_be_of_group(stat), false)
            }
            Claim::Adopted => (
                stat.ppid == self.own_pid && !watchdog::is_watchdog(stat.pid),
                true,
            ),
        };
        is_proven.then_some(descends)
    }

    /// Whether the session of a member was made by the run because the run began in
    /// another one.
    fn made_session(&self, member: &Member, stat: &ProcStat) -> bool {
        let began_in = self.target.session;
        member.descends
            && stat.session > 0
            && began_in.is_some_and(|session| session != stat.session)
            // This process may have made a session for itself since.
            && job_control::own_session() != Some(stat.session)
    }

    /// Goes on until no rule finds another member among the rows.
    pub(super) fn find_the_rest(
        &mut self,
        found: &mut Found,
        seen: &mut dyn FnMut(usize, &mut Member),
    ) {
        let mut makers = None;
        loop {
            let before = found.len();
            let witnesses = self.witnesses(found);
            for row in 0..self.rows.len() {
                if !self.is_open(row) {
                    continue;
                }
                let stat = self.rows[row].stat;
                // A zombie is nobody to signal, but may be the maker of a group.
                let is_wanted = !stat.is_gone()
                    || makers
                        .get_or_insert_with(|| self.makers())
                        .contains(&stat.pid);
                if is_wanted && self.claims(&stat, &witnesses).next().is_some() {
                    self.admit(row, &witnesses, found, seen);
                }
            }
            if found.len() == before && !self.find_by_pipe(found, seen) {
                return;
            }
        }
    }

    /// Whether nothing is known of the process of a row, and it is young enough.
    fn is_open(&self, row: usize) -> bool {
        let ProcessRow { stat, membership } = &self.rows[row];
        *membership == Membership::Unknown && stat.start_ticks >= self.target.root.start_ticks()
    }

    /// A member for each session that the run has made.
    fn witnesses(&self, found: &Found) -> HashMap<i32, usize> {
        let mut witnesses = HashMap::new();
        for &(row, place) in found {
            let stat = &self.rows[row].stat;
            let member = &self.members[place];
            if self.made_session(member, stat) {
                witnesses.insert(stat.session, place);
            }
        }
        witnesses
    }

    /// The numbers that a process has as its group or session and another one as its own.
    /// A set, since a storm leaves thousands of zombies, each of which is asked for.
    fn makers(&self) -> HashSet<i32> {
        let of = |row: &ProcessRow| {
            let ProcStat {
                pid, pgrp, session, ..
            } = row.stat;
            [pgrp, session]
                .into_iter()
                .filter(move |&number| number != pid)
        };
        self.rows.iter().flat_map(of).collect()
    }

    /// Whether a process in a group of the run can have come there only by it.
    fn may_be_of_group(&self, stat: &ProcStat) -> bool {
        !self.descends_from_other_child(stat)
            && !joined_groups::has_joined(stat.pid)
            && !self.is_shared(stat.pgrp)
    }

    /// Whether somebody has joined the group who belongs to another child of ours: then
    /// an orphan in it may be that one's.
    fn is_shared(&self, group: i32) -> bool {
        joined_groups::is_joined(group) || {
            let mut members = self.rows.iter().filter(|row| row.stat.pgrp == group);
            members.any(|row| {
                row.membership == Membership::Unknown && self.descends_from_other_child(&row.stat)
            })
        }
    }

    /// Whether all processes in the root's group, as of the latest survey, are members,
    /// so that it may be signalled in one step.
    pub(crate) fn has_group_to_itself(&self) -> bool {
        let group = self.target.root.pid();
        !joined_groups::is_joined(group)
            && self.rows.iter().all(|row| {
                row.stat.pgrp != group
                    || row.stat.is_gone()
                    || matches!(row.membership, Membership::Member(_))
            })
    }

    /// The living processes that may belong to the run, as of the latest survey: orphans
    /// in a group or session that a member is in, which nobody can say the run has made
    /// or has to itself.
    pub(crate) fn doubtful(&self) -> Vec<ProcStat> {
        let Some(own) = self.index(self.own_pid).map(|i| self.rows[i].stat) else {
            return Vec::new();
        };
        // Where the root is and that it has not made itself was there before.
        let root = self
            .index(self.target.root.pid())
            .map(|i| self.rows[i].stat);
        let foreign = [
            Some(own.session),
            self.target.session,
            root.map(|stat| stat.session),
            Some(own.pgrp),
            root.map(|stat| stat.pgrp),
        ];
        let of_members = |row: &&ProcessRow| matches!(row.membership, Membership::Member(_));
        let mut groups: Vec<i32> = Vec::new();
        let mut sessions: Vec<i32> = Vec::new();
        for ProcessRow { stat, .. } in self.rows.iter().filter(of_members) {
            // A group or session whose maker is there and no member is a stranger's.
            let is_open = |number: i32| match self.index(number) {
                Some(i) => matches!(self.rows[i].membership, Membership::Member(_)),
                None => number > 1 && !foreign.contains(&Some(number)),
            };
            let is_tree = self.scope == Scope::Tree;
            let is_of_scope = |number: &i32| is_tree || *number == self.target.root.pid();
            groups.extend(Some(stat.pgrp).filter(|number| is_open(*number) && is_of_scope(number)));
            sessions.extend(Some(stat.session).filter(|number| is_open(*number) && is_tree));
        }
        let rows = (0..self.rows.len()).filter(|row| {
            let stat = &self.rows[*row].stat;
            self.is_open(*row)
                && !stat.is_gone()
                && (self.came_here(stat)
                    || ((groups.contains(&stat.pgrp) || sessions.contains(&stat.session))
                        && self.is_orphan(stat)
                        && !joined_groups::has_joined(stat.pid)
                        && !self.descends_from_other_child(stat)))
        });
        rows.map(|row| self.rows[row].stat).collect()
    }

    /// Whether it is an orphan that came to this process from the run or from somebody
    /// who was there before.
    fn came_here(&self, stat: &ProcStat) -> bool {
        let Orphans::Mixed(before) = &self.target.orphans else {
            return false;
        };
        stat.ppid == self.own_pid && !before.iter().any(|one| one.is(stat))
    }

    /// Whether its parent is one that gets orphans of the run: an ancestor of the run.
    fn is_orphan(&self, stat: &ProcStat) -> bool {
        let parent = self.index(stat.ppid).map(|i| self.rows[i].membership);
        stat.ppid <= 1 || matches!(parent, None | Some(Membership::Excluded))
    }

    /// Finds orphans that hold one of the pipes; false if there are none.
    fn find_by_pipe(
        &mut self,
        found: &mut Found,
        seen: &mut dyn FnMut(usize, &mut Member),
    ) -> bool {
        let mut any = false;
        if self.scope != Scope::Tree {
            return false;
        }
        for row in 0..self.rows.len() {
            let stat = self.rows[row].stat;
            if self.is_open(row) && self.holds_pipe(&stat) {
                any |= self.admit_by_pipe(row, found, seen);
            }
        }
        any
    }

    /// Whether a process holds the program's end of one of the pipes and not ours, and is
    /// not of another run. *Anchor:* the pipe's name, which is its own still
    /// ([`RunPipe::has_its_name`](crate::holders::RunPipe::has_its_name)).
    ///
    /// An exec in any child of ours closes both ends, but in the program its own. So who
    /// holds that one alone has it from the program.
    fn holds_pipe(&mut self, stat: &ProcStat) -> bool {
        let id = (stat.pid, stat.start_ticks);
        self.target.pipes.retain(RunPipe::has_its_name);
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
        if seen.is_err() || (!theirs && !ours) {
            // One that is about to end has closed its descriptors already, and may have left
            // a child where the scan had been.
            self.cut |= proc::stat(stat.pid).map_or(true, |now| now.is_gone());
        }
        if seen.is_err() {
            return false;
        }
        if !self.target.pipes.iter().all(RunPipe::has_its_name) {
            // What was seen may be another's terminal.
            return self.holds_pipe(stat);
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
    /// process: then it can be anyone's, and what else is known of it decides.
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
                Some(i) if matches!(self.rows[i].membership, Membership::Member(_)) => {
                    return false;
                }
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
