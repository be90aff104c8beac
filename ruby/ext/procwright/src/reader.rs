//! A stream out of a child, as `lib/procwright/stream.rb` completes it.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use magnus::{
    Class, Error, IntoValue, Module, Object, RArray, RHash, RModule, RString, Ruby, Value,
    function, method,
};
use procwright::stream::{Framing, Item, Separator, TooLong};

use crate::errors::{guarded, invalid_error, stream_error};
use crate::interruptible::nonblocking;
use crate::read_buffer::ReadBuffer;
use crate::shared_reader::{Found, SharedReader, noted};
use crate::string::{Encoding, binary_string, string_from_vec, to_vec};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let frame = native.define_class("Frame", ruby.class_object())?;
    frame.define_singleton_method("new", function!(Frame::new, 1))?;
    let class = native.define_class("Reader", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("line", method!(Reader::line, 5))?;
    class.define_method("plain_line", method!(Reader::plain_line, 4))?;
    class.define_method("each_line", method!(Reader::each_line, 3))?;
    class.define_method("buffered", method!(Reader::buffered, 0))?;
    class.define_method("buffered?", method!(Reader::is_buffered, 0))?;
    class.define_method("read", method!(Reader::read, 2))?;
    class.define_method("read_some", method!(Reader::read_some, 3))?;
    class.define_method("eof?", method!(Reader::is_over, 0))?;
    class.define_method("put_back", method!(Reader::put_back, 1))?;
    class.define_method("expect_end", method!(Reader::expect_end, 0))?;
    class.define_method("position", method!(Reader::position, 0))?;
    class.define_method("gaps", method!(Reader::gaps, 0))?;
    class.define_method("figures", method!(Reader::figures, 0))?;
    class.define_method("readiness_fd", method!(Reader::readiness_fd, 0))?;
    class.define_method("pipe", method!(Reader::pipe, 0))?;
    class.define_method("held_bytes", method!(Reader::held_bytes, 0))?;
    class.define_method("close", method!(Reader::close, 0))?;
    class.define_method("closed?", method!(Reader::is_closed, 0))?;
    class.define_method("label", method!(Reader::label, 0))
}

/// The end of a line, for one call.
#[magnus::wrap(class = "Procwright::Native::Frame", free_immediately)]
struct Frame(procwright::stream::Frame);

impl Frame {
    fn new(separator: RString) -> Result<Frame, Error> {
        guarded(|| {
            let separator = match to_vec(separator) {
                newline if newline == b"\n" => Separator::Newline,
                other => Separator::Bytes(other),
            };
            let framing = Framing {
                separator,
                max_length: None,
                too_long: TooLong::Split,
            };
            let frame = procwright::stream::Frame::new(framing);
            frame.map(Frame).map_err(|error| invalid_error(&error))
        })
    }
}

/// Bytes and lines out of a child.
#[magnus::wrap(class = "Procwright::Native::Reader", free_immediately)]
pub(crate) struct Reader(Arc<SharedReader>);

/// Bytes to read at once.
const PIECE: usize = 256 * 1024;

/// Bytes that a fiber reads, with Ruby's lock, before other fibers have their turn.
const TURN: usize = 1024 * 1024;

impl Reader {
    pub(crate) fn new(reader: procwright::stream::Reader, name: String) -> Result<Reader, Error> {
        SharedReader::new(reader, name).map(|reader| Reader(Arc::new(reader)))
    }

    pub(crate) fn shared(&self) -> Arc<SharedReader> {
        Arc::clone(&self.0)
    }

    /// The next line, or at most `limit` bytes of it; nil at the end. If it is not there yet,
    /// a call that does not wait returns false.
    fn line(
        ruby: &Ruby,
        this: &Reader,
        frame: &Frame,
        limit: Option<usize>,
        chomp: bool,
        waits: bool,
        taken: Option<RArray>,
    ) -> Result<Value, Error> {
        guarded(|| {
            let reader = &this.0;
            let limit = limit.unwrap_or(usize::MAX);
            let mut waited = false;
            let mut looked = false;
            loop {
                let tried = reader
                    .lines
                    .try_line_as(&frame.0, limit, |item| match item {
                        Item::Line(line) => {
                            let kept = if chomp { frame.0.strip(line) } else { line };
                            Found::Data(noted(taken, line, binary_string(kept)))
                        }
                        Item::Gap(n) => Found::Gap(n),
                        _ => Found::End,
                    });
                match tried.map_err(|error| stream_error(&error, &reader.name, waited))? {
                    Some(Found::Data(line)) => return line.map(|line| line.into_value_with(ruby)),
                    Some(Found::Gap(n)) => reader.add_gap(n),
                    Some(Found::End) => return Ok(ruby.qnil().into_value_with(ruby)),
                    None if looked => return Ok(false.into_value_with(ruby)),
                    None if waits => reader.wait(&mut waited, |patience| {
                        reader.lines.await_line_as(&frame.0, limit, patience)
                    })?,
                    None => match reader.lines.await_line_as(&frame.0, limit, nonblocking()) {
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => looked = true,
                        other => {
                            other.map_err(|error| stream_error(&error, &reader.name, false))?
                        }
                    },
                }
            }
        })
    }

