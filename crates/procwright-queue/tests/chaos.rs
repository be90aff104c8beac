//! Senders and receivers that are stopped, continued and killed at random.
#![allow(clippy::disallowed_methods)] // What happens at random takes time.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use test_support::alone;

use procwright_queue::{Error, Invitation, Options, Receiver, Sender};
use test_support::{Census, Dice, sys};

/// Makes a message of any length, with its sender's number, its own, and bytes that follow
/// from both.
fn message(sender: u64, number: u64, bytes: &mut Vec<u8>) {
    message_within(sender, number, u64::MAX, bytes);
}

/// Makes a message of at most so many bytes beside the numbers.
fn message_within(sender: u64, number: u64, most: u64, bytes: &mut Vec<u8>) {
    let seed = (sender ^ number << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let length = match seed >> 60 {
        0 => seed >> 44 & 0x7fff,
        _ => seed >> 50 & 0x7f,
    };
    let length = length.min(most);
    bytes.clear();
    bytes.extend(sender.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend((0..length).map(|i| (seed >> (i % 8)) as u8));
}

fn flood(mut queue: Sender, sender: u64) {
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        match number % 5 {
            // Several messages in one store.
            0 => {
                let mut three = [Vec::new(), Vec::new(), Vec::new()];
                for bytes in &mut three {
                    message(sender, number, bytes);
                    number += 1;
                }
                queue.send_many(three.iter().map(Vec::as_slice)).unwrap();
            }
            _ => {
                message(sender, number, &mut bytes);
                queue.send(&bytes).unwrap();
                number += 1;
            }
        }
        if number % 64 == 0 {
            std::thread::yield_now();
        }
    }
}

fn start(receiver: &mut Receiver, sender: u64) -> i32 {
    let invitation = receiver.invite().unwrap();
    sys::fork_pausing_after(move || {
        // The lane of a killed sender may not be free yet.
        if let Ok(queue) = Sender::attach(invitation) {
            flood(queue, sender);
        }
    })
}

alone! {
    fn kills_and_stops_hold_up_no_other_process() {
        let options = Options::new().lanes(8).first(4096).limit(1 << 20);
        let mut receiver = options.create().unwrap();
        let mut dice = Dice(7);
        let mut senders = BTreeMap::new();
        let mut next: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut born, mut killed, mut received) = (0, 0, 0u64);
        let mut expected = Vec::new();
        for _ in 0..test_support::scaled(600, 200_000) {
            match dice.roll(5) {
                0 if senders.len() < 5 => {
                    born += 1;
                    senders.insert(born, start(&mut receiver, born));
                }
                1 if !senders.is_empty() => {
                    let at = dice.place(senders.len());
                    let sender = *senders.keys().nth(at).unwrap();
                    let pid = senders.remove(&sender).unwrap();
                    sys::kill(pid, libc::SIGKILL);
                    sys::reap(pid);
                    killed += 1;
                }
                side => {
                    let signal = if side == 2 { libc::SIGSTOP } else { libc::SIGCONT };
                    if !senders.is_empty() {
                        let at = dice.place(senders.len());
                        sys::kill(*senders.values().nth(at).unwrap(), signal);
                    }
                }
            }
            for _ in 0..dice.roll(400) {
                let patience = Duration::from_micros(dice.roll(20) * dice.roll(2) * 1000);
                match receiver.recv_timeout(patience) {
                    Ok(bytes) => {
                        let part = |at: usize| bytes[at..at + 8].try_into().unwrap();
                        let sender = u64::from_le_bytes(part(0));
                        let number = next.entry(sender).or_default();
                        message(sender, *number, &mut expected);
                        assert_eq!(bytes, expected, "message {number} of sender {sender}");
                        *number += 1;
                        received += 1;
                    }
                    Err(Error::TimedOut | Error::Closed) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        for pid in senders.into_values() {
            sys::kill(pid, libc::SIGKILL);
            sys::reap(pid);
        }
        while !matches!(receiver.recv(), Err(Error::Closed)) {}
        // All lanes are free.
        let first = receiver.sender().unwrap();
        let others: Vec<_> = (1..8).map(|_| first.try_clone().unwrap()).collect();
        test_support::figure(&format!("{received} messages of {born} senders, {killed} killed"));
        drop((first, others));
    }
}

fn pause(micros: u64) {
    std::thread::sleep(Duration::from_micros(micros));
}

/// Takes its time now and then.
fn linger(dice: &mut Dice) {
    if dice.roll(100) == 0 {
        pause(dice.roll(2000));
    }
}

/// Facts about the senders of a round, in memory that survives them: four words for each,
/// whose number is never another's.
#[derive(Clone, Copy)]
struct Book(&'static [AtomicU64]);

/// Largest number of senders in a round, and the number of none.
const MOST_SENDERS: u64 = 4096;

impl Book {
    fn new() -> Book {
        Book(sys::steps::shared_numbers(4 * MOST_SENDERS as usize))
    }

    fn begin(self) {
        for word in self.0 {
            word.store(0, Ordering::SeqCst);
        }
    }

    /// Number of senders there have been.
    fn count(self) -> &'static AtomicU64 {
        &self.0[0]
    }

    /// Number of messages that came again.
    fn again(self) -> &'static AtomicU64 {
        &self.0[1]
    }

    fn receivers(self) -> &'static AtomicU64 {
        &self.0[2]
    }

    fn new_sender(self) -> Option<u64> {
        let id = self.count().fetch_add(1, Ordering::SeqCst) + 1;
        (id < MOST_SENDERS).then_some(id)
    }

    fn of(self, id: u64, what: usize) -> &'static AtomicU64 {
        &self.0[4 * id as usize + what]
    }

    /// Messages sent, once the call that the sender is in has returned.
    fn begun(self, id: u64) -> &'static AtomicU64 {
        self.of(id, 0)
    }

    /// Messages sent by calls that have returned.
    fn sent(self, id: u64) -> &'static AtomicU64 {
        self.of(id, 1)
    }

    /// Messages received, once those that a receiver has in its hands are.
    fn received(self, id: u64) -> &'static AtomicU64 {
        self.of(id, 2)
    }

    /// Messages received for good. That is all, unless a receiver has, or had, some in its
    /// hands: those in between may come again.
    fn let_go(self, id: u64) -> &'static AtomicU64 {
        self.of(id, 3)
    }
}

