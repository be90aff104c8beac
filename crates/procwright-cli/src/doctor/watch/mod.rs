//! `procwright doctor --watch`: a look again and again, until a person leaves or those who were
//! asked about have ended.
//!
//! On a terminal the report has the screen ([`live`]). Elsewhere what has changed is appended
//! ([`log`]): a file and the log of a CI job know no screen.

mod asked;
mod clock;
mod keys;
mod live;
mod log;
mod look;
mod pace;
mod screen;
mod state;
mod view;

use std::time::Duration;

use crate::args::DoctorArgs;
use crate::colour;
use crate::exit::Termination;

use super::{cannot_examine, json};
use asked::Asked;
use look::look;
use pace::Pace;
use screen::Screen;

/// Where a watch begins: whom it asks about, and what the first look has seen.
struct Begun {
    asked: Asked,
    between: Duration,
    pace: Pace,
    first: procwright_explain::Diagnosis,
}

/// Looks at the processes of the options until they have ended, or a person leaves.
///
/// # Errors
/// There are no such processes, they could not be examined, or a signal ended the watch.
pub(super) fn watch(args: &DoctorArgs) -> Result<Termination, Termination> {
    // Taken hold of before the first look: a number that has a new owner by then was another's.
    let asked = Asked::open(&args.process);
    let mut pace = Pace::new(args.interval);
    // Before the terminal has the screen, so that who asks about nobody is told so as ever.
    let first = look(&args.process, args.between);
    pace.add_cost(first.cost);
    let begun = Begun {
        asked,
        between: args.between,
        pace,
        first: first.examined.map_err(|error| cannot_examine(&error))?,
    };
    match Screen::of_stdout().filter(|_| !args.json) {
        Some(screen) => live::live(begun, screen, colour::is_wanted()),
        None => log::log(begun, args.json),
    }
}
