//! A child, as `lib/procwright/child.rb` completes it.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, mpsc};

use procwright_os::fork::OnceBox;
use procwright_os::sync::Mutex;
use std::time::Instant;

use magnus::{
    Class, Error, Module, Object, RArray, RHash, RModule, RObject, RString, Ruby, Value, function,
    method,
};
use procwright::error::Step;
use procwright::queue;
use procwright::stream::MergedReader;
use procwright::terminal::Size;
use procwright::{Command, Event, Process, Reason, StdStream, WaitError};

use crate::arguments::{seconds, signal, stop};
use crate::errors::{
    self, exception, guarded, panic_error, spawn_error, start_refused, system_error,
};
use crate::event;
use crate::event_handover::EventHandover;
use crate::explained;
use crate::gvl::without_gvl_briefly;
use crate::interruptible::{block_without_gvl, stop_on_thread, try_then_block};
use crate::merged::Merged;
use crate::options::Options;
use crate::output_tap::{OWN_OUTPUT, OutputTaps};
use crate::process::{Handle, process_result};
use crate::queue::{Receiver, Sender, Side, queue_error};
use crate::reader::Reader;
use crate::report;
use crate::shared_reader::SharedReader;
use crate::writer::Writer;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("spawn", function!(spawn, 2))?;
    let class = native.define_class("Child", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("pid", method!(Child::pid, 0))?;
    class.define_method("process", method!(Child::process, 0))?;
    class.define_method("handle", method!(Child::handle, 0))?;
    class.define_method("awaited", method!(Child::awaited, 0))?;
    class.define_method("alive?", method!(Child::is_alive, 0))?;
    class.define_method("signal", method!(Child::signal, 1))?;
    class.define_method("stdin", method!(Child::stdin, 0))?;
    class.define_method("output", method!(Child::output, 1))?;
    class.define_method("merged", method!(Child::merged, 0))?;
    class.define_method("poll", method!(Child::poll, 0))?;
    class.define_method("wait", method!(Child::wait, 1))?;
    class.define_method("stop", method!(Child::stop, 1))?;
    class.define_method("stop_in_background", method!(Child::stop_in_background, 0))?;
    class.define_method("stopped_for", method!(Child::stopped_for, 0))?;
    class.define_method("stopping?", method!(Child::is_stopping, 0))?;
    class.define_method("explain_timeout", method!(Child::explain_timeout, 3))?;
    class.define_method("explain_silence", method!(Child::explain_silence, 1))?;
    class.define_method("waiting_for", method!(Child::waiting_for, 0))?;
    class.define_method("explain", method!(Child::explain, 0))?;
    class.define_method("resize", method!(Child::resize, 2))?;
    class.define_method("report", method!(Child::report, 2))?;
    class.define_method("events", method!(Child::events, 0))?;
    class.define_method("receiver", method!(Child::receiver, 0))?;
    class.define_method("sender", method!(Child::sender, 1))?;
    class.define_method("ours?", method!(Child::is_ours, 0))?;
    class.define_method("close_sender", method!(Child::close_sender, 0))
}

/// A program that was started. Ruby takes its streams and its receiver out, once.
#[magnus::wrap(class = "Procwright::Native::Child", free_immediately)]
pub(crate) struct Child {
    pub(crate) child: Arc<procwright::Child>,
    /// The process, once somebody has asked for it.
    asked: OnceBox<Process>,
    /// The command in errors.
    command: String,
    stdin: Mutex<Option<procwright::stream::Writer>>,
    /// Stdout and stderr.
    outputs: [Mutex<Option<procwright::stream::Reader>>; 2],
    merged: Mutex<Option<MergedReader>>,
    /// The outputs that were taken, which are open until they are closed or the child is
    /// forgotten: one that is stopped then has its last words taken.
    taken: Mutex<TakenOutputs>,
    receiver: Mutex<Option<queue::Receiver>>,
    events: Mutex<mpsc::Receiver<Event>>,
    /// Its tee shows on our own stream what would be told of it.
    is_shown: bool,
}

/// Outputs that Ruby has: each, or both as one.
#[derive(Clone, Default)]
struct TakenOutputs {
    each: Vec<Arc<SharedReader>>,
    merged: Option<Arc<MergedReader>>,
}

