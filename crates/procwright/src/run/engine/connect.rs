//! Drains, consumers and a feed at the ends of a run's pipes.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use bytes::Bytes;

use crate::child::{OurEnds, StdinProducer};
use crate::drain::{
    Ceiling, Copies, Drain, Feed, FeedSource, Inline, KeyboardRelay, OutputChunk, Store,
};
use crate::error::{SpawnError, Step};
use crate::run::outlets::Outlets;
use crate::spec::{Beyond, Limit, Spec, Stdin};
use crate::spool::Memory;
use crate::spool::elastic::ElasticProducer;
use crate::spool::fifo::Fifo;
use crate::std_stream::{PerStream, StdStream};
use crate::stream::Framing;
use crate::taps::{ConsumerKind, ConsumerRole, NewConsumer, OutputConsumer, Tap, TapPlan, TeeTap};
use procwright_os::fork::ProcessOwned;
use procwright_os::wake::Wake;

/// Consumers and producer for the pipes of a run, made before its program starts: a program
/// that runs must not be stopped for want of a thread.
pub(super) struct Attachments {
    consumers: WaitingConsumers,
    /// The queues of the consumers, by the stream that leads to them.
    queues: PerStream<Vec<Arc<Fifo<OutputChunk>>>>,
    /// Whether a consumer gets both streams in the order of reading.
    in_order: bool,
    producer: Option<WaitingProducer>,
    /// Queues to readers of the caller's.
    readers: PerStream<Option<ElasticProducer>>,
    /// Rung by consumers, readers and the producer; none if there are none of these.
    wake: Option<Arc<Wake>>,
}

impl Attachments {
    /// Adds to the caller's consumers those that the spec asks for, and starts a thread for
    /// each of them and for the producer. If the program does not start, dropping this ends
    /// them: the producer was not asked for anything, and no callback was called.
    ///
    /// # Errors
    /// A file that cannot be made, no descriptor or no thread left.
    pub(super) fn open(
        spec: &Spec,
        producer: Option<StdinProducer>,
        taps: TapPlan,
        relay: Option<Box<dyn Tap>>,
        outlets: Option<Outlets>,
        framing: &Framing,
    ) -> Result<Attachments, SpawnError> {
        let (readers, wake) = match outlets {
            Some(outlets) => (outlets.queues, Some(outlets.wake)),
            None => (PerStream::default(), None),
        };
        let mut attachments = Attachments {
            consumers: WaitingConsumers(Vec::new()),
            queues: PerStream::default(),
            in_order: relay.is_some(),
            producer: None,
            readers,
            wake,
        };
        let mut consumers = taps.open(spec)?;
        let both = PerStream::new(true, true);
        attachments.in_order |= consumers.iter().any(|(streams, _)| *streams == both);
        match relay {
            Some(relay) => {
                let relay = NewConsumer {
                    kind: ConsumerKind::Pieces(relay),
                    role: ConsumerRole::Relay,
                };
                consumers.push((spec.relays(), relay));
            }
            None => {
                for stream in StdStream::BOTH {
                    let only = PerStream::from_fn(|one| one == stream);
                    consumers.extend(plain_relay(spec, stream)?.map(|relay| (only, relay)));
                }
            }
        }
        if producer.is_none() && consumers.is_empty() {
            return Ok(attachments);
        }
        let wake = match &attachments.wake {
            Some(wake) => Arc::clone(wake),
            None => Arc::new(Wake::new().map_err(|error| SpawnError::new(Step::Pipe, "", error))?),
        };
        let no_thread = |error| SpawnError::new(Step::Thread, "", error);
        for (streams, new) in consumers {
            let consumer = OutputConsumer::start(new, streams, &wake, framing);
            let consumer = consumer.map_err(no_thread)?;
            for stream in streams.chosen() {
                attachments.queues[stream].push(Arc::clone(&consumer.fifo));
            }
            attachments.consumers.0.push(consumer);
        }
        if let Some(producer) = producer {
            let waiting = WaitingProducer::new(producer, &wake).map_err(no_thread)?;
            attachments.producer = Some(waiting);
        }
        attachments.wake = Some(wake);
        Ok(attachments)
    }

    /// True if the program gets a pipe for stdin.
    pub(super) fn feeds(&self, spec: &Spec) -> bool {
        self.producer.is_some() || matches!(spec.stdin, Stdin::Bytes(_))
    }

