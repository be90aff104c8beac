//! What is put to the ends of a run's pipes: drains, consumers, a feed.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::{NAMES, Run};
use crate::child::OurEnds;
use crate::drain::{Copies, Drain, Feed, Inline, Input, Store, Typist};
use crate::error::{SpawnError, Step};
use crate::run::tap::Consumer;
use crate::run::{Attached, Duty, FullFile, Kind, Producer, Tee};
use crate::spec::{Beyond, Limit, Spec, Stdin};
use crate::spool::Memory;
use crate::spool::fifo::Fifo;
use crate::sys::wake::Wake;

/// The files of `keep_full`, made before anything starts.
pub(super) fn full_files(spec: &Spec) -> Result<[Option<Attached>; 2], SpawnError> {
    let mut files = [None, None];
    let Some(path) = &spec.keep_full else {
        return Ok(files);
    };
    let mut beside = path.clone().into_os_string();
    beside.push(".stderr");
    let paths: [&Path; 2] = [path, beside.as_ref()];
    for ((file, path), captured) in files.iter_mut().zip(paths).zip(spec.captures()) {
        if captured {
            let tap = FullFile::create(path)
                .map_err(|e| SpawnError::new(Step::Open, path.to_string_lossy(), e))
                .map_err(|e| {
                    e.with_hint("it is to keep all of the output: name a file that can be written")
                })?;
            *file = Some((Kind::Pieces(Box::new(tap)), Duty::Keeps(path.to_path_buf())));
        }
    }
    Ok(files)
}

/// What passes a stream on to the caller's own, if it is to be.
pub(super) fn plain_relay(spec: &Spec, stream: usize) -> Result<Option<Attached>, SpawnError> {
    if !spec.relays()[stream] {
        return Ok(None);
    }
    let own = match stream {
        0 => io::stdout().as_fd().try_clone_to_owned(),
        _ => io::stderr().as_fd().try_clone_to_owned(),
    };
    let tee = Tee::new(own.map_err(|e| SpawnError::new(Step::Dup, NAMES[stream], e))?);
    Ok(Some((Kind::Pieces(Box::new(tee)), Duty::Relays)))
}

impl<M: Memory> Run<'_, M> {
    /// Puts drains, consumers and a feed to the ends of the pipes.
    pub(super) fn connect(
        &mut self,
        ends: OurEnds,
        producer: Option<Producer>,
        taps: [Vec<Attached>; 2],
        both: Vec<Attached>,
        wake: Option<Arc<Wake>>,
    ) -> io::Result<()> {
        let now = self.started;
        let read = ends.outputs.each_ref().map(Option::is_some);
        let in_order = !both.is_empty();
        let mut queues = [Vec::new(), Vec::new()];
        let [out, err] = taps;
        for (streams, taps) in [([true, false], out), ([false, true], err), (read, both)] {
            for ((tap, duty), wake) in taps.into_iter().zip(wake.iter().cycle()) {
                let streams = match (&duty, streams) {
                    (Duty::Relays, [true, true]) => self.spec.relays(),
                    _ => streams,
                };
                let consumer = Consumer::start(tap, duty, streams, wake)?;
                for (queues, gets) in queues.iter_mut().zip(streams) {
                    queues.extend(gets.then(|| Arc::clone(&consumer.fifo)));
                }
                self.consumers.push(consumer);
            }
        }
        let (mut slave, keyboard) = match ends.terminal {
            Some(terminal) => (Some(terminal.slave), terminal.keyboard),
            None => (None, None),
        };
        let is_terminal = slave.is_some();
        let mut drains = [None, None];
        for (stream, (end, queues)) in ends.outputs.into_iter().zip(queues).enumerate() {
            let Some(end) = end else { continue };
            #[cfg(procwright_fault)]
            let end = crate::fault::of_pipe(end, stream)?;
            let store = self.store(stream);
            let drain = match is_terminal {
                true => Drain::of_terminal(end.fd, slave.take(), store, now),
                false => Drain::new(end.fd, end.probe, store, now),
            };
            drains[stream] = Some(drain.with_copies(Copies { stream, queues }));
        }
        let feed = match (ends.stdin, producer, &wake) {
            (Some(fd), Some(producer), Some(wake)) => {
                let queue = Fifo::new(Arc::clone(wake), 1);
                produce(producer, Arc::clone(&queue))?;
                Some(Feed::new(fd, Input::Queue(queue)))
            }
            (Some(fd), ..) => match &self.spec.stdin {
                Stdin::Bytes(bytes) => Some(Feed::new(fd, Input::Bytes(bytes.clone()))),
                _ => None,
            },
            (None, ..) => None,
        };
        let typist = keyboard.map(Typist::new);
        self.inline = Inline::new(drains, feed, typist, wake, self.spec.merged, in_order);
        Ok(())
    }

    fn store(&self, stream: usize) -> Store<M> {
        let limit = self.spec.limit;
        #[cfg(procwright_fault)]
        let limit = crate::fault::of_limit(limit);
        if !self.spec.keeps()[stream] {
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
}

/// Pulls stdin from `producer` on a thread of its own.
fn produce(mut producer: Producer, queue: Arc<Fifo<Bytes>>) -> io::Result<()> {
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

/// A producer that panics must not leave the program waiting for more.
struct FinishOnDrop<'a>(&'a Fifo<Bytes>);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish(Some("the producer of stdin panicked".into()));
    }
}
