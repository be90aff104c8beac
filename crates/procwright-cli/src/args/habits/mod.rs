//! What people type who know other tools: xargs and GNU parallel, timeout, nohup, env and their
//! like, a shell's pipelines, a queue of their language.
//!
//! What can mean the same here is taken: as another name of an option, beside that option, or as a
//! hidden option. What cannot is refused by its name, with what to type in its place.

mod doctor;
mod map;
mod pipe;
mod queue;
mod run;
mod wait;
pub(super) use map::HabitArgs;
pub(crate) use map::Halt;
pub(super) use queue::subcommand_instead;
pub(super) use run::RunHabitArgs;

/// What to type for what a program, or another tool's subcommand, of this name does.
pub(super) fn command_instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "parallel" | "xargs" | "each" | "foreach" => {
            "it is map here: procwright map -j 4 CMD {} ::: ITEM..."
        }
        "timeout" | "limit" => "an option of run: procwright run --timeout 5m CMD",
        "retry" | "repeat" => "an option of run: procwright run --retry 2 CMD",
        "tee" | "log" => "an option of run: procwright run --log FILE CMD",
        "script" | "pty" | "unbuffer" => "an option of run: procwright run --pty CMD",
        "pv" | "progress" => "an option of pipe: procwright pipe --progress CMD --to CMD",
        "pipeline" => "it is pipe here: procwright pipe CMD --to CMD",
        "spawn" | "exec" | "start" | "popen" => "it is run here: procwright run CMD",
        "explain" | "diagnose" | "why" | "debug" | "check" | "inspect" | "ps" => {
            "it is doctor here: procwright doctor PID"
        }
        "waitpid" | "join" => "it is wait here: procwright wait PID",
        "wait-for" | "wait-for-it" | "ready" | "expect" => {
            "for a line of a log: procwright pipe --timeout 10s tail -n +1 -F FILE --to grep -q \
             -m1 ready; for a port: procwright run --quiet --retry 20 --backoff 100ms curl -sf \
             http://localhost:8080/"
        }
        "send" | "recv" | "receive" | "stat" => "it is of queue: procwright queue --help",
        "version" => "procwright --version",
        _ => return None,
    })
}

/// What to type in the place of two options that do not go together, of which `text` tells.
pub(super) fn in_place_of_both(subcommand: &str, text: &str) -> Option<&'static str> {
    let names = |option: &str| text.contains(&format!("'--{option}"));
    match subcommand {
        "map" if names("quiet") && names("tag") => Some(
            "a tag stands before lines as they come, of all commands; of those that fail it is \
             had by procwright map --quiet procwright run --tag={} CMD {}",
        ),
        "map" if names("quiet") && names("live") => Some(
            "--quiet shows the output of failures when they end, --live all of it as it comes: \
             leave one out",
        ),
        "map" if names("dry-run") && names("journal") => Some(
            "--dry-run reads no journal, and prints the commands of all items, those that were done \
             among them: procwright map --dry-run CMD, without --journal and --resume",
        ),
        _ => None,
    }
}

/// What to type in the place of an option that a subcommand has not, or of its first letter.
pub(super) fn instead(subcommand: &str, option: &str) -> Option<String> {
    let name = option.split('=').next().unwrap_or(option);
    match subcommand {
        "run" => run::instead(name).map(str::to_owned),
        "map" => map::instead(name).map(str::to_owned),
        "pipe" => pipe::instead(name),
        "queue" => queue::instead(name).map(str::to_owned),
        "doctor" => doctor::instead(name).map(str::to_owned),
        "wait" => wait::instead(name).map(str::to_owned),
        _ => None,
    }
}
