//! `procwright doctor`: why processes hang.

mod watch;

use std::io::{self, IsTerminal as _};

use procwright_explain::Diagnosis;

use crate::args::DoctorArgs;
use crate::exit::Termination;
use crate::{colour, stdout, tty};

/// Examines the processes of the options, and prints what follows; once, or again and again.
///
/// # Errors
/// There are no such processes, or they could not be examined.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<Termination, Termination> {
    if args.watch {
        return watch::watch(args);
    }
    let examined = procwright_explain::examine_as_bystander(&args.process, args.between);
    let diagnosis = examined.map_err(|error| cannot_examine(&error))?;
    let text = if args.json {
        json(&diagnosis)?
    } else if args.dot {
        diagnosis.dot()
    } else {
        match io::stdout() {
            terminal if terminal.is_terminal() => {
                diagnosis.text_within(tty::columns_of(&terminal), colour::is_wanted())
            }
            _ => diagnosis.text(false),
        }
    };
    stdout::print(text.as_bytes())?;
    Ok(Termination::Code(diagnosis.verdict.exit_code()))
}

/// A line of JSON.
fn json(diagnosis: &Diagnosis) -> Result<String, Termination> {
    let json = diagnosis.json().map_err(|error| {
        Termination::trouble(format_args!("cannot write the diagnosis as JSON: {error}"))
    })?;
    Ok(format!("{json}\n"))
}

fn cannot_examine(error: &io::Error) -> Termination {
    match error.kind() {
        io::ErrorKind::NotFound => Termination::trouble(format_args!(
            "{error}\n  \
             hint: `pgrep -l NAME` shows the numbers of those that there are"
        )),
        _ => Termination::trouble(format_args!("cannot examine processes: {error}")),
    }
}