    /// Puts drains, consumers and a feed to the ends of the pipes of a program that runs.
    pub(super) fn connect<M: Memory>(
        self,
        spec: &Spec,
        ends: OurEnds,
        tells_prompts: bool,
        now: Instant,
    ) -> (Inline<M>, Vec<OutputConsumer>) {
        let Attachments {
            mut consumers,
            queues,
            in_order,
            producer,
            mut readers,
            wake,
        } = self;
        let (mut slave, keyboard) = match ends.terminal {
            Some(terminal) => (Some(terminal.slave), terminal.keyboard),
            None => (None, None),
        };
        let is_terminal = slave.is_some();
        let mut drains = PerStream::new(None, None);
        for (stream, (end, queues)) in ends.outputs.zip(queues) {
            let Some(end) = end else { continue };
            #[cfg(procwright_fault)]
            let end = crate::fault::without_last_byte(end, stream);
            let reader = readers[stream].take();
            let tells_last = reader.is_some() && stream == StdStream::Stderr;
            let store = match reader {
                Some(queue) => Store::Elastic(Some(queue)),
                None => store(spec, stream),
            };
            let drain = match is_terminal {
                true => Drain::of_terminal(end.fd, slave.take(), store, now),
                false => Drain::new(end.fd, end.probe, store, now),
            };
            let mut drain = drain.below(ceiling(spec));
            if tells_last || tells_prompts {
                drain = drain.with_last_words(Arc::default());
            }
            drains[stream] = Some(match queues.is_empty() {
                true => drain,
                false => drain.with_copies(Copies { stream, queues }),
            });
        }
        let feed = match (ends.stdin, producer) {
            (Some(fd), Some(producer)) => Some(Feed::new(fd, FeedSource::Queue(producer.begin()))),
            (Some(fd), None) => match &spec.stdin {
                Stdin::Bytes(bytes) => Some(Feed::new(fd, FeedSource::Bytes(bytes.clone()))),
                _ => None,
            },
            (None, _) => None,
        };
        let typist = keyboard.map(KeyboardRelay::new);
        let merged = spec.merged;
        let streams = Inline::new(drains, feed, typist, wake, merged, in_order);
        (streams, std::mem::take(&mut consumers.0))
    }
}

/// Consumers whose program has not started. Dropped, none of them is called, also not for an
/// end: the file of one of them keeps what it holds.
struct WaitingConsumers(Vec<OutputConsumer>);

impl Drop for WaitingConsumers {
    fn drop(&mut self) {
        for consumer in &self.0 {
            consumer.fifo.leave();
        }
    }
}

/// The consumer that passes a stream on to the caller's own, if it is relayed.
fn plain_relay(spec: &Spec, stream: StdStream) -> Result<Option<NewConsumer>, SpawnError> {
    if !spec.relays()[stream] {
        return Ok(None);
    }
    let own = match stream {
        StdStream::Stdout => io::stdout().as_fd().try_clone_to_owned(),
        StdStream::Stderr => io::stderr().as_fd().try_clone_to_owned(),
    };
    let own = own.map_err(|error| SpawnError::new(Step::Dup, stream.name(), error))?;
    let role = ConsumerRole::Relay;
    Ok(Some(NewConsumer::with_tap(TeeTap::new(own), role)))
}

/// The memory for what is read of a stream.
fn store<M: Memory>(spec: &Spec, stream: StdStream) -> Store<M> {
    match limit(spec) {
        _ if !spec.keeps()[stream] => Store::nothing(),
        Some(Limit {
            bytes,
            beyond: Beyond::HeadAndTail,
        }) => Store::ends(bytes),
        _ => Store::whole(),
    }
}

/// The most that a stream may bring, if there is such.
fn ceiling(spec: &Spec) -> Option<Ceiling> {
    let limit = limit(spec).filter(|limit| limit.beyond == Beyond::Fail);
    limit.map(|limit| Ceiling::new(limit.bytes))
}

fn limit(spec: &Spec) -> Option<Limit> {
    #[cfg(procwright_fault)]
    return crate::fault::lowered(spec.limit);
    #[cfg(not(procwright_fault))]
    spec.limit
}

/// A thread that will pull stdin from a producer, once the program has started. Dropped
/// before, it ends without having asked for anything.
struct WaitingProducer {
    begin: Sender<()>,
    queue: Arc<Fifo<Bytes>>,
}

impl WaitingProducer {
    fn new(producer: StdinProducer, wake: &Arc<Wake>) -> io::Result<WaitingProducer> {
        let queue = Fifo::new(Arc::clone(wake), 1);
        let (begin, begun) = channel();
        let theirs = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("procwright-stdin".into())
            .spawn(move || {
                if begun.recv().is_ok() {
                    produce(producer, &theirs);
                }
            })?;
        Ok(WaitingProducer { begin, queue })
    }

    /// Lets it begin, and gives the queue that it fills.
    fn begin(self) -> Arc<Fifo<Bytes>> {
        // The thread waits for it.
        let _ = self.begin.send(());
        self.queue
    }
}

/// Pulls stdin from `producer`, to its end.
fn produce(mut producer: StdinProducer, queue: &Fifo<Bytes>) {
    let finishing = ProcessOwned::new(FinishOnDrop(queue));
    let error = loop {
        let next = producer();
        if !finishing.is_ours() {
            // The producer has forked. The queue is the parent's, its lock as well.
            return;
        }
        match next {
            Some(Ok(chunk)) => {
                if !chunk.is_empty() && !queue.put(chunk) {
                    break None;
                }
            }
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    drop(producer);
    std::mem::forget(finishing);
    queue.finish(error);
}

/// Ends stdin also when the producer panics: the program must not wait for more.
struct FinishOnDrop<'a>(&'a Fifo<Bytes>);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish(Some("the producer of stdin panicked".into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::forked::panic_in_fork;

    #[test]
    fn a_panic_in_a_fork_of_the_source_of_stdin_waits_for_no_lock() {
        let queue = Fifo::new(Arc::new(Wake::new().unwrap()), 1);
        let (tell, told) = channel();
        let theirs = Arc::clone(&queue);
        std::thread::spawn(move || {
            let held = Arc::clone(&theirs);
            let producer = move || {
                tell.send(panic_in_fork(held.hold())).unwrap();
                None
            };
            produce(Box::new(producer), &theirs);
        });
        assert_eq!(told.recv(), Ok(0));
    }
}
