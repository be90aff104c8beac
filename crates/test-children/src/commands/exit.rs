//! `exit CODE`: exits with that status.

use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "exit",
    usage: "CODE",
    about: "exits with that status",
    run,
};

fn run(mut args: Args) -> Outcome {
    let code = args.next_code()?;
    args.finish()?;
    Ok(code)
}
