//! `Procwright.spawn_pipeline`: a pipeline that its caller holds, as
//! `lib/procwright/pipeline_child.rb` completes it.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use magnus::{
    Class, Error, Module, Object, RArray, RHash, RModule, RObject, RString, Ruby, TryConvert,
    function, method,
};
use procwright::pipeline::{self, PipelineReport};
use procwright::stream::{self, Patience};
use procwright::time::Deadline;
use procwright::{Command, Event};
use procwright_os::sync::Mutex;

use crate::arguments::seconds;
use crate::errors::{choice_error, guarded, panic_error, pipeline_error, system_error};
use crate::event;
use crate::gvl::without_gvl_briefly;
use crate::interruptible::block_without_gvl;
use crate::options::{Options, each};
use crate::pipeline::{Explanations, Whole, raise_failure, result, specs};
use crate::reader::Reader;
use crate::report::UNTIL_EXIT;
use crate::shared_reader::SharedReader;
use crate::string::to_vec;
use crate::writer::Writer;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("spawn_pipeline", function!(spawn_pipeline, 2))?;
    let class = native.define_class("PipelineChild", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("pids", method!(PipelineChild::pids, 0))?;
    class.define_method("stdin", method!(PipelineChild::stdin, 0))?;
    class.define_method("stdout", method!(PipelineChild::stdout, 0))?;
    class.define_method("stderr", method!(PipelineChild::stderr, 1))?;
    class.define_method("ours?", method!(PipelineChild::is_ours, 0))?;
    class.define_method("alive?", method!(PipelineChild::is_alive, 0))?;
    class.define_method("stopping?", method!(PipelineChild::is_stopping, 0))?;
    class.define_method("readiness_fd", method!(PipelineChild::readiness_fd, 0))?;
    class.define_method("wait", method!(PipelineChild::wait, 1))?;
    class.define_method("stop", method!(PipelineChild::stop, 1))?;
    class.define_method("begin_stop", method!(PipelineChild::begin_stop, 1))?;
    class.define_method(
        "stop_in_background",
        method!(PipelineChild::stop_in_background, 0),
    )?;
    class.define_method(
        "explain_timeout",
        method!(PipelineChild::explain_timeout, 1),
    )?;
    class.define_method(
        "explain_silence",
        method!(PipelineChild::explain_silence, 1),
    )?;
    class.define_method("report", method!(PipelineChild::report, 2))?;
    class.define_method("events", method!(PipelineChild::events, 0))
}

/// A pipeline that was started. Ruby takes its streams out, once.
#[magnus::wrap(class = "Procwright::Native::PipelineChild", free_immediately)]
pub(crate) struct PipelineChild {
    pub(crate) child: pipeline::PipelineChild,
    /// The command of each stage in errors.
    commands: Vec<String>,
    stdin: Mutex<Option<stream::Writer>>,
    stdout: Mutex<Option<stream::Reader>>,
    /// That of each stage.
    stderr: Mutex<Vec<Option<stream::Reader>>>,
    /// The outputs that were taken, which are open until they are closed or the pipeline is
    /// forgotten: one that is stopped then has its last words taken.
    taken: Mutex<Vec<Arc<SharedReader>>>,
    events: Mutex<mpsc::Receiver<Event>>,
}

