//! Flags for what is set up before a program runs, of every subcommand that runs one: made
//! from the library's table.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use procwright::Spec;
use procwright::spec::{SETUP, SetupKind, SetupOption, SetupValue};

/// The heading of the manual page. The help names the flags in a line at its end, since they
/// would not fit a screen with the others.
const HEADING: &str = "Set-up";

/// What of the set-up was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct SetupArgs {
    given: Vec<(&'static SetupOption, SetupValue)>,
}

impl SetupArgs {
    /// Sets in `spec` what the flags say.
    pub(super) fn apply_to(&self, spec: &mut Spec) {
        for (option, value) in &self.given {
            // Each has been set in an empty spec, and was no fault there. What it cannot be
            // together with is found when the whole spec is looked at.
            let _ = option.set(spec, value.clone());
        }
    }
}

impl Args for SetupArgs {
    fn augment_args(command: Command) -> Command {
        SETUP
            .iter()
            .fold(command, |command, option| command.arg(flag(option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        SetupArgs::augment_args(command)
    }
}

impl FromArgMatches for SetupArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SetupArgs, Error> {
        let given = SETUP.iter().filter_map(|option| {
            let value = given(option, matches)?;
            Some(checked(option, value))
        });
        let given = given.collect::<Result<_, _>>()?;
        Ok(SetupArgs { given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = SetupArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(option: &'static SetupOption) -> Arg {
    let arg = Arg::new(option.name)
        .long(option.flag)
        .help(option.about)
        .long_help(format!("{}\n\n{}", option.about, option.details))
        .help_heading(HEADING)
        .hide_short_help(true);
    let arg = match option.placeholder {
        "" => arg,
        placeholder => arg.value_name(placeholder),
    };
    let list = |arg: Arg| arg.action(ArgAction::Append).value_delimiter(',');
    match option.kind {
        SetupKind::Flag => arg.action(ArgAction::SetTrue),
        SetupKind::Number => arg
            .allow_negative_numbers(true)
            .value_parser(StringValueParser::new().try_map(number)),
        SetupKind::Numbers => list(arg).value_parser(StringValueParser::new().try_map(range)),
        SetupKind::Text => arg.value_parser(StringValueParser::new()),
        SetupKind::Signals => list(arg).value_parser(super::limits::signal),
        SetupKind::Path => arg
            .value_hint(ValueHint::DirPath)
            .value_parser(PathBufValueParser::new()),
    }
}

/// The value of the option, if it was given.
fn given(option: &SetupOption, matches: &ArgMatches) -> Option<SetupValue> {
    let name = option.name;
    Some(match option.kind {
        SetupKind::Flag => matches.get_flag(name).then_some(SetupValue::Flag(true))?,
        SetupKind::Number => SetupValue::Number(*matches.get_one(name)?),
        SetupKind::Numbers => {
            let ranges = matches.get_many::<RangeInclusive<i64>>(name)?;
            SetupValue::Numbers(ranges.flat_map(Clone::clone).collect())
        }
        SetupKind::Text => SetupValue::Text(matches.get_one::<String>(name)?.clone()),
        SetupKind::Signals => SetupValue::Signals(matches.get_many(name)?.copied().collect()),
        SetupKind::Path => SetupValue::Path(matches.get_one::<PathBuf>(name)?.clone()),
    })
}

/// The value, which is found wrong while the command line is read, and not later.
fn checked(
    option: &'static SetupOption,
    value: SetupValue,
) -> Result<(&'static SetupOption, SetupValue), Error> {
    let mut spec = Spec::new([] as [&OsStr; 0]);
    match option.set(&mut spec, value.clone()) {
        Ok(()) => Ok((option, value)),
        Err(error) => {
            let flag = option.flag;
            let text = format!("--{flag} {}: {}\n", error.problem(), error.hint());
            Err(Error::raw(ErrorKind::ValueValidation, text))
        }
    }
}

fn number(text: String) -> Result<i64, String> {
    let refused = |_| "this is no number".to_owned();
    text.parse().map_err(refused)
}

/// A number, or two with a dash in between.
fn range(text: String) -> Result<RangeInclusive<i64>, String> {
    let number = |text: &str| {
        let found = text.parse::<u16>();
        found.map_err(|_| "write numbers of processors, such as 0,2-3".to_owned())
    };
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let (first, last) = (number(first)?, number(last)?);
    match first <= last {
        true => Ok(first.into()..=last.into()),
        false => Err("the first number of a range is the smaller one".to_owned()),
    }
}
