//! Drains, consumers and a feed at the ends of a run's pipes.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::child::{OurEnds, StdinProducer};
use crate::drain::{Copies, Drain, Feed, FeedSource, Inline, KeyboardRelay, Store};
use crate::error::{SpawnError, Step};
use crate::run::consumer::{ConsumerKind, ConsumerRole, NewConsumer, OutputConsumer};
use crate::run::tap::{FullFile, Tap, TeeTap};
use crate::spec::{Beyond, Limit, Spec, Stdin};
use crate::spool::Memory;
use crate::spool::fifo::Fifo;
use crate::std_stream::{PerStream, StdStream};
use crate::stream::Framing;
use procwright_os::wake::Wake;

/// Consumers and producer for the pipes of a run, made before its program starts.
pub(super) struct Attachments {
    producer: Option<StdinProducer>,
    taps: PerStream<Vec<NewConsumer>>,
    both: Vec<NewConsumer>,
    /// Rung by consumers and the producer; none if there are neither.
    wake: Option<Arc<Wake>>,
}

impl Attachments {
    /// Adds to the caller's consumers those that the spec asks for.
    ///
    /// # Errors
    /// A file that cannot be made, or no descriptor left.
    pub(super) fn open(
        spec: &Spec,
        producer: Option<StdinProducer>,
        mut taps: PerStream<Vec<NewConsumer>>,
        mut both: Vec<NewConsumer>,
        relay: Option<Box<dyn Tap>>,
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
        let consumes = !both.is_empty() || taps.values().any(|taps| !taps.is_empty());
        let wake = match producer.is_some() || consumes {
            true => {
                let wake = Wake::new().map_err(|error| SpawnError::new(Step::Pipe, "", error))?;
                Some(Arc::new(wake))
            }
            false => None,
        };
        Ok(Attachments {
            producer,
            taps,
            both,
            wake,
        })
    }

    /// True if the program gets a pipe for stdin.
    pub(super) fn feeds(&self, spec: &Spec) -> bool {
        self.producer.is_some() || matches!(spec.stdin, Stdin::Bytes(_))
    }

    /// Puts drains, consumers and a feed to the ends of the pipes. `consumers` gets
    /// those that have started, also when this fails.
    pub(super) fn connect<M: Memory>(
        self,
        spec: &Spec,
        ends: OurEnds,
        now: Instant,
        framing: &Framing,
        consumers: &mut Vec<OutputConsumer>,
    ) -> io::Result<Inline<M>> {
        let Attachments {
            producer,
            taps,
            both,
            wake,
        } = self;
        let in_order = !both.is_empty();
        let mut queues = PerStream::<Vec<_>>::default();
        let read = ends.outputs.as_ref().map(Option::is_some);
        let only = |one| PerStream::from_fn(|stream| stream == one);
        let apart = taps.into_iter().map(|(stream, taps)| (only(stream), taps));
        for (streams, taps) in apart.chain([(read, both)]) {
            for (new, wake) in taps.into_iter().zip(wake.iter().cycle()) {
                let streams = match streams == PerStream::new(true, true) {
                    true if new.role == ConsumerRole::Relay => spec.relays(),
                    _ => streams,
                };
                let consumer = OutputConsumer::start(new, streams, wake, framing)?;
                for stream in streams.chosen() {
                    queues[stream].push(Arc::clone(&consumer.fifo));
                }
                consumers.push(consumer);
            }
        }
        let (mut slave, keyboard) = match ends.terminal {
            Some(terminal) => (Some(terminal.slave), terminal.keyboard),
            None => (None, None),
        };
        let is_terminal = slave.is_some();
        let mut drains = PerStream::new(None, None);
        for (stream, (end, queues)) in ends.outputs.zip(queues) {
            let Some(end) = end else { continue };
            #[cfg(procwright_fault)]
            let end = crate::fault::without_last_byte(end, stream)?;
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
        let feed = match (ends.stdin, producer, &wake) {
            (Some(fd), Some(producer), Some(wake)) => {
                let queue = Fifo::new(Arc::clone(wake), 1);
                produce(producer, Arc::clone(&queue))?;
                Some(Feed::new(fd, FeedSource::Queue(queue)))
            }
            (Some(fd), ..) => match &spec.stdin {
                Stdin::Bytes(bytes) => Some(Feed::new(fd, FeedSource::Bytes(bytes.clone()))),
                _ => None,
            },
            (None, ..) => None,
        };
        let typist = keyboard.map(KeyboardRelay::new);
        let merged = spec.merged;
        Ok(Inline::new(drains, feed, typist, wake, merged, in_order))
    }
}

/// The streams of a run to which nothing could be put.
pub(super) fn without_streams<M: Memory>() -> Inline<M> {
    Inline::new(PerStream::default(), None, None, None, false, false)
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
                let error = SpawnError::new(Step::Open, path.to_string_lossy(), error);
                error.with_hint("it is to keep all of the output: name a file that can be written")
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

/// Pulls stdin from `producer` on a thread of its own.
fn produce(mut producer: StdinProducer, queue: Arc<Fifo<Bytes>>) -> io::Result<()> {
    std::thread::Builder::new()
        .name("procwright-stdin".into())
        .spawn(move || {
            let finishing = FinishOnDrop(&queue);
            let error = loop {
                match producer() {
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
        })?;
    Ok(())
}

/// Ends stdin also when the producer panics: the program must not wait for more.
struct FinishOnDrop<'a>(&'a Fifo<Bytes>);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish(Some("the producer of stdin panicked".into()));
    }
}
