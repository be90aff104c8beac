//! What people type to `procwright run` who know the tools that go in front of a program:
//! timeout(1), nohup, setsid, nice, env, stdbuf, chrt, taskset, ionice, sudo, tee, ts, script.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use procwright::Spec;
use procwright::process::Signal;

use crate::units;

/// Options of others that are taken as they mean them.
#[derive(Debug, Args)]
pub(crate) struct RunHabitArgs {
    /// The first signal of a stop, as timeout has it.
    #[arg(
        long,
        short,
        value_name = "SIGNAL",
        value_parser = super::super::limits::signal,
        conflicts_with = "stop",
        hide = true
    )]
    signal: Option<Signal>,

    /// From there to SIGKILL, as timeout has it.
    #[arg(
        long,
        short,
        value_name = "DURATION",
        value_parser = kill_after,
        conflicts_with = "grace",
        hide = true
    )]
    kill_after: Option<Duration>,

    /// The directory to run in, as env has it.
    #[arg(
        long,
        short = 'C',
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        conflicts_with = "cwd",
        hide = true
    )]
    chdir: Option<PathBuf>,
}

impl RunHabitArgs {
    /// Sets in `spec` what the options say.
    pub(in crate::args) fn apply_to(&self, spec: &mut Spec) {
        if let Some(signal) = self.signal {
            spec.stop = spec.stop.with_signal(signal);
        }
        if let Some(grace) = self.kill_after {
            spec.stop = spec.stop.with_grace(grace);
        }
        if let Some(directory) = &self.chdir {
            spec.cwd = Some(directory.clone());
        }
    }
}

/// A time to wait for, where 0 means to timeout(1) that nothing follows.
fn kill_after(text: &str) -> Result<Duration, String> {
    match units::duration(text)? {
        Duration::ZERO => Err(
            "0 means never to timeout; write inf for that, or --grace 0 for a \
                               SIGKILL at once"
                .to_owned(),
        ),
        duration => Ok(duration),
    }
}

/// What to type in the place of an option that run has not.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    of_its_output(name).or_else(|| of_any_program(name))
}

