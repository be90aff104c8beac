//! The `procwright` command.
//!
//! The modules stand in layers, from the top; each uses only those below it:
//!
//! 1. [`run`], [`wait`], [`buffer`], [`queue`], [`man`], [`completions`]: the
//!    subcommands, none of which uses another
//! 2. [`args`], the command line, where each flag is described once; [`stdout`] and
//!    [`stdio`], where results and a program's output go
//! 3. [`exit`], the exit codes; [`colour`]
//! 4. [`message`], messages on stderr; [`tty`], the terminal
//! 5. [`human`] and [`units`], figures as people read and write them; [`poll`];
//!    [`procfs`]
//!
//! Within `run`, below the walk through a run in `run/mod.rs`: `retry`, `watch`;
//! then `command`, `report`, `signals`; then `output`, `shell_job`,
//! `outer_terminal`; then `progress`, `saved_modes`, `spec_file`, `dry_run`,
//! `file_conflicts`.

mod args;
mod buffer;
mod colour;
mod completions;
mod exit;
#[cfg(test)]
mod flag_tests;
mod human;
mod man;
mod message;
mod poll;
mod procfs;
mod queue;
mod run;
mod stdio;
mod stdout;
mod tty;
mod units;
mod wait;

use args::{Cli, Subcommand};
use exit::Termination;

fn main() -> ! {
    let done = match args::parse() {
        Ok(Cli { command }) => match command {
            Subcommand::Run(args) => run::run(&args),
            Subcommand::Buffer(args) => buffer::buffer(&args),
            Subcommand::Wait(args) => wait::wait(args),
            Subcommand::Queue(args) => queue::queue(&args),
            Subcommand::Man { page } => print(|text| man::write(page, text)),
            Subcommand::Completions { shell } => print(|text| completions::write(shell, text)),
        },
        Err(error) => Err(args::print_usage_error(&error)),
    };
    done.unwrap_or_else(|termination| termination).terminate()
}

/// Prints the text that `write` makes.
fn print(
    write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>,
) -> Result<Termination, Termination> {
    let mut text = Vec::new();
    write(&mut text)
        .map_err(|error| Termination::trouble(format_args!("cannot write to stdout: {error}")))?;
    stdout::print(&text)?;
    Ok(Termination::OK)
}
