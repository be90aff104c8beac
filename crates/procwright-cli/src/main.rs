//! The `procwright` command.

mod args;
mod buffer;
mod colour;
mod completions;
mod ended;
mod exit;
mod figures;
mod man;
mod message;
mod progress;
mod queue;
mod report;
mod run;
mod signals;
mod units;
mod wait;

use std::io;

use args::Subcommand;
use exit::End;

fn main() -> ! {
    let end = match args::parse() {
        Ok(cli) => match cli.command {
            Subcommand::Run(args) => run::run(*args),
            Subcommand::Buffer(args) => buffer::buffer(&args),
            Subcommand::Wait(args) => wait::wait(args),
            Subcommand::Queue(args) => queue::queue(&args),
            Subcommand::Man { page } => printed(man::write(page, &mut io::stdout())),
            Subcommand::Completions { shell } => {
                printed(completions::write(shell, &mut io::stdout()))
            }
        },
        Err(error) => exit::of_usage(&error),
    };
    end.leave()
}

/// After a text that goes to stdout.
fn printed(written: io::Result<()>) -> End {
    match written {
        Ok(()) => End::OK,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => End::BROKEN_PIPE,
        Err(error) => {
            message::say(format_args!("cannot write to stdout: {error}"));
            End::TROUBLE
        }
    }
}
