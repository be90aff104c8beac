//! Starting a pipeline that its caller holds.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::builder::{Commands, Pipeline, behinds, joinable};
use super::child::{Held, PipelineChild};
use super::driver::{self, DrivenPipeline, DrivenStage, DriverShared, no_descriptor};
use super::error::Error;
use crate::child::queue_hook;
use crate::command::{Command, stream_listener};
use crate::error::Invalid;
use crate::quote::quote;
use crate::run::{JoinedView, Outlets, StageUnstarted};
use crate::spec::{Purpose, Sink, Spec, Stdin};
use crate::spool::Overflow;
use crate::spool::elastic::{self, ElasticConsumer, Monitor};
use crate::std_stream::PerStream;
use crate::stream::{OutputMonitor, OutputPath, QueueReader, Reader, StallWatch, Writer};
use procwright_os::pipe;
use procwright_os::wake::Wake;

/// The caller's side of the queue of an output.
struct Outlet {
    consumer: ElasticConsumer,
    monitor: Monitor,
}

impl Pipeline<'_> {
    /// Starts it and hands it over, with its streams: see [`PipelineChild`]. Stdin of the first
    /// stage is a [`Writer`](crate::stream::Writer) if it is [`Stdin::Pipe`](crate::Stdin::Pipe);
    /// stdout of the last and stderr of each become [`Reader`](crate::stream::Reader)s where they
    /// would be captured. What is not read is kept in memory, then on disk.
    ///
    /// A thread looks after it until it is over, held or not: one for each pipeline, however
    /// many stages it has. It is over as one that is [run](Pipeline::run), limits that it
    /// reaches stop it as they stop that, and its result is judged by the rule of that. What a
    /// run tells by [`on_event`](crate::Command::on_event) is told of each stage.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Spawn`] and [`Error::Cancelled`], and nothing runs then. What
    /// is for a run alone (a watch, a callback for lines) is invalid here, and so are a channel,
    /// `detach`, `merged` and `input_wanted`.
    #[doc(alias = "Open3.pipeline_rw")]
    #[doc(alias = "Open3.pipeline_start")]
    pub fn spawn(self) -> Result<PipelineChild, Error> {
        self.spawn_with(Overflow::default())
    }

    /// Spawns as [`spawn`](Pipeline::spawn) does, with `overflow` for output that is not read as
    /// fast as it comes.
    ///
    /// # Errors
    /// As [`spawn`](Pipeline::spawn).
    pub fn spawn_with(self, overflow: Overflow) -> Result<PipelineChild, Error> {
        self.check_whole()?;
        let for_run_alone = [
            (
                "watch",
                self.hooks.watch.is_some(),
                "look after its descriptor yourself, and stop the pipeline",
            ),
            (
                "every",
                self.hooks.every.is_some(),
                "wait with a timeout, over and over",
            ),
        ];
        if let Some((what, _, hint)) = for_run_alone.into_iter().find(|(_, is_set, _)| *is_set) {
            return Err(Error::Invalid {
                stage: None,
                source: Invalid::new(what, "is for run(), not for spawn()", hint),
            });
        }
        let verdict = self.verdict();
        let shape = self.shape();
        let commands = Commands::of(&self.stages, &shape);
        let unstarted = |refused| commands.unstarted(refused);
        let first = self.stages.first().map(|stage| &stage.spec.stdin);
        let writes = matches!(first, Some(Stdin::Pipe));
        let of = self.stages.len();
        let mut stages = Vec::with_capacity(of);
        let mut outlets = Vec::with_capacity(of);
        let mut specs = Vec::with_capacity(of);
        let mut behinds = behinds(&self.elastic, self.functions, &shape);
        for (place, mut stage) in self.stages.into_iter().enumerate() {
            let behind = behinds.remove(&place);
            // Its stage is told of as that of a run is, and no child has one.
            let on_event = stage.hooks.on_event.take();
            let at_stage = |source| Error::Invalid {
                stage: Some(place),
                source,
            };
            check_stage(&stage, overflow).map_err(at_stage)?;
            let is_one_of_several = shape.before(place).is_none() && shape.beside(place).len() > 1;
            if is_one_of_several && matches!(stage.spec.stdin, Stdin::Pipe) {
                return Err(at_stage(Invalid::new(
                    "stdin",
                    "is one of several: a pipeline that is spawned has one stdin",
                    "put a cat before, or give each of the fan a file or bytes",
                )));
            }
            if !shape.is_read(place) && place + 1 < of && matches!(stage.spec.stdout, Sink::Capture)
            {
                return Err(at_stage(Invalid::new(
                    "stdout",
                    "has no reader: a pipeline that is spawned has one stdout, of its last program",
                    "send that of the others of a fan elsewhere, such as to a file, or run() it",
                )));
            }
            let stage = match writes && place == 0 {
                true => stage.stdin(Stdin::Null),
                false => stage,
            };
            let joined = joinable(stage, place, &shape, self.stop);
            let (spec, mut hooks) = joined.map_err(at_stage)?;
            let listener = hooks.on_stream_event.take();
            let listener = listener.map(|hook| stream_listener(quote(&spec.argv), hook));
            let hook = |stream| queue_hook(listener.as_ref(), stream);
            let (theirs, ours) = queues(&spec, overflow, hook)
                .map_err(|unstarted| commands.unstarted(StageUnstarted { place, unstarted }))?;
            stages.push(DrivenStage {
                spec: Arc::clone(&spec),
                behind,
                producer: hooks.producer,
                taps: hooks.taps,
                cancel: hooks.cancel,
                on_event,
                until_exit: hooks.until_exit,
                outlets: theirs,
            });
            outlets.push(ours);
            specs.push(spec);
        }
        let (stdin, write) = match writes {
            true => pipe::pipe().map(|(read, write)| (Some(read), Some(write))),
            false => Ok((None, None)),
        }
        .map_err(|error| unstarted(no_descriptor(error)))?;
        let shared = DriverShared::new().map_err(|error| unstarted(no_descriptor(error)))?;
        let shared = Arc::new(shared);
        let driven = DrivenPipeline {
            stages,
            shape,
            stdin,
            timeout: self.hooks.timeout,
            idle_timeout: self.hooks.idle_timeout,
            cancel: self.hooks.cancel,
            command: commands.line(),
            rule: self.rule,
            ok_codes: self.ok_codes,
        };
        let views = driver::start(driven, &shared).map_err(unstarted)?;
        let pids = views.iter().map(|view| view.pid).collect();
        let held = Held {
            shared,
            command: commands.line(),
            pids,
            verdict,
        };
        connect(held, &specs, outlets, views, write)
            .map_err(|error| unstarted(no_descriptor(error)))
    }
}

