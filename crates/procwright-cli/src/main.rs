//! The `procwright` command.
//!
//! The modules stand in layers, from the top; each uses only those below it:
//!
//! 1. [`run`], [`map`], [`pipe`], [`wait`], [`buffer`], [`queue`], [`doctor`], [`man`],
//!    [`completions`]: the subcommands, none of which uses another
//! 2. [`args`], the command line, where each flag is described once; [`stdout`] and
//!    [`stdio`], where results and a program's output go; [`process_1`], the command as
//!    the first process of a container; [`report_file`]; [`file_conflicts`]
//! 3. [`own_signals`], which signals are taken
//! 4. [`exit`], the exit codes; [`colour`]
//! 5. [`message`], messages on stderr; [`tty`], the terminal
//! 6. [`human`] and [`units`], figures as people read and write them; [`poll`];
//!    [`procfs`]; [`lines`]; [`inherited_signals`], what the caller ignores
//!
//! Within `run`, below the walk through a run in `run/mod.rs`: `retry`, `watch`;
//! then `command`, `report`, `signals`; then `output`, `shell_job`,
//! `outer_terminal`; then `progress`, `saved_modes`, `spec_file`, `dry_run`.

mod args;
mod buffer;
mod colour;
mod completions;
mod doctor;
mod exit;
mod file_conflicts;
#[cfg(test)]
mod flag_tests;
mod human;
mod inherited_signals;
mod lines;
mod man;
mod map;
mod message;
mod own_signals;
mod pipe;
mod poll;
mod process_1;
mod procfs;
mod progress;
mod queue;
mod report_file;
mod run;
mod stdio;
mod stdout;
mod tty;
mod units;
mod wait;

use args::{Cli, Subcommand};
use exit::Termination;

fn main() -> ! {
    if exit::is_process_1()
        && let Err(error) = process_1::end_by_signals()
    {
        Termination::trouble(format_args!("cannot catch signals: {error}")).terminate();
    }
    let done = match args::parse() {
        Ok(Cli { command }) => match command {
            Subcommand::Run(args) => run::run(&args),
            // As process 1 it is the program of a `run`, which reaps orphans.
            Subcommand::Map(args) => match process_1::ourselves_as_a_child() {
                Some(command) => run::run(&args::run_as_init(command)),
                None => map::map(*args),
            },
            Subcommand::Pipe(args) => match process_1::ourselves_as_a_child() {
                Some(command) => run::run(&args::run_as_init(command)),
                None => pipe::pipe(&args),
            },
            Subcommand::Buffer(args) => reaping(|| buffer::buffer(&args)),
            Subcommand::Wait(args) => reaping(|| wait::wait(args)),
            Subcommand::Queue(args) => reaping(|| queue::queue(&args)),
            Subcommand::Doctor(args) => reaping(|| doctor::doctor(&args)),
            Subcommand::Man { page } => print(|text| man::write(page, text)),
            Subcommand::Completions { shell } => print(|text| completions::write(shell, text)),
        },
        Err(error) => Err(args::print_usage_error(&error)),
    };
    done.unwrap_or_else(|termination| termination).terminate()
}

/// Does the work of a subcommand that has no children of its own. Process 1 reaps the
/// orphans of its namespace meanwhile.
fn reaping(
    work: impl FnOnce() -> Result<Termination, Termination>,
) -> Result<Termination, Termination> {
    if exit::is_process_1() {
        process_1::reap_in_background().map_err(|error| {
            Termination::trouble(format_args!(
                "cannot reap the orphans of process 1: {error}"
            ))
        })?;
    }
    work()
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
