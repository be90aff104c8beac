//! The text stream over the binary one, for UTF-8 and encodings of one byte a
//! character, whose newline is the byte of ASCII.
//!
//! The text stream keeps nothing: a character that is here in part stays where it is until
//! its rest has come. So any number of threads may read text and bytes in turn, and an
//! interrupted read has lost nothing.

use std::borrow::Cow;
use std::ffi::CString;
use std::io;
use std::sync::Arc;

use procwright::memory::Memory;
use procwright::stream::{Item, Patience};
use procwright::time::Deadline;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::converted::{Converted, NextItem};
use super::errors::failed;
use super::{Reader, SharedReader};
use crate::arguments::size;
use crate::bytes::{BytesMemory, decode_utf8};
use crate::patient::patiently;

/// Text out of a child.
#[pyclass(module = "procwright._core", frozen, subclass, weakref)]
pub(crate) struct TextReader {
    source: Arc<SharedReader>,
    buffer: Py<Reader>,
    encoding: CString,
    errors: CString,
    is_utf8: bool,
}

#[pymethods]
impl TextReader {
    /// The text of `buffer`. An encoding other than "utf-8" has one byte a character.
    #[new]
    fn new(buffer: Py<Reader>, encoding: CString, errors: CString) -> TextReader {
        TextReader {
            source: Arc::clone(&buffer.get().source),
            buffer,
            is_utf8: encoding.as_bytes() == b"utf-8",
            encoding,
            errors,
        }
    }

    /// The binary stream underneath.
    #[getter]
    fn buffer(&self, py: Python<'_>) -> Py<Reader> {
        self.buffer.clone_ref(py)
    }

    #[getter]
    fn encoding(&self) -> Cow<'_, str> {
        self.encoding.to_string_lossy()
    }

    #[getter]
    fn errors(&self) -> Cow<'_, str> {
        self.errors.to_string_lossy()
    }

    #[getter]
    fn closed(&self) -> bool {
        self.source.lines.is_closed()
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().buffer.get().alive(slf.py())?;
        Ok(slf)
    }

    fn __next__<'py>(&self, py: Python<'py>) -> NextItem<'py, PyString> {
        self.line(py)
    }

    #[pyo3(signature = (size=-1, /), text_signature = "($self, size=-1, /)")]
    fn readline<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = size)] size: i64,
    ) -> PyResult<Bound<'py, PyString>> {
        match usize::try_from(size) {
            Ok(most) => self.gather(py, most, true),
            Err(_) => Ok(self.line(py)?.unwrap_or_else(|| PyString::new(py, ""))),
        }
    }

    #[pyo3(signature = (size=-1, /), text_signature = "($self, size=-1, /)")]
    fn read<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = size)] size: i64,
    ) -> PyResult<Bound<'py, PyString>> {
        if let Ok(most) = usize::try_from(size) {
            return self.gather(py, most, false);
        }
        let begun = self.source.position();
        let mut memory = BytesMemory::new();
        self.source
            .gather(py, &mut memory, usize::MAX, Deadline::NEVER)?;
        let edges = self.source.gaps_since(begun);
        self.decode_parts(py, memory.as_bytes(), &edges)
    }
}