/// Finds what cannot be had where the caller holds the streams.
fn check_stage(stage: &Command<'_>, overflow: Overflow) -> Result<(), Invalid> {
    let spec = &stage.spec;
    let refused = [
        (
            "channel",
            spec.channel.is_some(),
            "spawn that program alone, or pass on a descriptor",
        ),
        (
            "detach",
            spec.detach,
            "spawn that program alone, or leave it out",
        ),
        (
            "input_wanted",
            stage.hooks.input_wanted,
            "spawn that program alone, or leave it out",
        ),
        (
            "merged",
            spec.merged,
            "read the streams apart, or send stderr where stdout goes",
        ),
    ];
    if let Some((what, _, hint)) = refused.into_iter().find(|(_, is_set, _)| *is_set) {
        let problem = "is not for a stage of a pipeline that is spawned";
        return Err(Invalid::new(what, problem, hint));
    }
    let purpose = Purpose::Spawn {
        overflow: Some(overflow),
    };
    stage.hooks.validate(spec, purpose)?;
    spec.validate(purpose).map(|_| ())
}

type BothSides = (Option<Outlets>, PerStream<Option<Outlet>>);

/// The queues for the captured outputs of a stage.
fn queues(
    spec: &Spec,
    overflow: Overflow,
    hook: impl Fn(&'static str) -> elastic::Hook,
) -> Result<BothSides, crate::child::Unstarted> {
    let mut ours = PerStream::default();
    let keeps = spec.keeps();
    if keeps.chosen().next().is_none() {
        return Ok((None, ours));
    }
    let wake = Arc::new(Wake::new().map_err(crate::child::pipe_error)?);
    let mut queues = PerStream::default();
    for stream in keeps.chosen() {
        let made = elastic::elastic_among_others(overflow, Arc::clone(&wake), hook(stream.name()));
        let (producer, consumer, monitor) = made?;
        queues[stream] = Some(producer);
        ours[stream] = Some(Outlet { consumer, monitor });
    }
    Ok((Some(Outlets { wake, queues }), ours))
}

/// Puts readers and a writer to the ends of a pipeline that runs.
fn connect(
    held: Held,
    specs: &[Arc<Spec>],
    outlets: Vec<PerStream<Option<Outlet>>>,
    views: Vec<JoinedView>,
    stdin: Option<OwnedFd>,
) -> std::io::Result<PipelineChild> {
    let mut stdout = None;
    let mut stderr = Vec::with_capacity(specs.len());
    let mut watches = Vec::with_capacity(specs.len());
    for ((spec, outlets), view) in specs.iter().zip(outlets).zip(views) {
        let mut monitors = PerStream::default();
        let mut readers = PerStream::<Option<Reader>>::default();
        for (stream, (outlet, gauge)) in outlets.zip(view.gauges) {
            let (Some(outlet), Some(gauge)) = (outlet, gauge) else {
                continue;
            };
            let path = OutputPath::Queue(outlet.monitor.clone());
            monitors[stream] = Some(OutputMonitor::new(path, gauge.probe().as_ref()));
            let flows = vec![(None, gauge)];
            let queue = QueueReader::new(outlet.consumer, outlet.monitor, flows);
            readers[stream] = Some(Reader::of_queue(queue));
        }
        let watch = StallWatch::new(spec.argv.clone(), spec.stall_after, monitors);
        watches.push(Arc::new(watch));
        // Those beside the last one, or before it, have none.
        stdout = readers.stdout;
        stderr.push(readers.stderr);
    }
    let writer = stdin.zip(watches.split_last());
    let writer = writer
        .map(|(fd, (last, others))| Writer::of_pipeline(fd, Arc::clone(last), others.to_vec()));
    let stdin = match writer.transpose() {
        Ok(stdin) => stdin,
        Err(error) => {
            // Not to be expected of our own pipe. Nothing is left running, and nobody waits for a
            // reader, as those are gone.
            drop((stdout, stderr));
            let _ = held.end(true);
            return Err(error);
        }
    };
    Ok(PipelineChild {
        stdin,
        stdout,
        stderr,
        held,
        watches,
        talk: None,
    })
}
