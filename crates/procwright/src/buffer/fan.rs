//! From one input to several outputs, each of which gets all of it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::error::Error;
use super::pipe_growth::PipeGrowth;
use super::write_output::{OutputFailure, write_output};
use crate::spool::Overflow;
use crate::spool::elastic::{self, ElasticProducer, Monitor, Space};
use procwright_os::fork::CloseOnFork;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::thread;
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// The most that is read at once: what a usual pipe holds.
const CHUNK: usize = 64 << 10;

/// One input whose bytes go to several outputs, through a queue and a thread for each: the policy
/// of the queues says whether one that does not take them holds up the others.
///
/// A byte is copied once for each output. *Rejected: `tee(2)`,* which duplicates what is in a pipe
/// without a copy, but only as much as the fullest output has room for: the queues, which keep what
/// a slow one has not taken, would need the bytes all the same.
pub(crate) struct Fan {
    ways: Vec<Way>,
    room: Arc<Wake>,
}

/// What keeps an output from getting all.
pub(crate) struct FanFailure {
    pub(crate) error: Error,
    /// The outputs that have not got all, which whoever keeps these keeps open.
    pub(crate) outputs: Vec<Arc<CloseOnFork>>,
}

/// What leads to one output.
struct Way {
    /// None once nothing more is to be passed on to it.
    producer: Option<ElasticProducer>,
    monitor: Monitor,
    /// None once all has been given to the thread, which closes it when that is written.
    output: Option<Arc<CloseOnFork>>,
    writer: Option<JoinHandle<Written>>,
    is_over: Arc<AtomicBool>,
    /// How much of the chunk it has.
    taken: usize,
}

/// What came of the thread of an output; with the output, if that has not got all.
type Written = Result<(), (OutputFailure, Arc<CloseOnFork>)>;

/// A view of what leads to one output, for other threads.
#[derive(Clone, Debug)]
pub(crate) struct WayView {
    pub(crate) monitor: Monitor,
    is_over: Arc<AtomicBool>,
}

impl WayView {
    /// True once nothing more is written to the output.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Says so also when the thread that has it panics. Relaxed: it leads to no other memory.
struct OverOnDrop(Arc<AtomicBool>);

impl Drop for OverOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How much of a chunk a queue has taken.
enum Taken {
    All,
    /// As much as there was room for.
    Part,
    /// Nothing more is wanted.
    Closed,
}

impl Fan {
    /// Starts a thread for each of `outputs`, none of which blocks. They give up when `cut` rings.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the directory of the files cannot be used, [`Error::Setup`] if no
    /// descriptor or thread is left. The threads that were made end by themselves.
    pub(crate) fn begin(
        overflow: Overflow,
        outputs: Vec<OwnedFd>,
        cut: &Arc<Wake>,
    ) -> Result<Fan, Error> {
        let room = Arc::new(Wake::new().map_err(Error::Setup)?);
        let mut ways = Vec::with_capacity(outputs.len());
        for output in outputs {
            ways.push(Way::begin(overflow, output, &room, cut)?);
        }
        Ok(Fan { ways, room })
    }

    /// Views of what leads to each output.
    pub(crate) fn views(&self) -> Vec<WayView> {
        let view = |way: &Way| WayView {
            monitor: way.monitor.clone(),
            is_over: Arc::clone(&way.is_over),
        };
        self.ways.iter().map(view).collect()
    }

