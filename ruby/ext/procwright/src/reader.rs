//! A stream out of a child, as `lib/procwright/stream.rb` completes it.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use magnus::{
    Class, Error, IntoValue, Module, Object, RArray, RHash, RModule, RString, Ruby, Value,
    function, method,
};
use procwright::memory::{advise_huge, next_capacity};
use procwright::stream::{
    Chunk, Framing, Item, LineReader, Patience, Readiness, Separator, TooLong,
};
use procwright::time::Deadline;

use crate::errors::{guarded, invalid, stream};
use crate::fiber;
use crate::patient::{heard, now, patiently};
use crate::string::{Encoding, adopted, bytes, copied, copied_as};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let frame = native.define_class("Frame", ruby.class_object())?;
    frame.define_singleton_method("new", function!(Frame::new, 1))?;
    let class = native.define_class("Reader", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("line", method!(Reader::line, 4))?;
    class.define_method("plain_line", method!(Reader::plain_line, 3))?;
    class.define_method("each_line", method!(Reader::each_line, 3))?;
    class.define_method("held", method!(Reader::held, 0))?;
    class.define_method("holds?", method!(Reader::holds, 0))?;
    class.define_method("read", method!(Reader::read, 1))?;
    class.define_method("some", method!(Reader::some, 2))?;
    class.define_method("eof?", method!(Reader::is_over, 0))?;
    class.define_method("put_back", method!(Reader::put_back, 1))?;
    class.define_method("position", method!(Reader::position, 0))?;
    class.define_method("gaps", method!(Reader::gaps, 0))?;
    class.define_method("figures", method!(Reader::figures, 0))?;
    class.define_method("readiness_fd", method!(Reader::readiness_fd, 0))?;
    class.define_method("pipe", method!(Reader::pipe, 0))?;
    class.define_method("close", method!(Reader::close, 0))?;
    class.define_method("closed?", method!(Reader::is_closed, 0))?;
    class.define_method("label", method!(Reader::label, 0))
}

/// What a line is, for one call.
#[magnus::wrap(class = "Procwright::Native::Frame", free_immediately)]
struct Frame(procwright::stream::Frame);

impl Frame {
    fn new(separator: RString) -> Result<Frame, Error> {
        guarded(|| {
            let separator = match bytes(separator) {
                newline if newline == b"\n" => Separator::Newline,
                other => Separator::Bytes(other),
            };
            let framing = Framing {
                separator,
                max_length: None,
                too_long: TooLong::Split,
            };
            let frame = procwright::stream::Frame::new(framing);
            frame.map(Frame).map_err(|error| invalid(&error))
        })
    }
}

/// Bytes and lines out of a child.
#[magnus::wrap(class = "Procwright::Native::Reader", free_immediately)]
pub(crate) struct Reader(Arc<Source>);

/// What a reader and those who talk to the child in one go share.
pub(crate) struct Source {
    pub(crate) lines: LineReader,
    /// As errors call it.
    pub(crate) name: String,
    gaps: Mutex<Vec<(u64, u64)>>,
    readiness: OnceLock<Readiness>,
}

/// How much is read at once.
const PIECE: usize = 256 * 1024;

/// How much a fiber reads before others have their turn. With Ruby's lock.
const TURN: usize = 1024 * 1024;

impl Reader {
    pub(crate) fn new(reader: procwright::stream::Reader, name: String) -> Result<Reader, Error> {
        let lines = LineReader::new(reader, Framing::default());
        Ok(Reader(Arc::new(Source {
            lines: lines.map_err(|error| invalid(&error))?,
            name,
            gaps: Mutex::default(),
            readiness: OnceLock::new(),
        })))
    }

    pub(crate) fn source(&self) -> Arc<Source> {
        Arc::clone(&self.0)
    }

