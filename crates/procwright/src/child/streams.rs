//! Between a child's pipes and what its holder reads.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::stdio::pipe_error;
use super::{OurEnds, OutputEnd, TerminalEnd, Unstarted};
use crate::drain::{Drain, Gauge, Half, Pump, Store, Taken};
use crate::error::Invalid;
use crate::spec::Spec;
use crate::spool::Overflow;
use crate::spool::elastic::{self, Consumer, Monitor, Producer};
use crate::stream::{
    Account, Line, MergedReader, Origin, Outlet, Reader, Spool, StallWatch, Writer,
};

/// A queue, and the pump that will fill it.
type Queue = (Pump, Producer, Consumer, Monitor);

/// Gets what the queue of a stream of this name has to tell. It is called by the
/// pump and by spill threads.
pub(crate) type Listener = Arc<dyn Fn(&'static str, &elastic::Event) + Send + Sync>;

fn hook(listener: Option<&Listener>, stream: &'static str) -> elastic::Hook {
    match listener.map(Arc::clone) {
        None => Box::new(|_| {}),
        Some(listener) => Box::new(move |event| {
            // The threads that tell are not the listener's to end: the streams of
            // all other children hang on the pump. The panic itself has been told
            // of by the panic hook.
            let tell = AssertUnwindSafe(|| listener(stream, event));
            let _ = catch_unwind(tell);
        }),
    }
}

fn new_queue(overflow: Overflow, hook: elastic::Hook) -> Result<Queue, Unstarted> {
    let pump = Pump::get().map_err(pipe_error)?;
    let (producer, consumer, monitor) = elastic::elastic_among_others(overflow, pump.wake(), hook)?;
    Ok((pump, producer, consumer, monitor))
}

/// The queues of a child that is not started yet: whatever can be refused is
/// refused here.
pub(super) enum Queues {
    /// One for each stream, none for a bare pipe.
    Apart([Option<Queue>; 2]),
    /// One for both.
    Merged(Queue),
}

/// What the caller gets.
pub(super) struct Streams {
    pub(super) stdin: Option<Writer>,
    pub(super) outputs: [Option<Reader>; 2],
    pub(super) merged: Option<MergedReader>,
    pub(super) watch: Arc<StallWatch>,
    /// To the terminal, if there is one.
    pub(super) line: Option<Arc<Line>>,
}

impl Queues {
    pub(super) fn new(
        spec: &Spec,
        overflow: Option<Overflow>,
        listener: Option<&Listener>,
    ) -> Result<Queues, Unstarted> {
        if spec.merged {
            let overflow = mergeable(overflow)?;
            let queue = new_queue(overflow, hook(listener, "stdout and stderr"))?;
            return Ok(Queues::Merged(queue));
        }
        let [out, err] = spec.captures().map(|read| overflow.filter(|_| read));
        let queue = |overflow: Option<_>, name| {
            let queue = overflow.map(|overflow| new_queue(overflow, hook(listener, name)));
            queue.transpose()
        };
        Ok(Queues::Apart([
            queue(out, "stdout")?,
            queue(err, "stderr")?,
        ]))
    }

    /// Puts them between the pipes and their readers. `exit` is readable once the
    /// program has exited.
    pub(super) fn connect(
        self,
        spec: &Spec,
        ends: OurEnds,
        exit: Option<OwnedFd>,
    ) -> io::Result<Streams> {
        let mut readers = [None, None];
        let mut outlets = [None, None];
        let mut merged = None;
        let mut line = None;
        let mut terminal = ends.terminal;
        let typing = terminal
            .as_mut()
            .and_then(|terminal| terminal.typing.take());
        match self {
            Queues::Merged(queue) => merged = Some(merge(ends.outputs, queue, &mut outlets)?),
            Queues::Apart(queues) => {
                for (i, (end, queue)) in ends.outputs.into_iter().zip(queues).enumerate() {
                    let Some(end) = end else {
                        continue;
                    };
                    let (reader, outlet) = match (terminal.take(), queue) {
                        (Some(terminal), Some(queue)) => {
                            let (reader, outlet, its) = shown(end, terminal, queue, exit.as_ref());
                            line = Some(its);
                            (reader, outlet)
                        }
                        (_, queue) => reader(end, queue)?,
                    };
                    readers[i] = Some(reader);
                    outlets[i] = Some(outlet);
                }
            }
        }
        let watch = StallWatch::new(spec.argv.clone(), spec.stall_after, outlets);
        let watch = Arc::new(watch);
        let piped = ends.stdin.map(|fd| Writer::new(fd, Arc::clone(&watch)));
        let typed = typing.zip(line.clone());
        let typed = typed.map(|(fd, line)| Writer::of_terminal(fd, Arc::clone(&watch), line));
        Ok(Streams {
            stdin: piped.or(typed).transpose()?,
            line,
            outputs: readers,
            merged,
            watch,
        })
    }
}

fn reader(end: OutputEnd, queue: Option<Queue>) -> io::Result<(Reader, Outlet)> {
    let probe = end.probe.clone();
    let (reader, origin) = match queue {
        None => {
            let account: Arc<Account> = Arc::default();
            let reader = Reader::of_pipe(end.fd, end.probe, Arc::clone(&account))?;
            (reader, Origin::Pipe(account))
        }
        Some((pump, producer, consumer, monitor)) => {
            let flow = flow(&pump, end, Store::Elastic(Some(producer)));
            let spool = Spool::new(consumer, monitor.clone(), vec![flow]);
            (Reader::of_spool(spool), Origin::Queue(monitor))
        }
    };
    Ok((reader, Outlet::new(origin, probe.as_ref())))
}

/// What a terminal shows.
fn shown(
    end: OutputEnd,
    terminal: TerminalEnd,
    queue: Queue,
    exit: Option<&OwnedFd>,
) -> (Reader, Outlet, Arc<Line>) {
    let (pump, producer, consumer, monitor) = queue;
    let store = Store::Elastic(Some(producer));
    let slave = Some(terminal.slave);
    let drain = Drain::of_terminal(end.fd, slave, store, Instant::now())
        .with_exit(exit.and_then(|fd| fd.try_clone().ok()));
    let line = Arc::new(Line::new(drain.weak_fd()));
    let gauge = drain.gauge();
    let flow = (pump.take(drain), gauge);
    let spool = Spool::new(consumer, monitor.clone(), vec![flow]).with_line(Arc::clone(&line));
    let outlet = Outlet::of_terminal(Origin::Queue(monitor));
    (Reader::of_spool(spool), outlet, line)
}

/// Gives a stream to the pump.
fn flow(pump: &Pump, end: OutputEnd, store: Store<Vec<u8>>) -> (Taken, Gauge) {
    let drain = Drain::new(end.fd, end.probe, store, Instant::now());
    let gauge = drain.gauge();
    (pump.take(drain), gauge)
}

/// Both streams into one queue.
fn merge(
    ends: [Option<OutputEnd>; 2],
    queue: Queue,
    outlets: &mut [Option<Outlet>; 2],
) -> io::Result<MergedReader> {
    let (pump, producer, consumer, monitor) = queue;
    let (halves, headers) = Half::both(producer);
    let mut flows = Vec::with_capacity(2);
    for (i, (end, half)) in ends.into_iter().zip(halves).enumerate() {
        let Some(end) = end else {
            continue;
        };
        let origin = Origin::Merged(monitor.clone(), half.tally());
        outlets[i] = Some(Outlet::new(origin, end.probe.as_ref()));
        flows.push(flow(&pump, end, Store::Merged(half)));
    }
    let reader = Reader::of_spool(Spool::new(consumer, monitor, flows));
    MergedReader::new(reader, headers).map_err(io::Error::other)
}

/// The policy of two streams in one queue.
fn mergeable(overflow: Option<Overflow>) -> Result<Overflow, Invalid> {
    let problem = match overflow {
        // Nobody would note which stream was first.
        None => "needs the streams to be read ahead, and they are bare pipes",
        // Bytes are taken out at the front, one by one.
        Some(Overflow::DropOldest { .. }) => "cannot be had where the oldest bytes are dropped",
        Some(overflow) => return Ok(overflow),
    };
    let hint = "use Overflow::Spill, Block, DropNewest or Fail, or read the two apart";
    Err(Invalid::new("merged", problem, hint))
}
