//! The start of a program: the part that a run and a spawn have in common.

use super::child_process::ChildProcess;
use super::foreground::ForegroundTerminal;
use super::inheritance::Inheritances;
use super::stdio::OurEnds;
use super::unstarted::Unstarted;
use super::{plan, spawner, stdio};
use crate::quote::quote;
use crate::spec::{Launch, Spec};
use crate::trace::Trace;
use procwright_liveness::inherited::Inheritance;
use procwright_os::job_control;
use procwright_os::spawn::Action;
use procwright_process::joined_groups;

/// Starts the program of `spec`, with a pipe for stdin if `feeds`. Calls `now` when
/// everything is open, which may have taken its time, and only the start is left.
/// `channel` is the program's end of one.
pub(crate) fn start(
    spec: &Spec,
    launch: Launch,
    feeds: bool,
    channel: Option<Inheritance>,
    trace: Trace,
    now: impl FnOnce(),
) -> Result<(ChildProcess, OurEnds), Unstarted> {
    let started = start_untraced(spec, launch, feeds, channel, trace, now);
    match &started {
        Ok((running, _)) => {
            trace.say(|| format!("start pid {}: {}", running.pid(), quote(&spec.argv)));
        }
        Err(Unstarted::Invalid(error)) => trace.not_started(&spec.argv, error),
        Err(Unstarted::Spawn(error)) => trace.not_started(&spec.argv, error),
    }
    started
}

fn start_untraced(
    spec: &Spec,
    launch: Launch,
    feeds: bool,
    channel: Option<Inheritance>,
    trace: Trace,
    now: impl FnOnce(),
) -> Result<(ChildProcess, OurEnds), Unstarted> {
    let ends = stdio::open(spec, feeds)?;
    let foreground = ForegroundTerminal::for_spec(spec);
    let terminal = match ends.terminal() {
        Some(own) => Some(Action::ControllingTerminal(own)),
        None => foreground.as_ref().map(ForegroundTerminal::action),
    };
    let inheritances = Inheritances::new(spec, channel);
    let mut placements = ends.placements.clone();
    placements.extend(inheritances.placements());
    let plan = plan::plan(
        launch,
        spec,
        &placements,
        terminal,
        inheritances.environment()?,
    );
    now();
    let session = job_control::own_session();
    let joined = spec.process_group.filter(|group| *group > 0);
    // Before it is there: a stop by another thread may look at any time.
    joined.inspect(|group| joined_groups::note(*group, None));
    let spawned = if spec.die_with_parent.is_some() {
        spawner::spawn(plan)
    } else {
        plan::spawn(&plan)
    };
    let spawned = spawned.map_err(|error| plan::add_hint(error, spec))?;
    joined.inspect(|group| joined_groups::note(*group, Some(spawned.pid)));
    // Another thread may have changed it meanwhile.
    let session = session.filter(|session| job_control::own_session() == Some(*session));
    let foreground = foreground.map(|terminal| terminal.lent_to(spawned.pid));
    // The child's ends are closed here, with `ends`: from now on the end of a stream, or
    // of a queue's last sender, means that the program and its heirs have closed it.
    Ok((
        ChildProcess::new(spawned, session, foreground, trace),
        ends.ours,
    ))
}
