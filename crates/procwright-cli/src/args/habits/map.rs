//! What people type to `procwright map` who know xargs and GNU parallel.
//!
//! What can mean the same here is taken: as another name of an option, beside that option, or
//! as an option of [`HabitArgs`], which no help shows. What cannot is refused by its name, with
//! what to type in its place: [`instead`].

use std::ffi::OsString;
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
        long = "max-args",
        aliases = ["max-lines", "max-replace-args"],
        value_name = "1",
        value_parser = one,
        hide = true
    )]
    pub(crate) one_item: Option<()>,

    /// No command without an item, which is how it always is.
    #[arg(short = 'r', long, hide = true)]
    pub(crate) no_run_if_empty: bool,

    /// No shell reads the words, which is how it always is.
    #[arg(short = 'q', long, hide = true)]
    pub(crate) quote: bool,

    /// A tag whose value is a word of its own, as GNU parallel has it.
    #[arg(long, value_name = "NAME", conflicts_with = "tag", hide = true)]
    pub(crate) tagstring: Option<OsString>,
}

/// After how many failures nothing more is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    Never,
    /// Nothing more is started, and what runs goes on to its end.
    Soon(NonZeroUsize),
    /// Nothing more is started, and what runs is stopped.
    Now(NonZeroUsize),
}

fn halt(text: &str) -> Result<Halt, String> {
    // Numbers alone are an older form of parallel's.
    let when = match text {
        "never" | "0" => return Ok(Halt::Never),
        "1" => "soon,fail=1",
        "2" => "now,fail=1",
        other => other,
    };
    let parts = when.split_once(",fail=");
    let parts = parts.and_then(|(how, count)| Some((how, count.parse().ok()?)));
    match parts {
        Some(("now", count)) => Ok(Halt::Now(count)),
        Some(("soon", count)) => Ok(Halt::Soon(count)),
        _ => Err("it stops after failures alone; write now,fail=1, soon,fail=1 or never".into()),
    }
}

fn one(text: &str) -> Result<(), String> {
    match text {
        "1" => Ok(()),
        _ => Err("a command gets one item; several at once can be had by xargs alone".into()),
    }
}

