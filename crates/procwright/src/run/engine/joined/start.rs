//! The start of runs that are joined: of all, or of none.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::between::{Behind, Between};
use super::{JoinedRuns, Joint, JointHooks, Shape};
use crate::buffer::LongLine;
use crate::child::{self, JoinEnds, Unstarted};
use crate::error::{SpawnError, Step};
use crate::looks::Looks;
use crate::run::engine::run_state::Run;
use crate::run::engine::start::{check, prepare};
use crate::run::hooks::Hooks;
use crate::run::ticker::Ticker;
use crate::run::watch::Demand;
use crate::spec::Spec;
use crate::spool::Memory;
use crate::trace::Trace;
use procwright_os::pipe::{self, EndsProbe};
use procwright_os::time::Deadline;
use procwright_process::holders::PipeId;
use procwright_process::{Cancel, Stop};
use std::os::fd::{AsFd, OwnedFd};

/// The run that could not be started, by its place. Of the others nothing is left.
pub(crate) struct StageUnstarted {
    pub(crate) place: usize,
    pub(crate) unstarted: Unstarted,
}

/// A run that is to be joined to others.
pub(crate) struct JoinedStage<'a> {
    pub(crate) spec: Arc<Spec>,
    pub(crate) hooks: Hooks<'a>,
    /// What is to be between it and those that read it, if that is no mere pipe.
    pub(crate) behind: Option<Behind>,
}

/// Starts the runs, the stdout of each joined to the stdin of the next, or of all that stand side
/// by side behind it: these have a [`Behind::Fan`] before them. Those that stand side by side and
/// are read have nothing else behind them than the next, which reads all of them.
///
/// All that may be refused is had first: values, programs, pipes, files, threads. Then the last
/// program is started first, so that one which reads has got nothing if one before it cannot be
/// started. It is killed then, and sees no end of its input before: a program that takes an
/// empty input for a whole one (a mailer, a loader) must not have it.
///
/// `stdin` is a pipe for the first, in the place of what its spec says.
pub(crate) fn start_joined<'a, M: Memory>(
    stages: Vec<JoinedStage<'a>>,
    shape: Shape,
    stdin: Option<OwnedFd>,
    hooks: JointHooks<'a>,
) -> Result<JoinedRuns<'a, M>, StageUnstarted> {
    let at = |place| move |unstarted| StageUnstarted { place, unstarted };
    let mut specs = Vec::with_capacity(stages.len());
    let mut stage_hooks = Vec::with_capacity(stages.len());
    let mut behinds = Vec::with_capacity(stages.len());
    for stage in stages {
        specs.push(stage.spec);
        stage_hooks.push(stage.hooks);
        behinds.push(stage.behind);
    }
    let mut launches = Vec::with_capacity(specs.len());
    for (place, (spec, hooks)) in specs.iter().zip(&stage_hooks).enumerate() {
        let trace = Trace::begin();
        let launch = check(spec, hooks, trace).map_err(at(place))?;
        launches.push((launch, trace));
    }
    for (place, (spec, (launch, trace))) in specs.iter().zip(&launches).enumerate() {
        if let Some(error) = launch.missing_program(spec) {
            let object = spec.argv[0].to_string_lossy();
            let error = SpawnError::new(Step::Exec, object, error);
            return Err(at(place)(child::given_up(error, spec, *trace)));
        }
    }
    if hooks.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
        return Err(at(0)(Unstarted::Cancelled));
    }
    let started = Instant::now();
    let mut hooks = hooks;
    let every = hooks.every.take();
    let mut prepared = Vec::with_capacity(specs.len());
    let mut joints: Vec<Joint> = Vec::with_capacity(specs.len());
    // One for each of those that are next.
    let mut read_ends = VecDeque::from_iter(stdin);
    let mut to_merge = Vec::new();
    let parts = specs.iter().zip(stage_hooks).zip(launches);
    for (place, ((spec, stage_hooks), (launch, trace))) in parts.enumerate() {
        let mut joins = JoinEnds {
            stdin: read_ends.pop_front(),
            stdout: None,
        };
        if shape.is_read(place) {
            let (read, write) = pipe::pipe().map_err(|error| {
                let error = SpawnError::new(Step::Pipe, "", error);
                at(place)(child::given_up(error, spec, trace))
            })?;
            // A probe is worth a descriptor but not a failed start.
            let probe = EndsProbe::new(read.as_fd(), write.as_fd()).ok();
            if !probe.as_ref().is_some_and(EndsProbe::knows_order) {
                trace.say(
                    || "its pipe cannot be watched: whether its reader leaves first is not known",
                );
            }
            let id = PipeId::of(&read).ok();
            let (between, reads) = match behinds[place].take() {
                None => (None, vec![read]),
                Some(behind) => {
                    let made = Between::new(behind, read, shape.behind(place).len());
                    let made = made.map_err(|error| child::given_up(error, spec, trace));
                    let (between, reads) = made.map_err(at(place))?;
                    (Some(between), reads)
                }
            };
            joints.push(Joint {
                probe,
                id,
                between,
                ..Joint::default()
            });
            let beside = shape.beside(place);
            if beside.len() > 1 {
                to_merge.extend(reads);
                if place + 1 == beside.end {
                    let inputs = std::mem::take(&mut to_merge);
                    let long = match beside.start {
                        0 => LongLine::Passes,
                        // Who writes it may wait for what is copied to all of them, and so for
                        // those that a long line would hold up.
                        _ => LongLine::Fails,
                    };
                    let made = Between::merge(inputs, long);
                    let made = made.map_err(|error| child::given_up(error, spec, trace));
                    let (between, read) = made.map_err(at(place))?;
                    joints[beside.start].between = Some(between);
                    read_ends.push_back(read);
                }
            } else {
                read_ends = reads.into();
            }
            joins.stdout = Some(write);
        }
        prepared.push(prepare(spec, launch, stage_hooks, joins, trace).map_err(at(place))?);
    }
    let mut runs: Vec<Run<'a, M>> = Vec::with_capacity(specs.len());
    while let Some(one) = prepared.pop() {
        match one.start() {
            Ok(run) => runs.push(run),
            Err(refused) => {
                runs.into_iter().for_each(Run::undo);
                return Err(at(prepared.len())(refused.into()));
            }
        }
    }
    runs.reverse();
    let betweens = joints.iter_mut().filter_map(|joint| joint.between.as_mut());
    betweens.for_each(Between::begin);
    Ok(JoinedRuns {
        runs,
        shape,
        joints,
        started,
        deadline: hooks.timeout.starting(started),
        looks: Looks::new(started, None),
        ticker: every.map(|(period, hook)| Ticker::new(period, hook, started)),
        hooks,
        late_turns: 0,
        is_unwanted: false,
        is_hurried: false,
        is_to_pause: false,
        stop: None,
        give_up: Deadline::NEVER,
        failure: None,
    })
}

impl<M: Memory> Run<'_, M> {
    /// Ends a run that is not wanted after all.
    fn undo(mut self) {
        let scope = self.spec.stop.scope();
        Arc::make_mut(&mut self.spec).stop = Stop::kill().with_scope(scope);
        self.demand(Demand::Kill);
        while !self.drive() && !self.is_in_fork() {}
        if !self.is_in_fork() {
            self.conclude();
        }
    }
}