/// A queue of a round, and the shape of its messages and lanes.
#[derive(Clone, Copy)]
struct Place {
    book: Book,
    options: Options,
    /// Length of the longest message.
    most: u64,
    named: bool,
}

impl Place {
    fn message(&self, id: u64, number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        message_within(id, number, self.most, &mut bytes);
        bytes
    }

    /// Sends one message or some. A message that failed was not sent.
    fn send(&self, id: u64, queue: &mut Sender, dice: &mut Dice) {
        let book = self.book;
        let next = book.sent(id).load(Ordering::SeqCst);
        let short = Duration::from_micros(dice.roll(3000));
        let how = dice.roll(8);
        let count = if how == 0 { 1 + dice.roll(5) } else { 1 };
        book.begun(id).store(next + count, Ordering::SeqCst);
        let (sent, result) = match how {
            0 => {
                let all: Vec<_> = (0..count).map(|i| self.message(id, next + i)).collect();
                let mut taken = 0;
                let result = queue.send_many(all.iter().map(|bytes| {
                    taken += 1;
                    &bytes[..]
                }));
                // The message that failed is the last that was taken.
                let failed = u64::from(result.is_err());
                (taken - failed, result.map(drop))
            }
            1 => {
                let bytes = self.message(id, next);
                let result = queue.reserve(bytes.len()).map(|mut room| {
                    room.copy_from_slice(&bytes);
                    room.commit();
                });
                (u64::from(result.is_ok()), result)
            }
            _ => {
                let bytes = self.message(id, next);
                let result = match how {
                    2 => queue.try_send(&bytes),
                    3 => queue.send_timeout(&bytes, short),
                    _ => queue.send(&bytes),
                };
                (u64::from(result.is_ok()), result)
            }
        };
        book.sent(id).store(next + sent, Ordering::SeqCst);
        book.begun(id).store(next + sent, Ordering::SeqCst);
        match result {
            Ok(()) => {}
            // Another receiver has to take over first.
            Err(Error::ReceiverDead) => pause(300),
            Err(Error::Full | Error::TimedOut) => std::thread::yield_now(),
            Err(error) => panic!("sender {id}, message {next}: {error}"),
        }
    }

