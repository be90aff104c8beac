//! `reaper-on-command ARG…`: has a child, `test-child ARG…`, and reaps it on command.
//!
//! Announces its own pid and the child's. Of the lines on its stdin, `reap` makes it
//! wait for the child and print `reaped code 3` or `reaped signal 6 core`; `ignore`
//! makes the kernel reap the child (SIGCHLD ignored) and prints `ignoring`; all others
//! go to the child's stdin. At the end of stdin it kills the child and exits 0.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command as Program, Stdio};

use rustix::process::{Pid, getpid};

use super::obey::{line, say};
use crate::args::{Failure, Waiting};
use crate::process::ignore;
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "reaper-on-command",
    usage: "ARG…",
    about: "starts `test-child ARG…`, hands lines on to it, reaps it at the line `reap`",
    run,
};

fn run(args: Args) -> Outcome {
    let mut none = Args::new(vec!["--print-ready".into()]);
    let waiting = Waiting::take(&mut none)?;
    waiting.limit.arm();
    let mut child = Program::new(std::env::current_exe()?)
        .args(args.raw())
        .stdin(Stdio::piped())
        .spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::Failed("a child without a pid".into()))?;
    waiting.announce(&[getpid(), pid])?;
    while let Some(order) = line()? {
        match order.as_str() {
            "reap" => {
                let status = child.wait()?;
                say(&match (status.code(), status.signal()) {
                    (Some(code), _) => format!("reaped code {code}"),
                    (None, Some(signal)) if status.core_dumped() => {
                        format!("reaped signal {signal} core")
                    }
                    (None, Some(signal)) => format!("reaped signal {signal}"),
                    (None, None) => "reaped".to_owned(),
                })?;
            }
            "ignore" => {
                ignore(libc::SIGCHLD)?;
                say("ignoring")?;
            }
            _ => {
                if let Some(stdin) = &mut child.stdin {
                    stdin.write_all(format!("{order}\n").as_bytes())?;
                }
            }
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Ok(0)
}
