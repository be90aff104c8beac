//! Processes, ours or not, as `lib/procwright/process.rb` completes it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use magnus::{
    Class, Error, Module, Object, RArray, RModule, RString, Ruby, Value, function, method,
};
use procwright::process::{Id, ProcessError};
use procwright::{Child, Holder, Process, duplicate_fd};

use crate::arguments::{signal, stop};
use crate::errors::{self, guarded, invalid_error, system_error};
use crate::interruptible::stop_on_thread;
use crate::report;
use crate::string::filesystem_string;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Handle", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("of_pid", function!(Handle::of_pid, 1))?;
    class.define_singleton_method("of_id", function!(Handle::of_id, 1))?;
    class.define_singleton_method("of_identity", function!(Handle::of_identity, 3))?;
    class.define_singleton_method("of_pidfd", function!(Handle::of_pidfd, 1))?;
    class.define_method("pid", method!(Handle::pid, 0))?;
    class.define_method("id", method!(Handle::id, 0))?;
    class.define_method("alive?", method!(Handle::is_alive, 0))?;
    class.define_method("exit", method!(Handle::exit, 0))?;
    class.define_method("signal", method!(Handle::signal, 1))?;
    class.define_method("stop", method!(Handle::stop, 1))?;
    class.define_method("name", method!(Handle::name, 0))?;
    class.define_method("exe", method!(Handle::exe, 0))?;
    class.define_method("start_time", method!(Handle::start_time, 0))?;
    class.define_method("pidfd", method!(Handle::pidfd, 0))?;
    class.define_method("readiness_fd", method!(Handle::readiness_fd, 0))?;
    class.define_method("same?", method!(Handle::same, 1))
}

/// One process: a number that another process gets later is not taken for it.
#[magnus::wrap(class = "Procwright::Native::Handle", free_immediately)]
pub(crate) struct Handle(Meant);

/// The process that a handle means.
enum Meant {
    This(Process),
    OfChild(Arc<Child>),
}

impl Handle {
    pub(crate) const fn of(process: Process) -> Handle {
        Handle(Meant::This(process))
    }

    /// The process of a child, which may be waited for and asked about. It has no descriptor of its
    /// own, which would stay open until Ruby finds it to be garbage.
    pub(crate) const fn of_child(child: Arc<Child>) -> Handle {
        Handle(Meant::OfChild(child))
    }

    pub(crate) fn process(&self) -> Process {
        match &self.0 {
            Meant::This(process) => process.clone(),
            Meant::OfChild(child) => child.process(),
        }
    }

    fn of_pid(pid: i32) -> Result<Handle, Error> {
        guarded(|| process_result(Process::open(pid)).map(Handle::of))
    }

    fn of_id(id: String) -> Result<Handle, Error> {
        guarded(|| {
            let id: Id = id.parse().map_err(|error| invalid_error(&error))?;
            process_result(Process::open_id(id)).map(Handle::of)
        })
    }

    /// The process of this number and start, and inode if that is known.
    fn of_identity(pid: i32, start: u64, inode: Option<u64>) -> Result<Handle, Error> {
        guarded(|| {
            let holder = Holder::noted(pid, String::new(), Some((start, inode)));
            process_result(holder.process()).map(Handle::of)
        })
    }

    /// The process of a pidfd, which stays the caller's.
    fn of_pidfd(number: RawFd) -> Result<Handle, Error> {
        guarded(|| {
            let fd = duplicate_fd(number);
            let fd =
                fd.map_err(|error| system_error(&error, format!("pidfd {number}: {error}")))?;
            process_result(Process::from_pidfd(fd)).map(Handle::of)
        })
    }

    fn pid(&self) -> i32 {
        self.process().pid()
    }

    fn id(&self) -> String {
        self.process().id().to_string()
    }

    fn is_alive(&self) -> Result<bool, Error> {
        guarded(|| Ok(self.process().is_alive()))
    }

    fn exit(ruby: &Ruby, this: &Handle) -> Result<Option<RArray>, Error> {
        guarded(|| {
            let exit = this.process().exit();
            exit.map(|exit| report::status(ruby, exit)).transpose()
        })
    }

    fn signal(&self, value: Value) -> Result<(), Error> {
        guarded(|| process_result(self.process().signal(signal(value)?)))
    }

    /// Stops it. Pid, name and state of each process that could not be ended. An interrupt ends
    /// the grace, and is raised when all is over.
    fn stop(ruby: &Ruby, this: &Handle, parts: RArray) -> Result<RArray, Error> {
        guarded(|| {
            let process = this.process();
            let stopped = stop_on_thread(stop(parts)?, move |policy, hurry| {
                let ready = || {
                    hurry.clear();
                    Err(())
                };
                let stopped = process.stop_watching(policy, hurry.as_fd(), ready);
                stopped.map(|(survivors, _)| survivors)
            })?;
            report::survivors(ruby, &process_result(stopped)?)
        })
    }

    fn name(&self) -> Result<String, Error> {
        guarded(|| process_result(self.process().name()))
    }

    fn exe(ruby: &Ruby, this: &Handle) -> Result<RString, Error> {
        guarded(|| {
            let exe = process_result(this.process().exe())?;
            Ok(filesystem_string(ruby, exe.as_os_str().as_bytes()))
        })
    }

    /// Seconds since 1970.
    fn start_time(&self) -> Result<f64, Error> {
        guarded(|| {
            let start = process_result(self.process().start_time())?;
            Ok(start.duration_since(UNIX_EPOCH).map_or_else(
                |before| -before.duration().as_secs_f64(),
                |since| since.as_secs_f64(),
            ))
        })
    }

    fn pidfd(&self) -> Option<RawFd> {
        let Meant::This(process) = &self.0 else {
            return None;
        };
        process.pidfd().map(|fd| fd.as_raw_fd())
    }

    /// Readable once it has ended; none where no pidfd can be had.
    fn readiness_fd(&self) -> Result<Option<RawFd>, Error> {
        let Meant::This(process) = &self.0 else {
            return Ok(None);
        };
        guarded(|| match process.readiness() {
            Ok(fd) => Ok(Some(fd.as_raw_fd())),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(errors::io_error(&error)),
        })
    }

    fn same(&self, other: &Handle) -> bool {
        self.process() == other.process()
    }
}

pub(crate) fn process_result<T>(result: Result<T, ProcessError>) -> Result<T, Error> {
    result.map_err(|error| errors::process_error(&error))
}
