//! There and back.

use std::os::unix::net::UnixStream;
use std::time::Instant;

use nix::sys::time::TimeValLike as _;

use super::{Plan, Rx, Tx, Way, party, payload};

/// A message that begins so ends a batch, and is answered as any other.
pub const STOP: u64 = u64::MAX / 2;

/// Both ends of one side.
#[derive(Debug)]
pub struct Side<W: Way> {
    rx: W::Rx,
    tx: W::Tx,
    length: usize,
}

/// What both sides have: a way there and one back.
#[derive(Debug)]
pub struct Both<W: Way> {
    there: W::Common,
    back: W::Common,
    plan: Plan,
}

impl<W: Way> Both<W> {
    /// # Errors
    /// Why it cannot be had.
    pub fn new(plan: Plan) -> Result<Both<W>, String> {
        Ok(Both {
            there: W::common(&plan)?,
            back: W::common(&plan)?,
            plan,
        })
    }

    /// The side that begins.
    pub fn caller(&self, door: &UnixStream) -> Side<W> {
        let tx = W::sender(&self.there, &self.plan, 0, door);
        let rx = W::receiver(&self.back, &self.plan, &[clone(door)]);
        self.side(rx, tx)
    }

    /// The side that answers.
    pub fn answerer(&self, door: &UnixStream) -> Side<W> {
        let rx = W::receiver(&self.there, &self.plan, &[clone(door)]);
        let tx = W::sender(&self.back, &self.plan, 0, door);
        self.side(rx, tx)
    }

    fn side(&self, rx: W::Rx, tx: W::Tx) -> Side<W> {
        let length = self.plan.length;
        Side { rx, tx, length }
    }
}

fn clone(door: &UnixStream) -> UnixStream {
    door.try_clone().expect("a descriptor")
}

impl<W: Way> Side<W> {
    /// Answers until it is told to stop: the message that told it.
    pub fn answer(&mut self) -> u64 {
        loop {
            let word = self.hear();
            self.say(word);
            if word >= STOP {
                return word;
            }
        }
    }

    /// One that wakes the other side up, so many there and back, and one that ends
    /// it: the nanoseconds of one of the many.
    pub fn call(&mut self, trips: u64, stop: u64) -> f64 {
        self.trip(0);
        let began = Instant::now();
        for trip in 0..trips {
            self.trip(trip);
        }
        let took = began.elapsed().as_nanos() as f64 / trips as f64;
        self.trip(stop);
        took
    }

    /// How many take that long.
    pub fn calibrate(&mut self, batch_us: u64) -> u64 {
        let mut trips = 1;
        loop {
            let all = self.call(trips, STOP) * trips as f64;
            let wanted = batch_us as f64 * 1e3;
            if all * 4.0 > wanted {
                return ((trips as f64 * wanted / all) as u64).max(1);
            }
            trips *= 4;
        }
    }

    /// There and back once.
    ///
    /// # Panics
    /// When something else comes back.
    #[inline]
    pub fn trip(&mut self, word: u64) {
        self.say(word);
        assert_eq!(self.hear(), word, "another answer");
    }

    #[inline]
    fn say(&mut self, word: u64) {
        let fill = |bytes: &mut [u8]| payload::fill(bytes, word);
        self.tx.send(self.length, fill);
    }

    #[inline]
    fn hear(&mut self) -> u64 {
        // Of no bytes nothing can be told; then it is counted by who sends.
        let mut word = 0;
        let length = self.length;
        self.rx.recv(|bytes| word = payload::check(bytes, length));
        word
    }
}

/// What the last message of all begins with.
pub const END: u64 = STOP + 1;

/// The first trips of a queue that was made just now: the nanoseconds of each. Nothing is
/// warm but what both sides are.
///
/// # Errors
/// Why it cannot be had.
pub fn first<W: Way>(plan: Plan, trips: u64) -> Result<Vec<f64>, String> {
    let both: Both<W> = Both::new(plan)?;
    let both = &both;
    let answer = |_, door: UnixStream| {
        party::keep_to(plan, 1);
        let mut side = both.answerer(&door);
        while side.answer() != END {}
        party::hear(&door);
    };
    Ok(party::run(W::IS_OF_THREADS, 1, answer, |doors| {
        party::keep_to(plan, 0);
        let mut side = both.caller(&doors[0]);
        let timed = |trip| {
            let began = Instant::now();
            side.trip(trip);
            began.elapsed().as_nanos() as f64
        };
        let trips = (0..trips).map(timed).collect();
        side.trip(END);
        party::tell(&doors[0], 0);
        trips
    }))
}

/// The same with both sides in one thread, which none waits in: the nanoseconds of
/// processor time of each. What remains of a comparison on a machine that does other things;
/// no line of memory goes from one processor to another.
///
/// # Errors
/// Why it cannot be had.
pub fn first_alone<W: Way>(plan: Plan, trips: u64) -> Result<Vec<f64>, String> {
    let both: Both<W> = Both::new(plan)?;
    let way = |common: &W::Common| {
        let (one, other) = UnixStream::pair().map_err(|error| error.to_string())?;
        let mut rx = W::receiver(common, &plan, &[one]);
        let tx = W::sender(common, &plan, 0, &other);
        rx.meet();
        Ok::<_, String>((rx, tx))
    };
    let (there, back) = (way(&both.there)?, way(&both.back)?);
    let mut caller = both.side(back.0, there.1);
    let mut answerer = both.side(there.0, back.1);
    let timed = |trip| {
        let began = processor_ns();
        caller.say(trip);
        let word = answerer.hear();
        answerer.say(word);
        assert_eq!(caller.hear(), trip, "another answer");
        processor_ns() - began
    };
    Ok((0..trips).map(timed).collect())
}

/// The processor time of this thread.
fn processor_ns() -> f64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.map_or(0.0, |now| now.num_nanoseconds() as f64)
}

/// Batches of about so many microseconds: the nanoseconds of a trip in each.
///
/// # Errors
/// Why it cannot be had.
pub fn measure<W: Way>(plan: Plan, batches: u64, batch_us: u64) -> Result<Vec<f64>, String> {
    let both: Both<W> = Both::new(plan)?;
    let both = &both;
    let answer = |_, door: UnixStream| {
        party::keep_to(plan, 1);
        let mut side = both.answerer(&door);
        while side.answer() != END {}
        // What is on its way is lost with who sent it, with some of them.
        party::hear(&door);
    };
    Ok(party::run(W::IS_OF_THREADS, 1, answer, |doors| {
        party::keep_to(plan, 0);
        let mut side = both.caller(&doors[0]);
        let trips = side.calibrate(batch_us);
        let batches = (0..batches).map(|_| side.call(trips, STOP)).collect();
        side.trip(END);
        party::tell(&doors[0], 0);
        batches
    }))
}
