//! `procwright queue stat`: shows a queue from outside.

use std::fmt::Write as _;

use procwright::queue::{self, Error, LaneStat, Stat};
use serde_json::{Value, json};

use super::failure::failure;
use crate::args::StatArgs;
use crate::exit::Termination;
use crate::human::HumanBytes;
use crate::stdout;

pub(super) fn stat(args: &StatArgs) -> Result<Termination, Termination> {
    let text = match &args.name {
        Some(name) => {
            let stat = queue::stat(name).map_err(failure)?;
            match args.json {
                true => format!("{}\n", json(name, &stat)),
                false => text(&stat),
            }
        }
        None => all(args.json)?,
    };
    stdout::print(text.as_bytes())?;
    Ok(Termination::OK)
}

/// A line for each name that is taken.
fn all(as_json: bool) -> Result<String, Termination> {
    let names = queue::names().map_err(failure)?;
    let mut text = String::new();
    for name in names {
        let stat = match queue::stat(&name) {
            Ok(stat) => stat,
            // The name was left behind by a process that is gone.
            Err(Error::NoQueue { .. }) => continue,
            Err(error) => {
                let _ = match as_json {
                    true => {
                        let error = error.to_string();
                        writeln!(text, "{}", json!({ "name": name, "error": error }))
                    }
                    false => writeln!(text, "{name}: {error}"),
                };
                continue;
            }
        };
        let _ = match as_json {
            true => writeln!(text, "{}", json(&name, &stat)),
            false => writeln!(
                text,
                "{name}: {}, {}, {} waiting",
                receiver(&stat),
                senders(&stat),
                HumanBytes(waiting(&stat))
            ),
        };
    }
    Ok(text)
}

fn waiting(stat: &Stat) -> u64 {
    stat.taken.iter().filter_map(|lane| lane.waiting).sum()
}

fn senders(stat: &Stat) -> String {
    match stat.taken.len() {
        1 => "1 lane".to_owned(),
        count => format!("{count} lanes"),
    }
}

/// `receiver 1234 alive, asleep on its word`
fn receiver(stat: &Stat) -> String {
    let one = &stat.receiver;
    let pid = one
        .pid
        .map_or_else(|| "?".to_owned(), |pid| pid.to_string());
    let asleep = match one.asleep {
        Some(how) => format!(", asleep on its {}", how.name()),
        None => String::new(),
    };
    format!("receiver {pid} {}{asleep}", one.state.name())
}

/// A queue for people, with a line for each lane.
fn text(stat: &Stat) -> String {
    let mut text = format!("{}\n", receiver(stat));
    let _ = writeln!(
        text,
        "{} of {} lanes, each from {} to {}, {} of memory",
        stat.taken.len(),
        stat.lanes,
        HumanBytes(stat.first),
        HumanBytes(stat.limit),
        HumanBytes(stat.memory)
    );
    for lane in &stat.taken {
        let _ = writeln!(text, "{}", line(lane));
    }
    text
}

/// `lane 3: sender 1234 taken, 16.0 KiB waiting in a block of 64.0 KiB, blocked`
fn line(lane: &LaneStat) -> String {
    let pid = lane
        .pid
        .map_or_else(|| "?".to_owned(), |pid| pid.to_string());
    let mut line = format!("lane {}: sender {pid} {}", lane.number, lane.state.name());
    if let Some(waiting) = lane.waiting {
        let _ = write!(line, ", {} waiting", HumanBytes(waiting));
    }
    if let Some(block) = lane.block {
        let _ = write!(line, " in a block of {}", HumanBytes(block));
    }
    if lane.is_blocked {
        line += ", blocked";
    }
    line
}

/// A queue for programs, one line.
fn json(name: &str, stat: &Stat) -> Value {
    let lanes = stat.taken.iter().map(|lane| {
        json!({
            "number": lane.number,
            "state": lane.state.name(),
            "pid": lane.pid,
            "guest": lane.guest,
            "waiting_bytes": lane.waiting,
            "block_bytes": lane.block,
            "blocked": lane.is_blocked,
        })
    });
    json!({
        "name": name,
        "epoch": stat.epoch,
        "receiver": {
            "state": stat.receiver.state.name(),
            "pid": stat.receiver.pid,
            "asleep": stat.receiver.asleep.map(|how| how.name()),
        },
        "lanes": stat.lanes,
        "first_bytes": stat.first,
        "limit_bytes": stat.limit,
        "memory_bytes": stat.memory,
        "taken": lanes.collect::<Vec<_>>(),
    })
}
