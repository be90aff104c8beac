//! The thread that looks after a pipeline which its caller holds.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Sender, channel};

use super::judgement::SuccessRule;
use super::ongoing::OngoingPipeline;
use super::report::PipelineReport;
use crate::child::{StdinProducer, Unstarted, pipe_error};
use crate::error::{BoxError, SpawnError, Step};
use crate::run::{
    Behind, Demand, EventHook, Failure, Hooks, JoinedStage, JoinedView, JointHooks, Moment,
    Outlets, Shape, StageUnstarted, Watch, start_joined,
};
use crate::spec::Spec;
use crate::taps::TapPlan;
use procwright_os::fork::{ForkId, OnceBox};
use procwright_os::sync::Mutex;
use procwright_os::thread;
use procwright_os::time::Timeout;
use procwright_os::wake::Wake;
use procwright_process::Cancel;

/// A stage as the thread gets it: hooks that stay with the caller's thread are not among these.
pub(super) struct DrivenStage {
    pub(super) spec: Arc<Spec>,
    pub(super) behind: Option<Behind>,
    pub(super) producer: Option<StdinProducer>,
    pub(super) taps: TapPlan,
    pub(super) cancel: Option<Cancel>,
    pub(super) on_event: Option<EventHook>,
    pub(super) until_exit: Option<&'static str>,
    pub(super) outlets: Option<Outlets>,
}

/// A pipeline as the thread gets it.
pub(super) struct DrivenPipeline {
    pub(super) stages: Vec<DrivenStage>,
    pub(super) shape: Shape,
    /// The pipe that the first one reads, if its caller writes to it.
    pub(super) stdin: Option<OwnedFd>,
    pub(super) timeout: Timeout,
    pub(super) idle_timeout: Timeout,
    pub(super) cancel: Option<Cancel>,
    pub(super) command: String,
    pub(super) rule: SuccessRule,
    pub(super) ok_codes: BTreeMap<usize, Vec<i32>>,
}

/// All that is known of a pipeline that is over, but for what its readers have.
#[derive(Debug)]
pub(super) struct PastPipeline {
    pub(super) report: PipelineReport,
    /// The end of the stderr of each stage that went to a reader.
    pub(super) last_words: Vec<Option<Vec<u8>>>,
    /// Taken by the one who tells it.
    pub(super) failure: Mutex<Option<(Option<usize>, Failure)>>,
}

/// What the thread and the holders of its pipeline have together.
pub(super) struct DriverShared {
    /// The process that has the thread. A fork has not, and asks nothing of it.
    owner: ForkId,
    /// The sharpest demand so far. Relaxed: `asked` is rung behind it, by a system call, and
    /// it leads to no other memory.
    demand: AtomicU8,
    /// Rung by whoever demands something.
    asked: Wake,
    /// Set before the first signal of a stop that no holder has asked for.
    stopping: Arc<AtomicBool>,
    /// Set once it is over; to none if the thread has panicked.
    past: OnceBox<Option<PastPipeline>>,
    /// Rung once `past` is set, and never silenced: any number of waits end by it.
    over: Wake,
}

/// Demands, the sharper ones higher.
const STOP: u8 = 1;
const KILL: u8 = 2;

impl DriverShared {
    pub(super) fn new() -> io::Result<DriverShared> {
        Ok(DriverShared {
            owner: ForkId::current(),
            demand: AtomicU8::new(0),
            asked: Wake::new()?,
            stopping: Arc::default(),
            past: OnceBox::new(),
            over: Wake::new()?,
        })
    }

    /// False in a fork.
    pub(super) fn is_ours(&self) -> bool {
        self.owner.is_current()
    }

    /// What came of it, once it is over: none in it if the thread has panicked.
    pub(super) fn past(&self) -> Option<Option<&PastPipeline>> {
        self.past.get().map(Option::as_ref)
    }

