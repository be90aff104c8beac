//! The streams of a child: queues and readers behind its pipes.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::copies::PreparedCopies;
use super::stdio::{OurEnds, OutputEnd, TerminalEnd};
use super::unstarted::Unstarted;
use crate::drain::{
    Ceiling, Drain, FlowTeller, FlowWatch, Gauge, LastWords, MergeInput, News, Pump, PumpedStream,
    Store,
};
use crate::spec::Spec;
use crate::spool::Overflow;
use crate::spool::elastic::{self, ElasticConsumer, ElasticProducer, Monitor};
use crate::std_stream::{PerStream, StdStream};
use crate::stream::{
    MergedReader, OutputMonitor, OutputPath, PipeCounters, PtyMaster, QueueReader, Reader,
    StallWatch, Writer,
};
use procwright_explain::Waiting;
use procwright_os::wake::Wake;

/// A queue, and the pump that will fill it.
pub(super) struct PumpedQueue {
    pump: Pump,
    producer: ElasticProducer,
    consumer: ElasticConsumer,
    monitor: Monitor,
}

/// Is told who waits for input, and the prompt, if there is one.
pub(crate) struct InputListener(Box<TellInputWanted>);

type TellInputWanted = dyn Fn(Box<Waiting>, Option<String>) + Send;

impl InputListener {
    pub(crate) fn new(tell: impl Fn(Box<Waiting>, Option<String>) + Send + 'static) -> Self {
        InputListener(Box::new(tell))
    }

    pub(super) fn tell(&self, waiting: Box<Waiting>, prompt: Option<String>) {
        (self.0)(waiting, prompt);
    }
}

impl fmt::Debug for InputListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InputListener")
    }
}

/// Is told the events of the queue of the stream of this name, on the threads of the
/// pump and of spilling.
pub(crate) type StreamListener = Arc<dyn Fn(&'static str, &elastic::Event) + Send + Sync>;

pub(crate) fn hook(listener: Option<&StreamListener>, stream: &'static str) -> elastic::Hook {
    match listener.map(Arc::clone) {
        None => Box::new(|_| {}),
        Some(listener) => Box::new(move |event| {
            // A panic of the listener must not end these threads: the streams of all
            // other children hang on the pump. The panic hook has told of the panic.
            let tell = AssertUnwindSafe(|| listener(stream, event));
            let _ = catch_unwind(tell);
        }),
    }
}

fn new_queue(overflow: Overflow, hook: elastic::Hook) -> Result<PumpedQueue, Unstarted> {
    let pump = Pump::get()?;
    let (producer, consumer, monitor) = elastic::elastic_among_others(overflow, pump.wake(), hook)?;
    Ok(PumpedQueue {
        pump,
        producer,
        consumer,
        monitor,
    })
}

/// The queues of a child that is not started yet: all that can be refused is refused
/// here.
pub(super) enum StreamQueues {
    /// One for each stream, none for a bare pipe.
    Apart(PerStream<Option<PumpedQueue>>),
    /// One for both.
    Merged(PumpedQueue),
}

/// An output that is read ahead, as those see it who may stop the child for it.
#[derive(Debug)]
pub(super) struct WatchedFlow {
    pub(super) watch: Arc<FlowWatch>,
    pub(super) stream: PumpedStream,
    /// The end of what came of it, if that is kept.
    pub(super) last_words: Option<Arc<LastWords>>,
}

/// Who is to be told of the outputs that are read ahead, and of how many bytes at most.
pub(super) struct FlowNews {
    pub(super) limit: Option<u64>,
    pub(super) news: News,
}

/// What there is beside the readers of the streams: who is told of them, and who gets copies.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    pub(super) news: Option<&'a FlowNews>,
    pub(super) copies: &'a PreparedCopies,
    /// The streams whose end is kept for those who tell of the program.
    pub(super) last_words_of: PerStream<bool>,
}

impl Beside<'_> {
    /// Puts the copies of a stream beside its queue, and the end of what comes; and the limit in
    /// front of all.
    fn put(
        self,
        stream: StdStream,
        mut drain: Drain<Vec<u8>>,
        mut monitor: OutputMonitor,
    ) -> (Drain<Vec<u8>>, OutputMonitor) {
        if let Some(copies) = self.copies.of(stream) {
            // They may hold the drain up as its queue does.
            monitor = monitor.measured_by(drain.gauge());
            drain = drain.with_copies(copies);
        }
        if let Some(limit) = self.news.and_then(|news| news.limit) {
            let ceiling = Ceiling::new(limit);
            monitor = monitor.with_excess(ceiling.view());
            drain = drain.below(Some(ceiling));
        }
        if self.last_words_of[stream] {
            let words = Arc::<LastWords>::default();
            drain = drain.with_last_words(Arc::clone(&words));
            monitor = monitor.with_last_words(words);
        }
        (drain, monitor)
    }
}