    /// Sends until it is killed, or has had enough. `come` is its way to the queue.
    fn talk(&self, mut dice: Dice, come: impl FnOnce() -> Result<Sender, Error>) {
        let mut queues = Vec::new();
        let new = |queue: Result<Sender, Error>, queues: &mut Vec<_>| match queue {
            Ok(queue) => queues.extend(self.book.new_sender().map(|id| (id, queue))),
            Err(Error::NoLane(_) | Error::ReceiverDead) => {}
            Err(error) => panic!("a sender that comes: {error}"),
        };
        new(come(), &mut queues);
        while !queues.is_empty() {
            match dice.roll(200) {
                0 if queues.len() < 3 => {
                    let queue = queues[0].1.try_clone();
                    new(queue, &mut queues);
                }
                1 => drop(queues.swap_remove(dice.place(queues.len()))),
                2 => pause(dice.roll(3000)),
                _ => {
                    let at = dice.place(queues.len());
                    let (id, queue) = &mut queues[at];
                    self.send(*id, queue, &mut dice);
                }
            }
        }
    }

    fn take_over(&self, spare: &Invitation) -> Result<Receiver, Error> {
        match self.named {
            true => self.options.open("chaos"),
            false => Receiver::take_over(spare),
        }
    }

    /// Receives until it is killed, and hands out some invitations.
    fn listen(&self, mut dice: Dice, mut receiver: Receiver, places: &UnixStream) {
        self.book.receivers().fetch_add(1, Ordering::SeqCst);
        for _ in 0..PLACES {
            receiver.invite().unwrap().send(places).unwrap();
        }
        let mut ledger = Ledger::new(*self);
        loop {
            ledger.receive(&mut receiver, &mut dice, true);
        }
    }
}

const PLACES: usize = 8;

/// Messages that one receiver has received.
struct Ledger {
    place: Place,
    /// Next message of each sender.
    next: BTreeMap<u64, u64>,
}

impl Ledger {
    fn new(place: Place) -> Ledger {
        let next = BTreeMap::new();
        Ledger { place, next }
    }

    /// Checks the messages in its hands, all of one sender, and writes that down. Returns
    /// the sender and the number after the last message, to be written down when they are
    /// released.
    fn look<'a>(&mut self, all: impl Iterator<Item = &'a [u8]>) -> (u64, u64) {
        let book = self.place.book;
        let mut held: Option<(u64, u64, u64)> = None;
        for bytes in all {
            let part = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            let (id, number) = (part(0), part(8));
            assert!((1..MOST_SENDERS).contains(&id), "of nobody: {id}");
            let whole = self.place.message(id, number);
            assert!(bytes == whole, "message {number} of sender {id} is another");
            let received = book.received(id).load(Ordering::SeqCst);
            match self.next.get(&id) {
                Some(next) => assert_eq!(number, *next, "of sender {id}"),
                // This receiver goes on where the last one was, to the message.
                None => {
                    let let_go = book.let_go(id).load(Ordering::SeqCst);
                    assert!(
                        (let_go..=received).contains(&number),
                        "message {number} of sender {id}, after {let_go} to {received}"
                    );
                }
            }
            if number < received && held.is_none() {
                book.again().fetch_add(1, Ordering::SeqCst);
            }
            assert!(held.is_none_or(|held| held.0 == id), "of two senders");
            self.next.insert(id, number + 1);
            held = Some((id, held.map_or(number, |held| held.1), number + 1));
        }
        let (id, first, next) = held.expect("a message");
        book.let_go(id).store(first, Ordering::SeqCst);
        book.received(id).store(next, Ordering::SeqCst);
        (id, next)
    }

    fn let_go(&self, (id, next): (u64, u64)) {
        self.place.book.let_go(id).store(next, Ordering::SeqCst);
    }

    /// Receives something, in some way. False if there is nothing.
    fn receive(&mut self, receiver: &mut Receiver, dice: &mut Dice, may_wait: bool) -> bool {
        let patience = Duration::from_micros(dice.roll(2) * dice.roll(30_000));
        let error = match dice.roll(4) {
            0 if may_wait => match receiver.recv_many(1 + dice.roll(40) as usize) {
                Ok(batch) => {
                    let done = self.look(batch.iter());
                    linger(dice);
                    drop(batch);
                    self.let_go(done);
                    return true;
                }
                Err(error) => error,
            },
            how => {
                let view = match how {
                    1 => receiver.try_recv_view(),
                    _ => receiver.recv_view_timeout(patience),
                };
                match view {
                    Ok(view) => {
                        let done = self.look(std::iter::once(&*view));
                        linger(dice);
                        drop(view);
                        self.let_go(done);
                        return true;
                    }
                    Err(error) => error,
                }
            }
        };
        match error {
            Error::TimedOut | Error::Empty => false,
            // The queue is not closed either: there is always a sender.
            error => panic!("a receiver: {error}"),
        }
    }
}

