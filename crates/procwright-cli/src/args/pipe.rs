//! Options of `procwright pipe`, and what those of its stages set in their [`Spec`].

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use procwright::pipeline::SuccessRule;
use procwright::{Spec, Stdin};

use super::limits::LimitArgs;
use super::report::ReportArgs;
use super::surroundings::SurroundingsArgs;

const AFTER: &str = "\
As in: procwright pipe --timeout 5m zcat log.gz --to grep -c 500
       procwright pipe --report text yes --to head -1

Each stage is a program with its arguments; there is no shell. A stage that died
of SIGPIPE since the next one had read enough and ended well is forgiven.
Exit code: 0 all well, otherwise that of the last stage which failed, 128+N if
signal N ended it, 124 stopped by a limit, 125 wrong usage or trouble of our
own, 126 not executable, 127 not found. More: procwright man pipe, which has
--block-signal --ignore-signal --default-signal --cpu-affinity --sched-policy
--ionice --oom-score-adj --cgroup --chroot --no-new-privs --new-keyring";

/// Run programs that are joined by pipes, and judge each.
///
/// Each stage writes into the next one, through a pipe of the kernel; stdin of the first,
/// stdout of the last and stderr of all are the command's own. All are started, or none. They
/// have one deadline, and when one has to be stopped, all are. What failed is named, with the
/// stages that ended only because of it.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER,
    override_usage = "procwright pipe [OPTIONS] [--] CMD [ARG]... --to CMD [ARG]... [--to ...]"
)]
pub(crate) struct PipeArgs {
    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Succeed by forgiving, strict or last
    ///
    /// forgiving, the default, wants every stage to exit with 0, but for those that could
    /// write no more since the next one had read enough and ended well: they died of SIGPIPE,
    /// or exited with 141, or, under --quiet, have Broken pipe or EPIPE at the end of stderr.
    /// strict forgives none, as pipefail of a shell. last asks for the last stage alone, as a
    /// shell does otherwise.
    #[arg(
        long,
        value_name = "RULE",
        default_value = "forgiving",
        hide_default_value = true,
        hide_possible_values = true,
        help_heading = "Stages"
    )]
    pub(crate) success: SuccessArg,

    /// Codes of stage N that are no failure
    ///
    /// Stages count from 1. As in --ok 2=1 for a grep that may find nothing; may be repeated.
    #[arg(
        long,
        value_name = "N=CODE[,CODE]...",
        value_parser = OsStringValueParser::new().try_map(ok_codes),
        help_heading = "Stages"
    )]
    pub(crate) ok: Vec<OkCodes>,

    /// Buffer behind each stage, or behind these
    ///
    /// What the next stage has not taken yet is kept in memory, 16 MiB, and then in files
    /// without a name, as by procwright buffer, so that the stage ends at its own speed. Those
    /// bytes pass through this command. Stages count from 1; the last has none behind it.
    #[arg(
        long,
        value_name = "all|N[,N]...",
        value_parser = OsStringValueParser::new().try_map(elastic),
        help_heading = "Stages"
    )]
    pub(crate) elastic: Option<Elastic>,

    /// Have WORD stand between stages, not --to
    #[arg(
        long,
        value_name = "WORD",
        default_value = "--to",
        hide_default_value = true,
        help_heading = "Stages"
    )]
    pub(crate) separator: OsString,

    /// What the first reads instead of our stdin
    ///
    /// null is /dev/null; a file of that name is ./null.
    #[arg(
        long,
        value_name = "null|FILE",
        value_hint = ValueHint::FilePath,
        value_parser = PathBufValueParser::new().try_map(super::stdin_file),
        help_heading = "Stages"
    )]
    pub(crate) stdin: Option<PathBuf>,

    #[command(flatten, next_help_heading = "Stages")]
    pub(crate) surroundings: SurroundingsArgs,

    /// Show of stderr only the end, of stages that fail
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Show on the terminal what passes between stages
    ///
    /// A line says how much has passed between each two stages, and how fast: 1>2 is what the
    /// second has been given of what the first wrote. So that it can be counted it passes
    /// through this command, as stdout and stderr do; up to 1 MiB lies there between two. full
    /// is said where a stage waits for the next one. Without a terminal there is no line, and
    /// nothing passes through.
    #[arg(long, help_heading = "Output")]
    pub(crate) progress: bool,

    #[command(flatten)]
    pub(crate) report: ReportArgs,

    /// The stages
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        hide = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SuccessArg {
    Forgiving,
    Strict,
    Last,
}

