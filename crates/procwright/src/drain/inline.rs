//! Drives drains and a feed on the caller's thread.

mod terminal;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::feed::Fed;
use super::load::Load;
use super::side::Side;
use super::typist::Typist;
use super::{Drain, Feed, Step};
use crate::spool::Memory;
use crate::spool::fifo::BoxError;
use crate::sys::poll::{self, Flags};
use crate::sys::thread::has_several_processors;
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// How many times round before the clock and the other descriptors get a look
/// while bytes keep coming.
const BURST: usize = 16;

/// What has to happen before the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Nothing: step.
    Nothing,
    /// The descriptor must become ready.
    Ready,
    /// The wake-up must ring.
    Wake,
    /// It is over, but the descriptor stays open.
    Over,
}

#[derive(Debug)]
struct Lane<T> {
    work: T,
    need: Need,
}

/// A piece of the merged output: so many bytes of one stream, read in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// 1 for stdout, 2 for stderr.
    pub stream: u8,
    /// The number of bytes.
    pub bytes: u64,
}

/// What a turn ended with.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Which of the watched descriptors are ready, by their place.
    pub(crate) ready: [bool; WATCH],
    /// The producer of stdin failed.
    pub(crate) feed_failed: Option<BoxError>,
}

/// How many descriptors a turn can watch beside the streams.
pub(crate) const WATCH: usize = 4;