impl TextReader {
    fn decode<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
        if self.is_utf8 {
            return decode_utf8(py, bytes, &self.errors);
        }
        self.decode_bytes(&PyBytes::new(py, bytes))
    }

    fn decode_bytes<'py>(&self, bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyString>> {
        let (encoding, errors) = (Some(&*self.encoding), Some(&*self.errors));
        PyString::from_encoded_object(bytes, encoding, errors)
    }

    /// Takes a line while the stream is locked, when no code of Python's may run: a signal
    /// handler or finaliser in it may use this very stream, and would wait for itself. A
    /// codec may be Python's, and an exception may make the garbage collector run.
    fn take<'py>(&self, py: Python<'py>, line: &[u8]) -> TakenLine<'py> {
        match self.is_utf8 && self.errors.as_bytes() != b"strict" {
            true => TakenLine::Text(decode_utf8(py, line, &self.errors)),
            false => TakenLine::Bytes(PyBytes::new(py, line)),
        }
    }

    /// Decodes `bytes`, where no character reaches over one of the `edges`: bytes were dropped
    /// there.
    fn decode_parts<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
        edges: &[usize],
    ) -> PyResult<Bound<'py, PyString>> {
        if edges.is_empty() {
            return self.decode(py, bytes);
        }
        let parts = PyString::new(py, "");
        let mut begun = 0;
        let mut all = Vec::new();
        for &edge in edges.iter().chain([&bytes.len()]) {
            let edge = edge.clamp(begun, bytes.len());
            all.push(self.decode(py, &bytes[begun..edge])?);
            begun = edge;
        }
        Ok(parts.call_method1("join", (all,))?.cast_into()?)
    }

    fn line<'py>(&self, py: Python<'py>) -> NextItem<'py, PyString> {
        let source = &self.source;
        loop {
            let tried = source.lines.try_line(usize::MAX, |item| {
                Converted::from_item(item, |line| self.take(py, line))
            });
            match tried.map_err(|error| failed(py, &error, &source.name))? {
                Some(Converted::Line(TakenLine::Text(line))) => return line.map(Some),
                Some(Converted::Line(TakenLine::Bytes(line))) => {
                    return self.decode_bytes(&line).map(Some);
                }
                Some(Converted::Gap(n)) => drop(source.gap(n)),
                Some(Converted::End) => return Ok(None),
                None => {
                    source.wait(py, |lines, patience| lines.await_line(usize::MAX, patience))?
                }
            }
        }
    }

    /// Reads `most` characters, and no more than a line if `by_line` says so.
    fn gather<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        by_line: bool,
    ) -> PyResult<Bound<'py, PyString>> {
        let mut text = Gathered {
            left: most,
            by_line,
            ..Gathered::default()
        };
        let source = &self.source;
        if most == 0 {
            self.buffer.get().alive(py)?;
        }
        let read = patiently(py, Deadline::NEVER, |patience| {
            let _inside = source.inside.enter();
            text.fill(self, patience)
        });
        let refused = match read {
            Ok(Ok(())) => return self.decode_parts(py, &text.bytes, &text.edges),
            Ok(Err(error)) => failed(py, &error, &source.name),
            Err(raised) => raised,
        };
        source.give_back(py, &text.bytes);
        Err(refused)
    }

    /// The number of bytes at the front of `bytes` that are `most` characters or fewer, and of
    /// those characters. A character that is cut off counts only if nothing follows.
    fn measure(&self, bytes: &[u8], is_last: bool, most: usize) -> (usize, usize) {
        if !self.is_utf8 {
            let n = bytes.len().min(most);
            return (n, n);
        }
        let (mut length, mut count) = (0, 0);
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                if count == most {
                    return (length, count);
                }
                length += character.len_utf8();
                count += 1;
            }
            let broken = chunk.invalid();
            let is_end = length + broken.len() == bytes.len();
            if broken.is_empty() || (is_end && !is_last && is_cut_off(broken)) {
                return (length, count);
            }
            let characters = match self.errors.to_bytes() {
                b"surrogateescape" => broken.len(),
                b"ignore" => 0,
                _ => 1,
            };
            if count + characters > most {
                // Each byte is a character there.
                let room = if characters > 1 { most - count } else { 0 };
                return (length + room, count + room);
            }
            length += broken.len();
            count += characters;
        }
        (length, count)
    }
}

/// A line, decoded, or to be decoded once the stream is not locked.
enum TakenLine<'py> {
    Text(PyResult<Bound<'py, PyString>>),
    Bytes(Bound<'py, PyBytes>),
}

/// True if more bytes could make a character of these.
fn is_cut_off(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// The bytes of a read so far.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    /// The places in them where others were dropped.
    edges: Vec<usize>,
    left: usize,
    by_line: bool,
}

impl Gathered {
    fn fill(&mut self, stream: &TextReader, patience: Patience<'_>) -> io::Result<()> {
        let source = &stream.source;
        let lines = &source.lines;
        let mut paced = patience.paced();
        while self.left > 0 {
            paced.step()?;
            let tried = lines.try_held(|held, is_last| {
                let (mut n, mut count) = stream.measure(held, is_last, self.left);
                let newline = held[..n].iter().position(|byte| *byte == b'\n');
                if let (true, Some(at)) = (self.by_line, newline) {
                    n = at + 1;
                    count = self.left;
                }
                self.bytes.extend_from_slice(&held[..n]);
                self.left -= count;
                ((n, held.len() - n, is_last), n)
            })?;
            match tried {
                Some((1.., _, _)) => {}
                Some((_, _, true)) if self.by_line && !self.bytes.is_empty() => return Ok(()),
                Some((_, 0, true)) => {
                    let gap = lines.try_bytes(1, |item| match item {
                        Item::Gap(n) => (Some(n), 1),
                        _ => (None, 0),
                    })?;
                    match gap {
                        Some(Some(n)) => {
                            source.gap(n);
                            self.edges.push(self.bytes.len());
                        }
                        Some(None)
                            if lines.try_held(|held, _| (held.is_empty(), 0))? == Some(true) =>
                        {
                            return Ok(());
                        }
                        // Another thread was quicker.
                        _ => lines.await_bytes(patience)?,
                    }
                }
                // A part of a character.
                Some((_, part @ 1.., _)) => lines.await_line(part + 1, patience)?,
                Some((_, _, false)) | None => lines.await_bytes(patience)?,
            }
        }
        Ok(())
    }
}
