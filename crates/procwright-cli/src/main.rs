//! The `procwright` command.

mod args;
mod buffer;
mod ended;
mod exit;
mod figures;
mod message;
mod progress;
mod report;
mod run;
mod signals;
mod units;
mod wait;

use clap::Parser;

use args::{Cli, Subcommand};

fn main() -> ! {
    let end = match Cli::try_parse() {
        Ok(cli) => match cli.command {
            Subcommand::Run(args) => run::run(args),
            Subcommand::Buffer(args) => buffer::buffer(&args),
            Subcommand::Wait(args) => wait::wait(args),
        },
        Err(error) => exit::of_usage(&error),
    };
    end.leave()
}
