//! What people type to `procwright map` who know xargs and GNU parallel.
//!
//! What can mean the same here is taken: as another name of an option, beside that option, or
//! as an option of [`HabitArgs`], which no help shows. What cannot is refused by its name, with
//! what to type in its place: [`instead`].

use std::num::NonZeroUsize;

use clap::Args;

/// Options of others that are taken as they mean them.
#[derive(Debug, Args)]
pub(crate) struct HabitArgs {
    /// When to stop, as GNU parallel has it.
    #[arg(
        long,
        value_name = "WHEN",
        value_parser = halt,
        conflicts_with = "stop_after_failures",
        hide = true
    )]
    pub(crate) halt: Option<Halt>,

    /// How many items a command gets.
    #[arg(
        short = 'n',
        short_aliases = ['L', 'N'],
        value_name = "1",
        value_parser = one,
        hide = true
    )]
    pub(crate) one_item: Option<()>,

    /// No command without an item, which is how it always is.
    #[arg(short = 'r', hide = true)]
    pub(crate) no_run_if_empty: bool,
}

/// After how many failures nothing more is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Halt(Option<NonZeroUsize>);

impl Halt {
    pub(crate) fn failures(self) -> Option<NonZeroUsize> {
        self.0
    }
}

fn halt(text: &str) -> Result<Halt, String> {
    // Numbers alone are an older form of parallel's.
    let when = match text {
        "never" | "0" => return Ok(Halt(None)),
        "1" => "soon,fail=1",
        "2" => "now,fail=1",
        other => other,
    };
    if when.starts_with("soon,") {
        return Err(
            "what runs would go on, which cannot be had; write now,fail=1, which stops it".into(),
        );
    }
    let failures = when.strip_prefix("now,fail=");
    match failures.and_then(|count| count.parse().ok()) {
        Some(count) => Ok(Halt(Some(count))),
        None => Err("it stops after failures alone; write now,fail=1 or never".into()),
    }
}

fn one(text: &str) -> Result<(), String> {
    match text {
        "1" => Ok(()),
        _ => Err("a command gets one item; several at once can be had by xargs alone".into()),
    }
}

/// What to type in the place of an option that is not there.
pub(super) fn instead(option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or(option);
    Some(match name {
        "--retries" | "--retry" => {
            "have each command run by procwright run, as in: \
             procwright map procwright run --retry 2 CMD {} (up to three attempts)"
        }
        "--resume-failed" | "--retry-failed" => {
            "--resume --rerun-failed, with the --journal of the map before"
        }
        "--tagstring" => "--tag=NAME, in which placeholders may stand",
        "--ungroup" | "-u" => "--live, which shows whole lines as they come",
        "--group" => "leave it out: an output is shown in one piece",
        "--shell" | "-c" => {
            "ask for a shell by name, with the item behind its line: sh -c 'echo \"$0\"' {}"
        }
        "--quote" | "-q" => {
            "leave it out: no shell reads the words; --quiet shows the output of failures alone"
        }
        "--verbose" | "-v" | "-t" => {
            "--dry-run prints the commands; PROCWRIGHT_TRACE=1 shows each start and end"
        }
        "--interactive" | "-p" | "--open-tty" | "-o" => "--dry-run prints what would be run",
        "--replace" | "-i" => "-I TEXT, or {} without it",
        "--delimiter" | "-d" | "--recend" | "--recstart" | "--rrs" => {
            "items end with newline, or by -0 with NUL: tr X '\\0' < FILE | procwright map -0 …"
        }
        "--link" | "--xapply" | "--colsep" | "-C" | "--csv" | "--header" => {
            "an item is a whole line: have paste(1) make it of several, and the command take it \
             apart"
        }
        "--xargs" | "-X" | "-m" | "-x" | "--max-chars" | "-s" | "--exit" => {
            "a command gets one item: leave it out; several at once can be had by xargs alone"
        }
        "--max-args" | "--max-lines" | "--max-replace-args" | "-l" | "--no-run-if-empty" => {
            "leave it out: a command gets one item, and without items nothing is run"
        }
        "--results" | "--res" | "--files" => {
            "have each command write its own file: sh -c 'CMD \"$0\" > \"$0.out\"' {}"
        }
        "--load" | "--memfree" | "--memsuspend" | "--noswap" | "--max-load" => {
            "--parallel N alone says how many run at a time"
        }
        "--delay" => "have the items come slowly, on stdin",
        "--nice" | "--niceness" => "put nice(1) in front: procwright map nice -n 10 CMD {}",
        "--pipe" | "--pipepart" | "--pipe-part" | "--block" | "--spreadstdin" | "--tee"
        | "--cat" | "--fifo" => "a command reads nothing: its item is a word of it",
        "--sshlogin" | "-S" | "--sshloginfile" | "--slf" | "--onall" | "--nonall"
        | "--transfer" | "--transferfile" | "--return" | "--trc" | "--basefile" | "--workers" => {
            "commands run on this machine; one may be ssh, with hosts as items: \
             procwright map ssh {} uptime ::: HOST..."
        }
        "--shuf" => "have shuf(1) write the items",
        "--fail-fast" | "--halt-on-error" => "--stop-after-failures 1",
        "--total-timeout" => "--deadline DURATION",
        "--max-workers" => "--parallel N",
        "--no-notice" | "--will-cite" | "--citation" | "--gnu" | "--plain" => "leave it out",
        "--version" | "-V" => "procwright --version",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_halt_means_to_parallel() {
        let failures = |text| halt(text).map(|halt| halt.failures().map(NonZeroUsize::get));
        assert_eq!(failures("now,fail=1"), Ok(Some(1)));
        assert_eq!(failures("now,fail=30"), Ok(Some(30)));
        assert_eq!(failures("2"), Ok(Some(1)));
        assert_eq!(failures("never"), Ok(None));
        assert_eq!(failures("0"), Ok(None));
        for refused in [
            "soon,fail=1",
            "1",
            "now,fail=10%",
            "now,success=1",
            "now",
            "3",
        ] {
            assert!(halt(refused).is_err(), "{refused}");
        }
    }
}