/// Starts a program, and leaves it to `holder`, as its `@native`. It cannot be returned: Ruby
/// looks for interrupts when it leaves a method of C's, and what one throws there takes the
/// place of the value. No object would own the program then.
fn spawn(ruby: &Ruby, holder: RObject, hash: RHash) -> Result<(), Error> {
    guarded(|| {
        let options = Options { ruby, hash };
        let mut spec = options.spec()?;
        options.add_spawn_options(&mut spec)?;
        let overflow = options.overflow()?;
        let stall_after = seconds("stall_after", options.get("stall_after")?)?;
        let channel = options.channel()?;
        let cancel = options.cancel()?;
        let at_once = options.get::<Option<&EventHandover>>("events")?;
        let taps = OutputTaps::from_options(options)?.of_a_child();
        let (event_sender, events) = mpsc::channel();
        // The core's threads must not wait for Ruby: events are kept until Ruby asks.
        let event_sender = Arc::new(Mutex::new(event_sender));
        let spawned = without_gvl_briefly(|| {
            let event_sender = Arc::clone(&event_sender);
            let mut told = at_once.map(EventHandover::listener);
            let mut command = Command::from_spec(spec.clone())
                .stall_after(stall_after)
                .on_stream_event(move |event| {
                    if told.as_mut().is_some_and(|tell| tell(event)) {
                        return;
                    }
                    let sender = event_sender.lock();
                    let _ = sender.send(event.clone());
                });
            if at_once.is_some() {
                command = command.input_wanted();
            }
            if let Some(channel) = channel {
                command = command.channel(channel);
            }
            if let Some(cancel) = &cancel {
                command = command.cancel_on(cancel);
            }
            taps.add_to(command)
                .map(|command| command.spawn_with(overflow))
        })?;
        let spawned = spawned.map_err(|panic| panic_error(&*panic))?;
        let refused = |error| start_refused(&spec.argv, Step::Dup, OWN_OUTPUT, error);
        let spawned = spawned.map_err(refused)?;
        let mut child = spawned.map_err(|error| spawn_error(&error))?;
        let command = child.command_line();
        let child = Child {
            stdin: Mutex::new(child.stdin.take()),
            outputs: [
                Mutex::new(child.stdout.take()),
                Mutex::new(child.stderr.take()),
            ],
            merged: Mutex::new(child.merged.take()),
            taken: Mutex::default(),
            receiver: Mutex::new(child.receiver().ok()),
            asked: OnceBox::new(),
            is_shown: taps.shown().contains(&child.last_words_of()),
            child: Arc::new(child),
            command,
            events: Mutex::new(events),
        };
        holder.ivar_set("@native", child)
    })
}

impl Child {
    fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// The process, always the same one: its descriptor may be in an event loop.
    fn process(&self) -> Handle {
        Handle::of(self.asked.get_or_init(|| self.child.process()).clone())
    }

    /// The process, with its descriptor for as long as Ruby has the handle.
    fn handle(&self) -> Handle {
        Handle::of(self.child.process())
    }

    /// The process, to wait for it.
    fn awaited(&self) -> Handle {
        Handle::of_child(Arc::clone(&self.child))
    }

    fn is_alive(&self) -> bool {
        self.child.process().is_alive()
    }

    fn signal(&self, value: Value) -> Result<(), Error> {
        guarded(|| process_result(self.child.signal(signal(value)?)))
    }

    /// Takes its stdin.
    fn stdin(&self) -> Result<Option<Writer>, Error> {
        guarded(|| {
            let taken = take(&self.stdin);
            Ok(taken.map(|writer| Writer::new(writer, format!("stdin of {}", self.command))))
        })
    }

    /// Takes its stdout (1) or stderr (2).
    fn output(&self, number: usize) -> Result<Option<Reader>, Error> {
        guarded(|| {
            let name = if number == 1 { "stdout" } else { "stderr" };
            let place = self.outputs.get(number.wrapping_sub(1));
            let Some(taken) = place.and_then(take) else {
                return Ok(None);
            };
            let reader = Reader::new(taken, format!("{name} of {}", self.command))?;
            self.taken.lock().each.push(reader.shared());
            Ok(Some(reader))
        })
    }

    /// Takes both outputs as one.
    fn merged(&self) -> Result<Option<Merged>, Error> {
        guarded(|| {
            let taken = take(&self.merged);
            let taken = taken.map(Arc::new);
            self.taken.lock().merged.clone_from(&taken);
            Ok(taken.map(|both| Merged::new(both, format!("the output of {}", self.command))))
        })
    }

