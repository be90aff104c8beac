//! A stream into a child, as `lib/procwright/stream.rb` completes it.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use magnus::{Class, Error, Module, RModule, RString, Ruby, method};
use procwright::stream::{self as core, Readiness};
use procwright::time::Deadline;
use procwright_os::fork::OnceBox;

use crate::errors::{guarded, stream_error};
use crate::interruptible::{block_without_gvl, nonblocking};
use crate::string::with_frozen;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Writer", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("write", method!(Writer::write, 1))?;
    class.define_method("write_now", method!(Writer::write_now, 1))?;
    class.define_method("readiness_fd", method!(Writer::readiness_fd, 0))?;
    class.define_method("pipe", method!(Writer::pipe, 0))?;
    class.define_method("close", method!(Writer::close, 0))?;
    class.define_method("closed?", method!(Writer::is_closed, 0))?;
    class.define_method("label", method!(Writer::label, 0))
}

/// Bytes into a child.
#[magnus::wrap(class = "Procwright::Native::Writer", free_immediately)]
pub(crate) struct Writer {
    pub(crate) writer: core::Writer,
    /// The stream's name in errors.
    pub(crate) name: String,
    readiness: OnceBox<Readiness>,
}

impl Writer {
    pub(crate) fn new(writer: core::Writer, name: String) -> Writer {
        Writer {
            writer,
            name,
            readiness: OnceBox::new(),
        }
    }

    /// Writes everything.
    fn write(&self, data: RString) -> Result<usize, Error> {
        guarded(|| {
            self.check()?;
            with_frozen(data, |data| {
                let mut done = 0;
                let written = block_without_gvl(Deadline::NEVER, |patience| {
                    while done < data.len() {
                        patience.check()?;
                        done += self.writer.write_with(&data[done..], patience)?;
                    }
                    Ok(())
                })?;
                written.map_err(|error| stream_error(&error, &self.name, true))?;
                Ok(data.len())
            })
        })
    }

    /// Writes what there is room for; nil if there is none.
    fn write_now(&self, data: RString) -> Result<Option<usize>, Error> {
        guarded(|| {
            self.check()?;
            match with_frozen(data, |data| self.writer.write_with(data, nonblocking())) {
                Ok(n) => Ok(Some(n)),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
                Err(error) => Err(stream_error(&error, &self.name, false)),
            }
        })
    }

    fn check(&self) -> Result<(), Error> {
        let checked = self.writer.check();
        checked.map_err(|error| stream_error(&error, &self.name, false))
    }

    /// A descriptor that is readable once there is room to write, once no reader is left, and
    /// once the stream is closed. It stays this object's.
    fn readiness_fd(&self) -> Result<RawFd, Error> {
        guarded(|| {
            if let Some(readiness) = self.readiness.get() {
                return Ok(readiness.as_raw_fd());
            }
            let readiness = self.writer.readiness();
            let readiness = readiness.map_err(|error| stream_error(&error, &self.name, false))?;
            Ok(self.readiness.get_or_insert(readiness).as_raw_fd())
        })
    }

    /// The number of the pipe.
    fn pipe(&self) -> Result<RawFd, Error> {
        guarded(|| {
            let pipe = self.writer.lend_pipe();
            pipe.map_err(|error| stream_error(&error, &self.name, false))
        })
    }

    /// Closes it, from any thread. False if it was closed.
    fn close(&self) -> Result<bool, Error> {
        guarded(|| Ok(self.writer.close()))
    }

    fn is_closed(&self) -> bool {
        self.writer.is_closed()
    }

    fn label(&self) -> &str {
        &self.name
    }
}
