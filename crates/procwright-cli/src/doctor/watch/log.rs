//! A watch without a screen: the first report, and another for each change, one below the other.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Instant;

use procwright_explain::Diagnosis;
use rustix::event::{PollFd, PollFlags};

use crate::exit::Termination;
use crate::{poll, stdout};

use super::look::look;
use super::state::State;
use super::{Begun, cannot_examine, clock, json};

/// Prints what has changed until those who were asked about have ended.
///
/// # Errors
/// They could not be examined, or nobody reads.
pub(super) fn log(begun: Begun, as_json: bool) -> Result<Termination, Termination> {
    let Begun {
        mut asked,
        between,
        mut pace,
        first,
    } = begun;
    let mut diagnosis = first;
    let mut last = None;
    loop {
        let state = State::of(&diagnosis);
        let is_new = last.as_ref() != Some(&state);
        pace.add_news(is_new);
        if is_new {
            print(&diagnosis, &state, as_json)?;
            last = Some(state);
        }
        let until = Instant::now().checked_add(pace.pause());
        let pids = loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let is_over = left.is_some_and(|left| left.is_zero());
            if is_over || asked.has_changed() {
                let Some(pids) = asked.alive() else {
                    return ended(as_json);
                };
                if is_over {
                    break pids;
                }
            }
            let stdout = io::stdout();
            // Without events: an error is told of all the same, such as that the reader has gone.
            let mut fds = vec![PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
            fds.extend(
                asked
                    .ends()
                    .map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)),
            );
            poll::wait_ready(&mut fds, left)
                .map_err(|error| Termination::trouble(format_args!("cannot wait: {error}")))?;
            if fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
                return Err(Termination::BROKEN_PIPE);
            }
        };
        let seen = look(&pids, between);
        pace.add_cost(seen.cost);
        diagnosis = match seen.examined {
            Ok(diagnosis) => diagnosis,
            // Somebody has ended meanwhile: the next look is at the others.
            Err(_) if asked.has_changed() => continue,
            Err(error) => return Err(cannot_examine(&error)),
        };
    }
}

fn print(diagnosis: &Diagnosis, state: &State, as_json: bool) -> Result<(), Termination> {
    let text = match as_json {
        true => json(diagnosis)?,
        false => format!("{}{}\n", clock::mark(state.name()), diagnosis.text(false)),
    };
    stdout::print(text.as_bytes())
}

/// Those who were asked about hang no more.
fn ended(as_json: bool) -> Result<Termination, Termination> {
    if !as_json {
        stdout::print(clock::mark("ended").as_bytes())?;
    }
    Ok(Termination::OK)
}