/// Starts programs that are joined by pipes, and leaves them to `holder`, as its `@native`: for
/// the reason that `spawn` has.
fn spawn_pipeline(ruby: &Ruby, holder: RObject, hash: RHash) -> Result<(), Error> {
    guarded(|| {
        let options = Options { ruby, hash };
        let specs = specs(options)?;
        let whole = Whole::from_options(options)?;
        let Some(overflow) = options.overflow()? else {
            let policies = ":spill, :drop_oldest, :drop_newest or :fail";
            return Err(choice_error("overflow", "block", policies));
        };
        let stall_after = seconds("stall_after", options.get("stall_after")?)?;
        let listens: bool = options.get("listens")?;
        let (event_sender, events) = mpsc::channel();
        // The core's threads must not wait for Ruby: events are kept until Ruby asks.
        let event_sender = Arc::new(Mutex::new(event_sender));
        let spawned = without_gvl_briefly(|| {
            let stages = specs.iter().map(|spec| {
                let of_streams = Arc::clone(&event_sender);
                let command = Command::from_spec(spec.clone())
                    .stall_after(stall_after)
                    .until_exit_written_as(UNTIL_EXIT)
                    .on_stream_event(move |event| {
                        let _ = of_streams.lock().send(event.clone());
                    });
                if !listens {
                    // Then the core tells on stderr what a run does.
                    return command;
                }
                let of_stage = Arc::clone(&event_sender);
                command.on_event(move |event| {
                    let _ = of_stage.lock().send(event.clone());
                    Ok(())
                })
            });
            whole.of(stages).spawn_with(overflow)
        })?;
        let spawned = spawned.map_err(|panic| panic_error(&*panic))?;
        let mut child = spawned.map_err(|error| pipeline_error(&error))?;
        let child = PipelineChild {
            commands: child.stage_command_lines().collect(),
            stdin: Mutex::new(child.stdin.take()),
            stdout: Mutex::new(child.stdout.take()),
            stderr: Mutex::new(std::mem::take(&mut child.stderr)),
            taken: Mutex::default(),
            child,
            events: Mutex::new(events),
        };
        holder.ivar_set("@native", child)
    })
}

impl PipelineChild {
    fn is_stopping(&self) -> bool {
        self.child.is_stopping()
    }

    fn pids(&self) -> Vec<i32> {
        self.child.pids().to_vec()
    }

    /// Takes stdin of the first stage.
    fn stdin(&self) -> Result<Option<Writer>, Error> {
        guarded(|| {
            let taken = self.stdin.lock().take();
            let first = &self.commands[0];
            Ok(taken.map(|writer| Writer::new(writer, format!("stdin of {first}"))))
        })
    }

    /// Takes stdout of the last stage.
    fn stdout(&self) -> Result<Option<Reader>, Error> {
        guarded(|| {
            let taken = self.stdout.lock().take();
            self.taken_out(taken, "stdout", self.commands.len() - 1)
        })
    }

    /// Takes stderr of a stage.
    fn stderr(&self, place: usize) -> Result<Option<Reader>, Error> {
        guarded(|| {
            let mut streams = self.stderr.lock();
            let taken = streams.get_mut(place).and_then(Option::take);
            self.taken_out(taken, "stderr", place)
        })
    }

    fn taken_out(
        &self,
        taken: Option<stream::Reader>,
        name: &str,
        place: usize,
    ) -> Result<Option<Reader>, Error> {
        let Some(taken) = taken else {
            return Ok(None);
        };
        let reader = Reader::new(taken, format!("{name} of {}", self.commands[place]))?;
        self.taken.lock().push(reader.shared());
        Ok(Some(reader))
    }

    /// False in a fork of the process that has started it.
    fn is_ours(&self) -> bool {
        self.child.is_ours()
    }

    /// Whether it goes on.
    fn is_alive(&self) -> bool {
        // A stall is told by those who wait.
        let waited = self.child.wait(Duration::ZERO);
        matches!(waited, Ok(None) | Err(pipeline::Error::Stalled(_)))
    }

    /// A descriptor that is readable once it is over.
    fn readiness_fd(&self) -> i32 {
        self.child.readiness().as_raw_fd()
    }

    /// Waits until it is over; false if the timeout came first.
    fn wait(&self, timeout: Option<f64>) -> Result<bool, Error> {
        guarded(|| {
            let deadline = seconds("timeout", timeout)?.starting(Instant::now());
            over(deadline, |patience| self.child.wait_with(patience))
        })
    }