/// The streams that the caller gets.
pub(super) struct Streams {
    pub(super) stdin: Option<Writer>,
    pub(super) outputs: PerStream<Option<Reader>>,
    pub(super) merged: Option<MergedReader>,
    pub(super) watch: Arc<StallWatch>,
    /// The master of the terminal, if there is one.
    pub(super) pty_master: Option<Arc<PtyMaster>>,
    /// The outputs that are read ahead, if somebody is to be told of them.
    pub(super) flows: PerStream<Option<WatchedFlow>>,
}

impl StreamQueues {
    pub(super) fn new(
        spec: &Spec,
        overflow: Option<Overflow>,
        listener: Option<&StreamListener>,
    ) -> Result<StreamQueues, Unstarted> {
        if let (true, Some(overflow)) = (spec.merged, overflow) {
            let queue = new_queue(overflow, hook(listener, "stdout and stderr"))?;
            return Ok(StreamQueues::Merged(queue));
        }
        let captures = spec.captures();
        let queue = |stream: StdStream| {
            let overflow = overflow.filter(|_| captures[stream]);
            let queue = overflow.map(|one| new_queue(one, hook(listener, stream.name())));
            queue.transpose()
        };
        Ok(StreamQueues::Apart(PerStream::new(
            queue(StdStream::Stdout)?,
            queue(StdStream::Stderr)?,
        )))
    }

    /// The wake-ups of those who fill the queues of the streams, rung when one has room again.
    pub(super) fn wakes(&self) -> PerStream<Option<Arc<Wake>>> {
        match self {
            StreamQueues::Merged(queue) => PerStream::from_fn(|_| Some(queue.pump.wake())),
            StreamQueues::Apart(queues) => queues
                .as_ref()
                .map(|queue| queue.as_ref().map(|queue| queue.pump.wake())),
        }
    }

    /// Puts the queues between the pipes and their readers. `exit` is readable once the
    /// program has exited.
    pub(super) fn connect(
        self,
        spec: &Spec,
        ends: OurEnds,
        exit: Option<OwnedFd>,
        beside: Beside<'_>,
    ) -> io::Result<Streams> {
        let mut readers = PerStream::default();
        let mut flows = PerStream::default();
        let mut monitors = PerStream::default();
        let mut merged = None;
        let mut pty_master = None;
        let mut terminal = ends.terminal;
        let typing = terminal
            .as_mut()
            .and_then(|terminal| terminal.typing.take());
        match self {
            StreamQueues::Merged(queue) => {
                let (reader, pumped) = merged_reader(ends.outputs, queue, &mut monitors, beside)?;
                merged = Some(reader);
                flows = pumped;
            }
            StreamQueues::Apart(queues) => {
                for (stream, (end, queue)) in ends.outputs.zip(queues) {
                    let Some(end) = end else {
                        continue;
                    };
                    let (reader, monitor) = match (terminal.take(), queue) {
                        (Some(terminal), Some(queue)) => {
                            let (reader, monitor, flow, master) =
                                terminal_reader(end, terminal, queue, exit.as_ref(), beside);
                            flows[stream] = flow;
                            pty_master = Some(master);
                            (reader, monitor)
                        }
                        (_, Some(queue)) => {
                            let (reader, monitor, flow) = queue_reader(stream, end, queue, beside);
                            flows[stream] = flow;
                            (reader, monitor)
                        }
                        (_, None) => pipe_reader(end)?,
                    };
                    readers[stream] = Some(reader);
                    monitors[stream] = Some(monitor);
                }
            }
        }
        let watch = StallWatch::new(spec.argv.clone(), spec.stall_after, monitors);
        let watch = Arc::new(watch);
        let piped = ends.stdin.map(|fd| Writer::new(fd, Arc::clone(&watch)));
        let typed = typing.zip(pty_master.clone());
        let typed = typed.map(|(fd, master)| Writer::of_terminal(fd, Arc::clone(&watch), master));
        Ok(Streams {
            stdin: piped.or(typed).transpose()?,
            pty_master,
            outputs: readers,
            merged,
            watch,
            flows,
        })
    }
}

fn pipe_reader(end: OutputEnd) -> io::Result<(Reader, OutputMonitor)> {
    let counters: Arc<PipeCounters> = Arc::default();
    let path = OutputPath::Pipe(Arc::clone(&counters));
    let monitor = OutputMonitor::new(path, end.probe.as_ref());
    Ok((Reader::of_pipe(end.fd, end.probe, counters)?, monitor))
}

