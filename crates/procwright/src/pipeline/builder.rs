//! [`Pipeline`]: the stages, and what they have in common.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::error::Error;
use super::judgement::SuccessRule;
use super::ongoing::OngoingPipeline;
use super::report::{PipelineCollected, PipelineOutput, joined};
use crate::child::Unstarted;
use crate::command::Command;
use crate::error::{BoxError, Invalid};
use crate::quote::quote;
use crate::run::{
    Behind, Failure, Hooks, JoinedStage, JointHooks, Reason, Shape, StageFunction, StageInput,
    StageMoment, StageOutput, StageUnstarted, Watch, start_joined,
};
use crate::spec::{Sink, Spec, Stdin};
use crate::spool::{Memory, Overflow};
use procwright_os::time::Timeout;
use procwright_process::{Cancel, Stop};

/// What is kept for each program of a fan without [`elastic`](Pipeline::elastic), beside what its
/// pipe holds, before the stage before it has to wait: as much as we make a pipe hold that volume
/// goes through.
const FAN: Overflow = Overflow::Block { memory: 256 << 10 };

/// Programs of which each writes into the next one: see the [module](crate::pipeline).
///
/// ```
/// use procwright::{Command, Pipeline};
/// use std::time::Duration;
///
/// let words = Command::new("printf").arg("pear\\napple\\n");
/// let output = Pipeline::new([words, Command::new("sort"), Command::new("cat")])
///     .timeout(Duration::from_secs(60))
///     .check()
///     .run()?;
/// assert_eq!(output.stdout, b"apple\npear\n");
/// assert_eq!(output.report.stages.len(), 3);
/// # Ok::<(), procwright::pipeline::Error>(())
/// ```
#[doc(alias = "pipefail")]
#[doc(alias = "Open3.pipeline")]
#[must_use]
pub struct Pipeline<'a> {
    pub(super) stages: Vec<Command<'a>>,
    pub(super) ok_codes: BTreeMap<usize, Vec<i32>>,
    pub(super) elastic: BTreeMap<usize, Overflow>,
    /// Each with how many stages are before it.
    pub(super) functions: Vec<(usize, StageFunction)>,
    /// For each fan, how many stages are before it, and how many programs it has.
    fans: Vec<(usize, usize)>,
    pub(super) hooks: JointHooks<'a>,
    pub(super) stop: Option<Stop>,
    pub(super) rule: SuccessRule,
    check: bool,
    stopped_is_error: bool,
}

impl std::fmt::Debug for Pipeline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline")
            .field("stages", &self.stages)
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}