    /// Stops all stages, without a grace if `at_once`, and waits until it is over. An interrupt
    /// ends the grace, and is raised when all is over.
    fn stop(&self, at_once: bool) -> Result<(), Error> {
        guarded(|| {
            let stopped = over(Deadline::NEVER, |patience| {
                self.child.stop_with(at_once, patience)
            });
            if stopped.is_err() {
                // Nothing in a fork, where that was the error.
                self.child.begin_stop(true);
                let _ = without_gvl_briefly(|| drop(self.child.kill()));
            }
            stopped.map(drop)
        })
    }

    /// Begins to stop all stages, without a grace if `at_once`.
    fn begin_stop(&self, at_once: bool) {
        self.child.begin_stop(at_once);
    }

    /// Has it stopped for whoever had it last. False if there is nothing to stop.
    fn stop_in_background(&self) -> Result<bool, Error> {
        guarded(|| Ok(self.child.stop_in_background()))
    }

    /// What is to be said when a wait of so many seconds has come to its time.
    fn explain_timeout(&self, waited: f64) -> Result<String, Error> {
        guarded(|| {
            let waited = seconds("timeout", Some(waited))?;
            let text = without_gvl_briefly(|| self.child.explain_timeout(waited))?;
            text.map_err(|panic| panic_error(&*panic))
        })
    }

    /// As that of a child.
    fn explain_silence(&self, waited: f64) -> Result<String, Error> {
        guarded(|| {
            let waited = seconds("timeout", Some(waited))?;
            let text = without_gvl_briefly(|| self.child.explain_silence(waited))?;
            text.map_err(|panic| panic_error(&*panic))
        })
    }

    /// The result, with what was read of stdout of the last stage and of stderr of each; nil
    /// while it goes on.
    fn report(
        ruby: &Ruby,
        this: &PipelineChild,
        stdout: Option<RString>,
        stderr: RArray,
    ) -> Result<Option<RHash>, Error> {
        guarded(|| {
            let Some(report) = this.child.report() else {
                return Ok(None);
            };
            raise_failure(report, this.child.take_failure())?;
            let copy = |one| Ok(<Option<RString>>::try_convert(one)?.map(to_vec));
            let read: Vec<Option<Vec<u8>>> = each(stderr, copy)?;
            let words = read.iter().enumerate().map(|(place, read)| {
                match read.as_deref().unwrap_or_default() {
                    [] => this.child.last_words(place).unwrap_or_default(),
                    read => read,
                }
            });
            let words: Vec<&[u8]> = words.collect();
            let texts = Explanations::of(report, &words);
            let outputs = ruby.ary_new();
            outputs.push(stdout)?;
            result(ruby, report, outputs, stderr, texts).map(Some)
        })
    }

    /// Events of its streams since the last call.
    fn events(ruby: &Ruby, this: &PipelineChild) -> Result<RArray, Error> {
        guarded(|| {
            let array = ruby.ary_new();
            loop {
                let next = this.events.lock().try_recv();
                match next {
                    Ok(event) => array.push(event::parts(ruby, &event)?)?,
                    Err(_) => return Ok(array),
                }
            }
        })
    }
}

/// Waits until a pipeline is over, by `wait`; false if the deadline comes first.
fn over<'a>(
    deadline: Deadline,
    wait: impl Fn(Patience<'_>) -> Result<Option<&'a PipelineReport>, pipeline::Error>,
) -> Result<bool, Error> {
    let waited = block_without_gvl(deadline, |patience| match wait(patience) {
        Ok(Some(_)) => Ok(Ok(())),
        Ok(None) => Err(io::ErrorKind::TimedOut.into()),
        Err(pipeline::Error::Interrupted { .. }) => Err(io::ErrorKind::Interrupted.into()),
        Err(error) => Ok(Err(error)),
    })?;
    match waited {
        Ok(Ok(())) => Ok(true),
        Ok(Err(error)) => Err(pipeline_error(&error)),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
        Err(error) => Err(system_error(&error, error.to_string())),
    }
}
