//! Bytes of ours as strings of Ruby's, without a copy where there are many; and back.
#![allow(unsafe_code)]
#![allow(deprecated)]

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RString, Ruby, TryConvert, Value};

use crate::gvl::ruby;

/// Bytes up to which a copy is cheaper than to hand over the memory.
const SMALL: usize = 32 * 1024;

/// A capacity beyond what Ruby keeps inside of an object (640 bytes since 3.2).
const OUTSIDE: i64 = 4096;

/// A binary string with a copy of these bytes.
///
/// # Errors
/// `NoMemoryError`.
pub(crate) fn binary_string(bytes: &[u8]) -> Result<RString, Error> {
    let length = i64::try_from(bytes.len()).map_err(|_| no_memory())?;
    // Protected, since the caller may hold a lock of ours, which an exception would leave locked.
    let made = protect(|| {
        // SAFETY: we have Ruby's lock, and `bytes` has this length.
        unsafe { rb_sys::rb_str_new(bytes.as_ptr().cast(), length) }
    })?;
    value(made)
}

/// One of Ruby's encodings, which are there for good.
#[derive(Clone, Copy)]
pub(crate) struct Encoding(*mut rb_sys::rb_encoding);

impl Encoding {
    /// # Errors
    /// When the value is no encoding.
    pub(crate) fn of(value: Value) -> Result<Encoding, Error> {
        let mut encoding = std::ptr::null_mut();
        protect(|| {
            // SAFETY: we have Ruby's lock, and are in a frame that catches what is thrown.
            encoding = unsafe { rb_sys::rb_to_encoding(value.as_raw()) };
            rb_sys::Qnil as rb_sys::VALUE
        })?;
        Ok(Encoding(encoding))
    }
}

/// A string in this encoding with a copy of these bytes.
///
/// # Errors
/// `NoMemoryError`.
pub(crate) fn string_in(bytes: &[u8], encoding: Encoding) -> Result<RString, Error> {
    let length = i64::try_from(bytes.len()).map_err(|_| no_memory())?;
    let made = protect(|| {
        // SAFETY: as above.
        unsafe { rb_sys::rb_enc_str_new(bytes.as_ptr().cast(), length, encoding.0) }
    })?;
    value(made)
}

/// A binary string that owns this memory from now on.
///
/// # Errors
/// `NoMemoryError`.
pub(crate) fn string_from_vec(mut data: Vec<u8>) -> Result<RString, Error> {
    if data.len() < SMALL {
        return binary_string(&data);
    }
    // Ruby wants a NUL behind the last byte. Where the block has no room, the allocator
    // mostly gives it without moving.
    data.try_reserve_exact(1).map_err(|_| no_memory())?;
    let capacity = i64::try_from(data.capacity() - 1).map_err(|_| no_memory())?;
    let length = i64::try_from(data.len()).map_err(|_| no_memory())?;
    // SAFETY: we have Ruby's lock.
    let string = protect(|| unsafe { rb_sys::rb_str_buf_new(OUTSIDE) })?;
    let object = string as *mut rb_sys::RString;
    // SAFETY: it is a fresh string, which no other code has seen. With that capacity its
    // bytes lie outside of the object, in a block of their own that `ruby_xfree` frees:
    // the flag says so (were it not set, we would copy). Its place takes a block that
    // comes from `malloc` as well, see `ALLOCATOR`, and is as large as it says. Up to
    // where the length is set nothing is allocated, so that the collector does not look
    // at it. The fields are those of the headers that this is compiled with.
    unsafe {
        let flags = (*object).basic.flags;
        let outside = rb_sys::ruby_rstring_flags::RSTRING_NOEMBED as rb_sys::VALUE;
        if flags & outside == 0 {
            return binary_string(&data);
        }
        let mut data = std::mem::ManuallyDrop::new(data);
        let heap = &mut (*object).as_.heap;
        let before = std::mem::replace(&mut heap.ptr, data.as_mut_ptr().cast());
        heap.aux.capa = capacity as _;
        rb_sys::rb_str_set_len(string, length);
        rb_sys::ruby_xfree(before.cast());
        // Tells the collector how much it would gain.
        rb_sys::rb_gc_adjust_memory_usage(capacity as _);
    }
    value(string)
}

fn value(string: rb_sys::VALUE) -> Result<RString, Error> {
    // SAFETY: Ruby has just made it.
    RString::try_convert(unsafe { Value::from_raw(string) })
}

/// `NoMemoryError`.
pub(crate) fn no_memory() -> Error {
    Error::new(ruby().exception_no_mem_error(), "failed to allocate memory")
}

/// A copy of the bytes of a string.
pub(crate) fn to_vec(string: RString) -> Vec<u8> {
    // SAFETY: copied before anything else is done.
    unsafe { string.as_slice() }.to_vec()
}

/// Lends the bytes of a string to `using`, which may let go of Ruby's lock meanwhile.
pub(crate) fn with_frozen<T>(string: RString, using: impl FnOnce(&[u8]) -> T) -> T {
    // A frozen string that shares the memory, if that is large.
    let frozen = RString::new_frozen(string);
    // SAFETY: frozen, so it is neither changed nor moved elsewhere by Ruby; and it is
    // found in this frame, which keeps it from being freed, or moved as an object.
    let done = using(unsafe { frozen.as_slice() });
    std::hint::black_box(frozen.as_raw());
    done
}

/// A string in the encoding of file names, for text of ours or of the system's.
pub(crate) fn filesystem_string(ruby: &Ruby, bytes: &[u8]) -> RString {
    ruby.enc_str_new(bytes, ruby.filesystem_encindex())
}
