//! What the subjects of the suite `liveness` in Rust share: the loop around a check
//! and the line of JSON. Used by a peer outside the workspace too, so it stands on
//! `std` and `nix` alone.
//!
//! Arguments of the case: `check BATCHES BATCH_US`. Each check in turn is made so
//! often that it takes about `BATCH_US`, and that `BATCHES` times: what disturbs
//! the machine disturbs all of them. No check sleeps, so time is that of the
//! processor which this thread had: what others take meanwhile is not counted.
//! floors/liveness.c does the same.

use std::fmt::Write as _;
use std::io::Write as _;

use nix::time::{ClockId, clock_gettime};

/// So many stand one behind the other in the loop, so that what the loop itself
/// costs is not in the figure.
pub const ROW: u64 = 16;

/// A way to know whether a peer lives.
pub struct Check<'a> {
    name: &'static str,
    run: Box<dyn FnMut(u64) + 'a>,
}

impl<'a> Check<'a> {
    /// `alive` is called as often as it takes; the peer does live.
    pub fn new(name: &'static str, alive: impl Fn() -> bool + 'a) -> Check<'a> {
        Check {
            name,
            run: Box::new(move |rows| repeat(rows, &alive)),
        }
    }
}

impl std::fmt::Debug for Check<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}

/// A function of its own for each check. No two checks share a branch, and each
/// is a test and a jump away from the next, as in a loop of the caller's.
#[inline(never)]
fn repeat(rows: u64, alive: &impl Fn() -> bool) {
    for _ in 0..rows {
        // Written out, so that it does not depend on the optimizer's liking.
        let all = (alive() && alive() && alive() && alive())
            && (alive() && alive() && alive() && alive())
            && (alive() && alive() && alive() && alive())
            && (alive() && alive() && alive() && alive());
        if !all {
            dead();
        }
    }
}

#[cold]
#[inline(never)]
fn dead() {
    panic!("the peer lives, and was called dead");
}

/// Measures them in turn and prints `{"NAME": [NANOSECONDS A CHECK…], …}`.
///
/// # Panics
/// When the arguments are no numbers, or a check says that the peer is dead.
pub fn measure(mut checks: Vec<Check<'_>>, batches: usize, batch_us: u64) {
    let rows: Vec<u64> = checks
        .iter_mut()
        .map(|check| calibrate(check, batch_us))
        .collect();
    let mut found: Vec<Vec<f64>> = vec![Vec::new(); checks.len()];
    for batch in 0..batches {
        for turn in 0..checks.len() {
            let at = (turn + batch) % checks.len();
            let ns = timed(&mut checks[at], rows[at]);
            found[at].push(ns / (rows[at] * ROW) as f64);
        }
    }
    let mut line = String::new();
    for (check, ns) in checks.iter().zip(found) {
        let before = if line.is_empty() { '{' } else { ',' };
        // Writing into a String cannot fail.
        let _ = write!(line, "{before} {:?}: {ns:.4?}", check.name);
    }
    writeln!(std::io::stdout(), "{line}}}").expect("stdout");
}

/// How many rows of it take that long.
fn calibrate(check: &mut Check<'_>, batch_us: u64) -> u64 {
    let mut rows = 1;
    loop {
        let took = timed(check, rows).max(1.0);
        let wanted = batch_us as f64 * 1e3;
        if took * 4.0 > wanted {
            return ((rows as f64 * wanted / took) as u64).max(1);
        }
        rows *= 4;
    }
}

fn timed(check: &mut Check<'_>, rows: u64) -> f64 {
    let began = used_ns();
    (check.run)(rows);
    used_ns() - began
}

fn used_ns() -> f64 {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the clock");
    used.tv_sec() as f64 * 1e9 + used.tv_nsec() as f64
}
