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
