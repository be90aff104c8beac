//! From the command line to the command that is run.

use std::ffi::OsString;

use procwright::process::Stop;
use procwright::time::Timeout;
use procwright::{Beyond, Command, Limit, Sink, Stdin, Until};

use crate::args::{RunArgs, ScopeArg};

pub(super) fn command<'a>(args: RunArgs, adopts: bool) -> Command<'a> {
    // Pipes come between only where somebody has to see what goes through.
    let piped = args.idle_timeout.is_some() || args.limit.is_some() || args.until.is_some();
    let sink = if piped { Sink::Relay } else { Sink::Inherit };
    let mut words = args.command.into_iter();
    let program: OsString = words.next().unwrap_or_default();
    let mut command = match args.shell {
        true => Command::shell(program),
        false => Command::new(program).args(words),
    };
    command = command
        .stdin(match args.stdin {
            None => Stdin::Inherit,
            Some(path) if path.as_os_str() == "null" => Stdin::Null,
            Some(path) => Stdin::File(path),
        })
        .stdout(sink.clone())
        .stderr(sink)
        .timeout(args.timeout.unwrap_or(Timeout::NEVER))
        .idle_timeout(args.idle_timeout.unwrap_or(Timeout::NEVER))
        .stop(
            Stop::new()
                .with_signal(args.stop)
                .with_grace(args.grace)
                .with_scope(args.scope.into()),
        )
        .until(args.until.map_or(Until::Eof, Until::from))
        .stopped_is_ok();
    if let Some(bytes) = args.limit {
        let beyond = Beyond::Fail;
        command = command.limit(Limit { bytes, beyond });
    }
    if let Some(cwd) = args.cwd {
        command = command.cwd(cwd);
    }
    for (name, value) in args.env {
        command = command.env(name, value);
    }
    if matches!(args.scope, ScopeArg::Group) && !args.pty {
        command = command.foreground();
    }
    if adopts {
        command = command.adopts_orphans();
    }
    command
}