    /// Takes the receiver of what it sends.
    fn receiver(&self) -> Result<Receiver, Error> {
        guarded(|| match take(&self.receiver) {
            Some(receiver) => Ok(Receiver::of(receiver)),
            None => {
                let why = "it was spawned without channel: :from_child".into();
                Err(queue_error(&queue::Error::NoChannel(why), Side::Receiver))
            }
        })
    }

    /// Waits for a sender to it, until its program has made the receiver; nil if the timeout
    /// came first.
    fn sender(&self, timeout: Option<f64>) -> Result<Option<Sender>, Error> {
        guarded(|| {
            let deadline = seconds("timeout", timeout)?.starting(Instant::now());
            let made = block_without_gvl(deadline, |patience| {
                match self.child.sender_with(patience) {
                    Err(queue::Error::TimedOut) => Err(io::ErrorKind::TimedOut.into()),
                    Err(queue::Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {
                        Err(error)
                    }
                    made => Ok(made),
                }
            })?;
            match made {
                Ok(Ok(sender)) => Ok(Some(Sender::of(sender))),
                Ok(Err(error)) => Err(queue_error(&error, Side::Sender)),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
                Err(error) => Err(system_error(&error, error.to_string())),
            }
        })
    }

    /// False in a fork of the process that has started it.
    fn is_ours(&self) -> bool {
        self.child.is_ours()
    }

    /// Closes the sender to it, unless that was taken.
    fn close_sender(&self) {
        self.child.close_sender();
    }

    /// The way it ended, nil while it is alive. Reaps it.
    fn poll(ruby: &Ruby, this: &Child) -> Result<Option<RArray>, Error> {
        guarded(|| {
            let exit = this.child.try_wait();
            exit.map(|exit| report::status(ruby, exit)).transpose()
        })
    }

    /// Waits until it has ended; nil if the timeout came first.
    fn wait(ruby: &Ruby, this: &Child, timeout: Option<f64>) -> Result<Option<RArray>, Error> {
        guarded(|| {
            let deadline = seconds("timeout", timeout)?.starting(Instant::now());
            let waited =
                try_then_block(deadline, |patience| match this.child.wait_with(patience) {
                    Ok(Some(exit)) => Ok(Ok(exit)),
                    Ok(None) => Err(io::ErrorKind::TimedOut.into()),
                    Err(WaitError::Interrupted) => Err(io::ErrorKind::Interrupted.into()),
                    Err(error) => Ok(Err(error)),
                })?;
            match waited {
                Ok(Ok(exit)) => report::status(ruby, exit).map(Some),
                Ok(Err(WaitError::Stalled(error))) => Err(errors::stalled_error(&error)),
                Ok(Err(WaitError::Process(error))) => Err(errors::process_error(&error)),
                Ok(Err(WaitError::Copy(error))) => {
                    let words = format!("tee: the copy is not whole: {error}");
                    Err(match error.downcast_ref::<io::Error>() {
                        Some(error) => system_error(error, words),
                        None => exception("internal_error", (words,)),
                    })
                }
                Ok(Err(error)) => Err(exception("internal_error", (error.to_string(),))),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
                Err(error) => Err(system_error(&error, error.to_string())),
            }
        })
    }

    /// Stops it. Pid, name and state of each process that could not be ended. An interrupt ends
    /// the grace, and is raised when all is over.
    fn stop(ruby: &Ruby, this: &Child, parts: Option<RArray>) -> Result<RArray, Error> {
        guarded(|| {
            let policy = parts.map(stop).transpose()?;
            let policy = policy.unwrap_or_else(|| this.child.stop_policy());
            let child = Arc::clone(&this.child);
            let survivors = stop_on_thread(policy, move |policy, hurry| {
                let ready = || {
                    hurry.clear();
                    Err(())
                };
                child.stop_watching(policy, hurry.as_fd(), ready).0
            })?;
            report::survivors(ruby, &survivors)
        })
    }

    /// Ends it on a thread of its own, while its outputs are still taken. False if there is
    /// nothing to stop.
    fn stop_in_background(&self) -> Result<bool, Error> {
        guarded(|| {
            let taken = self.taken.lock().clone();
            Ok(self.child.stop_in_background(taken))
        })
    }

    /// The reason of a child that was stopped for a limit of its own.
    fn stopped_for(&self) -> Option<&'static str> {
        self.child.stopped_for().map(Reason::name)
    }