/// Of options about a program and its surroundings: what to type for a pipeline as well, with its
/// own name in the place of `procwright run`.
pub(super) fn of_any_program(name: &str) -> Option<&'static str> {
    Some(match name {
        // timeout
        "-s" | "--signal" | "--kill" | "--kill-signal" | "--stop-signal" => {
            "--stop SIGNAL is the first signal of a stop"
        }
        "-k" | "--kill-after" | "--grace-period" | "--stop-timeout" => {
            "--grace DURATION is the time from the first signal of a stop to SIGKILL"
        }
        "--time-limit" | "--max-time" | "--wall-time" | "--deadline" | "-T" | "--duration" => {
            "--timeout DURATION; SCHED_DEADLINE is set by chrt(1) in front"
        }
        "--preserve-status" => {
            "leave it out: 124 says that the time was up, and the status that the program then \
             ended with is in the report, --report-to FILE"
        }
        "--foreground" => {
            "leave it out: the program keeps the terminal in any case; --scope process stops it \
             alone, and not what it has started"
        }
        "--kill-tree" | "--tree" | "--kill-group" => {
            "leave it out: a stop is for all that the program has started; --scope says otherwise"
        }
        // Options of those who want to see what happens.
        "-v" | "--verbose" | "--debug" | "-x" => {
            "a stop is told in any case; PROCWRIGHT_TRACE=1 shows each start, signal and end"
        }
        "--version" | "-V" => "procwright --version",
        // nohup, setsid
        "--nohup" | "--ignore-hup" | "--no-hangup" => {
            "put nohup(1) in front: nohup procwright run … & (--ignore-signal HUP is for the \
             program alone: a hang-up of the terminal would still stop it)"
        }
        "--setsid" | "--new-session" | "--start-new-session" | "--ctty" | "-w" | "--wait" => {
            "put setsid(1) behind: procwright run setsid -w CMD; a stop finds it there as well"
        }
        "--detach" | "--background" | "-b" | "--daemon" | "--daemonize" | "--fork" | "-f"
        | "--disown" => {
            "a program that is to outlive the shell is looked after from the background: \
             setsid -f procwright run …, or nohup procwright run … &"
        }
        "--process-group" | "--new-group" | "--pgid" | "--pgroup" => {
            "--scope group gives it a process group of its own, which a stop is for"
        }
        // nice, chrt, taskset, ionice
        "-n" | "--nice" | "--niceness" | "--adjustment" | "--classdata" => {
            "put nice(1) in front: nice -n 10 procwright run …; of ionice it is \
             --ionice best-effort:N, of ulimit put prlimit(1) in front"
        }
        "--idle" => {
            "--idle-timeout DURATION ends it after so long a silence; of chrt it is \
             --sched-policy idle"
        }
        "--batch" | "--other" | "--fifo" | "--rr" | "-r" | "-R" | "--reset-on-fork" => {
            "--sched-policy POLICY: batch, idle, other, fifo:N or rr:N"
        }
        "-d" | "-P" | "--sched-runtime" | "--sched-period" | "--sched-deadline" => {
            "SCHED_DEADLINE is set by chrt(1) in front: chrt -d … procwright run …"
        }
        "--all-tasks" | "--max" => "leave it out: what is set is for all that it starts",
        "--cpu-list" | "--cpus" | "--cpuset" | "--cpu" | "--cpuset-cpus" | "--affinity" => {
            "--cpu-affinity LIST, as in --cpu-affinity 0,2-3"
        }
        "--class" | "-t" | "--ignore" => "--ionice CLASS: idle, best-effort:N, realtime:N or none",
        "-c" => {
            "of taskset it is --cpu-affinity 0,2-3; of ionice --ionice idle; a shell's line is run \
             by procwright run sh -c 'LINE'"
        }
        // ulimit, umask
        "--ulimit" | "--rlimit" | "--rlimits" | "--nofile" | "--memory" | "-m" | "--as" => {
            "put prlimit(1) in front: prlimit --nofile=256 procwright run …, or set it in the \
             shell: (ulimit -n 256; procwright run …)"
        }
        "--umask" => "set it in the shell: (umask 077; procwright run …)",
        // env
        "-u" | "--unset" | "--unset-env" | "--remove-env" => {
            "put env(1) behind: procwright run env -u NAME CMD; a user is changed in front: \
             sudo -u USER procwright run …"
        }
        "-i"
        | "--ignore-environment"
        | "--clear-env"
        | "--env-clear"
        | "--clean-env"
        | "--replace-env" => "put env(1) behind: procwright run env -i NAME=VALUE CMD",
        "--extra-env" | "--setenv" | "--set-env" | "--envvar" | "--environment" => {
            "--env NAME=VALUE, for each variable; what we have the program has as well"
        }
        "--env-file" => "have the shell read it: (set -a; . ./FILE; procwright run …)",
        "-S" | "--split-string" => "name a shell: procwright run sh -c 'LINE'",
        "-0" | "--null" | "--list-signal-handling" => {
            "put env(1) behind: procwright run env --list-signal-handling CMD"
        }
        "--chdir" | "-C" | "--directory" | "--dir" | "-D" => "--cwd DIR",
        // sudo
        "--user" | "--uid" | "--group" | "--gid" | "-g" | "-U" | "--runas" => {
            "change the user in front: sudo -u USER procwright run …"
        }
        "-E" | "--preserve-env" => "leave it out: the program has our variables",
        "-H" | "--set-home" => "--env HOME=DIR",
        "-A" | "--askpass" | "--login" => "it is of sudo: sudo … procwright run …",
        "--root" => "--chroot DIR",
        _ => return None,
    })
}

