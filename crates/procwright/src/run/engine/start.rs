//! The start of a run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connect::Attachments;
use super::host::{DemandedEnd, Host};
use super::program::Program;
use super::run_state::{Run, RunPhase};
use crate::child::{self, JoinEnds, OurEnds, PreparedStart, RefusedStart, Unstarted};
use crate::looks::{Looks, PromptLooks};
use crate::quote::quote;
use crate::run::event::UNTIL_EXIT;
use crate::run::event_thread::EventThread;
use crate::run::hooks::{Hooks, TickHook};
use crate::run::ticker::Ticker;
use crate::spec::{Launch, Purpose, Spec};
use crate::spool::Memory;
use crate::trace::Trace;
use procwright_os::{fork, proc};
use procwright_process::holders::RunPipe;
use procwright_process::{Cancel, Orphans};

/// A run that only its process is missing for.
pub(super) struct PreparedRun<'s, 'a> {
    spec: &'s Arc<Spec>,
    start: PreparedStart<'s>,
    ends: OurEnds,
    pipes: Vec<RunPipe>,
    attachments: Attachments,
    host: Host<'a>,
    every: Option<(Duration, TickHook<'a>)>,
    explain_after: Option<Duration>,
    input_wanted: bool,
    started: Instant,
    started_ticks: u64,
}

/// Starts `spec`. Nothing is moved, and no clock looked at, before [`Run::drive`].
pub(crate) fn start<'a, M: Memory>(
    spec: &Arc<Spec>,
    hooks: Hooks<'a>,
) -> Result<Run<'a, M>, Unstarted> {
    let trace = Trace::begin();
    let launch = check(spec, &hooks, trace)?;
    Ok(prepare(spec, launch, hooks, JoinEnds::default(), trace)?.start()?)
}

/// Finds what is wrong with a run before anything is opened.
pub(super) fn check(spec: &Spec, hooks: &Hooks<'_>, trace: Trace) -> Result<Launch, Unstarted> {
    let valid = hooks.validate(spec, Purpose::Run);
    let valid = valid.and_then(|()| spec.validate(Purpose::Run));
    let launch = valid.inspect_err(|error| trace.not_started(&spec.argv, error))?;
    Ok(launch)
}

/// Opens all that a run of `spec` needs, and has its threads made. `joins` are pipes to others.
pub(super) fn prepare<'s, 'a>(
    spec: &'s Arc<Spec>,
    launch: Launch,
    hooks: Hooks<'a>,
    joins: JoinEnds,
    trace: Trace,
) -> Result<PreparedRun<'s, 'a>, Unstarted> {
    // Before a file of the caller's is emptied, and once more before the start.
    if hooks.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
        return Err(child::given_up(Unstarted::Cancelled, spec, trace));
    }
    let framing = hooks.framing();
    let (producer, outlets) = (hooks.producer, hooks.outlets);
    let attachments = Attachments::open(spec, producer, hooks.taps, hooks.relay, outlets, &framing);
    let attachments = attachments.map_err(|error| child::given_up(error, spec, trace))?;
    let host = Host {
        cancel: hooks.cancel,
        events: hooks
            .on_event
            .map(|hook| EventThread::new(quote(&spec.argv), hook)),
        until_exit: hooks.until_exit.unwrap_or(UNTIL_EXIT),
        watch: hooks.watch,
        ticker: None,
        // Whom this process had before is not the run's, and who descends from that one
        // comes to us as the run's orphans do.
        orphans: match hooks.adopts {
            true => Orphans::of_a_run_from_now(),
            false => Orphans::Unknown,
        },
        demanded: DemandedEnd::None,
        pause: false,
        watch_was_early: false,
    };

    let started = Instant::now();
    let started_ticks = proc::now_ticks();
    let feeds = attachments.feeds(spec);
    let mut start = child::prepare(spec, launch, feeds, joins, None, trace)?;
    let ends = start.take_ends();
    Ok(PreparedRun {
        spec,
        start,
        pipes: ends.pipes(),
        ends,
        attachments,
        host,
        every: hooks.every,
        explain_after: hooks.explain_after,
        input_wanted: hooks.input_wanted,
        started,
        started_ticks,
    })
}

impl<'a> PreparedRun<'_, 'a> {
    /// Starts the program.
    pub(super) fn start<M: Memory>(self) -> Result<Run<'a, M>, Box<RefusedStart>> {
        let PreparedRun {
            spec,
            start,
            ends,
            mut pipes,
            attachments,
            mut host,
            every,
            explain_after,
            input_wanted,
            started,
            started_ticks,
        } = self;
        if host.is_cancelled() {
            return Err(start.give_up(Unstarted::Cancelled));
        }
        // An event from now on has a program to answer it.
        host.watch_was_early = host.watch_is_ready();
        let running = start.start()?;
        // The child exists from here on, and every way out stops and reaps it.
        host.ticker = every.map(|(period, hook)| Ticker::new(period, hook, started));
        let (streams, consumers) = attachments.connect(spec, ends, input_wanted, started);
        if let Some(stdout) = streams.drains().stdout {
            pipes
                .iter_mut()
                .for_each(|pipe| pipe.kept_by(&stdout.weak_fd()));
        }
        let program = Program {
            running,
            pipes,
            started_ticks,
            exited_at: None,
        };
        Ok(Run {
            spec: Arc::clone(spec),
            process: fork::generation(),
            started,
            deadline: spec.timeout.starting(started),
            program,
            streams,
            consumers,
            host,
            looks: Looks::new(started, explain_after),
            prompts: input_wanted.then(|| PromptLooks::new(started)),
            phase: RunPhase::default(),
            failure: None,
            later_failures: Vec::new(),
            over_at: None,
            refusals: 0,
        })
    }
}
