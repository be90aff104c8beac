//! The start of a run.

use std::sync::Arc;
use std::time::Instant;

use super::connect::Attachments;
use super::host::{DemandedEnd, Host};
use super::program::Program;
use super::run_state::{Run, RunPhase};
use crate::child::{self, Unstarted};
use crate::quote::quote;
use crate::run::event::UNTIL_EXIT;
use crate::run::event_thread::EventThread;
use crate::run::hooks::Hooks;
use crate::run::ticker::Ticker;
use crate::spec::{Purpose, Spec};
use crate::spool::Memory;
use crate::trace::Trace;
use procwright_os::{fork, proc};
use procwright_process::{Cancel, Orphans};

/// Starts `spec`. Nothing is moved, and no clock looked at, before [`Run::drive`].
pub(crate) fn start<'a, M: Memory>(
    spec: &Arc<Spec>,
    hooks: Hooks<'a>,
) -> Result<Run<'a, M>, Unstarted> {
    let trace = Trace::begin();
    let valid = hooks.validate(spec, Purpose::Run);
    let valid = valid.and_then(|()| spec.validate(Purpose::Run));
    let launch = valid.inspect_err(|error| trace.not_started(&spec.argv, error))?;
    // Before a file of the caller's is emptied, and once more before the start.
    if hooks.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
        return Err(child::given_up(Unstarted::Cancelled, spec, trace));
    }
    let framing = hooks.framing();
    let (taps, both) = (hooks.taps, hooks.both);
    let attachments = Attachments::open(spec, hooks.producer, taps, both, hooks.relay, &framing);
    let attachments = attachments.map_err(|error| child::given_up(error, spec, trace))?;
    let mut host = Host {
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
    let mut prepared = child::prepare(spec, launch, feeds, None, trace)?;
    let ends = prepared.take_ends();
    let pipes = ends.pipes();
    if host.is_cancelled() {
        return Err(child::given_up(Unstarted::Cancelled, spec, trace));
    }
    // An event from now on has a program to answer it.
    host.watch_was_early = host.watch_is_ready();
    let running = prepared.start()?;
    // The child exists from here on, and every way out stops and reaps it.
    host.ticker = hooks
        .every
        .map(|(period, hook)| Ticker::new(period, hook, started));
    let (streams, consumers) = attachments.connect(spec, ends, started);
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
        phase: RunPhase::default(),
        failure: None,
        later_failures: Vec::new(),
        refusals: 0,
    })
}