/// Of options about a program's streams, its attempts and what is told of it.
fn of_its_output(name: &str) -> Option<&'static str> {
    Some(match name {
        // stdbuf
        "-o" | "-e" | "-oL" | "-eL" | "-o0" | "-e0" | "--output" | "--error" => {
            "of stdbuf: put it behind, procwright run stdbuf -oL CMD; of script: --limit SIZE; \
             what the program writes goes where the shell says: procwright run … > FILE"
        }
        "--line-buffered" | "--line-buffer" | "--linebuffer" | "--unbuffered" | "--no-buffer"
        | "-oLe" => {
            "--pty has most programs write line by line; or put stdbuf(1) behind: \
             procwright run stdbuf -oL CMD"
        }
        "-i" | "--input" => {
            "--stdin FILE is what the program reads; an empty environment comes from env: \
             procwright run env -i CMD"
        }
        "--stdout" | "--stderr" | "--out" | "--err" => {
            "the shell says where it goes: procwright run … > FILE 2> FILE; --log FILE appends \
             both to a file as well"
        }
        // tee
        "--tee" | "--log-out" | "-O" | "--log-io" | "-B" | "--logfile" | "--log-file" => {
            "--log FILE appends both streams to a file, and shows them as well"
        }
        "-a" | "--append" => "leave it out: --log FILE appends; --keep-full FILE begins a new file",
        "--ok-code" | "--ok-codes" | "--expect-exit" | "--success-exit-status" => {
            "--ok CODE, as in --ok 1 for a grep that may find nothing"
        }
        "--output-error" | "-p" => "--log FILE --log-strict: 125 if the file is not whole",
        "--ignore-interrupts" => "leave it out: what is written last comes through, too",
        "--rotate" | "--max-log-size" => "--log FILE --log-size SIZE --log-keep N",
        // ts
        "--timestamps" | "--timestamp" | "--time" | "--ts" | "--log-timing" | "--timing" => {
            "--tag puts the time before each line, --log FILE --log-times before those of a file"
        }
        "--prefix" | "--label" | "--name" | "--tagstring" => "--tag=NAME",
        "--no-color" | "--no-colour" | "--color" | "--colour" => "NO_COLOR=1 procwright run …",
        // script
        "-t" => "--timeout DURATION is how long it may take; --pty gives it a terminal of its own",
        "--tty" | "-it" | "--terminal" | "--pseudo-terminal" => {
            "--pty gives it a terminal of its own"
        }
        "--command" => "--shell 'LINE'; with a terminal of its own: --pty --shell 'LINE'",
        "-c" => {
            "a shell's line is run by --shell 'LINE'; of taskset it is --cpu-affinity 0,2-3, of \
             ionice --ionice idle"
        }
        "--return" | "--flush" | "--force" | "--logging-format" | "--echo" | "--login-shell" => {
            "leave it out: the exit code is the program's, and what it writes is shown at once"
        }
        "--log-in" | "-I" => "what is typed is not logged; script(1) can",
        "-q" | "--silent" => {
            "leave it out: nothing is said where all is well; --quiet keeps back what the program \
             writes, unless it fails"
        }
        "--output-limit" | "--max-output" | "--max-bytes" | "--max-output-size" | "--fsize" => {
            "--limit SIZE, for each of the two streams"
        }
        // What runs a program again.
        "--retries" | "--attempts" | "--tries" | "--max-attempts" | "--max-retries" => {
            "--retry N runs it again up to N times: N + 1 attempts in all; --backoff 0 has them \
             follow at once"
        }
        "--delay" | "--retry-delay" | "--sleep" | "--interval" => {
            "--backoff DURATION is the pause before the first retry, and is doubled for each more"
        }
        "--restart" | "--forever" | "--watch" => {
            "--retry N runs it again if it fails; nothing here runs again what has succeeded"
        }
        "--json" | "--report-json" => {
            "--report json says at the end what became of it, on stderr; --report-to FILE in a file"
        }
        "--report-file" | "--report-output" | "--result" | "--results" | "--stats" => {
            "--report-to FILE, in JSON; or --report text, on stderr"
        }
        "--split-string" | "-S" => "--shell 'LINE'",
        "--wait-for" | "--ready" | "--until-line" | "--ready-when" | "--grep" => {
            "what it says is read by the next program: procwright pipe --timeout 10s tail -n +1 -F \
             FILE --to grep -q -m1 ready waits for a line of a server's log"
        }
        "--port" | "--wait-port" | "--health" | "--healthcheck" => {
            "have what asks for it run again until it succeeds: procwright run --quiet --retry 20 \
             --backoff 100ms curl -sf http://localhost:8080/"
        }
        "--parallel" | "-j" | "--jobs" => {
            "procwright map runs many: procwright map -j 4 CMD {} :::"
        }
        "--pipe" | "--to" => "procwright pipe CMD --to CMD",
        "--pid" => "of what runs already: procwright wait PID, procwright doctor PID",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_after_no_time_is_none_to_timeout() {
        assert_eq!(kill_after("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(kill_after("inf"), Ok(Duration::MAX));
        assert!(kill_after("0").is_err_and(|said| said.contains("inf")));
    }
}
