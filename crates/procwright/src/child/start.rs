//! The start of a program: the part that a run and a spawn have in common.
//!
//! It has two halves. Whatever may be refused is had in the first: files, pipes, and what
//! the caller makes in between, such as threads. In the second there is nothing left but
//! the process itself, so a program that runs has somebody who holds it.

use super::child_process::ChildProcess;
use super::foreground::ForegroundTerminal;
use super::inheritance::Inheritances;
use super::stdio::{JoinEnds, OurEnds, StdioEnds};
use super::unstarted::Unstarted;
use super::{advice, plan, spawner, stdio};
use crate::error::{SpawnError, Step};
use crate::quote::quote;
use crate::spec::{Launch, Spec};
use crate::trace::Trace;
use procwright_liveness::inherited::Inheritance;
use procwright_os::job_control;
use procwright_os::oom::OomCount;
use procwright_os::spawn::{Action, Cgroup, Plan};
use procwright_process::joined_groups;

/// A start that only the process is missing for.
pub(crate) struct PreparedStart<'a> {
    spec: &'a Spec,
    plan: Plan,
    ends: StdioEnds,
    /// Descriptors that the plan names.
    _inheritances: Inheritances,
    foreground: Option<ForegroundTerminal>,
    trace: Trace,
}

/// A start that was refused, with what its program would have got. Whoever is at the other
/// ends of its pipes sees no end of them before this goes.
pub(crate) struct RefusedStart {
    pub(crate) unstarted: Unstarted,
    _ends: StdioEnds,
}

impl From<Box<RefusedStart>> for Unstarted {
    fn from(refused: Box<RefusedStart>) -> Unstarted {
        refused.unstarted
    }
}

/// Opens all that the program of `spec` needs, with a pipe for stdin if `feeds`, but for what
/// is joined to others. `channel` is the program's end of one.
pub(crate) fn prepare(
    spec: &Spec,
    launch: Launch,
    feeds: bool,
    joins: JoinEnds,
    channel: Option<Inheritance>,
    trace: Trace,
) -> Result<PreparedStart<'_>, Unstarted> {
    let opened = open(spec, launch, feeds, joins, channel, trace);
    opened.map_err(|unstarted| given_up(unstarted, spec, trace))
}

/// A start that is given up: an error gets advice, and the trace is told.
pub(crate) fn given_up(unstarted: impl Into<Unstarted>, spec: &Spec, trace: Trace) -> Unstarted {
    let unstarted = match unstarted.into() {
        Unstarted::Spawn(error) => advice::add_to(error, spec).into(),
        other => other,
    };
    match &unstarted {
        Unstarted::Invalid(error) => trace.not_started(&spec.argv, error),
        Unstarted::Spawn(error) => trace.not_started(&spec.argv, error),
        Unstarted::Cancelled => trace.not_started(&spec.argv, &"cancelled"),
    }
    unstarted
}

fn open(
    spec: &Spec,
    launch: Launch,
    feeds: bool,
    joins: JoinEnds,
    channel: Option<Inheritance>,
    trace: Trace,
) -> Result<PreparedStart<'_>, Unstarted> {
    let ends = stdio::open(spec, feeds, joins)?;
    let cgroup = spec
        .cgroup
        .as_ref()
        .map(|path| Cgroup::open(path))
        .transpose();
    let cgroup = cgroup.map_err(|error| SpawnError::new(Step::Cgroup, "", error))?;
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
        cgroup,
        inheritances.environment()?,
    );
    Ok(PreparedStart {
        spec,
        plan,
        ends,
        _inheritances: inheritances,
        foreground,
        trace,
    })
}

impl PreparedStart<'_> {
    /// Takes the ends that stay with us. They have to be kept until the program has started.
    pub(crate) fn take_ends(&mut self) -> OurEnds {
        std::mem::take(&mut self.ends.ours)
    }

    /// Gives the start up.
    pub(crate) fn give_up(self, unstarted: impl Into<Unstarted>) -> Box<RefusedStart> {
        Box::new(RefusedStart {
            unstarted: given_up(unstarted, self.spec, self.trace),
            _ends: self.ends,
        })
    }

    /// Starts the program.
    pub(crate) fn start(self) -> Result<ChildProcess, Box<RefusedStart>> {
        let PreparedStart {
            spec,
            plan,
            ends,
            _inheritances,
            foreground,
            trace,
        } = self;
        let session = job_control::own_session();
        let joined = spec.process_group.filter(|group| *group > 0);
        // Before it is there: a stop by another thread may look at any time.
        joined.inspect(|group| joined_groups::note(*group, None));
        let spawned = if spec.die_with_parent.is_some() {
            spawner::spawn(plan)
        } else {
            plan::spawn(&plan)
        };
        let spawned = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                let unstarted = given_up(error, spec, trace);
                return Err(Box::new(RefusedStart {
                    unstarted,
                    _ends: ends,
                }));
            }
        };
        joined.inspect(|group| joined_groups::note(*group, Some(spawned.pid)));
        // Another thread may have changed it meanwhile.
        let session = session.filter(|session| job_control::own_session() == Some(*session));
        // The child's ends are closed here: from now on the end of a stream, or of a queue's
        // last sender, means that the program and its heirs have closed it.
        drop(ends);
        trace.say(|| format!("start pid {}: {}", spawned.pid, quote(&spec.argv)));
        let foreground = foreground.map(|terminal| terminal.lent_to(spawned.pid));
        // Not before: the program has begun meanwhile, and nothing waits for this.
        let oom_count = OomCount::now(spec.cgroup.as_deref());
        let child = ChildProcess::new(spawned, session, foreground, oom_count, trace);
        Ok(child)
    }
}
