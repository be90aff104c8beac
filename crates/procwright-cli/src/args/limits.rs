//! Limits of a program and how it is stopped: options of every subcommand that runs one.

use std::ffi::OsStr;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, ValueEnum};
use procwright::process::{Scope, Signal};
use procwright::time::Timeout;
use procwright::{Beyond, Limit, Spec, Until};

use crate::units;

/// What ends a program, and how.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// Stop it after this time
    ///
    /// Counted from its start to the end of the run. What its processes were doing
    /// then is told. inf is none; 0, which means none to timeout(1), is refused.
    #[arg(long, value_name = "DURATION", value_parser = units::time_limit, help_heading = "Limits")]
    pub(crate) timeout: Option<Timeout>,

    /// Stop it after this time without output
    ///
    /// On neither stdout nor stderr. While whoever reads our output holds it up,
    /// the silence is not the program's, and is not counted.
    #[arg(long, value_name = "DURATION", value_parser = units::time_limit, help_heading = "Limits")]
    pub(crate) idle_timeout: Option<Timeout>,

    /// Stop it beyond so much on stdout or stderr
    ///
    /// For each of the two on its own. Exactly so much is not too much. What comes
    /// beyond it, until the program has ended, is passed on to nobody.
    #[arg(long, value_name = "SIZE", value_parser = units::size, help_heading = "Limits")]
    pub(crate) limit: Option<u64>,

    /// Over at eof, at exit, or at silent:2s
    ///
    /// By default the command waits for the exit of the program alone, or, where
    /// pipes are put between, until nobody holds them any more; a second after
    /// the exit it says who does. With eof pipes are put between in any case,
    /// with exit nobody is waited for but the program; all that it wrote itself is
    /// passed on. With silent and a time the command is over once the program has
    /// exited and nothing has come since for so long.
    #[arg(
        long,
        value_name = "WHEN",
        value_parser = UntilParser,
        hide_possible_values = true,
        help_heading = "Limits"
    )]
    pub(crate) until: Option<Until>,

    /// First signal of a stop [default: TERM]
    ///
    /// A name such as TERM or SIGINT, or a number. With KILL there is no grace.
    #[arg(long, value_name = "SIGNAL", value_parser = signal, help_heading = "Limits")]
    pub(crate) stop: Option<Signal>,

    /// From there to SIGKILL [default: 5s]
    ///
    /// The grace ends early once all that were to be stopped have ended.
    #[arg(long, value_name = "DURATION", value_parser = units::duration, help_heading = "Limits")]
    pub(crate) grace: Option<Duration>,

    /// Stop process, group or tree [default: tree]
    ///
    /// process stops the program alone, group its process group, of which it gets
    /// one of its own, tree the program and all that it started.
    #[arg(
        long,
        value_name = "WHOM",
        hide_possible_values = true,
        help_heading = "Limits"
    )]
    pub(crate) scope: Option<ScopeArg>,
}

impl LimitArgs {
    /// Sets in `spec` what the options say.
    pub(super) fn apply_to(&self, spec: &mut Spec) {
        // The pattern names all fields, so that the compiler asks about a new one.
        let LimitArgs {
            timeout,
            idle_timeout,
            limit,
            until,
            stop,
            grace,
            scope,
        } = self;
        if let Some(timeout) = *timeout {
            spec.timeout = timeout;
        }
        if let Some(timeout) = *idle_timeout {
            spec.idle_timeout = timeout;
        }
        if let Some(bytes) = *limit {
            let beyond = Beyond::Fail;
            spec.limit = Some(Limit { bytes, beyond });
        }
        if let Some(until) = *until {
            spec.until = until;
        }
        if let Some(signal) = *stop {
            spec.stop = spec.stop.with_signal(signal);
        }
        if let Some(grace) = *grace {
            spec.stop = spec.stop.with_grace(grace);
        }
        if let Some(scope) = *scope {
            spec.stop = spec.stop.with_scope(scope.into());
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScopeArg {
    Process,
    Group,
    Tree,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Scope {
        match scope {
            ScopeArg::Process => Scope::Process,
            ScopeArg::Group => Scope::Group,
            ScopeArg::Tree => Scope::Tree,
        }
    }
}

/// Parses an [`Until`]. The words are listed for completions, which a silence of any length
/// cannot be.
#[derive(Clone)]
struct UntilParser;

impl TypedValueParser for UntilParser {
    type Value = Until;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Until, clap::Error> {
        let parser = |text: &str| {
            let parsed = text.parse::<Until>();
            parsed.map_err(|error| {
                format!(
                    "this is no end of a run; {} (what says that it is ready is waited for by \
                     procwright pipe --timeout 10s tail -n +1 -F FILE --to grep -q -m1 ready)",
                    error.hint()
                )
            })
        };
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            ["eof", "exit"].into_iter().map(PossibleValue::new),
        ))
    }
}

pub(super) fn signal(text: &str) -> Result<Signal, String> {
    text.parse::<Signal>().map_err(|_| {
        "this is no signal; write a name such as TERM or SIGINT, or a number (`kill -l` lists them)"
            .to_owned()
    })
}
