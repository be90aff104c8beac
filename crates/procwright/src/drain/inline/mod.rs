//! Drives drains and a feed on the caller's thread.

mod driven;
mod keyboard;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use super::feed::{Feed, FeedStep};
use super::flow::Flow;
use super::keyboard_relay::KeyboardRelay;
use super::meter::Gauge;
use super::output::{Drain, DrainStep};
use super::saturation::Saturation;
use super::second_thread::SecondThread;
use super::segment::{Order, Segment};
use crate::error::BoxError;
use crate::spool::Memory;
use crate::std_stream::{PerStream, StdStream};
use procwright_os::poll::{self, Flags};
use procwright_os::thread::has_several_processors;
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

use driven::{Driven, Need};
use keyboard::DrivenKeyboard;

/// Rounds of steps after which the clock and the other descriptors get a look while
/// bytes keep coming.
const BURST: usize = 16;

/// The outcome of a turn.
#[derive(Debug, Default)]
pub(crate) struct InlineTurn {
    /// The watched descriptors that are ready, by their place.
    pub(crate) ready: [bool; WATCH],
    /// The producer of stdin failed.
    pub(crate) feed_failed: Option<BoxError>,
}

/// The number of descriptors that a turn can watch beside the streams.
pub(crate) const WATCH: usize = 4;

/// The two output streams and stdin of one run, on one thread.
#[derive(Debug)]
pub(crate) struct Inline<M> {
    outputs: PerStream<Option<Driven<Drain<M>>>>,
    feed: Option<Driven<Feed>>,
    /// The keyboard, if the first stream is a terminal.
    keyboard: DrivenKeyboard,
    /// Rung by consumers that have room again and producers that have bytes;
    /// none if there are neither.
    wake: Option<Arc<Wake>>,
    /// Stderr, while it is on a thread of its own and not in its output.
    second_thread: Option<SecondThread<M>>,
    saturation: Saturation,
    /// The time at which a consumer last made room for a stream that it had held up.
    released: Option<Instant>,
    order: Option<Order>,
    /// A consumer gets both streams in the order of reading.
    in_order: bool,
}

impl<M: Memory> Inline<M> {
    pub(crate) fn new(
        drains: PerStream<Option<Drain<M>>>,
        feed: Option<Feed>,
        keyboard: Option<KeyboardRelay>,
        wake: Option<Arc<Wake>>,
        merged: bool,
        in_order: bool,
    ) -> Inline<M> {
        // An output has nothing to read yet, so its first step is to wait. A feed has bytes
        // and an empty pipe, so its first step is to write.
        Inline {
            outputs: drains.map(|drain| drain.map(|drain| Driven::new(drain, Need::Ready))),
            feed: feed.map(|feed| Driven::new(feed, Need::Nothing)),
            keyboard: DrivenKeyboard::new(keyboard),
            wake,
            second_thread: None,
            saturation: Saturation::new(PerStream::default(), Instant::now()),
            released: None,
            order: merged.then(Order::default),
            in_order,
        }
    }

