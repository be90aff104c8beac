//! Drains, consumers and a feed at the ends of a run's pipes.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use bytes::Bytes;

use crate::child::{OurEnds, StdinProducer, UNREAD_FIFO};
use crate::drain::{Copies, Drain, Feed, FeedSource, Inline, KeyboardRelay, OutputChunk, Store};
use crate::error::{SpawnError, Step};
use crate::run::consumer::{ConsumerKind, ConsumerRole, NewConsumer, OutputConsumer};
use crate::run::tap::{FullFile, Tap, TeeTap};
use crate::spec::{Beyond, Limit, Spec, Stdin};
use crate::spool::Memory;
use crate::spool::fifo::Fifo;
use crate::std_stream::{PerStream, StdStream};
use crate::stream::Framing;
use procwright_os::file;
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
    /// Rung by consumers and the producer; none if there are neither.
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
        mut taps: PerStream<Vec<NewConsumer>>,
        mut both: Vec<NewConsumer>,
        relay: Option<Box<dyn Tap>>,
        framing: &Framing,
    ) -> Result<Attachments, SpawnError> {
        for (stream, file) in full_files(spec)? {
            taps[stream].extend(file);
        }
        match relay {
            Some(relay) => both.push(NewConsumer {
                kind: ConsumerKind::Pieces(relay),
                role: ConsumerRole::Relay,
            }),
            None => {
                for (stream, taps) in taps.iter_mut() {
                    taps.extend(plain_relay(spec, stream)?);
                }
            }
        }
        let mut attachments = Attachments {
            consumers: WaitingConsumers(Vec::new()),
            queues: PerStream::default(),
            in_order: !both.is_empty(),
            producer: None,
            wake: None,
        };
        let consumes = !both.is_empty() || taps.values().any(|taps| !taps.is_empty());
        if producer.is_none() && !consumes {
            return Ok(attachments);
        }
        let wake = Wake::new().map_err(|error| SpawnError::new(Step::Pipe, "", error))?;
        let wake = Arc::new(wake);
        let no_thread = |error| SpawnError::new(Step::Thread, "", error);
        let only = |one| PerStream::from_fn(|stream| stream == one);
        let apart = taps.into_iter().map(|(stream, taps)| (only(stream), taps));
        for (streams, taps) in apart.chain([(spec.captures(), both)]) {
            for new in taps {
                let streams = match streams == PerStream::new(true, true) {
                    true if new.role == ConsumerRole::Relay => spec.relays(),
                    _ => streams,
                };
                let consumer = OutputConsumer::start(new, streams, &wake, framing);
                let consumer = consumer.map_err(no_thread)?;
                for stream in streams.chosen() {
                    attachments.queues[stream].push(Arc::clone(&consumer.fifo));
                }
                attachments.consumers.0.push(consumer);
            }
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
        now: Instant,
    ) -> (Inline<M>, Vec<OutputConsumer>) {
        let Attachments {
            mut consumers,
            queues,
            in_order,
            producer,
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
            let store = store(spec, stream);
            let drain = match is_terminal {
                true => Drain::of_terminal(end.fd, slave.take(), store, now),
                false => Drain::new(end.fd, end.probe, store, now),
            };
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

/// The files of `keep_full`.
fn full_files(spec: &Spec) -> Result<PerStream<Option<NewConsumer>>, SpawnError> {
    let mut files = PerStream::default();
    let Some(path) = &spec.keep_full else {
        return Ok(files);
    };
    let mut beside = path.clone().into_os_string();
    beside.push(".stderr");
    let paths = PerStream::new(path.as_path(), Path::new(&beside));
    for (stream, (path, is_captured)) in paths.zip(spec.captures()) {
        if is_captured {
            let tap = FullFile::open(path).map_err(|error| {
                let hint = match file::is_unread_fifo(path, &error) {
                    true => UNREAD_FIFO,
                    false => "it is to keep all of the output: name a file that can be written",
                };
                SpawnError::new(Step::Open, path.to_string_lossy(), error).with_hint(hint)
            })?;
            let role = ConsumerRole::FullFile(path.to_path_buf());
            files[stream] = Some(NewConsumer::with_tap(tap, role));
        }
    }
    Ok(files)
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
    let limit = spec.limit;
    #[cfg(procwright_fault)]
    let limit = crate::fault::lowered(limit);
    if !spec.keeps()[stream] {
        let limit = limit.filter(|limit| limit.beyond == Beyond::Fail);
        return Store::nothing(limit.map(|limit| limit.bytes));
    }
    match limit {
        None => Store::whole(),
        Some(Limit {
            bytes,
            beyond: Beyond::HeadAndTail,
        }) => Store::ends(bytes),
        Some(Limit {
            bytes,
            beyond: Beyond::Fail,
        }) => Store::capped(bytes),
    }
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