/// What to type in the place of an option that map has not.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "--retries" | "--retry" => {
            "have each command run by procwright run, as in: \
             procwright map procwright run --retry 2 --backoff 0 CMD {} (up to three attempts, \
             the outputs of all; without --backoff 0 it waits 1 s before the second, 2 s before \
             the third)"
        }
        "--resume-failed" | "--retry-failed" => {
            "--resume --rerun-failed, with the --journal of the map before"
        }
        "--ungroup" | "-u" | "--latest-line" | "--ll" => {
            "--live, which shows whole lines as they come"
        }
        "--group" => "leave it out: an output is shown in one piece",
        "--no-keep-order" => "leave it out: outputs come as commands end, unless --ordered is said",
        "--shell" | "-c" => {
            "ask for a shell by name, with the item behind its line: sh -c 'echo \"$0\"' {}"
        }
        "--shell-quote" | "--shellquote" => "leave it out: no shell reads the words",
        "--verbose" | "-v" | "-t" => {
            "--dry-run prints the commands; PROCWRIGHT_TRACE=1 shows each start and end"
        }
        "--interactive" | "-p" => "--dry-run prints what would be run",
        "--open-tty" | "-o" => {
            "a command reads nothing here; xargs itself hands it the terminal: xargs -o CMD"
        }
        "--process-slot-var" => {
            "no variable tells commands apart that run at a time; {#} is the number of the item"
        }
        "--signal" | "--kill-after" | "--termseq" | "--term-seq" => {
            "--stop SIGNAL is the first signal of a stop, --grace DURATION the time from there to \
             SIGKILL"
        }
        "--replace" | "-i" => "-I TEXT, or {} without it",
        "--delimiter" | "-d" | "--recend" | "--recstart" | "--rrs" => {
            "items end with newline, or by -0 with NUL: tr X '\\0' < FILE | procwright map -0 …"
        }
        "--header" => {
            "no item is a name: leave it and the first item of each list out, and write {1} for \
             an item of the first list, {2} for one of the second"
        }
        "--jl" => "--joblog FILE, beside --journal FILE",
        "--shebang" | "--hashbang" | "--shebang-wrap" => {
            "a script has its items behind the call: procwright map CMD {} <<'END'"
        }
        "--template" | "--tmpl" => {
            "sed(1) fills it in: sh -c 'sed \"s|NAME|$0|\" TEMPLATE > \"$0\".conf' {}"
        }
        "--session" | "--record-env" | "--profile" | "-J" => {
            "leave it out: a command gets all variables of ours, and options stand in the call alone"
        }
        "--shell-completion" => "procwright completions bash",
        "--tmux" | "--tmuxpane" => "--live --tag shows the output of each as it comes",
        "--total-jobs" | "--total" => {
            "leave it out: --progress tells how many there are, once it is known"
        }
        "--pty" | "--tty" => {
            "have each command run by procwright run: procwright map procwright run --pty CMD {}"
        }
        "--stdin" | "--input" => {
            "a command reads nothing here: its item is a word of it; sh -c 'CMD < \"$0\"' {} has it \
             read the file of that name"
        }
        "--colsep" | "-C" | "--csv" => {
            "an item is a whole line: have cut(1) make a file of each column, and --link put them \
             side by side: --link CMD {1} {2} :::: FILE FILE"
        }
        "--xargs" | "-X" | "-m" | "-x" | "--max-chars" | "-s" | "--exit" => {
            "a command gets one item: leave it out; several at once can be had by xargs alone"
        }
        "-l" => "leave it out: a command gets one item",
        "--results" | "--res" | "--files" | "--output-as-files" | "--outputasfiles"
        | "--keep-full" | "--log" => {
            "have each command keep its own: procwright map procwright run --keep-full {#}.out \
             CMD {} writes stdout to 1.out, 2.out, …, stderr to 1.out.stderr"
        }
        "--ok-code" | "--ok-codes" => "--ok CODE, as in --ok 1 for a grep that may find nothing",
        "--load" | "--memfree" | "--memsuspend" | "--noswap" | "--max-load" => {
            "--parallel N alone says how many run at a time"
        }
        "--delay" => {
            "have the items come slowly: while read -r item; do echo \"$item\"; sleep 0.1; done \
             < FILE | procwright map …"
        }
        "--nice" | "--niceness" => "put nice(1) in front: procwright map nice -n 10 CMD {}",
        "--pipe" | "--pipepart" | "--pipe-part" | "--block" | "--block-size"
        | "--block-timeout" | "--bt" | "--spreadstdin" | "--tee" | "--cat" | "--fifo" | "--bin"
        | "--group-by" | "--shard" | "--round-robin" | "--round" | "--regexp"
        | "--remove-rec-sep" | "--removerecsep" => {
            "a command reads nothing: its item is a word of it"
        }
        "--sshlogin" | "-S" | "--sshloginfile" | "--slf" | "--onall" | "--nonall"
        | "--transfer" | "--transferfile" | "--tf" | "--return" | "--trc" | "--basefile"
        | "--bf" | "--cleanup" | "--workers" | "--controlmaster" | "-M" | "--filter-hosts"
        | "--hostgroups" | "--hgrp" | "--rsync-opts" | "--ssh" | "--ssh-delay" => {
            "commands run on this machine; one may be ssh, with hosts as items: \
             procwright map ssh {} uptime ::: HOST..."
        }
        "--shuf" => {
            "have shuf(1) write the items: shuf -e ITEM... | procwright map CMD {}, or shuf FILE"
        }
        "--fail-fast" => "--stop-after-failures 1",
        "--halt-on-error" => {
            "--halt, with the values that it takes in parallel; --stop-after-failures N stops \
             what runs, too"
        }
        "--total-timeout" => "--deadline DURATION",
        "--max-workers" => "--parallel N",
        "--no-notice" | "--will-cite" | "--citation" | "--gnu" | "--plain" => "leave it out",
        "--eof" | "-E" | "-e" => {
            "items end where the input does: sed '/^stop$/Q' FILE | procwright map …"
        }
        "--arg-sep" | "--arg-file-sep" => "::: stands before items, :::: before files of them",
        "--seqreplace"
        | "--slotreplace"
        | "--extensionreplace"
        | "--er"
        | "-U"
        | "--basenamereplace"
        | "--bnr"
        | "--basenameextensionreplace"
        | "--bner"
        | "--dirnamereplace"
        | "--dnr" => "-I TEXT is for {} alone: {.} {/} {//} {/.} {#} are written so",
        "--plus" | "--rpl" | "--parens" => {
            "{} {.} {/} {//} {/.} {#} are there; have a shell cut what else there is: \
             sh -c 'echo \"${0%.tar.gz}\"' {}"
        }
        "--number-of-cores"
        | "--number-of-cpus"
        | "--number-of-sockets"
        | "--number-of-threads"
        | "--use-cores-instead-of-threads"
        | "--use-cpus-instead-of-cores"
        | "--use-sockets-instead-of-threads" => {
            "nproc(1) tells it; of the processors 50%, +2 and -1 are had by --parallel"
        }
        "--silent" => {
            "leave it out: commands are not shown; --quiet shows the output of failures alone"
        }
        "--fg"
        | "--bg"
        | "--semaphore"
        | "--semaphorename"
        | "--semaphore-name"
        | "--semaphoretimeout"
        | "--semaphore-timeout"
        | "--st"
        | "--sem"
        | "--wait"
        | "--id" => "it is of sem: flock(1) has one program wait for another",
        "--trim" => "sed trims the items: sed 's/ *$//' FILE | procwright map …",
        "--skip-first-line" => "tail -n +2 FILE | procwright map …",
        "--tmpdir"
        | "--tempdir"
        | "--compress"
        | "--compress-program"
        | "--decompress-program"
        | "--unsafe"
        | "--show-limits"
        | "--max-line-length-allowed" => "leave it out",
        "--color" | "--colour" | "--color-failed" | "--cf" | "--ctag" | "--ctagstring" => {
            "--tag=NAME tells lines apart, without colours"
        }
        "--version" | "-V" | "--minversion" => "procwright --version",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_halt_means_to_parallel() {
        let of = |count| NonZeroUsize::new(count).unwrap();
        for (text, meant) in [
            ("now,fail=1", Halt::Now(of(1))),
            ("now,fail=30", Halt::Now(of(30))),
            ("2", Halt::Now(of(1))),
            ("soon,fail=3", Halt::Soon(of(3))),
            ("1", Halt::Soon(of(1))),
            ("never", Halt::Never),
            ("0", Halt::Never),
        ] {
            assert_eq!(halt(text), Ok(meant), "{text}");
        }
        for refused in [
            "soon",
            "soon,fail=0",
            "now,fail=10%",
            "later,fail=1",
            "now,success=1",
            "now",
            "3",
        ] {
            assert!(halt(refused).is_err(), "{refused}");
        }
    }
}
