//! `help`: the list of subcommands.

use crate::process::{STDOUT, write_all};
use crate::{Args, COMMANDS, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "help",
    usage: "",
    about: "writes this list",
    run,
};

const INTRODUCTION: &str = "usage: test-child NAME ARG…

Programs that tests run as children. Sizes take K, M or G; MS is milliseconds,
S seconds. Processes that wait or fork die after 120 s, or by --limit.
--print-ready writes `ready PID…` once all is set up; --pidfile PATH puts the
pids there, one a line.
";

fn run(args: Args) -> Outcome {
    args.finish()?;
    let mut text = INTRODUCTION.to_owned();
    for command in COMMANDS {
        let call = format!("{} {}", command.name, command.usage);
        text += &format!("\n{}\n    {}\n", call.trim_end(), command.about);
    }
    write_all(STDOUT, text.as_bytes())?;
    Ok(0)
}