/// The processes of a round, and what became of those that are gone.
#[derive(Default)]
struct Crowd {
    senders: Vec<i32>,
    receivers: Vec<i32>,
    killed: u64,
}

/// Kills a process. One that has ended by itself has ended well.
fn kill(pid: i32) {
    sys::kill(pid, libc::SIGKILL);
    let status = sys::reap(pid);
    let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
    assert!(
        status == 0 || signal == Some(libc::SIGKILL),
        "{pid} has failed: {status:#x}"
    );
}

impl Crowd {
    /// Reaps the processes that have left.
    fn reap(&mut self) {
        for crowd in [&mut self.senders, &mut self.receivers] {
            crowd.retain(|pid| {
                let has_ended = test_support::state(*pid) == Some('Z');
                if has_ended {
                    kill(*pid);
                }
                !has_ended
            });
        }
    }

    fn all(&self) -> Vec<i32> {
        [&self.senders[..], &self.receivers].concat()
    }

    fn kill(&mut self, pid: i32) {
        kill(pid);
        self.killed += 1;
        self.senders.retain(|other| *other != pid);
        self.receivers.retain(|other| *other != pid);
    }
}

/// Some senders, and one receiver after another, none of which lives long.
fn chaos(book: Book, seed: u64, names: &std::path::Path) -> (u64, u64, u64) {
    let mut dice = Dice(seed);
    book.begin();
    let (lanes, first, limit, most) = dice
        .one_of(&[
            (8, 4096, 1 << 20, u64::MAX),
            (4, 4096, 4096, 900),
            (3, 4096, 1 << 16, 9000),
            (8, 1 << 14, 1 << 18, u64::MAX),
        ])
        .unwrap();
    let place = Place {
        book,
        options: Options::new().lanes(lanes as u32).first(first).limit(limit),
        most,
        named: dice.roll(2) == 0,
    };
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut crowd = Crowd::default();
    crowd.receivers.push(sys::fork_that(|| {
        let receiver = match place.named {
            true => place.options.open("chaos"),
            false => place.options.create(),
        };
        place.listen(Dice(seed), receiver.unwrap(), &theirs);
    }));
    let spare = Invitation::receive(&ours).unwrap();
    // A sender that sends nothing is there all the time, so the queue is.
    let idle = match place.named {
        true => Sender::open("chaos"),
        false => Sender::attach(Invitation::receive(&ours).unwrap()),
    }
    .unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut places = Vec::new();
    for _ in 0..200 {
        match dice.roll(3) {
            0 => {}
            sides => pause(dice.roll(sides * 1500)),
        }
        while let Ok(invitation) = Invitation::receive(&ours) {
            if places.len() < PLACES {
                places.push(invitation);
            }
        }
        crowd.reap();
        let seed = dice.roll(u64::MAX);
        match dice.roll(16) {
            0..=3 if crowd.senders.len() < 6 => {
                let invitation = places.pop();
                if invitation.is_none() && !place.named {
                    continue;
                }
                // Senders come by both ways, where there are two.
                let invitation = invitation.filter(|_| !place.named || seed & 1 == 0);
                crowd.senders.push(sys::fork_that(|| {
                    // A fork has copies of the invitations of others.
                    drop(std::mem::take(&mut places));
                    place.talk(Dice(seed), || match invitation {
                        Some(invitation) => Sender::attach(invitation),
                        None => Sender::open("chaos"),
                    });
                }));
            }
            4..=6 if crowd.receivers.len() < 3 => {
                crowd.receivers.push(sys::fork_that(|| {
                    drop(std::mem::take(&mut places));
                    loop {
                        match place.take_over(&spare) {
                            Ok(receiver) => place.listen(Dice(seed), receiver, &theirs),
                            Err(Error::ReceiverAlive { .. } | Error::NameTaken { .. }) => {
                                pause(500)
                            }
                            Err(error) => panic!("one who takes over: {error}"),
                        }
                    }
                }));
            }
            7 => drop(dice.one_of(&crowd.senders).map(|pid| crowd.kill(pid))),
            8 | 9 => drop(dice.one_of(&crowd.receivers).map(|pid| crowd.kill(pid))),
            10 => drop(
                dice.one_of(&crowd.all())
                    .map(|pid| sys::kill(pid, libc::SIGSTOP)),
            ),
            _ => drop(
                dice.one_of(&crowd.all())
                    .map(|pid| sys::kill(pid, libc::SIGCONT)),
            ),
        }
    }
    // The last receiver is here, and senders are killed while it receives.
    crowd
        .receivers
        .clone()
        .into_iter()
        .for_each(|pid| crowd.kill(pid));
    let mut receiver = place.take_over(&spare).unwrap();
    let mut ledger = Ledger::new(place);
    for pid in crowd.senders.clone() {
        sys::kill(pid, libc::SIGCONT);
        // A sender may be waiting for this one to receive.
        let mut turns = dice.roll(2000);
        while turns > 0 && ledger.receive(&mut receiver, &mut dice, false) {
            turns -= 1;
        }
        crowd.kill(pid);
    }
    // Every lane can be had, so all messages in them were received.
    let mut others = Vec::new();
    while others.len() < lanes - 1 {
        match idle.try_clone() {
            Ok(other) => others.push(other),
            Err(Error::NoLane(_)) => drop(ledger.receive(&mut receiver, &mut dice, false)),
            Err(error) => panic!("a lane cannot be had: {error}"),
        }
    }
    let count = book.count().load(Ordering::SeqCst).min(MOST_SENDERS - 1);
    let mut all = 0;
    for id in 1..=count {
        let [sent, begun] = [book.sent(id), book.begun(id)].map(|word| word.load(Ordering::SeqCst));
        let received = book.received(id).load(Ordering::SeqCst);
        assert!(
            (sent..=begun).contains(&received),
            "{received} received of sender {id}, {sent} to {begun} sent"
        );
        all += received;
    }
    // Every lane can be used.
    others.push(idle);
    for (at, sender) in others.iter_mut().enumerate() {
        sender.send(&[at as u8]).unwrap();
    }
    let mut got: Vec<_> = others.iter().map(|_| receiver.recv().unwrap()[0]).collect();
    got.sort_unstable();
    assert_eq!(got, (0..lanes as u8).collect::<Vec<_>>());
    drop((others, places, ours, theirs, spare));
    match place.named {
        true => assert!(matches!(receiver.try_recv(), Err(Error::Empty))),
        false => assert!(matches!(receiver.recv(), Err(Error::Closed))),
    }
    drop(receiver);
    let left = std::fs::read_dir(names).map_or(0, Iterator::count);
    assert_eq!(left, 0, "files of names");
    (all, book.receivers().load(Ordering::SeqCst), crowd.killed)
}