    /// Moves what can be moved; if that was nothing, waits until something can
    /// be, one of `watch` is ready, `deadline` comes or a signal handler runs.
    ///
    /// Returns after a bounded amount of work, so that a program that floods
    /// for ever cannot keep its own deadline from being looked at.
    ///
    /// # Errors
    /// As [`Drain::step`], [`Feed::step`] and `poll(2)`.
    pub(crate) fn turn(
        &mut self,
        watch: [Option<BorrowedFd<'_>>; WATCH],
        deadline: Deadline,
    ) -> io::Result<InlineTurn> {
        let mut turn = InlineTurn::default();
        let sleeps = match self.move_bytes(&mut turn)? {
            Moved::Nothing => true,
            // The caller has something to look at before the next wait.
            Moved::Some => return Ok(turn),
            Moved::Flood => false,
        };
        let then = Instant::now();
        let deadline = match sleeps {
            true => deadline,
            false => Deadline::at(then),
        };
        let deadline = deadline.min(self.next_look());
        match self.wait(watch, deadline, &mut turn) {
            Ok(()) => self.note_wait(then, sleeps),
            // A signal handler has run. A caller that wants to know has a descriptor
            // among those watched: that is never missed, and this could be.
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        Ok(turn)
    }

    /// The first half of a turn: moves what can be moved, and no more than one turn should.
    ///
    /// # Errors
    /// As [`Drain::step`] and [`Feed::step`].
    pub(crate) fn move_bytes(&mut self, turn: &mut InlineTurn) -> io::Result<Moved> {
        let moved = self.pump(turn)?;
        self.promote();
        Ok(moved)
    }

    /// The time at which the keyboard is looked at again.
    pub(crate) fn next_look(&self) -> Deadline {
        self.keyboard.next_look()
    }

    /// Tells the streams what a wait that began at `then` says about them.
    pub(crate) fn note_wait(&mut self, then: Instant, slept: bool) {
        let now = Instant::now();
        if slept {
            self.saturation.slept(now.saturating_duration_since(then));
        }
        for output in self.outputs.values_mut().flatten() {
            match (output.need, slept) {
                // Looked at, and not reported ready.
                (Need::Ready, false) => output.machine.was_empty(then),
                (Need::Nothing, true) => output.machine.slept(now),
                _ => {}
            }
        }
    }

    /// Steps all that need nothing, round and round.
    fn pump(&mut self, turn: &mut InlineTurn) -> io::Result<Moved> {
        let mut all_moved = Moved::Nothing;
        for _ in 0..BURST {
            let mut moved = false;
            for (stream, output) in self.outputs.iter_mut() {
                let Some(output) = output else { continue };
                if output.need != Need::Nothing || output.machine.has_ended() {
                    continue;
                }
                let before = output.machine.bytes();
                output.need = match output.machine.step()? {
                    DrainStep::Moved => Need::Nothing,
                    DrainStep::Empty => Need::Ready,
                    DrainStep::Held => Need::Wake,
                    DrainStep::End => {
                        output.machine.close_if_unwanted();
                        all_moved = Moved::Some;
                        continue;
                    }
                };
                moved |= output.need == Need::Nothing;
                if let Some(order) = &mut self.order {
                    order.add(stream, output.machine.bytes() - before);
                }
            }
            if moved {
                self.look_for_pause();
            }
            let fed = self.feed_once(turn)?;
            let terminal = || self.outputs.stdout.as_ref()?.machine.fd();
            moved |= fed | self.keyboard.step(terminal)?;
            if !moved {
                return Ok(all_moved);
            }
            all_moved = Moved::Some;
        }
        Ok(Moved::Flood)
    }

    /// Looks whether both streams are empty, for those who want to know the order of the two.
    fn look_for_pause(&mut self) {
        if let Some(order) = &mut self.order {
            let open = self.outputs.values().flatten();
            let open = open.filter(|output| !output.machine.has_ended());
            order.look(open.filter_map(|output| output.machine.fd()));
        }
    }

    /// Gives stderr a thread of its own if both streams are more than one can
    /// take.
    fn promote(&mut self) {
        let (Some(out), Some(err)) = (&self.outputs.stdout, &self.outputs.stderr) else {
            return;
        };
        let bytes = PerStream::new(out.machine.bytes(), err.machine.bytes());
        if !self.saturation.is_reached(bytes, Instant::now()) {
            return;
        }
        let held =
            |output: &Driven<Drain<M>>| output.need == Need::Wake || output.machine.has_ended();
        // The order of two streams can be told only by one reader; and on one
        // processor a second thread has nowhere to run.
        let ordered = self.in_order || self.order.is_some();
        // Readers wake this thread.
        let ordered = ordered || out.machine.has_reader() || err.machine.has_reader();
        if ordered || held(out) || held(err) || !has_several_processors() {
            return;
        }
        if let Some(output) = self.outputs.stderr.take() {
            match SecondThread::start(output.machine) {
                Ok(second_thread) => self.second_thread = Some(second_thread),
                Err(drain) => self.put_back(*drain),
            }
        }
    }

    fn put_back(&mut self, drain: Drain<M>) {
        // The first step here finds out what the stream waits for.
        self.outputs.stderr = Some(Driven::new(drain, Need::Nothing));
    }

    /// Fetches stderr back into its output.
    fn recall(&mut self) -> io::Result<()> {
        let Some(second_thread) = self.second_thread.take() else {
            return Ok(());
        };
        let (drain, result) = second_thread.recall()?;
        self.put_back(drain);
        result.map(|_| ())
    }

    fn feed_once(&mut self, turn: &mut InlineTurn) -> io::Result<bool> {
        let Some(output) = &mut self.feed else {
            return Ok(false);
        };
        if output.need != Need::Nothing {
            return Ok(false);
        }
        match output.machine.step()? {
            FeedStep::Moved => return Ok(true),
            FeedStep::Full => output.need = Need::Ready,
            FeedStep::Empty => output.need = Need::Wake,
            FeedStep::Done => {
                self.feed = None;
                return Ok(true);
            }
            FeedStep::Failed(error) => {
                turn.feed_failed = Some(error);
                // The program must not take half of its input for all of it: it
                // sees no end before it is stopped.
                output.need = Need::Over;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn wait(
        &mut self,
        watch: [Option<BorrowedFd<'_>>; WATCH],
        deadline: Deadline,
        turn: &mut InlineTurn,
    ) -> io::Result<()> {
        let mut fds = Vec::with_capacity(WATCH + 4);
        let mut owners = Vec::with_capacity(WATCH + 4);
        self.awaits(watch, &mut |fd, owner| {
            fds.push(fd);
            owners.push(owner);
        })?;
        poll::poll(&mut fds, deadline)?;
        let ready: Vec<PollOwner> = fds
            .iter()
            .zip(owners)
            .filter(|(fd, _)| !fd.revents().is_empty())
            .map(|(_, owner)| owner)
            .collect();
        for owner in ready {
            self.note_ready(owner, turn)?;
        }
        Ok(())
    }

    /// The second half of a turn: adds what the streams wait for, and `watch`, to what is polled.
    ///
    /// # Errors
    /// As [`Feed::fd`].
    pub(crate) fn awaits<'f>(
        &'f self,
        watch: [Option<BorrowedFd<'f>>; WATCH],
        add: &mut dyn FnMut(poll::Fd<'f>, PollOwner),
    ) -> io::Result<()> {
        for (index, fd) in watch.into_iter().enumerate() {
            if let Some(fd) = fd {
                let fd = poll::Fd::from_borrowed_fd(fd, Flags::IN);
                add(fd, PollOwner::Watched(index));
            }
        }
        for (stream, output) in self.outputs.iter() {
            if let Some(output) = output
                && output.need == Need::Ready
                && !output.machine.has_ended()
                && let Some(fd) = output.machine.fd()
            {
                let fd = poll::Fd::from_borrowed_fd(fd, Flags::IN);
                add(fd, PollOwner::Lane(stream));
            }
        }
        if let Some(output) = &self.feed {
            // Polled without a wait for room as well: an error says that the program
            // reads no more, and then the producer need not go on.
            let events = match output.need {
                Need::Ready => Flags::OUT,
                _ => Flags::empty(),
            };
            let fd = poll::Fd::from_borrowed_fd(output.machine.fd()?, events);
            add(fd, PollOwner::Feed);
        }
        let terminal = || self.outputs.stdout.as_ref()?.machine.fd();
        if let Some((fd, flags)) = self.keyboard.awaits(terminal) {
            add(poll::Fd::from_borrowed_fd(fd, flags), PollOwner::Keyboard);
        }
        if let Some(wake) = &self.wake {
            let fd = poll::Fd::from_borrowed_fd(wake.as_fd(), Flags::IN);
            add(fd, PollOwner::Wake);
        }
        if let Some(second_thread) = &self.second_thread {
            let fd = poll::Fd::from_borrowed_fd(second_thread.done(), Flags::IN);
            add(fd, PollOwner::SecondThread);
        }
        Ok(())
    }

    /// Notes that what `owner` has waited for is there.
    ///
    /// # Errors
    /// Those of a stream on a thread of its own.
    pub(crate) fn note_ready(&mut self, owner: PollOwner, turn: &mut InlineTurn) -> io::Result<()> {
        match owner {
            PollOwner::Watched(index) => turn.ready[index] = true,
            PollOwner::Lane(stream) => {
                if let Some(output) = &mut self.outputs[stream] {
                    output.need = Need::Nothing;
                }
            }
            PollOwner::Feed => {
                if let Some(output) = &mut self.feed {
                    if output.need == Need::Ready {
                        output.need = Need::Nothing;
                    } else {
                        self.feed = None;
                    }
                }
            }
            PollOwner::Keyboard => self.keyboard.set_ready(),
            PollOwner::Wake => self.woken(),
            PollOwner::SecondThread => self.recall()?,
        }
        Ok(())
    }

    fn woken(&mut self) {
        if let Some(wake) = &self.wake {
            // Silence first, step second: a ring in between is not lost.
            wake.silence();
        }
        for output in self.outputs.values_mut().flatten() {
            output.machine.close_if_unwanted();
            if output.need == Need::Wake {
                output.need = Need::Nothing;
                self.released = Some(Instant::now());
            }
        }
        if let Some(output) = &mut self.feed
            && output.need == Need::Wake
        {
            output.need = Need::Nothing;
        }
    }

    /// Closes stdin: the program has exited, and all that may read on are processes that
    /// it left behind, and they get what it left in the pipe.
    pub(crate) fn stop_feeding(&mut self) {
        self.feed = None;
        self.keyboard.close();
    }

    /// The program has exited. What it has left behind may go on, but what is typed is
    /// not for that, no more than a terminal's window stays for it.
    pub(crate) fn exited(&mut self) {
        self.keyboard.close();
        if let Some(output) = &mut self.outputs.stdout {
            output.machine.exited();
        }
    }

    /// The terminal that the first stream is, if it is one.
    pub(crate) fn terminal(&self) -> Option<BorrowedFd<'_>> {
        self.outputs.stdout.as_ref()?.machine.terminal()
    }

    /// Reads exactly what the pipes hold now, and ends the streams; one that leads to a reader
    /// by the next turns, as that has room.
    ///
    /// # Errors
    /// As [`Drain::finish`].
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.recall()?;
        for (stream, output) in self.outputs.iter_mut() {
            if let Some(output) = output {
                if output.machine.has_reader() {
                    output.machine.finish_in_steps();
                    if output.need == Need::Ready {
                        output.need = Need::Nothing;
                    }
                    continue;
                }
                let before = output.machine.bytes();
                output.machine.finish()?;
                if let Some(order) = &mut self.order {
                    order.add(stream, output.machine.bytes() - before);
                }
            }
        }
        Ok(())
    }

    /// Gives up all streams: what was read of them stays.
    pub(crate) fn abandon(&mut self) {
        self.stop_feeding();
        let _ = self.recall();
        for output in self.outputs.values_mut().flatten() {
            output.machine.cut();
        }
    }

    /// The wake-up that a turn listens to.
    ///
    /// # Errors
    /// When there was none yet, and no descriptor is left for one.
    pub(crate) fn wake(&mut self) -> io::Result<Arc<Wake>> {
        if let Some(wake) = &self.wake {
            return Ok(Arc::clone(wake));
        }
        let wake = Arc::new(Wake::new()?);
        Ok(Arc::clone(self.wake.insert(wake)))
    }

    /// Views of the time for which the program could not write, and of its pipes.
    pub(crate) fn gauges(&self) -> PerStream<Option<Gauge>> {
        let outputs = self.outputs.as_ref();
        outputs.map(|output| output.as_ref().map(|output| output.machine.gauge()))
    }

    /// True while there is a stdin to write to.
    pub(crate) fn feeds(&self) -> bool {
        self.feed.is_some()
    }

    /// Closes one stream while the program may still write to it.
    pub(crate) fn close(&mut self, stream: StdStream) {
        let _ = self.recall();
        if let Some(output) = &mut self.outputs[stream] {
            output.machine.close();
        }
    }

    pub(crate) fn all_ended(&self) -> bool {
        // A stream on a thread of its own has not, or it would be back.
        let mut outputs = self.outputs.values().flatten();
        self.second_thread.is_none() && outputs.all(|output| output.machine.has_ended())
    }

    /// The streams that are being read.
    pub(crate) fn open_streams(&self) -> PerStream<bool> {
        let is_open = |output: &Option<Driven<Drain<M>>>| {
            let output = output.as_ref();
            output.is_some_and(|output| !output.machine.has_ended())
        };
        let mut open = self.outputs.as_ref().map(is_open);
        open.stderr |= self.second_thread.is_some();
        open
    }

    /// The progress of both streams, none where no pipe is between.
    pub(crate) fn flows(&self) -> PerStream<Option<Flow>> {
        let mut flows = self.outputs.as_ref().map(|output| {
            output.as_ref().map(|output| Flow {
                bytes: output.machine.bytes(),
                blocked: output.machine.gauge().blocked(),
            })
        });
        flows.stderr = flows
            .stderr
            .or_else(|| self.second_thread.as_ref().map(SecondThread::flow));
        flows
    }

    /// True while a consumer holds up a stream.
    pub(crate) fn is_held(&self) -> bool {
        self.outputs
            .values()
            .flatten()
            .any(|output| output.need == Need::Wake)
    }

    /// True while a stream is on a thread of its own, which gives it back once it has been
    /// empty for a moment.
    pub(crate) fn is_split(&self) -> bool {
        self.second_thread.is_some()
    }

    /// The time at which the latest byte of either stream was read, or could have been
    /// again after a consumer had held it up.
    pub(crate) fn last_read(&self) -> Option<Instant> {
        let outputs = self.outputs.values().flatten();
        let here = outputs.filter_map(|output| output.machine.last_read());
        here.chain(self.second_thread.as_ref().map(SecondThread::last_read))
            .chain(self.released)
            .max()
    }

    /// The unfinished line of the stream that has come last, where the ends of streams are kept.
    pub(crate) fn prompt(&self) -> Option<String> {
        let outputs = self.outputs.values().flatten();
        let last = outputs.max_by_key(|output| output.machine.last_read())?;
        last.machine.last_words()?.unfinished_line()
    }

    pub(crate) fn over_limit(&self) -> bool {
        self.outputs
            .values()
            .flatten()
            .any(|output| output.machine.excess() > 0)
    }

    /// The two streams once they have ended, none where no pipe is between.
    pub(crate) fn drains(&self) -> PerStream<Option<&Drain<M>>> {
        self.outputs
            .as_ref()
            .map(|output| output.as_ref().map(|output| &output.machine))
    }

    pub(crate) fn into_parts(mut self) -> (PerStream<Option<Drain<M>>>, Option<Vec<Segment>>) {
        // Stderr has come back before its end; this is for a run that gave up half-way.
        let _ = self.recall();
        (
            self.outputs
                .map(|output| output.map(|output| output.machine)),
            self.order.map(Order::into_segments),
        )
    }
}

/// The outcome of the steps of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Nothing could be moved.
    Nothing,
    /// Bytes were moved or a stream ended.
    Some,
    /// Bytes were moved, and there are more than one turn should take.
    Flood,
}

/// The part of a run that waits for a descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PollOwner {
    Watched(usize),
    Lane(StdStream),
    Feed,
    Keyboard,
    Wake,
    SecondThread,
}

#[cfg(test)]
mod order_tests;