impl<'a> Command<'a> {
    /// Has its stdout be the stdin of `next`: see [`pipeline`](crate::pipeline).
    ///
    /// ```
    /// use procwright::{Command, pipeline::Judgement};
    ///
    /// let producer = Command::shell("echo half; exit 3");
    /// let output = producer.pipe(Command::new("cat")).run()?;
    /// assert_eq!(output.stdout, b"half\n");
    /// assert!(!output.success());
    /// assert_eq!(output.report.stages[0].judgement, Judgement::Failed);
    /// assert_eq!(output.report.stages[1].judgement, Judgement::Success);
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    pub fn pipe(self, next: Command<'a>) -> Pipeline<'a> {
        Pipeline::new([self, next])
    }

    /// Has its stdout be the stdin of each of `programs`: see [`Pipeline::fan`].
    ///
    /// ```
    /// use procwright::Command;
    ///
    /// let count = |what| Command::new("wc").arg(what);
    /// let output = Command::new("seq").arg("9").fan([count("-l"), count("-c")]).run()?;
    /// assert_eq!(output.stdout_of(1).trim_ascii(), b"9");
    /// assert_eq!(output.stdout_of(2).trim_ascii(), b"18");
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    #[doc(alias = "tee")]
    #[doc(alias = "fan_out")]
    pub fn fan(self, programs: impl IntoIterator<Item = Command<'a>>) -> Pipeline<'a> {
        Pipeline::new([self]).fan(programs)
    }

    /// Has its stdout be read by a function, whose output the next program reads: see
    /// [`Pipeline::pipe_fn`].
    pub fn pipe_fn<F>(self, function: F) -> Pipeline<'a>
    where
        F: FnOnce(&mut StageInput, &mut StageOutput) -> Result<(), BoxError> + Send + 'static,
    {
        Pipeline::new([self]).pipe_fn(function)
    }
}

impl<'a> Pipeline<'a> {
    /// Joins `stages` in this order.
    ///
    /// A stage keeps what is its own: environment, directory, limits, callbacks, what becomes
    /// of its stderr. The first alone has a stdin, the last alone a stdout; a stage whose
    /// stderr is [`Sink::Merged`] writes both into the pipe. A limit that a stage reaches (its
    /// own timeout, too much output) stops all.
    pub fn new(stages: impl IntoIterator<Item = Command<'a>>) -> Pipeline<'a> {
        Pipeline {
            stages: stages.into_iter().collect(),
            ok_codes: BTreeMap::new(),
            elastic: BTreeMap::new(),
            functions: Vec::new(),
            fans: Vec::new(),
            hooks: JointHooks::default(),
            stop: None,
            rule: SuccessRule::default(),
            check: false,
            stopped_is_error: true,
        }
    }

    /// Adds a stage behind the last one.
    pub fn pipe(mut self, next: Command<'a>) -> Self {
        self.stages.push(next);
        self
    }

    /// Adds programs that stand side by side: each of them gets all that the stage before writes, as
    /// behind `tee`, and what all of them write goes into the next one, by whole lines. At the end of
    /// the pipeline there is no next one, and at its start none before. They are stages like others,
    /// counted, judged, limited and stopped like others.
    ///
    /// **At the end** each has a stdout of its own ([`stdout_of`](PipelineOutput::stdout_of)).
    /// What passes goes through this process, by a thread and one more for each of them. One that
    /// reads slowly holds up the stage before it, and so the others, once 256 KiB and a pipe
    /// are full that wait for it; with an [`elastic`](Pipeline::elastic) buffer behind the stage
    /// before them only when that is full. One that leaves early is no matter for the others: the
    /// stage before them can write no more when all have left, and is forgiven if all of them had
    /// read enough and ended well.
    ///
    /// ```
    /// use procwright::{Command, Sink};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("copy.gz");
    /// let gzip = Command::new("gzip").stdout(Sink::File { path, append: false });
    /// let sum = Command::new("cksum");
    /// let first = Command::new("head").arg("-1");
    /// let output = Command::new("seq").arg("1000000").fan([gzip, sum, first]).check().run()?;
    /// assert_eq!(output.stdout, b"1\n"); // of the last; it has left, and the others have all
    /// assert_eq!(output.report.stages[1].fan.unwrap().bytes_out, 6_888_896);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// **At the start** each has a stdin of its own, empty unless it says otherwise. Each line comes
    /// whole, and those of one program in their order; a last line without an end gets one if
    /// another comes behind it. Of a line of more than 64 KiB the rest is waited for, and the
    /// other programs wait meanwhile. What passes goes through this process, by one thread.
    ///
    /// **In the middle** they are both. None of them ever waits for another to write: a line is kept
    /// until its end has come, and one of more than 16 MiB ends the pipeline with an error.
    ///
    /// ```
    /// use procwright::Command;
    ///
    /// let even = Command::shell("sed -n '2~2s/$/ is even/p'");
    /// let odd = Command::shell("sed -n '1~2s/$/ is odd/p'");
    /// let numbers = Command::new("seq").arg("4").fan([even, odd]).pipe(Command::new("sort"));
    /// let output = numbers.check().run()?;
    /// assert_eq!(output.stdout, b"1 is odd\n2 is even\n3 is odd\n4 is even\n");
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    ///
    /// ```
    /// use procwright::{Command, Pipeline};
    ///
    /// let logs = ["pear", "apple"].map(|name| Command::new("echo").arg(name));
    /// let output = Pipeline::new([]).fan(logs).pipe(Command::new("sort")).check().run()?;
    /// assert_eq!(output.stdout, b"apple\npear\n");
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    #[doc(alias = "tee")]
    #[doc(alias = "fan_out")]
    #[doc(alias = "fan_in")]
    pub fn fan(mut self, programs: impl IntoIterator<Item = Command<'a>>) -> Self {
        let before = self.stages.len();
        self.stages.extend(programs);
        self.fans.push((before, self.stages.len() - before));
        self
    }

    /// Has those of its stages stand side by side that these pairs tell of, of how many stages are
    /// before them and how many they are: what a host language says after all stages.
    #[doc(hidden)]
    pub fn with_fans(mut self, fans: impl IntoIterator<Item = (usize, usize)>) -> Self {
        self.fans.extend(fans);
        self
    }

    /// Adds a function behind the last stage, to which another program has to be added: it reads
    /// what that stage writes, and what it writes is read by the next one. It is called on a
    /// thread of its own, once all programs have been started, and its streams are closed when it
    /// returns.
    ///
    /// Its error, or its panic, is a failure: all are stopped, the next program before it sees an
    /// end of its input, and the pipeline is an [`Error::Foreign`]. That nobody reads what it
    /// writes is forgiven as that of a program is, if it returns the error of the write; so is
    /// the program before it, if the function has read enough and returns.
    ///
    /// When all are stopped its reads and writes fail with `ECANCELED`, as soon as the programs are
    /// gone; a read does so before, in the place of an end which is of the stop. One that does
    /// not return within 2 s of this is left to itself, and the report names it: a thread cannot
    /// be ended.
    ///
    /// ```
    /// use procwright::Command;
    /// use std::io::{BufRead, BufReader, BufWriter, Write};
    ///
    /// let output = Command::new("printf").arg("pear\\napple\\n")
    ///     .pipe_fn(|input, output| {
    ///         let mut output = BufWriter::new(output);
    ///         for line in BufReader::new(input).lines() {
    ///             writeln!(output, "{}", line?.to_uppercase())?;
    ///         }
    ///         Ok(output.flush()?)
    ///     })
    ///     .pipe(Command::new("sort"))
    ///     .run()?;
    /// assert_eq!(output.stdout, b"APPLE\nPEAR\n");
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    pub fn pipe_fn<F>(mut self, function: F) -> Self
    where
        F: FnOnce(&mut StageInput, &mut StageOutput) -> Result<(), BoxError> + Send + 'static,
    {
        let before = self.stages.len();
        self.functions.push((before, Box::new(function)));
        self
    }

    /// Puts a function behind a stage, which counts from 0, as [`pipe_fn`](Pipeline::pipe_fn) puts
    /// one behind the last of those that there are.
    pub fn function<F>(mut self, stage: usize, function: F) -> Self
    where
        F: FnOnce(&mut StageInput, &mut StageOutput) -> Result<(), BoxError> + Send + 'static,
    {
        self.functions
            .push((stage.saturating_add(1), Box::new(function)));
        self
    }

    /// Stops all when this time has passed since the start.
    pub fn timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.hooks.timeout = timeout.into();
        self
    }

    /// Stops all when no byte has come for so long: on stdout of the last stage, or of each of a
    /// [fan](Pipeline::fan), or on stderr of any. What passes between two stages is not seen. Needs one of them captured.
    pub fn idle_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.hooks.idle_timeout = timeout.into();
        self
    }

    /// Has all stages stopped in this way, whatever they say themselves. Each is stopped as a
    /// run is, with its tree. The last gets the first signal: one that reads would take the end
    /// of those before it for the end of its input.
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Stops all when `cancel` is called.
    pub fn cancel_on(mut self, cancel: &Cancel) -> Self {
        self.hooks.cancel = Some(cancel.clone());
        self
    }

    /// Looks after a descriptor of the caller's meanwhile. The watch is told of the last stage
    /// that is left.
    pub fn watch(mut self, watch: impl Watch + 'a) -> Self {
        self.hooks.watch = Some(Box::new(watch));
        self
    }

    /// Calls `hook` with how far each stage is, each time that `period` has passed, 10 ms at
    /// least, until all are over. The call is made on the thread of [`run`](Pipeline::run),
    /// which waits until it returns: the hook must be fast and must not block, or the
    /// deadlines are late.
    ///
    /// What passes from one stage to the next is counted where a buffer is between them:
    ///
    /// ```
    /// use procwright::{Command, Overflow};
    /// use std::time::Duration;
    ///
    /// let fast = Command::new("head").args(["-c", "1000000", "/dev/zero"]);
    /// let slow = Command::shell("sleep 0.1; wc -c");
    /// let mut seen = 0;
    /// fast.pipe(slow)
    ///     .elastic(0, Overflow::Block { memory: 65536 })
    ///     .every(Duration::from_millis(10), |stages| {
    ///         seen = stages[0].elastic.map_or(0, |figures| figures.bytes_out);
    ///     })
    ///     .run()?;
    /// assert!(seen > 0);
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    pub fn every<F>(mut self, period: Duration, hook: F) -> Self
    where
        F: FnMut(&[StageMoment<'_>]) + 'a,
    {
        self.hooks.every = Some((period, Box::new(hook)));
        self
    }

    /// Says by which rule it succeeds.
    pub fn success_rule(mut self, rule: SuccessRule) -> Self {
        self.rule = rule;
        self
    }

    /// Has these exit codes of a stage, which counts from 0, mean success, as 0 does: `grep`
    /// exits with 1 if nothing matches. So do the [`ok_codes`](Command::ok_codes) of the command
    /// itself.
    pub fn ok_codes(mut self, stage: usize, codes: impl IntoIterator<Item = i32>) -> Self {
        self.ok_codes.entry(stage).or_default().extend(codes);
        self
    }

    /// Puts an elastic buffer behind a stage, which counts from 0: what the next one has not
    /// taken yet is kept in memory, then on disk, as `overflow` says, so that the stage ends at
    /// its own speed. Before a [fan](Pipeline::fan) each of its programs has such a buffer: a slow
    /// one holds up nobody else.
    ///
    /// Those bytes pass through this process, by two threads for each buffer. The pipeline is
    /// over when the buffer has passed on all, or nobody is left to read it. The
    /// [figures](super::StageReport::elastic) tell what it has kept.
    ///
    /// ```
    /// use procwright::{Command, Overflow};
    ///
    /// let fast = Command::new("head").args(["-c", "1000000", "/dev/zero"]);
    /// let slow = Command::shell("sleep 0.1; wc -c");
    /// let output = fast.pipe(slow).elastic(0, Overflow::default()).run()?;
    /// assert_eq!(output.stdout.trim_ascii(), b"1000000");
    /// assert_eq!(output.report.stages[0].elastic.unwrap().bytes_out, 1_000_000);
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    #[doc(alias = "buffer")]
    pub fn elastic(mut self, stage: usize, overflow: Overflow) -> Self {
        self.elastic.insert(stage, overflow);
        self
    }

    /// Makes a failure by the rule an [`Error::Failed`].
    pub fn check(mut self) -> Self {
        self.check = true;
        self
    }

    /// Makes a pipeline that was stopped an ordinary result, whose report's reason says so.
    pub fn stopped_is_ok(mut self) -> Self {
        self.stopped_is_error = false;
        self
    }

    /// Runs it and returns when all stages are over.
    ///
    /// # Blocking
    /// Until each is over as a [`run`](Command::run) is.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Spawn`] and [`Error::Cancelled`], and nothing runs then;
    /// [`Error::Stopped`] if all had to be stopped, with all that was read;
    /// [`Error::Failed`] if it failed and [`check`](Pipeline::check) was asked for;
    /// [`Error::Foreign`] if a callback or a producer failed, [`Error::Io`] if the system did;
    /// [`Error::Forked`] in a fork that a hook has made and returned in.
    pub fn run(self) -> Result<PipelineOutput, Error> {
        let verdict = self.verdict();
        let collected: PipelineCollected<Vec<u8>> = self.run_into()?;
        let stderr = collected.stderr.into_iter();
        let beside = collected.beside.into_iter();
        let output = PipelineOutput {
            report: collected.report,
            stdout: collected.stdout.unwrap_or_default(),
            beside: beside.map(Option::unwrap_or_default).collect(),
            stderr: stderr.map(Option::unwrap_or_default).collect(),
        };
        verdict.of(output, collected.failure)
    }

    /// Runs it and captures into memory of the caller's kind.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Spawn`], [`Error::Cancelled`] and [`Error::Forked`] only.
    pub fn run_into<M: Memory>(self) -> Result<PipelineCollected<M>, Error> {
        self.begin_into()?.finish()
    }

    /// Starts it, for callers who have to be elsewhere now and then while it runs: see
    /// [`OngoingPipeline`].
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Spawn`] and [`Error::Cancelled`] only.
    pub fn begin_into<M: Memory>(self) -> Result<OngoingPipeline<'a, M>, Error> {
        self.check_whole()?;
        let of = self.stages.len();
        let shape = self.shape();
        let (rule, ok_codes) = (self.rule, self.ok_codes);
        let commands = Commands::of(&self.stages, &shape);
        let mut stages = Vec::with_capacity(of);
        let mut behinds = behinds(&self.elastic, self.functions, &shape);
        for (place, stage) in self.stages.into_iter().enumerate() {
            let behind = behinds.remove(&place);
            let stage = joinable(stage, place, &shape, self.stop);
            let stage = stage.map(|(spec, hooks)| JoinedStage {
                spec,
                hooks,
                behind,
            });
            stages.push(stage.map_err(|source| Error::Invalid {
                stage: Some(place),
                source,
            })?);
        }
        let runs = start_joined(stages, shape, None, self.hooks);
        let runs = runs.map_err(|refused| commands.unstarted(refused))?;
        Ok(OngoingPipeline::new(runs, commands.line(), rule, ok_codes))
    }

    /// Which stage reads what which other writes.
    pub(super) fn shape(&self) -> Shape {
        let mut sizes = Vec::with_capacity(self.stages.len());
        let mut end = 0;
        for (before, programs) in self.fans.iter().copied() {
            sizes.extend(std::iter::repeat_n(1, before - end));
            sizes.push(programs);
            end = before + programs;
        }
        sizes.extend(std::iter::repeat_n(1, self.stages.len() - end));
        Shape::new(sizes)
    }

    /// Finds a fan that is alone, or beside another.
    fn check_fans(&self) -> Result<(), Invalid> {
        let wrong = |problem: &str, hint: &str| Err(Invalid::new("fan", problem, hint));
        let of = self.stages.len();
        if self.fans.iter().any(|(_, programs)| *programs == 0) {
            return wrong("has no program", "name one at least");
        }
        let sizes: Vec<usize> = self.shape().row().map(|runs| runs.len()).collect();
        if of > 1 && sizes == [of] {
            return wrong(
                "is all that there is",
                "put a program before it, or one behind it, such as a cat",
            );
        }
        match sizes.windows(2).any(|two| two.iter().all(|size| *size > 1)) {
            true => wrong(
                "has another before it, and no program between",
                "put one between, such as a cat",
            ),
            false => Ok(()),
        }
    }

    /// Finds functions that are not between two programs, each alone.
    fn check_functions(&self) -> Result<(), Invalid> {
        let of = self.stages.len();
        let shape = self.shape();
        let wrong = |problem: &str, hint: &str| Err(Invalid::new("pipe_fn", problem, hint));
        for (at, (before, _)) in self.functions.iter().enumerate() {
            let behind = shape.beside(*before);
            if *before == 0 || behind.start != *before || *before >= of {
                return wrong(
                    "is not between two programs",
                    "what the first reads may come from stdin_iter or stdin_reader, and what the \
                     last writes may go to tap_stream or tee_to",
                );
            }
            if shape.beside(before - 1).len() > 1 {
                return wrong(
                    "has a fan before it",
                    "put a cat between: a fan gives its lines to a program",
                );
            }
            if behind.len() > 1 {
                return wrong(
                    "has a fan behind it",
                    "put a cat between: a fan copies what a program writes",
                );
            }
            if self.functions[..at]
                .iter()
                .any(|(other, _)| other == before)
            {
                return wrong(
                    "has another function before it and no program between",
                    "make one function of both",
                );
            }
            if self.elastic.contains_key(&(before - 1)) {
                return wrong(
                    "is behind a stage that has an elastic buffer behind it",
                    "leave one of them out, or put a cat between",
                );
            }
        }
        Ok(())
    }

    /// What becomes an error once it is over.
    pub(super) fn verdict(&self) -> Verdict {
        Verdict {
            check: self.check,
            stopped_is_error: self.stopped_is_error,
        }
    }

    /// Finds what is wrong with the whole.
    pub(super) fn check_whole(&self) -> Result<(), Error> {
        let invalid = |source| {
            Err(Error::Invalid {
                stage: None,
                source,
            })
        };
        let of = self.stages.len();
        if of == 0 {
            return invalid(Invalid::new(
                "stages",
                "is empty",
                "a pipeline has one program at least",
            ));
        }
        let last_code_of = self.ok_codes.keys().next_back().copied();
        if let Some(stage) = last_code_of.filter(|stage| *stage >= of) {
            return invalid(Invalid::new(
                "ok_codes",
                format!("names stage {stage} of {of}, which count from 0"),
                "name a stage that there is",
            ));
        }
        self.check_fans().or_else(invalid)?;
        let shape = self.shape();
        let last_buffer = self.elastic.keys().next_back().copied();
        if let Some(stage) = last_buffer.filter(|stage| !shape.is_read(*stage)) {
            return invalid(Invalid::new(
                "elastic",
                format!(
                    "is behind stage {stage} of {of}, which count from 0, and there is no next"
                ),
                "name a stage before the last",
            ));
        }
        let mut buffered = self.elastic.keys();
        if let Some(stage) = buffered.find(|stage| shape.beside(**stage).len() > 1) {
            return invalid(Invalid::new(
                "elastic",
                format!("is behind stage {stage} of {of}, which is one of a fan"),
                "put a cat behind the fan, and the buffer behind that",
            ));
        }
        self.check_functions().or_else(invalid)?;
        let captures = self.stages.iter().enumerate().any(|(place, stage)| {
            let captured = stage.spec.captures();
            captured.stderr || (captured.stdout && !shape.is_read(place))
        });
        if !self.hooks.idle_timeout.is_never() && !captures {
            return invalid(Invalid::new(
                "idle_timeout",
                "needs a captured stream",
                "capture stdout of the last stage or stderr of one: what goes elsewhere is not \
                 seen here",
            ));
        }
        Ok(())
    }
}

/// What is behind each stage in the place of a mere pipe.
pub(super) fn behinds(
    elastic: &BTreeMap<usize, Overflow>,
    functions: Vec<(usize, StageFunction)>,
    shape: &Shape,
) -> BTreeMap<usize, Behind> {
    let fans = shape.row().filter(|runs| runs.len() > 1);
    let before_fans = fans.filter_map(|runs| runs.start.checked_sub(1));
    let fans = before_fans.map(|place| {
        let overflow = elastic.get(&place).copied().unwrap_or(FAN);
        (place, Behind::Fan(overflow))
    });
    let elastic = elastic.iter();
    let elastic = elastic.map(|(place, overflow)| (*place, Behind::Elastic(*overflow)));
    let functions = functions.into_iter();
    // Those before the first stage have been refused.
    let functions = functions.map(|(before, function)| (before - 1, Behind::Function(function)));
    // The fan has the policy of the buffer in whose place it is.
    elastic.chain(functions).chain(fans).collect()
}

/// The commands of the stages as a shell takes them, for errors.
pub(super) struct Commands {
    each: Vec<String>,
    shape: Shape,
}

impl Commands {
    pub(super) fn of(stages: &[Command<'_>], shape: &Shape) -> Commands {
        let each = stages.iter().map(|one| quote(&one.spec.argv)).collect();
        let shape = shape.clone();
        Commands { each, shape }
    }

    /// All of them in a line.
    pub(super) fn line(&self) -> String {
        joined(self.each.iter().cloned(), &self.shape)
    }

    /// The error of a start that was refused.
    pub(super) fn unstarted(&self, refused: StageUnstarted) -> Error {
        let stage = refused.place;
        match refused.unstarted {
            Unstarted::Invalid(source) => Error::Invalid {
                stage: Some(stage),
                source,
            },
            Unstarted::Spawn(source) => Error::Spawn {
                stage,
                of: self.each.len(),
                command: self.each[stage].clone(),
                source,
            },
            Unstarted::Cancelled => Error::Cancelled {
                command: self.line(),
            },
        }
    }
}

/// What becomes an error once a pipeline is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    check: bool,
    stopped_is_error: bool,
}

impl Verdict {
    /// The result, or the error that it is.
    pub(super) fn of(
        self,
        output: PipelineOutput,
        failure: Option<(Option<usize>, Failure)>,
    ) -> Result<PipelineOutput, Error> {
        let command_of = |stage: Option<usize>| match stage {
            Some(place) => output.report.stages[place].report.command(),
            None => output.report.command(),
        };
        match failure {
            Some((stage, Failure::Foreign(what, source))) => Err(Error::Foreign {
                what,
                stage,
                command: command_of(stage),
                source,
                output: Box::new(output),
            }),
            Some((stage, Failure::Io(source))) => Err(Error::Io {
                stage,
                command: command_of(stage),
                source,
                output: Box::new(output),
            }),
            None if self.stopped_is_error && output.report.reason != Reason::Finished => {
                Err(Error::Stopped(Box::new(output)))
            }
            None if self.check && !output.success() => Err(Error::Failed(Box::new(output))),
            None => Ok(output),
        }
    }
}

/// A stage of so many as the start takes it: its spec says nothing of what it is joined by.
pub(super) fn joinable<'a>(
    stage: Command<'a>,
    place: usize,
    shape: &Shape,
    stop: Option<Stop>,
) -> Result<(Arc<Spec>, Hooks<'a>), Invalid> {
    let Command {
        mut spec, hooks, ..
    } = stage;
    let reads_last = shape.before(place).is_some();
    let feeds_next = shape.is_read(place);
    if spec.pty.is_some() {
        return Err(Invalid::new(
            "pty",
            "is not for a stage of a pipeline",
            "a terminal has both ends of a program, and here they are pipes: leave it out",
        ));
    }
    if spec.foreground {
        return Err(Invalid::new(
            "foreground",
            "is not for a stage of a pipeline",
            "a terminal has one foreground group, and each stage may have its own: leave it out",
        ));
    }
    if hooks.adopts {
        return Err(Invalid::new(
            "adopts_orphans",
            "is not for a stage of a pipeline",
            "it is for a process that makes one run at a time, as nothing tells of which run an \
             orphan was: leave it out",
        ));
    }
    if hooks.input_wanted {
        return Err(Invalid::new(
            "input_wanted",
            "is not for a stage of a pipeline",
            "run that program by itself, or leave it out",
        ));
    }
    if reads_last && (!matches!(spec.stdin, Stdin::Null) || hooks.producer.is_some()) {
        return Err(Invalid::new(
            "stdin",
            "is the stage before",
            "set that of the first stage: it is the stdin of the whole",
        ));
    }
    if feeds_next && !matches!(spec.stdout, Sink::Capture) {
        return Err(Invalid::new(
            "stdout",
            "is the next stage",
            "set that of the last stage: it is the stdout of the whole",
        ));
    }
    if feeds_next {
        // The pipe takes its place.
        spec.stdout = Sink::Null;
    }
    if let Some(stop) = stop {
        spec.stop = stop;
    }
    Ok((Arc::new(spec), hooks))
}