    /// Passes on what comes until the end of the input, or until no output has a reader. One whose
    /// reader has left is no matter for the others. `input` is closed as soon as no more is wanted
    /// of it, so that its writer learns of it.
    ///
    /// # Blocking
    /// Until then, and until each output that has a reader has got all.
    ///
    /// # Errors
    /// What kept a byte from being passed on to one of them. Nothing more is read then.
    pub(crate) fn read(mut self, input: OwnedFd) -> Result<(), FanFailure> {
        let stopped = self.pass_on(input);
        for way in &mut self.ways {
            if let Some(producer) = way.producer.take() {
                producer.end();
            }
            // After a failure who reads must not see an end.
            if stopped.is_ok() {
                way.output = None;
            }
        }
        if let Err(error) = stopped {
            // Nobody is waited for: one that has read all waits for an end that is kept from it,
            // and another may wait for that one. Their threads end when all is cut.
            let outputs = self.ways.iter_mut().filter_map(|way| way.output.take());
            let outputs = outputs.collect();
            return Err(FanFailure { error, outputs });
        }
        let mut failure = None;
        let mut outputs = Vec::new();
        for way in &mut self.ways {
            match way.join() {
                Ok(()) => {}
                Err((error, output)) => {
                    failure.get_or_insert(error);
                    outputs.extend(output);
                }
            }
            outputs.extend(way.output.take());
        }
        match failure {
            None => Ok(()),
            Some(error) => Err(FanFailure { error, outputs }),
        }
    }

    fn pass_on(&mut self, input: OwnedFd) -> Result<(), Error> {
        let input = CloseOnFork::new(input);
        let mut growth = PipeGrowth::default();
        let mut chunk = vec![0; CHUNK];
        let mut filled = 0;
        let mut offset = 0;
        let failed = |offset| move |source| Error::Read { offset, source };
        loop {
            let mut is_held = false;
            for way in &mut self.ways {
                match way.take(&chunk[..filled]).map_err(failed(offset))? {
                    Taken::All => {}
                    Taken::Part => is_held = true,
                    Taken::Closed => way.note_closed()?,
                }
            }
            let mut left = self.ways.iter().filter(|way| way.producer.is_some());
            if left.next().is_none() {
                return Ok(());
            }
            if !is_held {
                filled = 0;
                self.ways.iter_mut().for_each(|way| way.taken = 0);
            }
            let input = input.get().map_err(failed(offset))?;
            let is_readable = self.wait((!is_held).then_some(input));
            if !is_readable.map_err(failed(offset))? {
                continue;
            }
            match rustix::io::read(input, &mut chunk[..]) {
                Ok(0) => return self.ways.iter_mut().try_for_each(Way::note_end),
                Ok(n) => {
                    filled = n;
                    offset += n as u64;
                    growth.moved(input, n);
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(failed(offset)(error.into())),
            }
        }
    }

    /// Waits until the input, if it is to be read, has something, or a queue has room or is closed.
    /// The ways to outputs that have no reader any more are ended. True if the input is to be read.
    fn wait(&mut self, input: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        let mut open = Vec::with_capacity(self.ways.len());
        let mut fds = vec![Fd::new(&*self.room, Flags::IN)];
        for (at, way) in self.ways.iter().enumerate() {
            if let (Some(_), Some(output)) = (&way.producer, &way.output) {
                open.push(at);
                // That nobody reads is told without being asked for.
                fds.push(Fd::from_borrowed_fd(output.get()?, Flags::empty()));
            }
        }
        fds.extend(input.map(|input| Fd::from_borrowed_fd(input, Flags::IN)));
        match poll::poll(&mut fds, Deadline::NEVER) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(error),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        // Before the queues are asked: one that gets room from here on rings again.
        if ready[0] {
            self.room.silence();
        }
        for (nth, at) in open.iter().enumerate() {
            if ready[nth + 1]
                && let Some(producer) = self.ways[*at].producer.take()
            {
                producer.leave();
                self.ways[*at].output = None;
            }
        }
        Ok(input.is_some() && ready.last() == Some(&true))
    }
}

impl Way {
    fn begin(
        overflow: Overflow,
        output: OwnedFd,
        room: &Arc<Wake>,
        cut: &Arc<Wake>,
    ) -> Result<Way, Error> {
        let hook = Box::new(|_: &elastic::Event| {});
        let (producer, consumer, monitor) = elastic::elastic(overflow, Arc::clone(room), hook)?;
        let output = Arc::new(CloseOnFork::new(output));
        let is_over = Arc::new(AtomicBool::new(false));
        let (theirs, cut) = (Arc::clone(&output), Arc::clone(cut));
        let over = OverOnDrop(Arc::clone(&is_over));
        let write = move || {
            let _over = over;
            let fd = theirs.get().map_err(OutputFailure::Write);
            let written = fd.and_then(|fd| write_output(consumer, fd, Some(&cut)));
            written.map_err(|failure| (failure, theirs))
        };
        let writer = thread::spawn_quiet("procwright-out", write).map_err(Error::Setup)?;
        Ok(Way {
            producer: Some(producer),
            monitor,
            output: Some(output),
            writer: Some(writer),
            is_over,
            taken: 0,
        })
    }