fn queue_reader(
    stream: StdStream,
    end: OutputEnd,
    queue: PumpedQueue,
    beside: Beside<'_>,
) -> (Reader, OutputMonitor, Option<WatchedFlow>) {
    let path = OutputPath::Queue(queue.monitor.clone());
    let monitor = OutputMonitor::new(path, end.probe.as_ref());
    let drain = drain_of(end, Store::Elastic(Some(queue.producer)));
    let (drain, monitor) = beside.put(stream, drain, monitor);
    let (flow, watched) = hand_to_pump(&queue.pump, drain, beside.news);
    let reader = QueueReader::new(queue.consumer, queue.monitor, vec![flow]);
    (Reader::of_queue(reader), monitor, watched)
}

/// The reader of what a terminal shows.
fn terminal_reader(
    end: OutputEnd,
    terminal: TerminalEnd,
    queue: PumpedQueue,
    exit: Option<&OwnedFd>,
    beside: Beside<'_>,
) -> (Reader, OutputMonitor, Option<WatchedFlow>, Arc<PtyMaster>) {
    let monitor = OutputMonitor::of_terminal(OutputPath::Queue(queue.monitor.clone()));
    let store = Store::Elastic(Some(queue.producer));
    let slave = Some(terminal.slave);
    let drain = Drain::of_terminal(end.fd, slave, store, Instant::now())
        .with_exit(exit.and_then(|fd| fd.try_clone().ok()));
    let (drain, monitor) = beside.put(StdStream::Stdout, drain, monitor);
    let pty_master = Arc::new(PtyMaster::new(drain.weak_fd()));
    let (flow, watched) = hand_to_pump(&queue.pump, drain, beside.news);
    let reader = QueueReader::new(queue.consumer, queue.monitor, vec![flow])
        .with_pty_master(Arc::clone(&pty_master));
    (Reader::of_queue(reader), monitor, watched, pty_master)
}

fn drain_of(end: OutputEnd, store: Store<Vec<u8>>) -> Drain<Vec<u8>> {
    Drain::new(end.fd, end.probe, store, Instant::now())
}

fn hand_to_pump(
    pump: &Pump,
    drain: Drain<Vec<u8>>,
    news: Option<&FlowNews>,
) -> ((Option<PumpedStream>, Gauge), Option<WatchedFlow>) {
    let watch = news.map(|one| FlowWatch::new(drain.weak_fd(), one.limit, one.news.clone()));
    let drain = drain.told_by(watch.clone().map(FlowTeller::new));
    let gauge = drain.gauge();
    let last_words = drain.last_words().cloned();
    let stream = pump.take(drain);
    let watched = watch.map(|watch| WatchedFlow {
        watch,
        stream: stream.clone(),
        last_words,
    });
    ((Some(stream), gauge), watched)
}

/// The reader of both streams, by way of one queue.
fn merged_reader(
    ends: PerStream<Option<OutputEnd>>,
    queue: PumpedQueue,
    monitors: &mut PerStream<Option<OutputMonitor>>,
    beside: Beside<'_>,
) -> io::Result<(MergedReader, PerStream<Option<WatchedFlow>>)> {
    let (halves, merge) = MergeInput::pair(queue.producer);
    let mut drains = PerStream::<Option<Drain<Vec<u8>>>>::default();
    let mut watched = PerStream::default();
    for (stream, (end, half)) in ends.zip(halves) {
        let Some(end) = end else {
            continue;
        };
        let path = OutputPath::Merged(queue.monitor.clone(), half.tally());
        let monitor = OutputMonitor::new(path, end.probe.as_ref());
        let drain = drain_of(end, Store::Merged(half));
        let (drain, monitor) = beside.put(stream, drain, monitor);
        monitors[stream] = Some(monitor);
        drains[stream] = Some(drain);
    }
    // Before the pump has either: it looks at both after each read.
    let pipes = drains.as_ref().map(Option::as_ref);
    merge.know_pipes(pipes.map(|drain| drain.map(Drain::weak_fd).unwrap_or_default()));
    let mut flows = Vec::with_capacity(2);
    for (stream, drain) in drains {
        let Some(drain) = drain else {
            continue;
        };
        let (flow, one) = hand_to_pump(&queue.pump, drain, beside.news);
        flows.push(flow);
        watched[stream] = one;
    }
    let reader = Reader::of_queue(QueueReader::new(queue.consumer, queue.monitor, flows));
    let reader = MergedReader::new(reader, merge.headers()).map_err(io::Error::other)?;
    Ok((reader, watched))
}
