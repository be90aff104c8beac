//! `procwright doctor`: why processes hang.

use std::io::{self, IsTerminal as _};

use crate::args::DoctorArgs;
use crate::exit::Termination;
use crate::{colour, stdout};

/// Examines the processes of the options, and prints what follows.
///
/// # Errors
/// There are no such processes, or they could not be examined.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<Termination, Termination> {
    let examined = procwright_explain::examine_as_bystander(&args.process, args.between);
    let diagnosis = examined.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Termination::trouble(format_args!(
            "{error}\n  \
             hint: `pgrep -l NAME` shows the numbers of those that there are"
        )),
        _ => Termination::trouble(format_args!("cannot examine processes: {error}")),
    })?;
    let text = if args.json {
        let json = diagnosis.json();
        let json = json.map_err(|error| {
            Termination::trouble(format_args!("cannot write the diagnosis as JSON: {error}"))
        })?;
        format!("{json}\n")
    } else if args.dot {
        diagnosis.dot()
    } else {
        diagnosis.text(colour::is_wanted() && io::stdout().is_terminal())
    };
    stdout::print(text.as_bytes())?;
    Ok(Termination::Code(diagnosis.verdict.exit_code()))
}
