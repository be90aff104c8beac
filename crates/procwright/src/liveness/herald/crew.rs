//! A thread that sleeps on many words at a time, and those who come and go
//! meanwhile.
//!
//! Watchers cannot change the words that they watch. So there is one word more, the
//! control word, that whoever comes or goes changes after it is in the list or out
//! of it. The thread looks at the control word before it looks at the list, and the
//! kernel lets it sleep only while all of the words are what they were: so it never
//! sleeps without somebody who is in the list.

use crate::sync::Mutex;
use std::sync::{Arc, PoisonError};

/// What a crew needs of the system; a test has another.
pub(super) trait System {
    /// A word of ours.
    type Control: Default;
    /// Somebody's word, and what is to be told.
    type Seat;

    fn look(control: &Self::Control) -> u32;
    /// Makes it another, and wakes who sleeps on it.
    fn change(control: &Self::Control);
    /// The word of a seat while its holder lives.
    fn alive(seat: &Self::Seat) -> Option<u32>;
    fn tell(seat: &Self::Seat);
    /// Sleeps while all words are these. May return for nothing.
    fn sleep(control: (&Self::Control, u32), seats: &[(&Self::Seat, u32)]);
}

pub(super) struct Crew<S: System> {
    control: S::Control,
    desk: Mutex<Desk<S::Seat>>,
}

struct Desk<T> {
    seats: Vec<(u64, Arc<T>)>,
    closed: bool,
}

impl<S: System> Crew<S> {
    pub(super) fn new() -> Crew<S> {
        Crew {
            control: S::Control::default(),
            desk: Mutex::new(Desk {
                seats: Vec::new(),
                closed: false,
            }),
        }
    }

    /// False if there are `most` already.
    pub(super) fn add(&self, key: u64, seat: &Arc<S::Seat>, most: usize) -> bool {
        let has_room = self.with(|desk| {
            let has_room = desk.seats.len() < most;
            if has_room {
                desk.seats.push((key, Arc::clone(seat)));
            }
            has_room
        });
        if has_room {
            S::change(&self.control);
        }
        has_room
    }

    /// False if it is not in the list: it is another's, or was told.
    pub(super) fn forget(&self, key: u64) -> bool {
        let found = self.with(|desk| {
            let before = desk.seats.len();
            desk.seats.retain(|(other, _)| *other != key);
            desk.seats.len() < before
        });
        if found {
            S::change(&self.control);
        }
        found
    }

    pub(super) fn is_empty(&self) -> bool {
        self.with(|desk| desk.seats.is_empty())
    }

    /// The thread ends.
    pub(super) fn close(&self) {
        self.with(|desk| desk.closed = true);
        S::change(&self.control);
    }

    /// The thread.
    pub(super) fn work(&self) {
        loop {
            // First: who comes after the look at the list changes it again.
            let control = S::look(&self.control);
            let Some(seats) = self.with(|desk| (!desk.closed).then(|| desk.seats.clone())) else {
                return;
            };
            let looked = seats
                .iter()
                .map(|(_, seat)| Some((&**seat, S::alive(seat)?)));
            match looked.collect::<Option<Vec<_>>>() {
                Some(alive) => S::sleep((&self.control, control), &alive),
                None => self.tell(&seats),
            }
        }
    }

    /// Those whose holder does not live any more.
    fn tell(&self, seats: &[(u64, Arc<S::Seat>)]) {
        let mut told = Vec::new();
        for (key, seat) in seats {
            if S::alive(seat).is_none() {
                S::tell(seat);
                told.push(*key);
            }
        }
        self.with(|desk| desk.seats.retain(|(key, _)| !told.contains(key)));
    }

    fn with<T>(&self, what: impl FnOnce(&mut Desk<S::Seat>) -> T) -> T {
        what(&mut self.desk.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(all(test, procwright_loom))]
mod loom_tests {
    use super::{Crew, System};
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};
    use loom::thread;
    use std::sync::Arc;

    /// The kernel: it looks and lets somebody sleep in one step as far as those who
    /// wake are concerned, and the memory may be changed at any time.
    struct Kernel {
        lock: Mutex<()>,
        wakes: Condvar,
    }

    loom::lazy_static! {
        static ref KERNEL: Kernel = Kernel { lock: Mutex::new(()), wakes: Condvar::new() };
    }

    fn wake() {
        let _lock = KERNEL.lock.lock().unwrap();
        KERNEL.wakes.notify_all();
    }

    struct Model;

    #[derive(Default)]
    struct Control(AtomicU32);

    struct Seat {
        word: AtomicU32,
        told: Mutex<bool>,
        tells: Condvar,
    }

    impl System for Model {
        type Control = Control;
        type Seat = Seat;

        fn look(control: &Control) -> u32 {
            control.0.load(Ordering::SeqCst)
        }

        fn change(control: &Control) {
            control.0.fetch_add(1, Ordering::SeqCst);
            wake();
        }

        fn alive(seat: &Seat) -> Option<u32> {
            let word = seat.word.load(Ordering::SeqCst);
            (word != 0).then_some(word)
        }

        fn tell(seat: &Seat) {
            let mut told = seat.told.lock().unwrap();
            assert!(!std::mem::replace(&mut told, true), "told twice");
            seat.tells.notify_all();
        }

        fn sleep(control: (&Control, u32), seats: &[(&Seat, u32)]) {
            let lock = KERNEL.lock.lock().unwrap();
            let same = Model::look(control.0) == control.1
                && seats
                    .iter()
                    .all(|(seat, word)| seat.word.load(Ordering::SeqCst) == *word);
            if same {
                // No other wake-up: one that is lost hangs, which loom tells.
                drop(KERNEL.wakes.wait(lock).unwrap());
            }
        }
    }

    /// All interleavings with so many preemptions: more of them take hours.
    fn model(body: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(body);
    }

    fn seat() -> Arc<Seat> {
        Arc::new(Seat {
            word: AtomicU32::new(1),
            told: Mutex::new(false),
            tells: Condvar::new(),
        })
    }

    /// The holder ends.
    fn end(seat: &Seat) {
        seat.word.store(0, Ordering::SeqCst);
        wake();
    }

    #[test]
    fn loom_who_is_in_the_list_is_told() {
        model(|| {
            let crew = Arc::new(Crew::<Model>::new());
            let seat = seat();
            let thread = thread::spawn({
                let crew = crew.clone();
                move || crew.work()
            });
            assert!(crew.add(1, &seat, 1));
            end(&seat);
            // It hangs here, which loom tells, if a wake-up is lost.
            let mut told = seat.told.lock().unwrap();
            while !*told {
                told = seat.tells.wait(told).unwrap();
            }
            drop(told);
            crew.close();
            thread.join().unwrap();
        });
    }

    #[test]
    fn loom_who_has_gone_is_let_go() {
        loom::model(|| {
            let crew = Arc::new(Crew::<Model>::new());
            let seat = seat();
            assert!(crew.add(1, &seat, 1));
            let thread = thread::spawn({
                let crew = crew.clone();
                move || crew.work()
            });
            crew.forget(1);
            crew.close();
            // It hangs here if the thread sleeps on without being told.
            thread.join().unwrap();
            assert!(!*seat.told.lock().unwrap());
        });
    }
}
