//! The plan of a start: every byte that is needed between clone and exec, from a [`Spec`].

use std::os::fd::RawFd;

use crate::error::{SpawnError, Step};
use crate::spec::{Launch, Spec};
use procwright_os::proc;
use procwright_os::spawn::{
    self, Action, Cgroup, FailedStep, FdSource, PidVariable, Plan, Spawned,
};
use procwright_process::Scope;

/// Makes the finished plan. The order of the actions is that of [`Step`].
/// `terminal` is what the program does about one, if anything.
pub(super) fn plan(
    launch: Launch,
    spec: &Spec,
    placements: &[(RawFd, RawFd)],
    terminal: Option<Action>,
    cgroup: Option<Cgroup>,
    signed: Vec<PidVariable>,
) -> Plan {
    let mut actions = Vec::with_capacity(16);
    if spec.own_session() {
        // A session leader leads its own group, and may not change it.
        actions.push(Action::Setsid);
    } else if spec.own_group() {
        actions.push(Action::Setpgid(0));
    } else if let Some(group) = spec.process_group {
        actions.push(Action::Setpgid(group));
    } else if spec.stop.scope() == Scope::Tree && proc::is_missing() {
        // Where no tree can be seen a stop is for the group.
        actions.push(Action::Setpgid(0));
    }
    // The terminal comes before `place`, which may overwrite its descriptor.
    actions.extend(terminal);
    place(placements, &mut actions);
    actions.extend(launch.settings);
    Plan {
        actions,
        cgroup,
        programs: launch.programs,
        argv: launch.argv,
        env: launch.env,
        signed,
        changes_credentials: launch.changes_credentials,
    }
}

/// Moves every descriptor to its number without overwriting one that is still
/// needed: a source that is also a target is first copied out of the way.
fn place(placements: &[(RawFd, RawFd)], actions: &mut Vec<Action>) {
    let above = placements
        .iter()
        .map(|(_, to)| to.saturating_add(1))
        .max()
        .unwrap_or(3)
        .max(3);
    let in_the_way = |from: RawFd| placements.iter().any(|&(f, to)| to == from && f != to);
    let mut sources = Vec::with_capacity(placements.len());
    let mut slot = 0;
    for &(from, _) in placements {
        if in_the_way(from) {
            actions.push(Action::Park { from, above, slot });
            sources.push(FdSource::Slot(slot));
            slot += 1;
        } else {
            sources.push(FdSource::Fd(from));
        }
    }
    // CloseFrom comes before the placing, which clears close-on-exec for what is passed.
    actions.push(Action::CloseFrom(3));
    for (&(_, to), from) in placements.iter().zip(sources) {
        actions.push(Action::Place { from, to });
    }
}

/// Starts the program of the plan.
pub(super) fn spawn(plan: &Plan) -> Result<Spawned, SpawnError> {
    spawn::spawn(plan).map_err(|failed| match failed {
        FailedStep::Clone(error) => SpawnError::new(Step::Clone, "", error),
        FailedStep::Cgroup(error) => SpawnError::new(Step::Cgroup, "", error),
        FailedStep::Action(index, error) => {
            let (step, object) = plan
                .actions
                .get(index)
                .map_or((Step::Exec, String::new()), describe);
            SpawnError::new(step, object, error)
        }
        FailedStep::Exec(error) => {
            let program = plan.argv.first().map(|program| program.to_string_lossy());
            SpawnError::new(Step::Exec, program.unwrap_or_default(), error)
        }
    })
}

/// The step that an action is, and what it is about.
fn describe(action: &Action) -> (Step, String) {
    let text = |number: &dyn std::fmt::Display| number.to_string();
    match action {
        Action::Setsid => (Step::Setsid, String::new()),
        Action::ControllingTerminal(_) => (Step::ControllingTerminal, String::new()),
        Action::Setpgid(group) => (Step::Setpgid, text(group)),
        // An error of this step is ignored in the child.
        Action::Foreground { .. } => (Step::Setpgid, String::new()),
        Action::Rlimit { soft, hard, .. } => (Step::Rlimit, format!("{soft}:{hard}")),
        Action::Nice(value) => (Step::Nice, text(value)),
        // What these are about is said as the caller has, by `advice`.
        Action::OomScoreAdj(_) => (Step::OomScoreAdj, String::new()),
        Action::SchedPolicy { .. } => (Step::SchedPolicy, String::new()),
        Action::IoPriority(_) => (Step::IoPriority, String::new()),
        Action::CpuAffinity(_) => (Step::CpuAffinity, String::new()),
        Action::NewKeyring => (Step::NewKeyring, String::new()),
        Action::NoNewPrivs => (Step::NoNewPrivs, String::new()),
        Action::Chroot(directory) => (Step::Chroot, directory.to_string_lossy().into_owned()),
        Action::Setgroups(groups) => (Step::Setgroups, format!("{groups:?}")),
        Action::Setgid(gid) => (Step::Setgid, text(gid)),
        Action::Setuid(uid) => (Step::Setuid, text(uid)),
        Action::DieWithParent { .. } => (Step::DieWithParent, String::new()),
        Action::Chdir(directory) => (Step::Chdir, directory.to_string_lossy().into_owned()),
        Action::Umask(mask) => (Step::Umask, format!("{mask:o}")),
        Action::CloseFrom(first) => (Step::CloseRange, text(first)),
        Action::Park { from, .. } => (Step::Dup, text(from)),
        Action::Place { to, .. } => (Step::Dup, text(to)),
        Action::ResetSignals { .. } => (Step::Signals, String::new()),
    }
}
