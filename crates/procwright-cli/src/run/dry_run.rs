//! `--dry-run`: the spec as `--spec` takes it.

use procwright::{Command, Spec};

use crate::args::RunArgs;
use crate::exit::Termination;
use crate::{message, stdout};

/// Prints the spec as JSON, so that [`read`](super::spec_file::read) takes it back.
///
/// # Errors
/// A spec that is wrong, and a failed write.
pub(super) fn print(spec: Spec, args: &RunArgs) -> Result<Termination, Termination> {
    let command = Command::from_spec(spec);
    command.validate().map_err(Termination::trouble)?;
    let text = serde_json::to_string_pretty(command.spec()).map_err(|error| {
        Termination::trouble(format_args!("cannot be written as JSON: {error}"))
    })?;
    let own = args.command_options();
    if !own.is_empty() {
        message::print(format_args!(
            "options of the command are no part of the spec: {}\n  \
             hint: give them beside --spec",
            own.join(", ")
        ));
    }
    stdout::print(format!("{text}\n").as_bytes())?;
    Ok(Termination::OK)
}
