//! The cases, as arguments and as lines of JSON.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::time::TimeValLike as _;

use super::count::{self, What};
use super::{Plan, Way, burst, growth, rate, trip};

/// What is measured, and how.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    kind: Kind,
    plan: Plan,
    numbers: [u64; 3],
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Trip,
    First,
    FirstAlone,
    Rate,
    Burst,
    Growth,
    Instructions,
    Calls,
    Awake,
}

/// `CASE spin|sleep LENGTH SENDERS NUMBER…`
///
/// # Errors
/// With a line for the user.
pub fn parse(words: &[String]) -> Result<Case, String> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let number = |at: usize| word(at).parse().unwrap_or(0u64);
    let kind = match word(0) {
        "trip" => Kind::Trip,
        "first" => Kind::First,
        "first-alone" => Kind::FirstAlone,
        "rate" => Kind::Rate,
        "burst" => Kind::Burst,
        "growth" => Kind::Growth,
        "instructions" => Kind::Instructions,
        "calls" => Kind::Calls,
        "awake" => Kind::Awake,
        other => return Err(format!("there is no case {other:?}")),
    };
    let plan = Plan {
        length: number(2) as usize,
        senders: number(3) as usize,
        is_spinning: word(1) == "spin",
        room: 0,
    };
    if plan.length == 0 || !plan.length.is_multiple_of(8) || plan.senders == 0 {
        return Err("the length must be a multiple of 8, and there must be senders".into());
    }
    let numbers = [number(4), number(5), number(6)];
    Ok(Case {
        kind,
        plan,
        numbers,
    })
}

impl Case {
    /// Its line of JSON, of that way.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn run<W: Way>(&self) -> Result<String, String> {
        let (plan, [a, b, c]) = (self.plan, self.numbers);
        match self.kind {
            Kind::Trip => {
                let ns = trip::measure::<W>(plan, a, b)?;
                Ok(format!(r#"{{"trip_ns": {ns:.1?}}}"#))
            }
            Kind::First | Kind::FirstAlone => {
                let before = Usage::now();
                let ns = match self.kind {
                    Kind::First => trip::first::<W>(plan, a)?,
                    _ => trip::first_alone::<W>(plan, a)?,
                };
                let used = Usage::now().since(&before);
                let begin = &ns[..ns.len().min(32)];
                let all_ms = ns.iter().sum::<f64>() / 1e6;
                Ok(format!(
                    r#"{{"trip_ns": {ns:.0?}, "begin_ns": {begin:.0?}, "all_ms": {all_ms:.3}, "system_ms": {:.3}, "faults": {}}}"#,
                    used.system_ms, used.faults
                ))
            }
            Kind::Rate => {
                let rate = rate::measure::<W>(plan, Duration::from_millis(a))?;
                let per_s = rate.messages as f64 / rate.seconds;
                let switches = getrusage(UsageWho::RUSAGE_SELF)
                    .map_or(0, |usage| usage.voluntary_context_switches());
                Ok(format!(
                    r#"{{"per_s": {per_s:.1}, "messages": {}, "least_share": {:.4}, "sleeps": {switches}}}"#,
                    rate.messages, rate.least_share
                ))
            }
            Kind::Burst => {
                let rest = Duration::from_millis(c);
                let burst = burst::measure::<W>(plan, a, b, rest, |_| ())?;
                Ok(format!(
                    r#"{{"first_us": {:.2?}, "last_us": {:.2?}}}"#,
                    burst.first_us, burst.last_us
                ))
            }
            Kind::Growth => {
                let room = a as usize;
                let growth = growth::measure::<W>(Plan { room, ..plan })?;
                let mib = room as f64 / f64::from(1 << 20);
                let held = growth.held.map_or(String::new(), |held| {
                    let [empty, full, after] = held.map(|bytes| bytes as f64 / f64::from(1 << 20));
                    format!(
                        r#", "held_empty": {empty:.3}, "held_full": {full:.3}, "held_after": {after:.3}"#
                    )
                });
                Ok(format!(
                    r#"{{"fill": {:.1}, "drain": {:.1}{held}}}"#,
                    mib / growth.fill_s,
                    mib / growth.drain_s
                ))
            }
            Kind::Instructions => {
                let counts = count::run(What::Instructions, || count::both_ends::<W>(plan, a, b))?;
                both_ends(&counts, a)
            }
            Kind::Awake => {
                let counts = count::run(What::Calls, || count::awake::<W>(plan, a))?;
                let [receiver, sender] = counts.as_slice() else {
                    return Err("other processes were counted".into());
                };
                let calls = |counts: &[u64]| counts.iter().sum::<u64>();
                Ok(format!(
                    r#"{{"send": {}, "receive": {}}}"#,
                    calls(sender),
                    calls(receiver)
                ))
            }
            Kind::Calls => {
                let rest = Duration::from_millis(c);
                let counts = count::run(What::Calls, || {
                    burst::measure::<W>(plan, a, b, rest, count::mark).map(|_| ())
                })?;
                let calls = counts.concat();
                Ok(format!(r#"{{"calls": {calls:?}}}"#))
            }
        }
    }
}

/// What the system did for this process, and for its children that have ended.
#[derive(Debug)]
struct Usage {
    system_ms: f64,
    faults: i64,
}

impl Usage {
    fn now() -> Usage {
        let both = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN];
        let used = both.into_iter().filter_map(|who| getrusage(who).ok());
        used.fold(
            Usage {
                system_ms: 0.0,
                faults: 0,
            },
            |sum, usage| Usage {
                system_ms: sum.system_ms + usage.system_time().num_microseconds() as f64 / 1e3,
                faults: sum.faults + usage.minor_page_faults(),
            },
        )
    }

    fn since(&self, before: &Usage) -> Usage {
        Usage {
            system_ms: self.system_ms - before.system_ms,
            faults: self.faults - before.faults,
        }
    }
}

/// Sent and received in turn.
fn both_ends(counts: &[Vec<u64>], messages: u64) -> Result<String, String> {
    let [counts] = counts else {
        return Err("another process was counted".into());
    };
    let every = |first: usize| {
        let some = counts.iter().skip(first).step_by(2);
        let (sum, count) = some.fold((0, 0), |(sum, count), n| (sum + n, count + 1));
        sum as f64 / (count * messages).max(1) as f64
    };
    Ok(format!(
        r#"{{"send": {:.2}, "receive": {:.2}}}"#,
        every(0),
        every(1)
    ))
}

/// A subject that hangs is a finding, and must not hold up the others. The processes
/// that it started die with it.
pub fn watch() {
    let limit = std::env::var("BENCH_LIMIT_S").ok();
    let limit: u32 = limit.and_then(|text| text.parse().ok()).unwrap_or(30);
    let action = SigAction::new(
        SigHandler::Handler(give_up),
        SaFlags::empty(),
        SigSet::empty(),
    );
    // SAFETY: the handler does what a handler may.
    let _ = unsafe { sigaction(Signal::SIGALRM, &action) };
    nix::unistd::alarm::set(limit);
}

extern "C" fn give_up(_: nix::libc::c_int) {
    let last = b"it hung, and was given up\n";
    // SAFETY: bytes that are there; and both may be called in a handler.
    unsafe {
        nix::libc::write(2, last.as_ptr().cast(), last.len());
        nix::libc::_exit(1);
    }
}
