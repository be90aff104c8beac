//! A `bytes` object that grows while a stream is read into it, and the memory of
//! objects that callers bring along.
//!
//! Unsafe: the bytes are written while Python does not know them. The only other unsafe code
//! of the package is one call in `taps`, and what lends the memory of queues.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use crate::attach::{Attached, attach};
use procwright::Memory;
use procwright::memory::{KEPT_IN_PLACE, Pages, can_map, least_capacity, next_capacity};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString};

use crate::arguments::bad_type;

/// Up to this size the data is in plain memory and is copied once, at the end:
/// a short run then never asks for the interpreter lock on its way.
const SMALL: usize = 128 * 1024 - 64;

// pyo3-ffi lacks this function, which is in the stable ABI.
unsafe extern "C" {
    fn _PyBytes_Resize(object: *mut *mut ffi::PyObject, size: ffi::Py_ssize_t) -> c_int;
}

/// The memory that a capture reads into.
#[derive(Debug)]
pub(crate) struct BytesMemory {
    small: Vec<u8>,
    large: Option<GrowingBytes>,
}

/// A `bytes` object that no other code has seen yet.
#[derive(Debug)]
struct GrowingBytes {
    /// The only reference.
    object: Attached<Py<PyBytes>>,
    /// The beginning of its data.
    start: NonNull<u8>,
    /// The number of bytes written, no more than `capacity`.
    length: usize,
    /// The size that Python knows.
    capacity: usize,
    /// The number of bytes initialised, by us or by a read; at least `length` where
    /// `clean_spare` is used.
    clean: usize,
    /// The pages of what [`fill`](BytesMemory::fill) fills.
    pages: Pages,
}

// SAFETY: only `start` keeps this from being Send by itself. It points into
// `object`, which moves along, has no other reference, and is not tied to a
// thread.
unsafe impl Send for GrowingBytes {}

impl Memory for BytesMemory {
    fn new() -> BytesMemory {
        BytesMemory {
            small: Vec::new(),
            large: None,
        }
    }

    fn reserve(&mut self, more: usize) -> io::Result<&mut [MaybeUninit<u8>]> {
        self.make_room(more)?;
        Ok(match &mut self.large {
            None => self.small.spare_capacity_mut(),
            Some(large) => large.spare(),
        })
    }

    fn read_from(&mut self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        self.make_room(max)?;
        match &mut self.large {
            None => {
                let length = self.small.len();
                let room = &mut self.small.spare_capacity_mut()[..max];
                let n = rustix::io::read(fd, room)?.0.len();
                // SAFETY: the kernel has written the first `n` bytes of `room`,
                // which begins at the old length and lies within the capacity.
                unsafe { self.small.set_len(length + n) };
                Ok(n)
            }
            Some(large) => {
                let n = rustix::io::read(fd, &mut large.spare()[..max])?.0.len();
                large.length += n;
                Ok(n)
            }
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.large {
            None => &self.small,
            Some(large) => large.written(),
        }
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.make_room(bytes.len())?;
        match &mut self.large {
            None => self.small.extend_from_slice(bytes),
            Some(large) => large.extend(bytes),
        }
        Ok(())
    }

    fn finish(&mut self) {
        // `into_bytes`, which has the lock anyway, frees what was not used.
    }
}

impl BytesMemory {
    /// The object, without a copy of more than [`KEPT_IN_PLACE`] bytes.
    ///
    /// # Errors
    /// `MemoryError`.
    pub(crate) fn into_bytes(self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        match self.large {
            None => Ok(PyBytes::new(py, &self.small).unbind()),
            Some(large) if large.length < KEPT_IN_PLACE => {
                Ok(PyBytes::new(py, large.written()).unbind())
            }
            Some(large) => {
                let length = large.length;
                Ok(large.resized(py, length)?.object.into_inner(py))
            }
        }
    }