/// A number from outside, to look for a fault, or to repeat one.
fn given(variable: &str) -> Option<u64> {
    Some(std::env::var(variable).ok()?.parse().expect("a number"))
}

alone! {
    /// With `CHAOS_SEED` this begins like the run that printed it; `CHAOS_ROUNDS` is the
    /// number of rounds.
    fn no_kill_and_no_stop_loses_or_repeats_a_message() {
        let directory = tempfile::tempdir().unwrap();
        let names = directory.path().join("queues");
        sys::set_variable("PROCWRIGHT_QUEUE_DIR", &names);
        let book = Book::new();
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let seed = given("CHAOS_SEED").unwrap_or(now.as_micros() as u64 & 0xff_ffff_ffff);
        let rounds = given("CHAOS_ROUNDS").unwrap_or(test_support::scaled(12, 1000));
        let mut census = None;
        let mut sums = [0; 5];
        for round in 0..rounds {
            // All that is random but the time follows from the seed.
            test_support::say(&format!("CHAOS_SEED={}", seed + round));
            let (messages, receivers, killed) = chaos(book, seed + round, &names);
            let senders = book.count().load(Ordering::SeqCst);
            let again = book.again().load(Ordering::SeqCst);
            for (sum, new) in sums.iter_mut().zip([messages, senders, receivers, killed, again]) {
                *sum += new;
            }
            // The first round makes what stays, so the census begins with the second.
            Census::unchanged(census.get_or_insert_with(Census::now));
            // The watchdog is for one round that hangs, not for many rounds.
            sys::alarm(test_support::scaled(120, 600) as u32);
        }
        let [messages, senders, receivers, killed, again] = sums;
        assert!(messages > 0 && killed > 0);
        test_support::figure(&format!(
            "CHAOS_SEED={seed}: {messages} messages of {senders} senders to {receivers} receivers, \
             {killed} killed, {again} came again"
        ));
    }
}
