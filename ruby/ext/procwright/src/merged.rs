//! The two outputs of a child as one stream, as `lib/procwright/merged.rb` completes it.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use magnus::{Class, Error, IntoValue, Module, RArray, RModule, Ruby, Value, method};
use procwright::stream::{MergedItem, MergedReader, Readiness};
use procwright::time::Deadline;
use procwright_os::fork::OnceBox;

use crate::errors::{guarded, stream_error};
use crate::interruptible::{nonblocking, try_then_block};
use crate::string::binary_string;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Merged", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("next", method!(Merged::next, 1))?;
    class.define_method("try_next", method!(Merged::try_next, 1))?;
    class.define_method("held?", method!(Merged::is_held, 0))?;
    class.define_method("readiness_fd", method!(Merged::readiness_fd, 0))?;
    class.define_method("close", method!(Merged::close, 0))?;
    class.define_method("closed?", method!(Merged::is_closed, 0))?;
    class.define_method("label", method!(Merged::label, 0))
}

/// Lines of both streams of a child.
#[magnus::wrap(class = "Procwright::Native::Merged", free_immediately)]
pub(crate) struct Merged {
    reader: Arc<MergedReader>,
    /// The stream's name in errors.
    name: String,
    readiness: OnceBox<Readiness>,
}

impl Merged {
    pub(crate) fn new(reader: Arc<MergedReader>, name: String) -> Merged {
        Merged {
            reader,
            name,
            readiness: OnceBox::new(),
        }
    }

    /// The next item, as [`item_parts`]. Waits until there is one.
    fn next(ruby: &Ruby, this: &Merged, chomp: bool) -> Result<RArray, Error> {
        guarded(|| {
            let next = try_then_block(Deadline::NEVER, |patience| this.reader.next_line(patience))?;
            let next = next.map_err(|error| stream_error(&error, &this.name, true))?;
            item_parts(ruby, next, chomp)
        })
    }

    /// True if the next item is here, or the end, of which `readiness_fd` says nothing.
    fn is_held(&self) -> bool {
        self.reader.is_held()
    }

    /// The next item, nil if there is none now.
    fn try_next(ruby: &Ruby, this: &Merged, chomp: bool) -> Result<Option<RArray>, Error> {
        guarded(|| match this.reader.next_line(nonblocking()) {
            Ok(next) => item_parts(ruby, next, chomp).map(Some),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            Err(error) => Err(stream_error(&error, &this.name, true)),
        })
    }

    /// A descriptor that is readable once there is something to read, at the end, and
    /// once it is closed. It stays this object's.
    fn readiness_fd(&self) -> Result<RawFd, Error> {
        guarded(|| {
            if let Some(readiness) = self.readiness.get() {
                return Ok(readiness.as_raw_fd());
            }
            let readiness = self.reader.readiness();
            let readiness = readiness.map_err(|error| stream_error(&error, &self.name, false))?;
            Ok(self.readiness.get_or_insert(readiness).as_raw_fd())
        })
    }

    /// Closes both streams, from any thread. False if it was closed.
    fn close(&self) -> Result<bool, Error> {
        guarded(|| Ok(self.reader.close()))
    }

    fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    fn label(&self) -> &str {
        &self.name
    }
}

/// The stream (1, 2), the time of reading in seconds since 1970, a line, and whether its place
/// is ambiguous; or 0, 0, the number of dropped bytes and false; or nothing at the end.
fn item_parts(ruby: &Ruby, item: Option<MergedItem>, chomp: bool) -> Result<RArray, Error> {
    let parts: [Value; 4] = match item {
        Some(MergedItem::Line(line)) => {
            let at = line.at().duration_since(UNIX_EPOCH).unwrap_or_default();
            let bytes = match chomp {
                true => line.text(),
                false => line.bytes(),
            };
            [
                line.stream().fd().into_value_with(ruby),
                at.as_secs_f64().into_value_with(ruby),
                binary_string(bytes)?.into_value_with(ruby),
                line.is_ambiguous().into_value_with(ruby),
            ]
        }
        Some(MergedItem::Gap(n)) => [
            0.into_value_with(ruby),
            0.into_value_with(ruby),
            n.into_value_with(ruby),
            false.into_value_with(ruby),
        ],
        _ => return Ok(ruby.ary_new()),
    };
    Ok(ruby.ary_new_from_values(&parts))
}
