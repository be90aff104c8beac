//! One call: start, drain, stop, result.

mod cancel;
mod error;
mod event;
mod output;
mod tap;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use cancel::Cancel;
pub use error::{Error, Foreign};
pub use event::Event;
pub use output::{Output, Reason, Report, StreamInfo};
pub(crate) use output::quote;
pub use tap::Tap;
pub(crate) use tap::{Duty, FullFile, Lines, Tee, Writer};

use crate::child::{self, OurEnds, Running, Unstarted};
use crate::drain::{Drain, Feed, Inline, Input, Segment, Store, Turn};
use crate::error::{SpawnError, Step};
use crate::holders::{self, Holders, PipeId, Role, RunPipe};
use crate::ident::ProcId;
use crate::process::{Exit, Stopping, Target, Unknown};
use crate::spec::{Beyond, Limit, Spec, Stdin, Until};
use crate::spool::Memory;
use crate::spool::fifo::{BoxError, Fifo};
use crate::sys::poll::{self, Flags};
use crate::sys::wake::Wake;
use crate::time::Deadline;
use tap::Consumer;

/// What a run has beside its [`Spec`]: all that lives only once.
#[derive(Default)]
pub(crate) struct Extras<'a> {
    /// Brings stdin, on a thread of its own, until it has no more.
    pub(crate) producer: Option<Producer>,
    /// Get copies of stdout and stderr.
    pub(crate) taps: [Vec<(Box<dyn Tap>, Duty)>; 2],
    pub(crate) cancel: Option<Cancel>,
    /// Asked after every signal handler that ran on the calling thread; an
    /// error stops the run and comes through.
    pub(crate) interrupt: Option<Box<dyn FnMut() -> Result<(), BoxError> + 'a>>,
    pub(crate) on_event: Option<Box<dyn FnMut(&Event) + 'a>>,
    /// Whether orphans come to this process (it is a sub-reaper with one run).
    pub(crate) adopts: bool,
}

/// The next piece of stdin, none at its end.
pub(crate) type Producer = Box<dyn FnMut() -> Option<Result<bytes::Bytes, BoxError>> + Send>;

/// All that came of a run.
pub(crate) struct Outcome<M> {
    pub(crate) report: Report,
    pub(crate) stdout: Option<M>,
    pub(crate) stderr: Option<M>,
    pub(crate) merged: Option<Vec<Segment>>,
    pub(crate) trouble: Option<Trouble>,
}

/// What ended a run that neither the program nor the caller wanted to end.
#[derive(Debug)]
pub(crate) enum Trouble {
    Foreign(Foreign, BoxError),
    Io(io::Error),
}

/// A second after the program's exit somebody is told who still holds its
/// pipes: long enough that no ordinary run says anything, short enough that a
/// person at a terminal has not yet begun to wonder.
const HELD_AFTER: Duration = Duration::from_secs(1);

/// Runs `spec` and returns when nothing of it is left to wait for.
pub(crate) fn execute<M: Memory>(spec: &Spec, extras: Extras<'_>) -> Result<Outcome<M>, Unstarted> {
    let started = Instant::now();
    let feeds = extras.producer.is_some() || matches!(spec.stdin, Stdin::Bytes(_));
    let threads = extras.producer.is_some() || extras.taps.iter().any(|taps| !taps.is_empty());
    let wake = match threads || spec.keep_full.is_some() {
        true => Some(Arc::new(Wake::new().map_err(no_descriptor)?)),
        false => None,
    };
    let full_files = full_files(spec)?;
    let (running, ends) = child::start(spec, feeds)?;
    let mut run = Run {
        spec,
        started,
        deadline: spec.timeout.starting(started),
        running,
        inline: None,
        consumers: Vec::new(),
        cancel: extras.cancel,
        interrupt: extras.interrupt,
        on_event: extras.on_event,
        adopts: extras.adopts,
        exited_at: None,
        said_held: false,
        stop: None,
        trouble: None,
        broken: 0,
    };
    run.connect(ends, extras.producer, extras.taps, full_files, wake);
    run.drive();
    Ok(run.conclude())
}

fn no_descriptor(error: io::Error) -> SpawnError {
    SpawnError::new(Step::Pipe, "", error)
}

/// The files of `keep_full`, made before anything starts.
fn full_files(spec: &Spec) -> Result<[Option<(FullFile, Duty)>; 2], SpawnError> {
    let Some(path) = &spec.keep_full else {
        return Ok([None, None]);
    };
    let mut beside = path.clone().into_os_string();
    beside.push(".stderr");
    let create = |path: &std::path::Path| {
        let file = FullFile::create(path)
            .map_err(|e| SpawnError::new(Step::Open, path.to_string_lossy(), e))?;
        Ok((file, Duty::Keeps(path.to_path_buf())))
    };
    let [out, err] = spec.captures();
    Ok([
        if out { Some(create(path)?) } else { None },
        if err { Some(create(beside.as_ref())?) } else { None },
    ])
}

/// A stop under way, and what was seen when it began.
struct Stop {
    reason: Reason,
    machine: Stopping,
    /// Until when consumers may finish what they have.
    patience: Deadline,
    processes: Vec<String>,
    held: [Option<Holders>; 2],
}

/// A run under way.
struct Run<'a, M> {
    spec: &'a Spec,
    started: Instant,
    deadline: Deadline,
    running: Running,
    inline: Option<Inline<M>>,
    consumers: Vec<Consumer>,
    cancel: Option<Cancel>,
    interrupt: Option<Box<dyn FnMut() -> Result<(), BoxError> + 'a>>,
    on_event: Option<Box<dyn FnMut(&Event) + 'a>>,
    adopts: bool,
    exited_at: Option<Instant>,
    said_held: bool,
    stop: Option<Stop>,
    trouble: Option<Trouble>,
    /// How often the system refused to let us read or wait.
    broken: u8,
}

impl<M: Memory> Run<'_, M> {
    fn connect(
        &mut self,
        ends: OurEnds,
        producer: Option<Producer>,
        taps: [Vec<(Box<dyn Tap>, Duty)>; 2],
        full_files: [Option<(FullFile, Duty)>; 2],
        wake: Option<Arc<Wake>>,
    ) {
        let mut index = 0;
        let drains = [taps, full_files.map(|_| Vec::new())];
        let _ = (&mut index, drains);
        let _ = (ends, producer, wake);
    }
}
