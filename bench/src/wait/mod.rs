//! Waiting for processes to end: how late it is learned, and what it costs
//! while nothing ends.

mod calls;
mod many;
mod one;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::report::Report;
use crate::round::{Effort, Entry, Outcome};
use crate::suite::{self, Part};
use crate::tools::Tools;

/// Every case; `save` is called after each, for they take minutes.
///
/// # Errors
/// What `save` fails with, and when there is no place for a small file.
pub fn run(
    tools: &Tools,
    effort: Effort,
    report: &mut Report,
    save: impl FnMut(&Report) -> io::Result<()>,
) -> io::Result<()> {
    let slots = Slots::new(&tools.dir)?;
    let parts: [Part<Slots>; 8] = [
        one::latency,
        one::hold,
        many::strangers,
        many::among,
        many::setup,
        many::mass,
        many::idle,
        calls::run,
    ];
    suite::run(&parts, tools, effort, &slots, report, save)
}

/// The file in which helpers write down when they end a process. In memory where
/// that can be had, so that no disk has a say.
struct Slots(PathBuf);

impl Slots {
    fn new(dir: &Path) -> io::Result<Slots> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory } else { dir };
        let path = place.join(format!("procwright-bench-{}", std::process::id()));
        File::create(&path)?;
        Ok(Slots(path))
    }

    /// The arguments of a case: HELPERS SLOTS CASE NUMBER…
    fn args(&self, tools: &Tools, case: &str, numbers: &[u64]) -> Vec<OsString> {
        let mut args = vec![tools.built("").into(), self.0.clone().into(), case.into()];
        args.extend(numbers.iter().map(|number| number.to_string().into()));
        args
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Who takes part, and how it is started.
fn entries(tools: &Tools, names: &[&str]) -> Vec<Entry> {
    let entry = |name: &&str| Entry {
        name: (*name).to_owned(),
        argv: argv(tools, name),
    };
    names.iter().map(entry).collect()
}

fn argv(tools: &Tools, subject: &str) -> Vec<PathBuf> {
    let built = |name: &str, mode: &str| vec![tools.built(name), mode.into()];
    let python = |file: &str, mode: &str| {
        let mut argv = tools.script("python", file);
        argv.push(mode.into());
        argv
    };
    let command = |kind: &str, program: PathBuf| {
        vec![tools.built("bench-wait-command"), kind.into(), program]
    };
    match subject {
        "floor-waitpid" => built("wait_one", "waitpid"),
        "floor-pidfd" => built("wait_one", "pidfd"),
        "floor-epoll" => built("wait_many", "epoll"),
        "floor-threads" => built("wait_many", "threads"),
        "procwright-rust-process" => built("bench-rust-wait", "process"),
        "procwright-rust-set" => built("bench-rust-wait", "set"),
        "procwright-python-process" => python("wait_procwright.py", "process"),
        "procwright-python-wait" => python("wait_procwright.py", "wait"),
        "procwright-python-async" => python("wait_procwright.py", "async"),
        "subprocess-wait" => python("wait_python.py", "plain"),
        "subprocess-wait-timeout" => python("wait_python.py", "timeout"),
        "asyncio-wait" => python("wait_python.py", "asyncio"),
        "psutil-wait" => python("wait_psutil.py", "process"),
        "psutil-wait-procs" => python("wait_psutil.py", "procs"),
        "tokio-wait" => vec![tools.built("bench-tokio")],
        "tail-pid" => command("tail", "tail".into()),
        "waitpid-command" => command("waitpid", "waitpid".into()),
        "procwright-wait" => command("procwright", tools.built("procwright")),
        other => vec![tools.built(other)],
    }
}

/// A row of each subject that has the figure.
fn rows(
    report: &mut Report,
    case: &str,
    entries: &[Entry],
    outcome: &Outcome,
    figures: &[(&str, &str, &str)],
) {
    for (key, metric, unit) in figures {
        for Entry { name, .. } in entries {
            report.row(case, name, metric, unit, &outcome.known(name, key));
        }
    }
    report.missing.extend(outcome.missing.clone());
}

/// Middle and 99th percentile of the latencies of each round, and how the middle
/// compares with the best of the `floors`.
fn latencies(
    report: &mut Report,
    case: &str,
    entries: &[Entry],
    outcome: &Outcome,
    floors: &[&str],
) {
    const KEY: &str = "latency_us";
    for (metric, share) in [("p50", 0.5), ("p99", 0.99)] {
        for Entry { name, .. } in entries {
            let figures = outcome.quantiles(name, KEY, share);
            report.row(case, name, metric, "µs", &figures);
        }
    }
    let best = report.figures(case, "p50").into_iter();
    let best = best.map(|row| row.subject.clone());
    let floor = best
        .into_iter()
        .find(|name| floors.contains(&name.as_str()));
    if let Some(floor) = floor {
        for Entry { name, .. } in entries {
            if !floors.contains(&name.as_str()) {
                // Of a list a ratio takes the median.
                report.ratio(
                    case,
                    "p50",
                    name,
                    &floor,
                    &outcome.ratios(name, &floor, KEY),
                );
            }
        }
    }
    report.missing.extend(outcome.missing.clone());
}
