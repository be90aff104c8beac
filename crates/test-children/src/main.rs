//! `test-child`: the programs that tests run as children, in one binary.
//!
//! `test-child NAME ARG…` runs one of them; `test-child help` lists them.
//! Exit status 125 means bad arguments, 1 that a system call failed.
//!
//! This file defines the C `main`, because the start-up code of Rust's
//! standard library would ignore SIGPIPE and reopen closed descriptors 0 to 2:
//! a helper has to behave like a plain C program, and `show` has to report
//! what was inherited.
#![no_main]

mod args;
mod commands;
mod measured;
mod process;

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use args::{Args, Failure};

/// The result of a subcommand: its exit status.
type Outcome = Result<u8, Failure>;

/// One subcommand.
struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(Args) -> Outcome,
}

/// Every subcommand, in the order in which `help` lists them.
static COMMANDS: &[Command] = &[
    commands::exit::COMMAND,
    commands::signal_self::COMMAND,
    commands::echo::COMMAND,
    commands::args::COMMAND,
    commands::env::COMMAND,
    commands::print_bytes::COMMAND,
    commands::says::COMMAND,
    commands::show::COMMAND,
    commands::cat::CAT,
    commands::cat::CAT_TO_STDERR,
    commands::close_stdin_exit::COMMAND,
    commands::close_stdout_then_sleep::COMMAND,
    commands::flood::COMMAND,
    commands::flood_forever::COMMAND,
    commands::flood_blocked::COMMAND,
    commands::trickle::COMMAND,
    commands::paced::COMMAND,
    commands::bursts::COMMAND,
    commands::progress::COMMAND,
    commands::big_line::COMMAND,
    commands::invalid_utf8::COMMAND,
    commands::stdio_buffered::COMMAND,
    commands::sleep::COMMAND,
    commands::sleep_forever::COMMAND,
    commands::polls::COMMAND,
    commands::ignore_term::COMMAND,
    commands::term_exit::COMMAND,
    commands::fork_holder::COMMAND,
    commands::fork_flooder::COMMAND,
    commands::fork_flooders::COMMAND,
    commands::job_cycles::COMMAND,
    commands::leader_term_child_ignore::COMMAND,
    commands::setsid_grandchild::COMMAND,
    commands::stopped_member::COMMAND,
    commands::obey::COMMAND,
    commands::reaper_on_command::COMMAND,
    commands::fork_storm::COMMAND,
    commands::fork_tree::COMMAND,
    commands::hold_lock_uid::COMMAND,
    commands::eat_pipes::COMMAND,
    commands::among_strangers::COMMAND,
    commands::traffic::COMMAND,
    commands::help::COMMAND,
];

#[unsafe(no_mangle)]
extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    let argv = (0..usize::try_from(argc).unwrap_or(0)).map(|index| {
        // SAFETY: the C runtime passes `argc` valid NUL-terminated strings.
        let arg = unsafe { CStr::from_ptr(*argv.add(index)) };
        OsString::from_vec(arg.to_bytes().to_vec())
    });
    let mut argv = argv.skip(1);
    let name = argv.next().unwrap_or_default();
    let Some(command) = COMMANDS
        .iter()
        .find(|command| OsStr::new(command.name) == name)
    else {
        process::complain(&format!(
            "no subcommand {:?}; `test-child help` lists them",
            String::from_utf8_lossy(name.as_bytes())
        ));
        return 125;
    };
    match (command.run)(Args::new(argv.collect())) {
        Ok(code) => c_int::from(code),
        Err(Failure::Usage(message)) => {
            process::complain(&format!(
                "{message}\nusage: test-child {} {}",
                command.name, command.usage
            ));
            125
        }
        Err(Failure::Failed(message)) => {
            process::complain(&format!("{}: {message}", command.name));
            1
        }
    }
}