/// The two output streams and stdin of one run, on one thread.
#[derive(Debug)]
pub(crate) struct Inline<M> {
    lanes: [Option<Lane<Drain<M>>>; 2],
    feed: Option<Lane<Feed>>,
    /// Into the terminal that the first stream is.
    typist: Option<Lane<Typist>>,
    /// Rung by consumers that have room again and producers that have bytes;
    /// none if there are neither.
    wake: Option<Arc<Wake>>,
    /// Stderr, while it is on a thread of its own and not in its lane.
    side: Option<Side<M>>,
    load: Load,
    /// When a consumer last let go of a stream that it held up.
    released: Option<Instant>,
    order: Option<Vec<Segment>>,
    /// Whether somebody gets both streams in the order of reading.
    in_order: bool,
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flow {
    /// How many bytes have been read.
    pub bytes: u64,
    /// How long the program could not write because the pipe was full, up to now.
    /// An upper bound; zero if it never was, none where that is not known, as of
    /// a terminal.
    pub blocked: Option<Duration>,
}

impl<M: Memory> Inline<M> {
    pub(crate) fn new(
        drains: [Option<Drain<M>>; 2],
        feed: Option<Feed>,
        typist: Option<Typist>,
        wake: Option<Arc<Wake>>,
        merged: bool,
        in_order: bool,
    ) -> Inline<M> {
        // Nothing has been written yet, so the first step is to wait. A feed
        // has bytes and a pipe that is empty.
        Inline {
            lanes: drains.map(|drain| {
                drain.map(|work| Lane {
                    work,
                    need: Need::Ready,
                })
            }),
            feed: feed.map(|work| Lane {
                work,
                need: Need::Nothing,
            }),
            typist: typist.map(|work| Lane {
                work,
                need: Need::Nothing,
            }),
            wake,
            side: None,
            load: Load::new([0, 0], Instant::now()),
            released: None,
            order: merged.then(Vec::new),
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
    ) -> io::Result<Turn> {
        let mut turn = Turn::default();
        let pumped = self.pump(&mut turn)?;
        self.promote();
        let sleeps = match pumped {
            Pumped::Nothing => true,
            // The caller has something to look at before anybody waits.
            Pumped::Some => return Ok(turn),
            Pumped::Flood => false,
        };
        let then = Instant::now();
        let deadline = match sleeps {
            true => deadline,
            false => Deadline::at(then),
        };
        let deadline = deadline.min(self.next_look());
        match self.wait(watch, deadline, &mut turn) {
            Ok(()) => self.note_wait(then, sleeps),
            // A signal handler has run. Whoever wants to know has a descriptor
            // among those watched: that is never missed, and this could be.
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        Ok(turn)
    }

    /// Tells the streams what a wait that began at `then` says about them.
    fn note_wait(&mut self, then: Instant, slept: bool) {
        let now = Instant::now();
        if slept {
            self.load.slept(now.saturating_duration_since(then));
        }
        for lane in self.lanes.iter_mut().flatten() {
            match (lane.need, slept) {
                // Looked at, and not reported ready.
                (Need::Ready, false) => lane.work.was_empty(then),
                (Need::Nothing, true) => lane.work.slept(now),
                _ => {}
            }
        }
    }

    /// Steps whatever needs nothing, round and round.
    fn pump(&mut self, turn: &mut Turn) -> io::Result<Pumped> {
        let mut pumped = Pumped::Nothing;
        for _ in 0..BURST {
            let mut moved = false;
            for (index, lane) in self.lanes.iter_mut().enumerate() {
                let Some(lane) = lane else { continue };
                if lane.need != Need::Nothing || lane.work.has_ended() {
                    continue;
                }
                let before = lane.work.bytes();
                lane.need = match lane.work.step()? {
                    Step::Moved => Need::Nothing,
                    Step::Empty => Need::Ready,
                    Step::Held => Need::Wake,
                    Step::End => {
                        pumped = Pumped::Some;
                        continue;
                    }
                };
                moved |= lane.need == Need::Nothing;
                note(&mut self.order, index, lane.work.bytes() - before);
            }
            let fed = self.feed_once(turn)?;
            moved |= fed | self.type_once()?;
            if !moved {
                return Ok(pumped);
            }
            pumped = Pumped::Some;
        }
        Ok(Pumped::Flood)
    }

    /// Gives stderr a thread of its own if both streams are more than one can
    /// take.
    fn promote(&mut self) {
        let [Some(out), Some(err)] = &self.lanes else {
            return;
        };
        let bytes = [out.work.bytes(), err.work.bytes()];
        if !self.load.is_too_much(bytes, Instant::now()) {
            return;
        }
        let held = |lane: &Lane<Drain<M>>| lane.need == Need::Wake || lane.work.has_ended();
        // The order of two streams can be told only by one reader; and on one
        // processor a second thread has nowhere to run.
        let ordered = self.in_order || self.order.is_some();
        if ordered || held(out) || held(err) || !has_several_processors() {
            return;
        }
        if let Some(Lane { work, .. }) = self.lanes[1].take() {
            match Side::start(work) {
                Ok(side) => self.side = Some(side),
                Err(work) => self.put_back(*work),
            }
        }
    }

    fn put_back(&mut self, work: Drain<M>) {
        // Whatever it waited for over there, the first step here finds out.
        let need = Need::Nothing;
        self.lanes[1] = Some(Lane { work, need });
    }

    /// Fetches stderr back into its lane.
    fn recall(&mut self) -> io::Result<()> {
        let Some(side) = self.side.take() else {
            return Ok(());
        };
        let (drain, result) = side.recall()?;
        self.put_back(drain);
        result.map(|_| ())
    }

    fn feed_once(&mut self, turn: &mut Turn) -> io::Result<bool> {
        let Some(lane) = &mut self.feed else {
            return Ok(false);
        };
        if lane.need != Need::Nothing {
            return Ok(false);
        }
        match lane.work.step()? {
            Fed::Moved => return Ok(true),
            Fed::Full => lane.need = Need::Ready,
            Fed::Empty => lane.need = Need::Wake,
            Fed::Done => {
                self.feed = None;
                return Ok(true);
            }
            Fed::Failed(error) => {
                turn.feed_failed = Some(error);
                // The program must not take half of its input for all of it: it
                // sees no end before it is stopped.
                lane.need = Need::Over;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn wait(
        &mut self,
        watch: [Option<BorrowedFd<'_>>; WATCH],
        deadline: Deadline,
        turn: &mut Turn,
    ) -> io::Result<()> {
        let mut fds = Vec::with_capacity(WATCH + 4);
        let mut whose = Vec::with_capacity(WATCH + 4);
        for (index, fd) in watch.iter().enumerate() {
            if let Some(fd) = fd {
                fds.push(poll::Fd::from_borrowed_fd(*fd, Flags::IN));
                whose.push(Whose::Watched(index));
            }
        }
        for (index, lane) in self.lanes.iter().enumerate() {
            if let Some(lane) = lane
                && lane.need == Need::Ready
                && !lane.work.has_ended()
                && let Some(fd) = lane.work.fd()
            {
                fds.push(poll::Fd::from_borrowed_fd(fd, Flags::IN));
                whose.push(Whose::Lane(index));
            }
        }
        if let Some(lane) = &self.feed {
            // Also without waiting for room: an error says that the program
            // reads no more, and then the producer need not go on.
            let events = match lane.need {
                Need::Ready => Flags::OUT,
                _ => Flags::empty(),
            };
            fds.push(poll::Fd::from_borrowed_fd(lane.work.fd(), events));
            whose.push(Whose::Feed);
        }
        if let Some(lane) = &self.typist
            && let Some(terminal) = self.lanes[0].as_ref().and_then(|lane| lane.work.fd())
            && let Some((fd, flags)) = lane.work.awaits(terminal)
        {
            fds.push(poll::Fd::from_borrowed_fd(fd, flags));
            whose.push(Whose::Typist);
        }
        if let Some(wake) = &self.wake {
            fds.push(poll::Fd::from_borrowed_fd(wake.as_fd(), Flags::IN));
            whose.push(Whose::Wake);
        }
        if let Some(side) = &self.side {
            fds.push(poll::Fd::from_borrowed_fd(side.done(), Flags::IN));
            whose.push(Whose::Side);
        }
        poll::poll(&mut fds, deadline)?;
        let ready: Vec<Whose> = fds
            .iter()
            .zip(whose)
            .filter(|(fd, _)| !fd.revents().is_empty())
            .map(|(_, whose)| whose)
            .collect();
        for whose in ready {
            match whose {
                Whose::Watched(index) => turn.ready[index] = true,
                Whose::Lane(index) => {
                    if let Some(lane) = &mut self.lanes[index] {
                        lane.need = Need::Nothing;
                    }
                }
                Whose::Feed => {
                    if let Some(lane) = &mut self.feed {
                        if lane.need == Need::Ready {
                            lane.need = Need::Nothing;
                        } else {
                            self.feed = None;
                        }
                    }
                }
                Whose::Typist => {
                    if let Some(lane) = &mut self.typist {
                        lane.need = Need::Nothing;
                    }
                }
                Whose::Wake => self.woken(),
                Whose::Side => self.recall()?,
            }
        }
        Ok(())
    }

    fn woken(&mut self) {
        if let Some(wake) = &self.wake {
            // Silence first, look second: a ring in between is not lost.
            wake.silence();
        }
        for lane in self.lanes.iter_mut().flatten() {
            if lane.need == Need::Wake {
                lane.need = Need::Nothing;
                self.released = Some(Instant::now());
            }
        }
        if let Some(lane) = &mut self.feed
            && lane.need == Need::Wake
        {
            lane.need = Need::Nothing;
        }
    }

    /// The program has exited: nobody reads stdin any more but processes that
    /// it left behind, and they get what it left in the pipe.
    pub(crate) fn stop_feeding(&mut self) {
        self.feed = None;
        self.typist = None;
    }

    /// Reads exactly what the pipes hold now, and ends the streams.
    ///
    /// # Errors
    /// As [`Drain::finish`].
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.recall()?;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if let Some(lane) = lane {
                let before = lane.work.bytes();
                lane.work.finish()?;
                note(&mut self.order, index, lane.work.bytes() - before);
            }
        }
        Ok(())
    }

    /// Gives up all streams: what was read of them stays.
    pub(crate) fn abandon(&mut self) {
        self.stop_feeding();
        let _ = self.recall();
        for lane in self.lanes.iter_mut().flatten() {
            lane.work.cut();
        }
    }

    /// Whether there is a stdin to write to.
    pub(crate) fn feeds(&self) -> bool {
        self.feed.is_some()
    }

    /// Closes one stream, 0 or 1, in the program's face.
    pub(crate) fn close(&mut self, stream: usize) {
        let _ = self.recall();
        if let Some(lane) = &mut self.lanes[stream] {
            lane.work.close();
        }
    }

    pub(crate) fn all_ended(&self) -> bool {
        // A stream on a thread of its own has not, or it would be back.
        let mut lanes = self.lanes.iter().flatten();
        self.side.is_none() && lanes.all(|lane| lane.work.has_ended())
    }

    /// Which of the two streams are being read.
    pub(crate) fn open_streams(&self) -> [bool; 2] {
        let [out, err] = self
            .lanes
            .each_ref()
            .map(|lane| lane.as_ref().is_some_and(|lane| !lane.work.has_ended()));
        [out, err || self.side.is_some()]
    }

    /// How far the two streams are, none where no pipe is between.
    pub(crate) fn flows(&self) -> [Option<Flow>; 2] {
        let [out, err] = self.lanes.each_ref().map(|lane| {
            lane.as_ref().map(|lane| Flow {
                bytes: lane.work.bytes(),
                blocked: lane.work.gauge().blocked(),
            })
        });
        [out, err.or_else(|| self.side.as_ref().map(Side::flow))]
    }

    /// Whether a consumer holds up a stream.
    pub(crate) fn is_held(&self) -> bool {
        self.lanes
            .iter()
            .flatten()
            .any(|lane| lane.need == Need::Wake)
    }

    /// When the latest byte of either stream was read, or could have been again
    /// after a consumer had held it up.
    pub(crate) fn last_read(&self) -> Option<Instant> {
        let lanes = self.lanes.iter().flatten();
        let here = lanes.filter_map(|lane| lane.work.last_read());
        here.chain(self.side.as_ref().map(Side::last_read))
            .chain(self.released)
            .max()
    }

    pub(crate) fn over_limit(&self) -> bool {
        self.lanes
            .iter()
            .flatten()
            .any(|lane| lane.work.over_limit())
    }

    /// The two streams once they have ended, none where no pipe is between.
    pub(crate) fn drains(&self) -> [Option<&Drain<M>>; 2] {
        self.lanes
            .each_ref()
            .map(|lane| lane.as_ref().map(|lane| &lane.work))
    }

    pub(crate) fn into_parts(mut self) -> ([Option<Drain<M>>; 2], Option<Vec<Segment>>) {
        // Streams end at home; this is for a run that gave up half-way.
        let _ = self.recall();
        (
            self.lanes.map(|lane| lane.map(|lane| lane.work)),
            self.order,
        )
    }
}

/// What became of the streams in a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pumped {
    /// Nothing could be moved.
    Nothing,
    /// Bytes were moved or a stream ended.
    Some,
    /// And there is more than one turn should take.
    Flood,
}

#[derive(Clone, Copy)]
enum Whose {
    Watched(usize),
    Lane(usize),
    Feed,
    Typist,
    Wake,
    Side,
}

/// Records that `bytes` of one stream came next.
fn note(order: &mut Option<Vec<Segment>>, index: usize, bytes: u64) {
    let Some(order) = order else { return };
    if bytes == 0 {
        return;
    }
    let stream = if index == 0 { 1 } else { 2 };
    match order.last_mut() {
        Some(last) if last.stream == stream => last.bytes += bytes,
        _ => order.push(Segment { stream, bytes }),
    }
}