    /// Whether the stop for a limit of its own goes on.
    fn is_stopping(&self) -> bool {
        self.child.is_stopping()
    }

    /// What is to be said when a wait of so many seconds has come to its time, having read so
    /// much of both streams.
    fn explain_timeout(
        &self,
        waited: f64,
        stdout: Option<RString>,
        stderr: Option<RString>,
    ) -> Result<String, Error> {
        guarded(|| {
            let waited = seconds("timeout", Some(waited))?;
            let last_words = match self.child.last_words_of() {
                StdStream::Stdout => stdout,
                StdStream::Stderr => stderr,
            };
            let last_words = self.last_words(last_words);
            let text = without_gvl_briefly(|| self.child.explain_timeout(waited, &last_words))?;
            text.map_err(|panic| panic_error(&*panic))
        })
    }

    /// What is to be said when nothing has come of it for so many seconds: in lines that begin with
    /// a newline, or empty.
    fn explain_silence(&self, waited: f64) -> Result<String, Error> {
        guarded(|| {
            let waited = seconds("timeout", Some(waited))?;
            let text = without_gvl_briefly(|| self.child.explain_silence(waited))?;
            text.map_err(|panic| panic_error(&*panic))
        })
    }

    /// What it waits for.
    fn waiting_for(ruby: &Ruby, this: &Child) -> Result<RArray, Error> {
        guarded(|| {
            let waiting = without_gvl_briefly(|| this.child.waiting_for())?;
            let waiting = waiting.map_err(|panic| panic_error(&*panic))?;
            let waiting = waiting.map_err(|error| explained::refused(this.child.pid(), &error))?;
            explained::waiting(ruby, &waiting)
        })
    }

    /// Why it does not end.
    fn explain(ruby: &Ruby, this: &Child) -> Result<RArray, Error> {
        guarded(|| {
            let diagnosis = without_gvl_briefly(|| this.child.explain())?;
            let diagnosis = diagnosis.map_err(|panic| panic_error(&*panic))?;
            let diagnosis =
                diagnosis.map_err(|error| explained::refused(this.child.pid(), &error))?;
            explained::diagnosis(ruby, &diagnosis)
        })
    }

    /// The end of its stderr for those who tell of it: of what was read, or else of what came; none
    /// of what its tee has shown.
    fn last_words(&self, read: Option<RString>) -> Vec<u8> {
        match read.map(crate::string::to_vec).unwrap_or_default() {
            _ if self.is_shown => Vec::new(),
            read if !read.is_empty() => read,
            _ => self.child.last_words().unwrap_or_default(),
        }
    }

    /// Sets the size of its terminal.
    fn resize(&self, rows: u16, columns: u16) -> Result<(), Error> {
        guarded(|| {
            let resized = self.child.resize(Size { rows, columns });
            resized.map_err(|error| match error.kind() {
                io::ErrorKind::Unsupported => exception("invalid_value", (error.to_string(),)),
                io::ErrorKind::NotConnected => {
                    let gone = io::Error::from(rustix::io::Errno::PIPE);
                    system_error(&gone, error.to_string())
                }
                _ => system_error(&error, error.to_string()),
            })
        })
    }

    /// The report of a run, with what was read of both streams; nil while it lives.
    fn report(
        ruby: &Ruby,
        this: &Child,
        stdout: Option<RString>,
        stderr: Option<RString>,
    ) -> Result<Option<RHash>, Error> {
        guarded(|| {
            let Some(report) = this.child.report() else {
                return Ok(None);
            };
            let hash = report::hash(ruby, &report)?;
            let last_words = match report.last_words_of {
                StdStream::Stdout => stdout,
                StdStream::Stderr => stderr,
            };
            let shown = this.last_words(last_words);
            hash.aset(
                ruby.to_symbol("explanation"),
                report.explain_to(&shown, report::UNTIL_EXIT),
            )?;
            hash.aset(ruby.to_symbol("stdout"), stdout)?;
            hash.aset(ruby.to_symbol("stderr"), stderr)?;
            hash.aset(ruby.to_symbol("merged"), ruby.qnil())?;
            Ok(Some(hash))
        })
    }

    /// Events of its streams since the last call.
    fn events(ruby: &Ruby, this: &Child) -> Result<RArray, Error> {
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

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    let mut place = place.lock();
    place.take()
}
