//! `signal-self SIG [--core]`: dies by the signal, given as `TERM`, `SIGTERM` or `15`.
//!
//! Leaves no core file unless `--core` asks for one (the kernel settings decide
//! whether there is one). Exits 1 if the signal does not kill.

use std::ffi::{OsStr, c_int};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::Failure;
use crate::process::{Limit, mask, raise, restore};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "signal-self",
    usage: "SIG [--core]",
    about: "dies by the signal (TERM, SIGTERM or 15), without a core file unless asked",
    run,
};

const NAMES: &[(&str, c_int)] = &[
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("SYS", libc::SIGSYS),
];

fn run(mut args: Args) -> Outcome {
    let core = args.flag("--core");
    let signal = parse(&args.next("SIG")?)?;
    args.finish()?;
    // SIGSTOP leaves the process stopped, so the limit has to end it.
    Limit::DEFAULT.arm();
    let limit = Rlimit {
        current: if core {
            getrlimit(Resource::Core).maximum
        } else {
            Some(0)
        },
        maximum: getrlimit(Resource::Core).maximum,
    };
    setrlimit(Resource::Core, limit)?;
    if signal != libc::SIGKILL && signal != libc::SIGSTOP {
        restore(signal)?;
        mask(libc::SIG_UNBLOCK, signal)?;
    }
    raise(signal)?;
    Err(Failure::Failed(format!("signal {signal} did not kill")))
}

fn parse(text: &OsStr) -> Result<c_int, Failure> {
    let text = text.to_str().unwrap_or_default();
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let named = NAMES.iter().find(|(known, _)| *known == name);
    named
        .map(|(_, number)| *number)
        .or_else(|| text.parse().ok().filter(|number| (1..=64).contains(number)))
        .ok_or_else(|| Failure::usage(format!("unknown signal {text:?}")))
}