    /// The next line, or at most `limit` bytes of it; nil at the end. If it is not there
    /// yet, false is the answer of who does not wait.
    fn line(
        ruby: &Ruby,
        this: &Reader,
        frame: &Frame,
        limit: Option<usize>,
        chomp: bool,
        waits: bool,
    ) -> Result<Value, Error> {
        guarded(|| {
            let source = &this.0;
            let limit = limit.unwrap_or(usize::MAX);
            let mut waited = false;
            let mut looked = false;
            loop {
                let tried = source
                    .lines
                    .try_line_as(&frame.0, limit, |item| match item {
                        Item::Line(line) if chomp => Given::It(copied(frame.0.strip(line))),
                        Item::Line(line) => Given::It(copied(line)),
                        Item::Gap(n) => Given::Gap(n),
                        _ => Given::End,
                    });
                match tried.map_err(|error| stream(&error, &source.name, waited))? {
                    Some(Given::It(line)) => return line.map(|line| line.into_value_with(ruby)),
                    Some(Given::Gap(n)) => source.gap(n),
                    Some(Given::End) => return Ok(ruby.qnil().into_value_with(ruby)),
                    None if looked => return Ok(false.into_value_with(ruby)),
                    None if waits => source.wait(&mut waited, |patience| {
                        source.lines.await_line_as(&frame.0, limit, patience)
                    })?,
                    None => match source.lines.await_line_as(&frame.0, limit, now()) {
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => looked = true,
                        other => other.map_err(|error| stream(&error, &source.name, false))?,
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
    ) -> Result<Option<RString>, Error> {
        guarded(|| self.0.line(frame, chomp, Encoding::of(encoding)?))
    }

    /// Yields line after line, until the block says no or they have come to an end. What
    /// else the block does here acts on the next.
    fn each_line(
        ruby: &Ruby,
        this: &Reader,
        frame: &Frame,
        chomp: bool,
        encoding: Value,
    ) -> Result<(), Error> {
        guarded(|| {
            let encoding = Encoding::of(encoding)?;
            while let Some(line) = this.0.line(frame, chomp, encoding)? {
                if !ruby.yield_value::<_, bool>(line)? {
                    break;
                }
            }
            Ok(())
        })
    }

    /// What was read of the child and not given out yet; nil if another thread is at it.
    fn held(&self) -> Result<Option<RString>, Error> {
        guarded(|| {
            let held = self.0.lines.try_held(|held, _| (copied(held), 0));
            let held = held.map_err(|error| stream(&error, &self.0.name, false))?;
            held.transpose()
        })
    }

    /// Whether a read would find something here, or the end, without a look at the pipe.
    fn holds(&self) -> Result<bool, Error> {
        guarded(|| {
            let held = self
                .0
                .lines
                .try_held(|held, is_last| (!held.is_empty() || is_last, 0));
            let held = held.map_err(|error| stream(&error, &self.0.name, false))?;
            Ok(held.unwrap_or(false))
        })
    }

    /// So many bytes, or all if it is nil; fewer at the end. If it is interrupted, what
    /// was read is read again.
    fn read(&self, most: Option<usize>) -> Result<RString, Error> {
        guarded(|| {
            let most = most.unwrap_or(usize::MAX);
            let held = self.0.lines.try_held(|held, _| match held.len() >= most {
                true => (Some(copied(&held[..most])), most),
                false => (None, 0),
            });
            let held = held.map_err(|error| stream(&error, &self.0.name, false))?;
            if let Some(string) = held.flatten() {
                return string;
            }
            let mut filling = Filling::default();
            let read = self.0.patiently(|patience| {
                let turn = filling.filled + TURN;
                while filling.filled < most {
                    heard(patience)?;
                    let piece = PIECE.min(most - filling.filled);
                    if !self.0.fill(&mut filling, piece, patience)? {
                        break;
                    }
                    if patience.interrupt().is_none() && filling.filled >= turn {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Ok(())
            });
            let refused = match read {
                Ok(Ok(())) => return adopted(filling.done()),
                Ok(Err(error)) => stream(&error, &self.0.name, true),
                Err(raised) => raised,
            };
            self.0.give_back(&filling.done());
            Err(refused)
        })
    }

    /// What is there, at most `most` bytes; nil at the end. If nothing is, false is
    /// the answer of who does not wait.
    fn some(ruby: &Ruby, this: &Reader, most: usize, waits: bool) -> Result<Value, Error> {
        guarded(|| {
            let mut waited = false;
            loop {
                let tried = this.0.lines.try_bytes(most, |item| match item {
                    Item::Line(part) => (Given::It(copied(part)), part.len()),
                    Item::Gap(n) => (Given::Gap(n), 1),
                    _ => (Given::End, 0),
                });
                match tried.map_err(|error| stream(&error, &this.0.name, waited))? {
                    Some(Given::It(part)) => return part.map(|part| part.into_value_with(ruby)),
                    Some(Given::Gap(n)) => this.0.gap(n),
                    Some(Given::End) => return Ok(ruby.qnil().into_value_with(ruby)),
                    None if most > PIECE / 16 => {
                        let mut filling = Filling::default();
                        let piece = most.min(PIECE);
                        let read = match waits {
                            true => this.0.at_once_or_patiently(|patience| {
                                this.0.fill(&mut filling, piece, patience)
                            })?,
                            false => this.0.fill(&mut filling, piece, now()),
                        };
                        match read {
                            Ok(true) if filling.filled == 0 => {}
                            Ok(true) => {
                                return adopted(filling.done())
                                    .map(|part| part.into_value_with(ruby));
                            }
                            Ok(false) => return Ok(ruby.qnil().into_value_with(ruby)),
                            Err(error) if !waits && error.kind() == io::ErrorKind::TimedOut => {
                                return Ok(false.into_value_with(ruby));
                            }
                            Err(error) => return Err(stream(&error, &this.0.name, waits)),
                        }
                    }
                    None if waits => {
                        this.0
                            .wait(&mut waited, |patience| this.0.lines.await_bytes(patience))?;
                    }
                    None => match this.0.lines.await_bytes(now()) {
                        Ok(()) => {}
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                            return Ok(false.into_value_with(ruby));
                        }
                        Err(error) => return Err(stream(&error, &this.0.name, false)),
                    },
                }
            }
        })
    }

    /// Whether there is nothing more to read. Waits until it is known.
    fn is_over(&self) -> Result<bool, Error> {
        guarded(|| {
            let mut waited = false;
            loop {
                let tried = self.0.lines.try_bytes(1, |item| match item {
                    Item::Line(_) => (Given::It(()), 0),
                    Item::Gap(n) => (Given::Gap(n), 1),
                    _ => (Given::End, 0),
                });
                match tried.map_err(|error| stream(&error, &self.0.name, waited))? {
                    Some(Given::It(())) => return Ok(false),
                    Some(Given::Gap(n)) => self.0.gap(n),
                    Some(Given::End) => return Ok(true),
                    None => self
                        .0
                        .wait(&mut waited, |patience| self.0.lines.await_bytes(patience))?,
                }
            }
        })
    }

    /// So that these bytes are the next that are read.
    fn put_back(&self, string: RString) -> Result<(), Error> {
        guarded(|| {
            let put = self.0.lines.put_back(&bytes(string));
            put.map_err(|error| stream(&error, &self.0.name, false))
        })
    }

    /// Where in what the child wrote the next byte stands.
    fn position(&self) -> u64 {
        self.0.lines.position()
    }

    /// Offset and length of each gap that was met.
    fn gaps(ruby: &Ruby, this: &Reader) -> Result<RArray, Error> {
        guarded(|| {
            let gaps = this
                .0
                .gaps
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let array = ruby.ary_new();
            for (at, n) in gaps {
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

    /// What is known of the stream; nil where no queue stands between.
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
            fd.map_err(|error| stream(&error, &self.0.name, false))
        })
    }

    /// The number of the bare pipe; nil where a queue stands between.
    fn pipe(&self) -> Result<Option<RawFd>, Error> {
        guarded(|| {
            let pipe = self.0.lines.reader().lend_pipe();
            pipe.map_err(|error| stream(&error, &self.0.name, false))
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

impl Source {
    /// Reads one piece. False at the end.
    pub(crate) fn fill(
        &self,
        filling: &mut Filling,
        piece: usize,
        patience: Patience<'_>,
    ) -> io::Result<bool> {
        match self.lines.read_with(filling.room(piece)?, patience)? {
            Chunk::Bytes(n) => filling.filled += n,
            Chunk::Gap(n) => self.gap(n),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn line(
        &self,
        frame: &Frame,
        chomp: bool,
        encoding: Encoding,
    ) -> Result<Option<RString>, Error> {
        let mut waited = false;
        loop {
            let tried = self.lines.try_line_as(&frame.0, usize::MAX, |item| {
                let whole = match item {
                    Item::Line(line) => line,
                    Item::Gap(n) => return Given::Gap(n),
                    _ => return Given::End,
                };
                let line = if chomp { frame.0.strip(whole) } else { whole };
                Given::It(copied_as(line, encoding))
            });
            match tried.map_err(|error| stream(&error, &self.name, waited))? {
                Some(Given::It(line)) => return line.map(Some),
                Some(Given::Gap(n)) => self.gap(n),
                Some(Given::End) => return Ok(None),
                None => self.wait(&mut waited, |patience| {
                    self.lines.await_line_as(&frame.0, usize::MAX, patience)
                })?,
            }
        }
    }

    /// As `patient::patiently`. Under a scheduler of fibers only this fiber waits, and what
    /// is raised in it is the outer error.
    fn patiently<T>(
        &self,
        mut operation: impl FnMut(Patience<'_>) -> io::Result<T>,
    ) -> Result<io::Result<T>, Error> {
        if !fiber::is_scheduled() {
            return patiently(Deadline::NEVER, operation);
        }
        loop {
            match operation(now()) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                done => return Ok(done),
            }
            match self.readiness_fd() {
                Ok(fd) => fiber::await_readable(fd)?,
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// As `patient::at_once_or_patiently`.
    fn at_once_or_patiently<T>(
        &self,
        mut operation: impl FnMut(Patience<'_>) -> io::Result<T>,
    ) -> Result<io::Result<T>, Error> {
        match operation(now()) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => self.patiently(operation),
            done => Ok(done),
        }
    }

    fn readiness_fd(&self) -> io::Result<RawFd> {
        if let Some(readiness) = self.readiness.get() {
            return Ok(readiness.as_raw_fd());
        }
        let readiness = self.lines.reader().readiness()?;
        Ok(self.readiness.get_or_init(|| readiness).as_raw_fd())
    }

    /// Waits for something; what an interrupt throws, or why it will not come.
    fn wait(
        &self,
        waited: &mut bool,
        mut operation: impl FnMut(Patience<'_>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let done = self.at_once_or_patiently(|patience| {
            let done = operation(patience);
            // Who was inside learns of a close otherwise than who comes later.
            *waited = true;
            done
        })?;
        done.map_err(|error| stream(&error, &self.name, *waited))
    }

    /// So many bytes were dropped here.
    pub(crate) fn gap(&self, n: u64) {
        let at = self.lines.position().saturating_sub(n);
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.push((at, n));
    }

    fn give_back(&self, bytes: &[u8]) {
        // Without memory for it, it is lost, and so is all else.
        if !bytes.is_empty() {
            let _ = self.lines.put_back(bytes);
        }
    }
}

/// What a line or a gap has become.
enum Given<T> {
    It(T),
    Gap(u64),
    End,
}

/// Memory that is read into. What lies behind `filled` is clean, and is so once: a
/// piece is cleared shortly before it is used.
#[derive(Default)]
pub(crate) struct Filling {
    data: Vec<u8>,
    pub(crate) filled: usize,
}

impl Filling {
    fn room(&mut self, piece: usize) -> io::Result<&mut [u8]> {
        let needed = self.filled + piece;
        if self.data.len() < needed {
            if self.data.capacity() < needed {
                let capacity = match self.data.capacity() {
                    0 => needed,
                    before => next_capacity(before, needed),
                };
                let more = capacity - self.data.len();
                let reserved = self.data.try_reserve_exact(more);
                reserved.map_err(|_| io::ErrorKind::OutOfMemory)?;
                advise_huge(self.data.as_ptr(), self.data.capacity());
            }
            self.data.resize(needed, 0);
        }
        Ok(&mut self.data[self.filled..needed])
    }

    pub(crate) fn done(mut self) -> Vec<u8> {
        self.data.truncate(self.filled);
        self.data.shrink_to(self.filled + 1);
        self.data
    }
}