impl From<SuccessArg> for SuccessRule {
    fn from(rule: SuccessArg) -> SuccessRule {
        match rule {
            SuccessArg::Forgiving => SuccessRule::Forgiving,
            SuccessArg::Strict => SuccessRule::Strict,
            SuccessArg::Last => SuccessRule::Last,
        }
    }
}

/// Exit codes of a stage that are no failure.
#[derive(Clone, Debug)]
pub(crate) struct OkCodes {
    /// The stage, from 1.
    pub(crate) stage: usize,
    pub(crate) codes: Vec<i32>,
}

fn ok_codes(text: OsString) -> Result<OkCodes, String> {
    let form = "write the stage from 1, =, and its codes from 0 to 255, such as 2=1 or 1=1,2";
    let text = text.to_str().ok_or(form)?;
    let (stage, codes) = text.split_once('=').ok_or(form)?;
    let stage = stage.parse().ok().filter(|stage| *stage > 0).ok_or(form)?;
    let codes = codes
        .split(',')
        .map(|code| code.parse::<u8>().map(i32::from));
    let codes = codes.collect::<Result<Vec<i32>, _>>().map_err(|_| form)?;
    Ok(OkCodes { stage, codes })
}

/// The stages with an elastic buffer behind them.
#[derive(Clone, Debug)]
pub(crate) enum Elastic {
    /// All but the last.
    All,
    /// These, from 1.
    Behind(Vec<usize>),
}

fn elastic(text: OsString) -> Result<Elastic, String> {
    let form = "write all, or the stages from 1, such as 1 or 1,3";
    let text = text.to_str().ok_or(form)?;
    if text == "all" {
        return Ok(Elastic::All);
    }
    let stages = text.split(',').map(|stage| {
        let stage = stage.parse().ok().filter(|stage| *stage > 0);
        stage.ok_or_else(|| form.to_owned())
    });
    stages.collect::<Result<_, _>>().map(Elastic::Behind)
}

impl PipeArgs {
    /// The words of each stage.
    ///
    /// # Errors
    /// A stage without a word, in words for a person.
    pub(crate) fn stages(&self) -> Result<Vec<Vec<OsString>>, String> {
        let separator: &OsStr = &self.separator;
        let stages = self.command.split(|word| word == separator);
        let stages: Vec<Vec<OsString>> = stages.map(<[OsString]>::to_vec).collect();
        match stages.iter().position(Vec::is_empty) {
            None => Ok(stages),
            Some(place) => Err(format!(
                "stage {} has no program\n  hint: one stands before and behind each {}, as in: \
                 procwright pipe yes --to head -1",
                place + 1,
                separator.display()
            )),
        }
    }

    /// Sets in the `spec` of a stage what the options say about all. Time limits and the stop
    /// are those of the whole.
    pub(crate) fn apply_to(&self, spec: &mut Spec) {
        // The pattern names all fields, so that the compiler asks about a new one.
        let PipeArgs {
            limits,
            surroundings,
            // The stdin is the first stage's alone.
            stdin: _,
            // The parts of `stages`.
            separator: _,
            command: _,
            // These are said of the whole.
            success: _,
            ok: _,
            elastic: _,
            quiet: _,
            progress: _,
            report: _,
        } = self;
        limits.apply_to(spec);
        surroundings.apply_to(spec);
    }

    /// The stages with an elastic buffer behind them, from 0, of so many.
    ///
    /// # Errors
    /// A stage that is not before another, in words for a person.
    pub(crate) fn elastic_stages(&self, of: usize) -> Result<Vec<usize>, String> {
        match &self.elastic {
            None => Ok(Vec::new()),
            Some(Elastic::All) => Ok((0..of - 1).collect()),
            Some(Elastic::Behind(stages)) => match stages.iter().find(|stage| **stage >= of) {
                None => Ok(stages.iter().map(|stage| stage - 1).collect()),
                Some(stage) => Err(format!(
                    "--elastic names stage {stage}, and behind it is none\n  hint: there {} {of}, \
                     which count from 1, and a buffer is between two",
                    if of == 1 { "is" } else { "are" },
                )),
            },
        }
    }

    /// What the first stage reads.
    pub(crate) fn first_stdin(&self) -> Stdin {
        match &self.stdin {
            None => Stdin::Inherit,
            Some(path) if path.as_os_str() == "null" => Stdin::Null,
            Some(path) => Stdin::File(path.clone()),
        }
    }
}
