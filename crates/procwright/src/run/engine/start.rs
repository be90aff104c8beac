//! The start of a run.

use std::sync::Arc;
use std::time::Instant;

use super::connect::{Attachments, without_streams};
use super::host::{DemandedEnd, Host};
use super::program::Program;
use super::run_state::{Run, RunPhase};
use crate::child::{self, Unstarted};
use crate::quote::quote;
use crate::run::collected::Failure;
use crate::run::event_thread::EventThread;
use crate::run::hooks::Hooks;
use crate::run::ticker::Ticker;
use crate::spec::{Purpose, Spec};
use crate::spool::Memory;
use crate::trace::Trace;
use procwright_os::proc;
use procwright_process::Orphans;

/// Starts `spec`. Nothing is moved, and no clock looked at, before [`Run::drive`].
pub(crate) fn start<'a, M: Memory>(
    spec: &Arc<Spec>,
    hooks: Hooks<'a>,
) -> Result<Run<'a, M>, Unstarted> {
    let trace = Trace::begin();
    let valid = hooks.validate(spec, Purpose::Run);
    let valid = valid.and_then(|()| spec.validate(Purpose::Run));
    let launch = valid.inspect_err(|error| trace.not_started(&spec.argv, error))?;
    let framing = hooks.framing();
    let attachments = Attachments::open(spec, hooks.producer, hooks.taps, hooks.both, hooks.relay)?;
    let mut host = Host {
        cancel: hooks.cancel,
        events: hooks
            .on_event
            .map(|hook| EventThread::new(quote(&spec.argv), hook)),
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
    };

    let started = Instant::now();
    let started_ticks = proc::now_ticks();
    let mut is_early = false;
    let feeds = attachments.feeds(spec);
    let (running, ends) = child::start(spec, launch, feeds, None, trace, || {
        // An event from now on has a program to answer it.
        is_early = host.watch_is_ready();
    })?;
    // The child exists from here on, and every way out stops and reaps it.
    host.ticker = hooks
        .every
        .map(|(period, hook)| Ticker::new(period, hook, started));
    let program = Program {
        running,
        pipes: ends.pipes(),
        started_ticks,
        exited_at: None,
    };
    let mut consumers = Vec::new();
    let connected = attachments.connect(spec, ends, started, &framing, &mut consumers);
    let (streams, failure) = match connected {
        Ok(streams) => (streams, None),
        Err(error) => {
            // No drain will tell those that have started of an end.
            for consumer in &consumers {
                consumer.fifo.end_all();
            }
            (without_streams(), Some(Failure::Io(error)))
        }
    };
    let mut run = Run {
        spec: Arc::clone(spec),
        started,
        deadline: spec.timeout.starting(started),
        program,
        streams,
        consumers,
        host,
        phase: RunPhase::default(),
        failure,
        later_failures: Vec::new(),
        refusals: 0,
    };
    if is_early {
        run.ask_watch(false);
    }
    Ok(run)
}
