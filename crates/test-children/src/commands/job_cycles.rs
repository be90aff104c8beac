//! `job-cycles COUNT PROGRAM ARG…`: does what a shell does with a job, over and over.
//!
//! The terminal on its stdin becomes that of a session of its own. It starts PROGRAM in
//! a group in the foreground, and then, COUNT times: does what Ctrl-Z does, waits until
//! the job has stopped, takes the terminal, and does what `fg` does. The job is a
//! parent that waits for one child. Once both run again, and the parent sleeps with no
//! signal pending, a further stop would be an unwanted one. Every other stop is the
//! child's alone. Prints `stops TOTAL extra TOTAL`, and then kills both.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command as Program, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group, setpgid, setsid};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use super::obey::say;
use crate::args::{Failure, Waiting};
use crate::process::{STDIN, ignore, restore};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "job-cycles",
    usage: "COUNT PROGRAM ARG…",
    about: "stops a job and lets it go on as a shell does, and counts the stops it sees",
    run,
};

fn run(args: Args) -> Outcome {
    let mut none = Args::new(Vec::new());
    Waiting::take(&mut none)?.limit.arm();
    let words = args.raw();
    let [count, program, words @ ..] = &words[..] else {
        return Err(Failure::usage("no COUNT and PROGRAM"));
    };
    let count = count.to_str().and_then(|count| count.parse::<u32>().ok());
    let count = count.ok_or_else(|| Failure::usage("COUNT is no number"))?;
    setsid()?;
    rustix::process::ioctl_tiocsctty(STDIN)?;
    // Every shell ignores it, to be able to take the terminal.
    ignore(libc::SIGTTOU)?;
    let mut command = Program::new(program);
    command.args(words).stdout(Stdio::null()).process_group(0);
    // SAFETY: the closure sets a signal's action and nothing else.
    unsafe {
        command.pre_exec(|| restore(libc::SIGTTOU));
    }
    let job = command.spawn()?;
    let job = Pid::from_raw(job.id().cast_signed()).ok_or(rustix::io::Errno::SRCH)?;
    // Parent and child both do it, so that the order does not matter.
    let _ = setpgid(Some(job), Some(job));
    tcsetpgrp(STDIN, job)?;
    let child = child_of(job);

    let (mut stops, mut extra) = (0, 0);
    for cycle in 0..count {
        until_settled(job, child);
        match cycle % 2 {
            // Ctrl-Z goes to the foreground group.
            0 => kill_process_group(tcgetpgrp(STDIN)?, Signal::TSTP)?,
            // The program stops by itself, as `~^Z` of ssh does.
            _ => kill_process(child, Signal::TSTP)?,
        }
        while !is_stop(wait(job, libc::WUNTRACED)?) {}
        stops += 1;
        tcsetpgrp(STDIN, getpgrp())?;
        tcsetpgrp(STDIN, job)?;
        kill_process_group(job, Signal::CONT)?;
        until_settled(job, child);
        while is_stop(wait(job, libc::WUNTRACED | libc::WNOHANG)?) {
            extra += 1;
            kill_process_group(job, Signal::CONT)?;
            until_settled(job, child);
        }
    }
    say(&format!("stops {stops} extra {extra}"))?;
    kill_process(child, Signal::KILL)?;
    kill_process(job, Signal::KILL)?;
    Ok(0)
}

fn is_stop(status: Option<ExitStatus>) -> bool {
    status.is_some_and(|status| status.stopped_signal().is_some())
}

fn wait(pid: Pid, options: i32) -> Result<Option<ExitStatus>, Failure> {
    let mut status = 0;
    // SAFETY: a pointer to a live local.
    match unsafe { libc::waitpid(pid.as_raw_nonzero().get(), &raw mut status, options) } {
        -1 => Err(std::io::Error::last_os_error().into()),
        0 => Ok(None),
        _ => {
            let status = ExitStatus::from_raw(status);
            match status.stopped_signal() {
                None => Err(Failure::Failed(format!("the job has ended: {status}"))),
                Some(_) => Ok(Some(status)),
            }
        }
    }
}

/// The job's one child, once it runs a program of its own.
fn child_of(job: Pid) -> Pid {
    let job = job.as_raw_nonzero();
    loop {
        let children = fs::read_to_string(format!("/proc/{job}/task/{job}/children"));
        let child = children.ok().and_then(|text| text.trim().parse().ok());
        if let Some(child) = child.and_then(Pid::from_raw)
            && program(job.get()) != program(child.as_raw_nonzero().get())
        {
            return child;
        }
    }
}

fn program(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok()
}

/// Waits until neither has a pending signal and both sleep, or the job has stopped.
fn until_settled(job: Pid, child: Pid) {
    loop {
        match (state(job), state(child)) {
            (Some('T'), _) | (Some('S'), Some('S')) => return,
            _ => std::thread::yield_now(),
        }
    }
}

/// The letter of a process's state; none while a signal is pending.
fn state(pid: Pid) -> Option<char> {
    let text = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
    };
    let state = field("State:")?.chars().next()?;
    let waits = |name| field(name).is_none_or(|set| set.chars().any(|digit| digit != '0'));
    let settled = state == 'T' || !(waits("SigPnd:") || waits("ShdPnd:"));
    settled.then_some(state)
}
