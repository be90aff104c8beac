//! The suite, run by the program that has its subjects.

use std::collections::BTreeMap;
use std::path::PathBuf;

use procwright_bench::machine::{self, Machine};
use procwright_bench::queue;
use procwright_bench::report::Report;
use procwright_bench::round::Effort;
use procwright_bench::table;
use procwright_bench::tools::Tools;

const USAGE: &str = "queue --json OUT [--quick | --rounds N] [--only PART]";

/// Writes `OUT`, after each part anew, and the tables to stdout.
pub fn run(words: &[String]) -> Result<(), String> {
    let (mut json, mut effort, mut only) = (None, Effort::Rounds(15), None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(USAGE);
        match word.as_str() {
            "--json" => json = Some(PathBuf::from(value()?)),
            "--quick" => effort = Effort::Quick,
            "--rounds" => effort = Effort::Rounds(value()?.parse().map_err(|_| USAGE)?),
            "--only" => only = Some(value()?.clone()),
            _ => return Err(USAGE.into()),
        }
    }
    let json = json.ok_or(USAGE)?;
    if let Some(only) = &only
        && !queue::PARTS.contains(&only.as_str())
    {
        return Err(format!("the parts are {}", queue::PARTS.join(", ")));
    }
    let ourselves = std::env::current_exe().map_err(|error| error.to_string())?;
    let tools = Tools {
        dir: ourselves.parent().map(PathBuf::from).unwrap_or_default(),
        peers: PathBuf::new(),
        python: PathBuf::from("/nowhere/python"),
        unbuilt: BTreeMap::new(),
        queue: ourselves,
    };
    let mut machine = Machine::here(&tools);
    for peer in machine::QUEUE_PEERS {
        let version = machine::locked(include_str!("../Cargo.lock"), peer);
        machine.versions.insert(peer.to_owned(), version);
    }
    // That of the sources, which are not here either.
    if let Some(version) = option_env!("BENCH_VERSION") {
        machine
            .versions
            .insert("procwright".to_owned(), version.to_owned());
    }
    let mut report = Report::new("queue", effort.is_quick(), machine);
    let save = |report: &Report| report.write(&json);
    for part in queue::PARTS {
        // Python is not here.
        if part != "python" && only.as_deref().is_none_or(|only| only == part) {
            queue::run(&tools, effort, Some(part), &mut report, save)
                .map_err(|error| format!("{}: {error}", json.display()))?;
        }
    }
    crate::print(&table::markdown(&report))
}