    /// The next line in full, in this encoding; nil at the end.
    fn plain_line(
        &self,
        frame: &Frame,
        chomp: bool,
        encoding: Value,
        taken: RArray,
    ) -> Result<Option<RString>, Error> {
        guarded(|| {
            let encoding = Encoding::of(encoding)?;
            self.0.line(&frame.0, chomp, encoding, Some(taken))
        })
    }

    /// Yields line after line, until the block says no or they have come to an end. A read or
    /// a close in the block acts on the next line.
    fn each_line(
        ruby: &Ruby,
        this: &Reader,
        frame: &Frame,
        chomp: bool,
        encoding: Value,
    ) -> Result<(), Error> {
        guarded(|| {
            let encoding = Encoding::of(encoding)?;
            while let Some(line) = this.0.line(&frame.0, chomp, encoding, None)? {
                if !ruby.yield_value::<_, bool>(line)? {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Bytes that were read and not handed out yet; nil if another thread is reading.
    fn buffered(&self) -> Result<Option<RString>, Error> {
        guarded(|| {
            let held = self.0.lines.try_held(|held, _| (binary_string(held), 0));
            let held = held.map_err(|error| stream_error(&error, &self.0.name, false))?;
            held.transpose()
        })
    }

    /// True if a read would find something here, or the end, without a look at the pipe.
    fn is_buffered(&self) -> Result<bool, Error> {
        guarded(|| {
            let held = self
                .0
                .lines
                .try_held(|held, is_last| (!held.is_empty() || is_last, 0));
            let held = held.map_err(|error| stream_error(&error, &self.0.name, false))?;
            Ok(held.unwrap_or(false))
        })
    }

    /// Reads so many bytes, or all if `most` is nil; fewer at the end. If an interrupt throws
    /// something, what was read is read again.
    fn read(&self, most: Option<usize>, taken: RArray) -> Result<RString, Error> {
        guarded(|| {
            let note = |string: RString| taken.push(string).map(|()| string);
            let most = most.unwrap_or(usize::MAX);
            let held = self.0.lines.try_held(|held, _| match held.len() >= most {
                true => (Some(binary_string(&held[..most])), most),
                false => (None, 0),
            });
            let held = held.map_err(|error| stream_error(&error, &self.0.name, false))?;
            if let Some(string) = held.flatten() {
                return string.and_then(note);
            }
            let mut buffer = ReadBuffer::default();
            let read = self.0.block(|patience| {
                let turn = buffer.filled + TURN;
                while buffer.filled < most {
                    // Under a scheduler there is none, and a turn ends the loop.
                    if patience.interrupt().is_some() {
                        patience.check()?;
                    }
                    let piece = PIECE.min(most - buffer.filled);
                    if !self.0.fill(&mut buffer, piece, patience)? {
                        break;
                    }
                    if patience.interrupt().is_none() && buffer.filled >= turn {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Ok(())
            });
            let refused = match read {
                Ok(Ok(())) => return string_from_vec(buffer.into_vec()).and_then(note),
                Ok(Err(error)) => stream_error(&error, &self.0.name, true),
                Err(raised) => raised,
            };
            self.0.put_back(&buffer.into_vec());
            Err(refused)
        })
    }

    /// Reads what is there, at most `most` bytes; nil at the end. If nothing is there, a call
    /// that does not wait returns false.
    fn read_some(
        ruby: &Ruby,
        this: &Reader,
        most: usize,
        waits: bool,
        taken: RArray,
    ) -> Result<Value, Error> {
        guarded(|| {
            let note = |part: RString| {
                taken.push(part)?;
                Ok(part.into_value_with(ruby))
            };
            let mut waited = false;
            loop {
                let tried = this.0.lines.try_bytes(most, |item| match item {
                    Item::Line(part) => (Found::Data(binary_string(part)), part.len()),
                    Item::Gap(n) => (Found::Gap(n), 1),
                    _ => (Found::End, 0),
                });
                match tried.map_err(|error| stream_error(&error, &this.0.name, waited))? {
                    Some(Found::Data(part)) => return part.and_then(note),
                    Some(Found::Gap(n)) => this.0.add_gap(n),
                    Some(Found::End) => return Ok(ruby.qnil().into_value_with(ruby)),
                    None if most > PIECE / 16 => {
                        let mut buffer = ReadBuffer::default();
                        let piece = most.min(PIECE);
                        let read = match waits {
                            true => this.0.try_then_block(|patience| {
                                this.0.fill(&mut buffer, piece, patience)
                            })?,
                            false => this.0.fill(&mut buffer, piece, nonblocking()),
                        };
                        match read {
                            Ok(true) if buffer.filled == 0 => {}
                            Ok(true) => {
                                return string_from_vec(buffer.into_vec()).and_then(note);
                            }
                            Ok(false) => return Ok(ruby.qnil().into_value_with(ruby)),
                            Err(error) if !waits && error.kind() == io::ErrorKind::TimedOut => {
                                return Ok(false.into_value_with(ruby));
                            }
                            Err(error) => return Err(stream_error(&error, &this.0.name, waits)),
                        }
                    }
                    None if waits => {
                        this.0
                            .wait(&mut waited, |patience| this.0.lines.await_bytes(patience))?;
                    }
                    None => match this.0.lines.await_bytes(nonblocking()) {
                        Ok(()) => {}
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                            return Ok(false.into_value_with(ruby));
                        }
                        Err(error) => return Err(stream_error(&error, &this.0.name, false)),
                    },
                }
            }
        })
    }

    /// True if there is nothing more to read. Waits until that is known.
    fn is_over(&self) -> Result<bool, Error> {
        guarded(|| {
            let mut waited = false;
            loop {
                let tried = self.0.lines.try_bytes(1, |item| match item {
                    Item::Line(_) => (Found::Data(()), 0),
                    Item::Gap(n) => (Found::Gap(n), 1),
                    _ => (Found::End, 0),
                });
                match tried.map_err(|error| stream_error(&error, &self.0.name, waited))? {
                    Some(Found::Data(())) => return Ok(false),
                    Some(Found::Gap(n)) => self.0.add_gap(n),
                    Some(Found::End) => return Ok(true),
                    None => self
                        .0
                        .wait(&mut waited, |patience| self.0.lines.await_bytes(patience))?,
                }
            }
        })
    }

    /// Makes these bytes the next that are read.
    fn put_back(&self, string: RString) -> Result<(), Error> {
        guarded(|| {
            let put = self.0.lines.put_back(&to_vec(string));
            put.map_err(|error| stream_error(&error, &self.0.name, false))
        })
    }

    /// Passes over the end of a line if that comes next: what was read last was the line.
    fn expect_end(&self) -> Result<(), Error> {
        guarded(|| {
            let expected = self.0.lines.expect_end();
            expected.map_err(|error| stream_error(&error, &self.0.name, false))
        })
    }

    /// Offset of the next byte in all that the child wrote.
    fn position(&self) -> u64 {
        self.0.lines.position()
    }

    /// Offset and length of each gap that was met.
    fn gaps(ruby: &Ruby, this: &Reader) -> Result<RArray, Error> {
        guarded(|| {
            let array = ruby.ary_new();
            for (at, n) in this.0.gaps() {
                array.push(
                    ruby.ary_new_from_values(&[
                        ruby.integer_from_u64(at),
                        ruby.integer_from_u64(n),
                    ]),
                )?;
            }
            Ok(array)
        })
    }

    /// Bytes that wait or were dropped, and seconds for which the child was blocked.
    fn figures(ruby: &Ruby, this: &Reader) -> Result<Option<RHash>, Error> {
        guarded(|| {
            let reader = this.0.lines.reader();
            let hash = ruby.hash_new();
            let put = |name: &str, n: u64| hash.aset(ruby.to_symbol(name), n);
            let blocked = reader.blocked().map(|blocked| blocked.as_secs_f64());
            hash.aset(ruby.to_symbol("blocked"), blocked)?;
            let Some(figures) = reader.figures() else {
                return Ok(Some(hash));
            };
            put("memory_bytes", figures.memory_bytes)?;
            put("disk_bytes", figures.disk_bytes)?;
            put("dropped_bytes", figures.dropped_bytes)?;
            Ok(Some(hash))
        })
    }

    /// A descriptor that is readable once there is something to read, at the end, and
    /// once the stream is closed. It stays this object's.
    fn readiness_fd(&self) -> Result<RawFd, Error> {
        guarded(|| {
            let fd = self.0.readiness_fd();
            fd.map_err(|error| stream_error(&error, &self.0.name, false))
        })
    }

    /// The number of the bare pipe; nil where a queue stands between.
    fn pipe(&self) -> Result<Option<RawFd>, Error> {
        guarded(|| {
            let pipe = self.0.lines.reader().lend_pipe();
            pipe.map_err(|error| stream_error(&error, &self.0.name, false))
        })
    }

    /// How many bytes were read and not handed out yet.
    fn held_bytes(&self) -> Result<usize, Error> {
        guarded(|| {
            let held = self.0.lines.held_bytes();
            held.map_err(|error| stream_error(&error, &self.0.name, false))
        })
    }

    /// Closes it, from any thread. False if it was closed.
    fn close(&self) -> Result<bool, Error> {
        guarded(|| Ok(self.0.lines.close()))
    }

    fn is_closed(&self) -> bool {
        self.0.lines.is_closed()
    }

    fn label(&self) -> &str {
        &self.0.name
    }
}