    /// Lets `read` put at most `max` bytes behind those that are here. It says how
    /// many it has put there.
    pub(crate) fn fill<R>(
        &mut self,
        max: usize,
        read: impl FnOnce(&mut [u8]) -> io::Result<(usize, R)>,
    ) -> io::Result<R> {
        self.make_room(max)?;
        match &mut self.large {
            None => {
                let length = self.small.len();
                self.small.resize(length + max, 0);
                let filled = read(&mut self.small[length..]);
                let n = filled.as_ref().map_or(0, |(n, _)| *n).min(max);
                self.small.truncate(length + n);
                filled.map(|(_, made)| made)
            }
            Some(large) => {
                large.provide(max);
                let (n, made) = read(large.clean_spare(max))?;
                large.length += n.min(max);
                Ok(made)
            }
        }
    }

    /// Makes room for `more` bytes.
    fn make_room(&mut self, more: usize) -> io::Result<()> {
        let length = self.as_bytes().len();
        let needed = length.checked_add(more).ok_or(io::ErrorKind::OutOfMemory)?;
        if self.large.is_none() && needed <= SMALL {
            if self.small.capacity() < needed {
                // A small stream will need no more than this: untouched memory is free.
                let reserved = self.small.try_reserve_exact(SMALL - length);
                reserved.map_err(|_| io::ErrorKind::OutOfMemory)?;
            }
            return Ok(());
        }
        if self
            .large
            .as_ref()
            .is_some_and(|large| large.capacity >= needed)
        {
            return Ok(());
        }
        // Attaching fails only in a process that is going down.
        attach(|py| self.grow(py, needed))
            .unwrap_or_else(|| Err(io::Error::other("the interpreter is finalizing")))
    }

    fn grow(&mut self, py: Python<'_>, needed: usize) -> io::Result<()> {
        let before = self.large.as_ref().map_or(SMALL, |large| large.capacity);
        // Python frees all the data when it cannot have more.
        let wanted = [
            next_capacity(before, needed),
            least_capacity(before, needed),
        ];
        let mut possible = wanted.into_iter().filter(|one| can_map(one - before));
        let capacity = possible.next().ok_or(io::ErrorKind::OutOfMemory)?;
        let grown = match self.large.take() {
            Some(large) => large.resized(py, capacity),
            None => GrowingBytes::new(py, capacity),
        };
        let mut large = grown.map_err(|_| io::ErrorKind::OutOfMemory)?;
        if !self.small.is_empty() {
            large.extend(&std::mem::take(&mut self.small));
        }
        self.large = Some(large);
        Ok(())
    }
}

impl GrowingBytes {
    fn new(py: Python<'_>, capacity: usize) -> PyResult<GrowingBytes> {
        let size = ffi::Py_ssize_t::try_from(capacity)?;
        // SAFETY: we are attached, the size is not negative, and NULL asks for
        // data that is not initialised. No other code sees the object until
        // `into_bytes` has cut it to what was written.
        let object = unsafe {
            let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
            Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked()
        };
        GrowingBytes::around(object, 0, capacity)
    }

    /// The data in an object of another size, which is at least the length of the data. An
    /// error frees the data: there is only one copy.
    fn resized(self, py: Python<'_>, capacity: usize) -> PyResult<GrowingBytes> {
        let GrowingBytes {
            object,
            length,
            clean,
            pages,
            ..
        } = self;
        debug_assert!(length <= capacity);
        let size = ffi::Py_ssize_t::try_from(capacity)?;
        let mut object = object.into_inner(py).into_ptr();
        // SAFETY: we are attached; `object` is an owned reference to a `bytes`
        // and the only one, and its hash was never asked for. The call takes
        // it and puts either an owned reference or, with an error set, NULL in
        // its place.
        let object = unsafe {
            _PyBytes_Resize(&mut object, size);
            Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked()
        };
        let mut large = GrowingBytes::around(object, length, capacity)?;
        large.clean = clean.min(capacity);
        large.pages = pages;
        Ok(large)
    }

    fn around(
        object: Bound<'_, PyBytes>,
        length: usize,
        capacity: usize,
    ) -> PyResult<GrowingBytes> {
        // SAFETY: it is a `bytes`, and we are attached.
        let start = unsafe { ffi::PyBytes_AsString(object.as_ptr()) };
        let start = NonNull::new(start.cast()).ok_or_else(|| PyErr::fetch(object.py()))?;
        Ok(GrowingBytes {
            object: Attached::new(object.unbind()),
            start,
            length,
            capacity,
            clean: 0,
            pages: Pages::default(),
        })
    }

