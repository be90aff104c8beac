//! Options of `procwright pipe`, and what those of its stages set in their [`Spec`].

use std::ffi::OsString;
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
       procwright pipe pg_dump app --to zstd -o app.zst --and sha256sum

Each stage is a program with its arguments; there is no shell. Those joined by
--and stand side by side. A stage that died of SIGPIPE since the next one had read enough and ended well is forgiven.
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
///
/// Programs with --and between them stand side by side: A --to B --and C gives all that A writes
/// to B and to C, which both write to the command's stdout; A --and B --to C gives what A and B
/// write to C, by whole lines, and A and B read nothing; A --to B --and C --to D does both.
/// What passes there passes through this command.
#[derive(Debug, Args)]
#[command(
    after_help = AFTER,
    override_usage = "procwright pipe [OPTIONS] [--] CMD [ARG]... [--to|--and CMD [ARG]...]..."
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
    /// bytes pass through this command. Stages count from 1; the last has none behind it. May be
    /// repeated.
    #[arg(
        long,
        value_name = "all|N[,N]...",
        value_parser = OsStringValueParser::new().try_map(elastic),
        help_heading = "Stages"
    )]
    pub(crate) elastic: Vec<Elastic>,

    /// Have WORD stand between stages, not --to
    #[arg(
        long,
        value_name = "WORD",
        default_value = "--to",
        hide_default_value = true,
        help_heading = "Stages"
    )]
    pub(crate) separator: OsString,

    /// Have WORD join those side by side, not --and
    #[arg(
        long,
        value_name = "WORD",
        default_value = "--and",
        hide_default_value = true,
        help_heading = "Stages"
    )]
    pub(crate) and_separator: OsString,

    /// What the first reads instead of our stdin
    ///
    /// null is /dev/null; a file of that name is ./null. Of several side by side each reads
    /// nothing.
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

/// The programs that are joined.
#[derive(Clone, Debug)]
pub(crate) struct Stages {
    /// The words of each.
    pub(crate) words: Vec<Vec<OsString>>,
    row: Row,
}

/// How many programs stand side by side at each place of the row.
#[derive(Clone, Debug)]
pub(crate) struct Row(Vec<usize>);

impl Row {
    /// How many there are at each place.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }

    /// The number, from 0, of the first program at the end.
    pub(crate) fn first_of_last(&self) -> usize {
        self.0
            .split_last()
            .map_or(0, |(_, before)| before.iter().sum())
    }

    /// The place in the row of a program, and how many stand there.
    fn place(&self, program: usize) -> (usize, usize) {
        let mut end = 0;
        let mut places = self.sizes().enumerate();
        let found = places.find(|(_, size)| {
            end += size;
            program < end
        });
        found.unwrap_or_default()
    }

    /// True if a program may have a buffer behind it: it stands alone, and is read.
    fn is_alone_and_read(&self, program: usize) -> bool {
        let (place, size) = self.place(program);
        size == 1 && place + 1 < self.0.len()
    }

    /// The programs, from 0, that may have a buffer behind them.
    pub(crate) fn alone_and_read(&self) -> impl Iterator<Item = usize> {
        let all = 0..self.first_of_last();
        all.filter(|program| self.is_alone_and_read(*program))
    }
}

impl Stages {
    /// How they are joined.
    pub(crate) fn row(&self) -> &Row {
        &self.row
    }
}

impl PipeArgs {
    /// The programs, and how they are joined.
    ///
    /// # Errors
    /// A stage without a word, or a stdin for several, in words for a person.
    pub(crate) fn stages(&self) -> Result<Stages, String> {
        let (to, and) = (&self.separator, &self.and_separator);
        if to == and {
            return Err(format!(
                "{} is --separator and --and-separator\n  hint: name two words",
                to.display()
            ));
        }
        let row = self.command.split(|word| word == to);
        let row = row.map(|place| place.split(|word| word == and));
        let mut words: Vec<Vec<OsString>> = Vec::new();
        let sizes = row.map(|programs| {
            let before = words.len();
            words.extend(programs.map(<[OsString]>::to_vec));
            words.len() - before
        });
        let row = Row(sizes.collect());
        if let Some(place) = words.iter().position(Vec::is_empty) {
            return Err(format!(
                "stage {} has no program\n  hint: one stands before and behind each {} and {}, as \
                 in: procwright pipe yes --to head -1",
                place + 1,
                to.display(),
                and.display(),
            ));
        }
        if self.stdin.is_some() && row.0[0] > 1 {
            return Err(format!(
                "--stdin is for one program, and {} stand at the start\n  hint: name it as a word \
                 of the one that reads it",
                row.0[0]
            ));
        }
        Ok(Stages { words, row })
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
            and_separator: _,
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

    /// The stages with an elastic buffer behind them, from 0.
    ///
    /// # Errors
    /// A stage that is not before another, or not alone, in words for a person.
    pub(crate) fn elastic_stages(&self, row: &Row) -> Result<Vec<usize>, String> {
        let mut stages = Vec::new();
        let mut named = Vec::new();
        for elastic in &self.elastic {
            match elastic {
                Elastic::All => stages.extend(row.alone_and_read()),
                Elastic::Behind(numbers) => named.extend(numbers.iter().map(|stage| stage - 1)),
            }
        }
        let of: usize = row.sizes().sum();
        let mut wrong = named.iter().copied();
        if let Some(stage) = wrong.find(|stage| !row.is_alone_and_read(*stage)) {
            let number = stage + 1;
            return Err(match stage < row.first_of_last() {
                true => format!(
                    "--elastic names stage {number}, which stands beside another\n  hint: put a cat \
                     behind them, and the buffer behind that"
                ),
                false => format!(
                    "--elastic names stage {number}, and behind it is none\n  hint: there {} {of}, \
                     which count from 1, and a buffer is between two",
                    if of == 1 { "is" } else { "are" },
                ),
            });
        }
        stages.extend(named);
        stages.sort_unstable();
        stages.dedup();
        Ok(stages)
    }

    /// What the first stage reads, which is nothing if there are several.
    pub(crate) fn first_stdin(&self, row: &Row) -> Stdin {
        match &self.stdin {
            None if row.0[0] > 1 => Stdin::Null,
            None => Stdin::Inherit,
            Some(path) if path.as_os_str() == "null" => Stdin::Null,
            Some(path) => Stdin::File(path.clone()),
        }
    }
}
