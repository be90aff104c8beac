//! Runs the suites and writes `SUITE.json`, `SUITE.md` and `SUITE.svg`.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use procwright_bench::machine::Machine;
use procwright_bench::report::Report;
use procwright_bench::round::Effort;
use procwright_bench::tools::Tools;
use procwright_bench::{
    capture, cli, cold, command, limit, liveness, plot, queue, ruby, spawn, startup, streams,
    table, wait,
};

fn main() -> ExitCode {
    let words = std::env::args().skip(1);
    let result = cli::parse(words)
        .map_err(io::Error::other)
        .and_then(|request| {
            let tools = Tools::find(&std::path::absolute(&request.dir)?);
            for suite in cli::SUITES {
                if request.only.as_deref().is_none_or(|only| only == suite) {
                    measure(&tools, suite, request.part.as_deref(), request.effort)?;
                }
            }
            Ok(())
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "procwright-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(tools: &Tools, suite: &str, part: Option<&str>, effort: Effort) -> io::Result<()> {
    let mut report = Report::new(suite, effort.is_quick(), Machine::here(tools));
    // After every part, so that an interrupted suite leaves what it has.
    let save = |report: &Report| write(&tools.dir, report);
    match suite {
        "wait" => wait::run(tools, effort, &mut report, save)?,
        "streams" => streams::run(tools, effort, &mut report, save)?,
        "command" => command::run(tools, effort, &mut report, save)?,
        "liveness" => liveness::run(tools, effort, &mut report, save)?,
        "queue" => queue::run(tools, effort, part, &mut report, save)?,
        "ruby" => ruby::run(tools, effort, &mut report, save)?,
        _ => {
            let wanted = |name| part.is_none_or(|part| part == name);
            for (name, part) in [
                ("start", startup::run as fn(&Tools, Effort, &mut Report)),
                ("spawn", spawn::run),
                ("limit", limit::run),
            ] {
                if wanted(name) {
                    part(tools, effort, &mut report);
                    save(&report)?;
                }
            }
            if wanted("capture") {
                capture::run(tools, effort, &mut report, save)?;
            }
            if wanted("cold") {
                cold::run(tools, effort, &mut report, save)?;
            }
        }
    }
    io::stdout().write_all(table::markdown(&report).as_bytes())
}

fn write(dir: &Path, report: &Report) -> io::Result<()> {
    let file = |ending: &str| dir.join(format!("{}.{ending}", report.suite));
    report.write(&file("json"))?;
    std::fs::write(file("md"), table::markdown(report))?;
    std::fs::write(file("svg"), plot::svg(report))
}