    /// Puts what it has not taken yet of a chunk into its queue, as far as there is room.
    ///
    /// # Errors
    /// When the system has no memory.
    fn take(&mut self, chunk: &[u8]) -> io::Result<Taken> {
        let Some(producer) = &mut self.producer else {
            return Ok(Taken::All);
        };
        while self.taken < chunk.len() {
            match producer.area()? {
                Space::Area(area) => {
                    let rest = &chunk[self.taken..];
                    let n = area.len().min(rest.len());
                    area[..n].copy_from_slice(&rest[..n]);
                    producer.commit(n);
                    self.taken += n;
                }
                Space::Held => return Ok(Taken::Part),
                Space::Closed => return Ok(Taken::Closed),
            }
        }
        Ok(match producer.is_wanted() {
            true => Taken::All,
            false => Taken::Closed,
        })
    }

    /// Takes note that its queue is closed.
    ///
    /// # Errors
    /// The reason, unless it is that its reader has left, or that all is cut.
    fn note_closed(&mut self) -> Result<(), Error> {
        let Some(producer) = self.producer.take() else {
            return Ok(());
        };
        if let Some(offset) = producer.overflowed() {
            return Err(Error::Overflowed { offset });
        }
        drop(producer);
        match self.join() {
            Ok(()) => {
                self.output = None;
                Ok(())
            }
            // Its output is still here, and stays open.
            Err((error, _)) => Err(error),
        }
    }

    /// Takes note of the end of the input, which is no end for a queue that is closed.
    fn note_end(&mut self) -> Result<(), Error> {
        let producer = self.producer.as_ref();
        match producer.is_none_or(ElasticProducer::is_wanted) {
            true => Ok(()),
            false => self.note_closed(),
        }
    }

