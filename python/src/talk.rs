//! A talk with a child on an event loop: all that it sleeps on, behind one descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::MutexGuard;
use std::time::Instant;

use procwright::stream::Readiness;
use procwright::time::Deadline;
use procwright::wait::{Awaits, Event, Key, Waitable, Want};
use procwright::{ChildSleep, ChildWait, Process, WaitSet};
use procwright_os::sync::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::child::{Child, not_waited};
use crate::communicate::Communication;
use crate::errors::system;

/// The steps of an event loop until all is written and read and the child has ended.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct Talk {
    child: Py<Child>,
    communication: Py<Communication>,
    /// None once closed.
    sleep: Mutex<Option<TalkSleep>>,
}

/// What it sleeps on, most of which stays the same from one sleep to the next.
struct TalkSleep {
    wait: ChildWait,
    /// Whether that is for room in stdin: what is said of a child that cannot go on tells of it.
    is_writing: bool,
    set: WaitSet<TalkMember>,
    /// The members for the process, stdin and each output, where these are in the set.
    lasting: Vec<Option<Key>>,
    /// The members for news of the wait, which are others the next time.
    news: Vec<Key>,
}

/// The place of the process in [`TalkSleep::lasting`], before the streams.
const PROCESS: usize = 0;

enum TalkMember {
    Stream(Readiness),
    Process(Process),
    News(OwnedFd),
}

impl Waitable for TalkMember {
    fn awaits(&self) -> Awaits<'_> {
        match self {
            TalkMember::Stream(readiness) => readiness.awaits(),
            TalkMember::Process(process) => process.awaits(),
            TalkMember::News(fd) => Awaits::readable(fd.as_fd()),
        }
    }
}

#[pymethods]
impl Talk {
    #[new]
    fn new(child: Py<Child>, communication: Py<Communication>) -> PyResult<Talk> {
        let sleep = TalkSleep {
            wait: child.get().child.begin_wait(false),
            is_writing: false,
            set: WaitSet::new().map_err(refused)?,
            lasting: Vec::new(),
            news: Vec::new(),
        };
        Ok(Talk {
            child,
            communication,
            sleep: Mutex::new(Some(sleep)),
        })
    }

    /// Goes on with what needs no wait. Whether all is over, and else the seconds until the next
    /// step at the latest, none for no limit; before that it is due once `fileno` is readable.
    fn step(&self, py: Python<'_>) -> PyResult<(bool, Option<f64>)> {
        let mut guard = self.sleep()?;
        let sleep = guard.as_mut().ok_or_else(closed)?;
        let communication = self.communication.get();
        let is_read = communication.go_on_now(py)?;
        let child = &self.child.get().child;
        // Asked each time: a child that has ended may be stopped for a limit, with who holds its
        // outputs.
        let ended = py.detach(|| child.wait_step());
        let has_ended = ended.map_err(|error| not_waited(py, error))?.is_some();
        if is_read && has_ended {
            return Ok((true, None));
        }
        let Some(streams) = communication.open_streams(py)? else {
            // No descriptor tells of what is at hand already.
            return Ok((false, Some(0.0)));
        };
        let is_writing = streams[0].is_some();
        if std::mem::replace(&mut sleep.is_writing, is_writing) != is_writing {
            sleep.wait = child.begin_wait(is_writing);
        }
        let TalkSleep {
            wait,
            is_writing: _,
            set,
            lasting,
            news,
        } = sleep;
        let next = match has_ended {
            true => None,
            false => Some(child.wait_sleep(wait)),
        };
        let next = next.transpose().map_err(|error| not_waited(py, error))?;
        let mut put = Put { set, lasting, news };
        let put = put.forget_those_that_have_come().and_then(|()| {
            put.lasting.resize(streams.len() + 1, None);
            for (place, stream) in streams.into_iter().enumerate() {
                put.keep(place + 1, stream.map(TalkMember::Stream))?;
            }
            let is_for_process = next.as_ref().is_some_and(|next| next.is_for_process);
            let process = is_for_process.then(|| TalkMember::Process(child.process()));
            put.keep(PROCESS, process)?;
            put.replace_news(next.as_ref())
        });
        put.map_err(refused)?;
        let left = next.and_then(|next| next.until.remaining(Instant::now()));
        Ok((false, left.map(|left| left.as_secs_f64())))
    }

    /// The descriptor of all that it sleeps on, which stays this object's.
    fn fileno(&self) -> PyResult<RawFd> {
        let guard = self.sleep()?;
        Ok(guard.as_ref().ok_or_else(closed)?.set.as_fd().as_raw_fd())
    }

    /// Lets go of everything at once, also where a traceback keeps this.
    fn close(&self) -> PyResult<()> {
        self.sleep()?.take();
        Ok(())
    }
}

impl Talk {
    fn sleep(&self) -> PyResult<MutexGuard<'_, Option<TalkSleep>>> {
        let busy = || PyRuntimeError::new_err("another thread is in a step of this talk");
        self.sleep.try_lock().ok_or_else(busy)
    }
}

/// The set, and what is in it.
struct Put<'a> {
    set: &'a mut WaitSet<TalkMember>,
    lasting: &'a mut Vec<Option<Key>>,
    news: &'a mut Vec<Key>,
}

impl Put<'_> {
    /// The set has let go of them.
    fn forget_those_that_have_come(&mut self) -> io::Result<()> {
        if self.set.is_empty() {
            return Ok(());
        }
        let now = Deadline::at(Instant::now());
        for (key, _) in self.set.wait_until(Want::Any, now)?.ended {
            for place in self.lasting.iter_mut() {
                place.take_if(|member| *member == key);
            }
            self.news.retain(|member| *member != key);
        }
        Ok(())
    }

    /// Has the set have this member, or none, in this place.
    fn keep(&mut self, place: usize, member: Option<TalkMember>) -> io::Result<()> {
        match (member, self.lasting[place]) {
            (Some(member), None) => {
                self.lasting[place] = Some(self.set.add(member, Event::Exited)?);
            }
            (None, Some(key)) => {
                self.set.remove(key);
                self.lasting[place] = None;
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        Ok(())
    }

    fn replace_news(&mut self, next: Option<&ChildSleep<'_>>) -> io::Result<()> {
        for key in self.news.drain(..) {
            self.set.remove(key);
        }
        for fd in next.into_iter().flat_map(|next| &next.readable) {
            let member = TalkMember::News(fd.try_clone_to_owned()?);
            self.news.push(self.set.add(member, Event::Exited)?);
        }
        Ok(())
    }
}

fn refused(error: io::Error) -> PyErr {
    system(&error, format!("cannot wait: {error}"))
}

fn closed() -> PyErr {
    PyRuntimeError::new_err("this talk was closed")
}
