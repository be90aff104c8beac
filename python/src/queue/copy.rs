//! Messages as objects of Python's, copied once.
#![allow(unsafe_code)]

use std::os::raw::c_char;
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

/// The size from which on other threads may run while bytes are copied: that takes longer
/// than to give the interpreter lock back and to get it again.
pub(super) const LONG: usize = 32 * 1024;

/// # Errors
/// `MemoryError`.
pub(super) fn bytes<'py>(py: Python<'py>, message: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: these are of the same kind.
    let made = unsafe {
        made(
            py,
            message,
            ffi::PyBytes_FromStringAndSize,
            ffi::PyBytes_AsString,
        )
    };
    // SAFETY: of that kind.
    made.map(|object| unsafe { object.cast_into_unchecked() })
}

/// # Errors
/// `MemoryError`.
pub(super) fn bytearray<'py>(py: Python<'py>, message: &[u8]) -> PyResult<Bound<'py, PyByteArray>> {
    // SAFETY: as above.
    let made = unsafe { made(py, message, new_bytearray, ffi::PyByteArray_AsString) };
    // SAFETY: as above.
    made.map(|object| unsafe { object.cast_into_unchecked() })
}

/// `PyByteArray_FromStringAndSize`, in two steps: CPython's own frees a half-made object when
/// there is no memory for the bytes, and complains of what is in it.
unsafe extern "C" fn new_bytearray(
    from: *const c_char,
    size: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: attached, says the caller; no other code has the new object.
    unsafe {
        if !from.is_null() {
            return ffi::PyByteArray_FromStringAndSize(from, size);
        }
        let object = ffi::PyByteArray_FromStringAndSize(from, 0);
        if !object.is_null() && ffi::PyByteArray_Resize(object, size) != 0 {
            ffi::Py_DecRef(object);
            return std::ptr::null_mut();
        }
        object
    }
}

/// A new object with a copy of `message`. PyO3's own panic without memory.
///
/// # Safety
/// `make` makes an object of so many bytes, or with NULL of as many that are not
/// initialised yet, and `begin` says where they are.
unsafe fn made<'py>(
    py: Python<'py>,
    message: &[u8],
    make: unsafe extern "C" fn(*const c_char, ffi::Py_ssize_t) -> *mut ffi::PyObject,
    begin: unsafe extern "C" fn(*mut ffi::PyObject) -> *mut c_char,
) -> PyResult<Bound<'py, PyAny>> {
    let is_short = message.len() < LONG;
    let from = match is_short {
        true => message.as_ptr().cast(),
        false => std::ptr::null(),
    };
    let size = ffi::Py_ssize_t::try_from(message.len())?;
    // SAFETY: attached; what comes is a new object, or NULL with an error set.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, make(from, size))? };
    if !is_short {
        // SAFETY: the caller says so.
        let to = unsafe { begin(object.as_ptr()) };
        fill(py, to, message)?;
    }
    Ok(object)
}

/// Copies all of `message` into a new object that has room for exactly that.
fn fill(py: Python<'_>, start: *mut c_char, message: &[u8]) -> PyResult<()> {
    struct To(NonNull<u8>);
    // SAFETY: it points into an object that no code but `fill`'s caller has seen yet.
    unsafe impl Send for To {}

    let to = To(NonNull::new(start.cast()).ok_or_else(|| PyErr::fetch(py))?);
    py.detach(move || {
        let To(to) = &to;
        // SAFETY: the object is as long as `message`, is new, and lives until the
        // caller has it back: no other code reads, moves or frees it. The lock guards
        // reference counts, which are not touched.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(message).cast(), message.len()) };
    });
    Ok(())
}