    /// Waits for its thread.
    ///
    /// # Errors
    /// What kept it from writing all, unless its reader has left; with the output.
    fn join(&mut self) -> Result<(), (Error, Option<Arc<CloseOnFork>>)> {
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        let offset = self.monitor.figures().bytes_out;
        let write = |source| Error::Write { offset, source };
        match writer.join() {
            Ok(Ok(()) | Err((OutputFailure::ReaderGone, _))) => Ok(()),
            Ok(Err((OutputFailure::Write(source), output))) => Err((write(source), Some(output))),
            Ok(Err((OutputFailure::Lost(error), output))) => Err((error, Some(output))),
            Err(_) => Err((write(io::Error::other("the thread panicked")), None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read, Write};

    use super::*;
    use procwright_os::pipe;

    /// A fan to so many readers, on a thread of its own; its input, and these.
    fn fan(
        overflow: Overflow,
        readers: usize,
    ) -> (
        std::fs::File,
        Vec<Option<PipeReader>>,
        JoinHandle<Result<(), FanFailure>>,
    ) {
        let (input, write) = pipe::pipe().unwrap();
        let pipes = (0..readers).map(|_| pipe::pipe().unwrap());
        let (reads, outputs): (Vec<_>, Vec<_>) = pipes.unzip();
        for output in &outputs {
            pipe::set_nonblocking(output).unwrap();
        }
        let cut = Arc::new(Wake::new().unwrap());
        let fan = Fan::begin(overflow, outputs, &cut).unwrap();
        let thread = std::thread::spawn(move || fan.read(input));
        let reads = reads.into_iter().map(|read| Some(PipeReader::from(read)));
        (write.into(), reads.collect(), thread)
    }

    #[test]
    fn one_that_never_reads_holds_up_nobody_while_there_is_room() {
        let memory = 4 << 20;
        let (mut input, mut readers, thread) = fan(Overflow::Block { memory }, 2);
        let data: Vec<u8> = (0..250_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut first = readers[0].take().unwrap();
        let expected = data.clone();
        let reads = std::thread::spawn(move || {
            let mut all = Vec::new();
            first.read_to_end(&mut all).unwrap();
            assert!(all == expected);
        });
        input.write_all(&data).unwrap();
        drop(input);
        // The second has not read a byte.
        reads.join().unwrap();
        let mut all = Vec::new();
        readers[1].take().unwrap().read_to_end(&mut all).unwrap();
        assert!(all == data);
        assert!(thread.join().unwrap().is_ok());
    }

    #[test]
    fn the_writer_is_told_when_the_last_reader_has_left() {
        let (mut input, mut readers, thread) = fan(Overflow::Block { memory: 4096 }, 3);
        readers[1] = None;
        let mut byte = [0];
        for reader in [0, 2] {
            input.write_all(b"x").unwrap();
            readers[reader]
                .as_mut()
                .unwrap()
                .read_exact(&mut byte)
                .unwrap();
            readers[2 - reader]
                .as_mut()
                .unwrap()
                .read_exact(&mut byte)
                .unwrap();
        }
        readers.clear();
        assert!(thread.join().unwrap().is_ok());
        let refused = procwright_os::signal::without_sigpipe(|| input.write_all(b"x"));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn more_than_may_be_kept_for_one_is_an_error_that_no_reader_takes_for_an_end() {
        let (mut input, mut readers, thread) = fan(Overflow::Fail { memory: 64 << 10 }, 2);
        let mut first = readers[0].take().unwrap();
        let mut second = readers[1].take().unwrap();
        let (told, tells) = std::sync::mpsc::channel();
        let reads = std::thread::spawn(move || {
            let mut all = Vec::new();
            first.read_to_end(&mut all).unwrap();
            told.send(()).unwrap();
        });
        // One reads, and one does not: of it more is kept than may be, sooner or later.
        let chunk = [0; 4096];
        while procwright_os::signal::without_sigpipe(|| input.write_all(&chunk)).is_ok() {}
        // What came before is still given.
        let late = std::thread::spawn(move || second.read_to_end(&mut Vec::new()).unwrap());
        let Err(failure) = thread.join().unwrap() else {
            panic!("no error")
        };
        let error = &failure.error;
        assert!(matches!(error, Error::Overflowed { .. }), "{error}");
        assert_eq!(failure.outputs.len(), 2);
        assert!(tells.try_recv().is_err() && !late.is_finished());
        drop(failure);
        reads.join().unwrap();
        assert!(late.join().unwrap() >= 64 << 10);
    }

    #[test]
    fn after_an_error_nobody_is_waited_for() {
        let (mut input, mut readers, thread) = fan(Overflow::Fail { memory: 64 << 10 }, 2);
        let mut first = readers[0].take().unwrap();
        let reads = std::thread::spawn(move || first.read_to_end(&mut Vec::new()).unwrap());
        let chunk = [0; 4096];
        while procwright_os::signal::without_sigpipe(|| input.write_all(&chunk)).is_ok() {}
        // The second reads nothing, as one that waits for the end of the first.
        let failure = thread.join().unwrap().err().unwrap();
        assert_eq!(failure.outputs.len(), 2);
        assert!(!reads.is_finished());
        drop(failure);
        assert!(reads.join().unwrap() >= 64 << 10);
        drop(readers);
    }
}
