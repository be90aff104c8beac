//! Messages as objects of Python's, copied once.
#![allow(unsafe_code)]

use std::os::raw::c_char;
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

/// From here on others may run while bytes are copied: it takes longer than to give
/// the interpreter lock back and to get it again.
pub(super) const LONG: usize = 32 * 1024;

/// # Errors
/// `MemoryError`.
pub(super) fn bytes<'py>(py: Python<'py>, message: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    if message.len() < LONG {
        return Ok(PyBytes::new(py, message));
    }
    // SAFETY: attached; NULL asks for bytes that are not initialised. Both calls give
    // what their names say.
    let (object, start) = unsafe {
        let size = ffi::Py_ssize_t::try_from(message.len())?;
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
        let object = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyBytes>();
        let start = ffi::PyBytes_AsString(object.as_ptr());
        (object, start)
    };
    fill(py, start, message)?;
    Ok(object)
}

/// # Errors
/// `MemoryError`.
pub(super) fn bytearray<'py>(py: Python<'py>, message: &[u8]) -> PyResult<Bound<'py, PyByteArray>> {
    if message.len() < LONG {
        return Ok(PyByteArray::new(py, message));
    }
    // SAFETY: as above.
    let (object, start) = unsafe {
        let size = ffi::Py_ssize_t::try_from(message.len())?;
        let object = ffi::PyByteArray_FromStringAndSize(std::ptr::null(), size);
        let object = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyByteArray>();
        let start = ffi::PyByteArray_AsString(object.as_ptr());
        (object, start)
    };
    fill(py, start, message)?;
    Ok(object)
}

/// Copies all of `message` into a new object that has room for exactly that.
fn fill(py: Python<'_>, start: *mut c_char, message: &[u8]) -> PyResult<()> {
    struct To(NonNull<u8>);
    // SAFETY: it points into an object that nobody but `fill`'s caller has seen yet.
    unsafe impl Send for To {}

    let to = To(NonNull::new(start.cast()).ok_or_else(|| PyErr::fetch(py))?);
    py.detach(move || {
        let To(to) = &to;
        // SAFETY: the object is as long as `message`, is new, and lives until the
        // caller has it back: nobody reads, moves or frees it. The lock guards
        // reference counts, which are not touched.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(message).cast(), message.len()) };
    });
    Ok(())
}
