//! `procwright queue stat`: what a queue is like.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use procwright::queue::{self, Error, LaneStat, Stat};
use serde_json::{Value, json};

use super::{refused, trouble};
use crate::args::StatArgs;
use crate::exit::End;
use crate::figures::Size;

pub(super) fn stat(args: &StatArgs) -> Result<End, End> {
    let text = match &args.name {
        Some(name) => {
            let stat = queue::stat(name).map_err(|error| refused(&error))?;
            match args.json {
                true => format!("{}\n", of(name, &stat)),
                false => text(&stat),
            }
        }
        None => all(args.json)?,
    };
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    match written {
        Ok(()) => Ok(End::OK),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(End::BROKEN_PIPE),
        Err(error) => Err(trouble(format_args!("cannot write to stdout: {error}"))),
    }
}

/// A line for each name that somebody has.
fn all(as_json: bool) -> Result<String, End> {
    let names = queue::names().map_err(|error| refused(&error))?;
    let mut text = String::new();
    for name in names {
        let stat = match queue::stat(&name) {
            Ok(stat) => stat,
            // What somebody has left behind.
            Err(Error::NoQueue(_)) => continue,
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
            true => writeln!(text, "{}", of(&name, &stat)),
            false => writeln!(
                text,
                "{name}: {}, {}, {} waiting",
                receiver(&stat),
                senders(&stat),
                Size(waiting(&stat))
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

fn text(stat: &Stat) -> String {
    let mut text = format!("{}\n", receiver(stat));
    let _ = writeln!(
        text,
        "{} of {} lanes, each from {} to {}, {} of memory",
        stat.taken.len(),
        stat.lanes,
        Size(stat.first),
        Size(stat.limit),
        Size(stat.memory)
    );
    for lane in &stat.taken {
        let _ = writeln!(text, "{}", line(lane));
    }
    text
}

/// `lane 3: sender 1234 taken, 16 KiB waiting in blocks of 64 KiB, blocked`
fn line(lane: &LaneStat) -> String {
    let pid = lane
        .pid
        .map_or_else(|| "?".to_owned(), |pid| pid.to_string());
    let mut line = format!("lane {}: sender {pid} {}", lane.number, lane.state.name());
    if let Some(waiting) = lane.waiting {
        let _ = write!(line, ", {} waiting", Size(waiting));
    }
    if let Some(block) = lane.block {
        let _ = write!(line, " in a block of {}", Size(block));
    }
    if lane.is_blocked {
        line += ", blocked";
    }
    line
}

fn of(name: &str, stat: &Stat) -> Value {
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
