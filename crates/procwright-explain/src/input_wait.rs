//! A wait for input that is proven by two looks, and by which a later look knows it again.

use std::io;
use std::time::Duration;

use crate::scan::{self, Sleeper};
use crate::waiting::{WaitKind, Waiting};

/// The time for which a program has to sleep in one call before that is a wait for input: one
/// that reads a pipe as fast as it is filled sleeps between two reads as well.
const ASLEEP: Duration = Duration::from_millis(50);

/// A program, or one of its descendants, waits for input: it has slept in one and the same
/// call while all who could end that were looked at.
#[derive(Clone, Debug)]
pub struct InputWait {
    /// Who waits, where, and who could end it. Its kind is [`WaitKind::Input`].
    pub waiting: Waiting,
    /// The threads that sleep there.
    sleepers: Vec<Sleeper>,
}

impl InputWait {
    /// True while it goes on: its threads have not run since.
    fn goes_on(&self, now: &[Sleeper]) -> bool {
        of(self.waiting.pid, now) == self.sleepers
    }
}

/// Whether the program `pid`, or one that descends from it, waits for input: on its terminal,
/// or on a stdin that somebody holds who is none of them. `None` if it does not, and if the
/// wait is the one that is `known` already, however long it lasts.
///
/// Where nobody sleeps as a wait for input would, which is nearly always, the program and its
/// descendants alone are looked at.
///
/// ```
/// use procwright_explain::input_wait;
///
/// assert!(input_wait(std::process::id() as i32, None)?.is_none()); // it runs
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// `Unsupported` where there is no `/proc`, `NotFound` if there is no such process, and those
/// of reading `/proc`.
///
/// # Blocking
/// While these are looked at; if one of them seems to wait, for 50 ms, and while all processes
/// are looked at once.
pub fn input_wait(pid: i32, known: Option<&InputWait>) -> io::Result<Option<InputWait>> {
    let found = input_waits(&[(pid, known)]).pop();
    found.map_or(Ok(None), |look| look.map(|look| look.wait))
}

/// What a look at one program has found, by [`input_waits`].
#[derive(Clone, Debug, Default)]
pub struct InputLook {
    /// The wait for input that it has begun. None is said to be one that has a time limit.
    pub wait: Option<InputWait>,
    /// The longest time until another look may find one: that for which the program may sleep
    /// over its terminal or its stdin with a time limit. A runtime with timers of its own, as
    /// Node has for its memory, asks like that at first; when they are over, so is the limit.
    pub limit: Option<Duration>,
}

/// As [`input_wait`], of several programs, each with the wait that is known of it: what is found
/// of each, in their order. They share the 50 ms and the look at all others.
///
/// ```
/// use procwright_explain::input_waits;
///
/// let own = std::process::id() as i32;
/// let found = input_waits(&[(own, None), (i32::MAX, None)]);
/// assert!(found[0].as_ref().is_ok_and(|look| look.wait.is_none())); // it runs
/// assert!(found[1].is_err()); // it is not there
/// ```
///
/// # Blocking
/// As [`input_wait`].
pub fn input_waits(asked: &[(i32, Option<&InputWait>)]) -> Vec<io::Result<InputLook>> {
    let mut found: Vec<io::Result<InputLook>> = Vec::new();
    let mut seeming = Vec::new();
    for (index, (pid, known)) in asked.iter().enumerate() {
        found.push(scan::sleepers(*pid).map(|sleepers| {
            let before = sleepers.waiting;
            if !before.is_empty() && !known.is_some_and(|known| known.goes_on(&before)) {
                seeming.push((index, *pid, before));
            }
            InputLook {
                wait: None,
                limit: sleepers.limit,
            }
        }));
    }
    if seeming.is_empty() {
        return found;
    }
    crate::pause(ASLEEP);
    seeming.retain(|(index, pid, before)| match scan::sleepers(*pid) {
        // Those who slept before and do still have slept all the while.
        Ok(still) => still.waiting.iter().any(|one| before.contains(one)),
        Err(error) => {
            found[*index] = Err(error);
            false
        }
    });
    if seeming.is_empty() {
        return found;
    }
    let pids: Vec<i32> = seeming.iter().map(|(_, pid, _)| *pid).collect();
    let waiting = match crate::waiting_for_each(&pids) {
        Ok(waiting) => waiting,
        Err(error) => {
            for (index, ..) in seeming {
                found[index] = Err(io::Error::new(error.kind(), error.to_string()));
            }
            return found;
        }
    };
    for ((index, pid, before), waiting) in seeming.into_iter().zip(waiting) {
        let wait = match waiting {
            Some(waiting) => proven(pid, waiting, &before),
            None => Err(crate::missing(&[pid])),
        };
        match (wait, &mut found[index]) {
            (Ok(wait), Ok(look)) => look.wait = wait,
            (Err(error), look) => *look = Err(error),
            (Ok(_), Err(_)) => {}
        }
    }
    found
}

/// The wait of the program `pid`, or of one that descends from it, if it is one for input, and who
/// waits has slept since `before`.
fn proven(pid: i32, waiting: Waiting, before: &[Sleeper]) -> io::Result<Option<InputWait>> {
    if waiting.kind != WaitKind::Input {
        return Ok(None);
    }
    let after = of(waiting.pid, &scan::sleepers(pid)?.waiting);
    let slept = !after.is_empty() && after == of(waiting.pid, before);
    Ok(slept.then_some(InputWait {
        waiting,
        sleepers: after,
    }))
}

/// The threads of one process.
fn of(pid: i32, sleepers: &[Sleeper]) -> Vec<Sleeper> {
    let own = sleepers.iter().filter(|sleeper| sleeper.pid == pid);
    own.cloned().collect()
}
