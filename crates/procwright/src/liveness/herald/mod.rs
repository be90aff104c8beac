//! Threads that sleep on the words of tokens for event loops, and ring.
//!
//! A word in memory is no descriptor. So a thread sleeps on it and rings one: on up
//! to 127 words at a time where the kernel can do that, and otherwise one thread a
//! word. None of them wakes up before there is something to tell. The first thread
//! of the first kind stays when there is nobody left to wait for; all others end.

mod crew;
mod solo;

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::unmarked::Unmarked;
use crate::sys::fork::{Ourselves, PerProcess};
use crate::sys::robust::{MANY, Word, may_sleep_on_many, says_alive, sleep, sleep_on_many, wake};
use crate::sys::thread::spawn_bare;
use crate::sys::wake::Wake;
use crate::time::Deadline;
use crew::{Crew, System};
use solo::Solo;

/// A word, and what is rung when its holder does not live any more.
#[derive(Debug)]
pub(super) struct Seat {
    word: Word,
    bell: Arc<Wake>,
}

impl Seat {
    fn alive(&self) -> Option<u32> {
        let word = self.word.load();
        says_alive(word).then_some(word)
    }

    /// It rings for ever: nobody comes back to life.
    fn tell(&self) {
        self.bell.ring();
        // The kernel has woken one of those who sleep there, which may be us.
        wake(self.word.word());
    }
}

struct Linux;

impl System for Linux {
    type Control = AtomicU32;
    type Seat = Seat;

    fn look(control: &AtomicU32) -> u32 {
        control.load(Ordering::SeqCst)
    }

    fn change(control: &AtomicU32) {
        control.fetch_add(1, Ordering::SeqCst);
        wake(control);
    }

    fn alive(seat: &Seat) -> Option<u32> {
        seat.alive()
    }

    fn tell(seat: &Seat) {
        seat.tell();
    }

    fn sleep((control, value): (&AtomicU32, u32), seats: &[(&Seat, u32)]) {
        let words = seats.iter().map(|(seat, value)| (seat.word.word(), *value));
        let words: Vec<_> = [(control, value)].into_iter().chain(words).collect();
        if sleep_on_many(&words).is_err() {
            // A filter that came later. It is too late for other threads, which may
            // not be had any more either.
            sleep(control, value, Deadline::at(Instant::now() + LOOKS));
        }
    }
}

/// How often words are looked at when all else fails.
const LOOKS: Duration = Duration::from_millis(10);

/// For a list of a hundred words, and the allocator.
pub(super) const STACK: usize = 64 * 1024;

static HERALD: PerProcess<Herald> = PerProcess::new();

#[derive(Default)]
struct Herald(Mutex<Threads>);

#[derive(Default)]
struct Threads {
    /// Whether a thread can sleep on many words; none before it is known.
    many: Option<bool>,
    crews: Vec<Arc<Crew<Linux>>>,
    next: u64,
}

impl Herald {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bell that is rung when the holder of a word does not live any more, until this
/// is dropped.
#[derive(Debug)]
pub(super) struct Heralded {
    pub(super) bell: Arc<Wake>,
    place: Place,
    pub(super) process: Ourselves,
    _guard: Option<Unmarked>,
}

#[derive(Debug)]
enum Place {
    /// It has rung already.
    None,
    Crew(u64),
    Alone(Solo),
}

impl Heralded {
    /// `guard` rings as well, when the holder's process ends.
    ///
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub(super) fn new(word: Word, guard: Option<Unmarked>) -> io::Result<Heralded> {
        let bell = Arc::new(Wake::new()?);
        if let Some(guard) = &guard {
            // If nobody tells, the word does.
            let _ = guard.ring_too(&bell);
        }
        let seat = Arc::new(Seat {
            word,
            bell: Arc::clone(&bell),
        });
        let place = match seat.alive() {
            Some(_) => place(&seat)?,
            None => {
                seat.tell();
                Place::None
            }
        };
        Ok(Heralded {
            bell,
            place,
            process: Ourselves::now(),
            _guard: guard,
        })
    }
}

fn place(seat: &Arc<Seat>) -> io::Result<Place> {
    let mut threads = HERALD.get().threads();
    let threads = &mut *threads;
    if !*threads.many.get_or_insert_with(may_sleep_on_many) {
        return Solo::start(seat).map(Place::Alone);
    }
    threads.next += 1;
    let key = threads.next;
    // One word is the control word.
    let most = MANY - 1;
    if !threads.crews.iter().any(|crew| crew.add(key, seat, most)) {
        let crew = Arc::new(Crew::new());
        crew.add(key, seat, most);
        let thread = Arc::clone(&crew);
        spawn_bare(c"procwright-herald", STACK, move || thread.work())?;
        threads.crews.push(crew);
    }
    Ok(Place::Crew(key))
}

impl Drop for Heralded {
    fn drop(&mut self) {
        // In a fork there are no such threads.
        if !self.process.are_we() {
            if let Place::Alone(solo) = std::mem::replace(&mut self.place, Place::None) {
                std::mem::forget(solo);
            }
            return;
        }
        if let Place::Crew(key) = self.place {
            let mut threads = HERALD.get().threads();
            let mut first = true;
            threads.crews.retain(|crew| {
                crew.forget(key);
                let stays = std::mem::take(&mut first) || !crew.is_empty();
                if !stays {
                    crew.close();
                }
                stays
            });
        }
    }
}