    /// The data of the object, written or not.
    fn block(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: `start` is valid for `capacity` bytes for as long as the
        // object is neither resized nor freed, both of which need all of
        // `self`. No other code reads or writes there, with the lock or without.
        // The lock guards reference counts, which are not touched here.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.capacity) }
    }

    fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        let length = self.length;
        &mut self.block()[length..]
    }

    /// Gets the pages for the next `max` bytes, for which there is room.
    fn provide(&mut self, max: usize) {
        let mut pages = std::mem::take(&mut self.pages);
        pages.provide(self.length, self.spare(), max);
        self.pages = pages;
    }

    /// The next `max` bytes, for which there is room, as initialised memory. They
    /// are cleared shortly before they are used, so that it costs little: the page
    /// fault, which costs much, comes once in any case.
    fn clean_spare(&mut self, max: usize) -> &mut [u8] {
        let length = self.length;
        let from = self.clean.max(length);
        let to = length + max;
        if from < to {
            self.block()[from..to].fill(MaybeUninit::new(0));
            self.clean = to;
        }
        let area = &mut self.block()[length..to];
        // SAFETY: what lies before `clean` is initialised: cleared here, or written
        // since, and a growth copies it. `u8` and `MaybeUninit<u8>` are laid out
        // alike.
        unsafe { std::slice::from_raw_parts_mut(area.as_mut_ptr().cast(), max) }
    }

    fn written(&self) -> &[u8] {
        // SAFETY: as in `block`, and the first `length` bytes are written.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Adds bytes for which there is room.
    fn extend(&mut self, bytes: &[u8]) {
        let room = &mut self.spare()[..bytes.len()];
        for (slot, byte) in room.iter_mut().zip(bytes) {
            slot.write(*byte);
        }
        self.length += bytes.len();
    }
}

/// The memory of an object of the caller's that is to be read into.
pub(crate) struct WritableBuffer(PyUntypedBuffer);

impl WritableBuffer {
    /// # Errors
    /// What is no buffer, or cannot be written to, or is scattered.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<WritableBuffer> {
        let hint = "pass a bytearray, or another buffer of one piece that can be written to";
        let refused = || bad_type("buffer", object, hint);
        let is_bytes = |found: &PyUntypedBuffer| {
            (found.len_bytes() == 0 || found.as_typed::<u8>().is_ok()) && found.is_c_contiguous()
        };
        let buffer = match PyUntypedBuffer::get(object) {
            Ok(buffer) if is_bytes(&buffer) => buffer,
            // Numbers are bytes after a cast, and what is not one block cannot be cast.
            _ => {
                let cast = PyMemoryView::from(object)
                    .and_then(|view| view.call_method1("cast", ("B",)))
                    .and_then(|bytes| PyUntypedBuffer::get(&bytes));
                cast.map_err(|_| refused())?
            }
        };
        match buffer.readonly() {
            true => Err(refused()),
            false => Ok(WritableBuffer(buffer)),
        }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        let length = self.0.len_bytes();
        match NonNull::new(self.0.buf_ptr().cast()) {
            None => &mut [],
            // SAFETY: `new` has seen that this is one block of bytes to write to. Its
            // owner neither moves nor frees it as long as the buffer is held, which
            // is as long as `self` is. The bytes may be used without the interpreter
            // lock: a thread that touches them meanwhile gets old ones, new ones or
            // some of both, as it does with every `readinto` of CPython. They are only
            // written here, but for those that go back to the stream, and whatever
            // those are, they are bytes.
            Some(start) => unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) },
        }
    }
}

/// Text of UTF-8. The `errors` are those of Python.
///
/// # Errors
/// `UnicodeDecodeError` if they are "strict", `MemoryError`.
pub(crate) fn decode_utf8<'py>(
    py: Python<'py>,
    bytes: &[u8],
    errors: &CStr,
) -> PyResult<Bound<'py, PyString>> {
    let size = ffi::Py_ssize_t::try_from(bytes.len())?;
    // SAFETY: we are attached, the pointer is valid for `size` bytes, the name ends
    // with a NUL, and what comes back is an owned `str` or NULL with an error set.
    unsafe {
        let text = ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), size, errors.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked())
    }
}