    /// True from before the first signal of a stop that no holder has asked for until it is over.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed) && self.past().is_none()
    }

    /// Readable once it is over.
    pub(super) fn over(&self) -> BorrowedFd<'_> {
        self.over.as_fd()
    }

    /// Has all stopped, without more grace if `at_once`.
    pub(super) fn demand_end(&self, at_once: bool) {
        if !self.is_ours() {
            return;
        }
        let demand = if at_once { KILL } else { STOP };
        self.demand.fetch_max(demand, Ordering::Relaxed);
        self.asked.ring();
    }
}

/// Passes on what the holders of the pipeline demand.
struct Demands(Arc<DriverShared>);

impl Watch for Demands {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.asked.as_fd()
    }

    fn ready(&mut self, _moment: Moment<'_>) -> Result<Demand, BoxError> {
        // Silence first: a ring in between is not lost.
        self.0.asked.silence();
        Ok(match self.0.demand.load(Ordering::Relaxed) {
            KILL => Demand::Kill,
            STOP => Demand::Stop,
            _ => Demand::Nothing,
        })
    }
}

/// Tells all waits also if the thread panics.
struct LostOnDrop(Arc<DriverShared>);

impl Drop for LostOnDrop {
    fn drop(&mut self) {
        // Set already, unless there was a panic.
        let _ = self.0.past.get_or_insert(None);
        self.0.over.ring();
    }
}

/// Starts the pipeline on a thread of its own, which looks after it until it is over, whoever
/// holds it. The thread is made by the caller's, so what a program inherits is as it is there.
pub(super) fn start(
    pipeline: DrivenPipeline,
    shared: &Arc<DriverShared>,
) -> Result<Vec<JoinedView>, StageUnstarted> {
    let (answer, answered) = channel();
    let theirs = Arc::clone(shared);
    let work = move || drive(pipeline, theirs, &answer);
    let refused = |error| StageUnstarted {
        place: 0,
        unstarted: SpawnError::new(Step::Thread, "", error).into(),
    };
    std::thread::Builder::new()
        .name("procwright-pipe".into())
        .spawn(work)
        .map_err(refused)?;
    let lost = |_| refused(io::Error::other("the thread ended"));
    answered.recv().map_err(lost)?
}

type Answer = Result<Vec<JoinedView>, StageUnstarted>;

fn drive(pipeline: DrivenPipeline, shared: Arc<DriverShared>, answer: &Sender<Answer>) {
    let lost = LostOnDrop(Arc::clone(&shared));
    let stages = pipeline.stages.into_iter().map(|stage| JoinedStage {
        spec: stage.spec,
        hooks: Hooks {
            producer: stage.producer,
            taps: stage.taps,
            cancel: stage.cancel,
            on_event: stage.on_event,
            until_exit: stage.until_exit,
            outlets: stage.outlets,
            ..Hooks::default()
        },
        behind: stage.behind,
    });
    let hooks = JointHooks {
        timeout: pipeline.timeout,
        idle_timeout: pipeline.idle_timeout,
        cancel: pipeline.cancel,
        watch: Some(Box::new(Demands(Arc::clone(&shared)))),
        every: None,
        stopping: Some(Arc::clone(&shared.stopping)),
    };
    let runs =
        match start_joined::<Vec<u8>>(stages.collect(), pipeline.shape, pipeline.stdin, hooks) {
            Ok(runs) => runs,
            Err(refused) => {
                let _ = answer.send(Err(refused));
                return;
            }
        };
    // Threads for callbacks are there. From now on signals are for the host's threads.
    thread::make_quiet();
    // The caller waits for this.
    let _ = answer.send(Ok(runs.views()));
    let (rule, ok_codes) = (pipeline.rule, pipeline.ok_codes);
    let ongoing = OngoingPipeline::new(runs, pipeline.command, rule, ok_codes);
    if let Ok(collected) = ongoing.finish() {
        let _ = shared.past.get_or_insert(Some(PastPipeline {
            report: collected.report,
            last_words: collected.stderr,
            failure: Mutex::new(collected.failure),
        }));
    }
    drop(lost);
}

/// The error of a pipe that cannot be had for the whole.
pub(super) fn no_descriptor(error: io::Error) -> StageUnstarted {
    StageUnstarted {
        place: 0,
        unstarted: Unstarted::from(pipe_error(error)),
    }
}
