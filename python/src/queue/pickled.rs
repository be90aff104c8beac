//! Objects as messages: pickled, with their large buffers not copied on the way.
//!
//! A message is a header, a table of the buffers that pickle gave out of band (protocol
//! 5), the pickle, and those buffers, each where memory of this kind usually begins.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::message_bytes::MessageBytes;

/// The length below which a message is put together first, and then sent as any other: that
/// takes less time than to ask for room, and to put it together there.
const SHORT: usize = 4 * 1024;

/// The mark of such a message; behind it the number of buffers, in four bytes.
pub(super) const MAGIC: [u8; 4] = *b"pwo1";
pub(super) const HEADER: usize = 8;
/// The length of an entry for a buffer: its offset, its length, and whether it may be written
/// to, each in eight bytes.
pub(super) const ENTRY: usize = 24;
const ALIGNMENT: usize = 16;
const PADDING: [u8; ALIGNMENT] = [0; ALIGNMENT];

/// An object, to be sent.
pub(super) struct Pickled<'py> {
    head: Vec<u8>,
    pickle: Bound<'py, PyBytes>,
    /// Bytes of padding, and the buffer behind them.
    buffers: Vec<(usize, MessageBytes<'py>)>,
    length: usize,
}

impl<'py> Pickled<'py> {
    /// # Errors
    /// Those of pickling it.
    pub(super) fn new(object: &Bound<'py, PyAny>) -> PyResult<Pickled<'py>> {
        static DUMPS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

        let py = object.py();
        let given = PyList::empty(py);
        let options = PyDict::new(py);
        let callback = given.getattr(intern!(py, "append"))?;
        options.set_item(intern!(py, "buffer_callback"), callback)?;
        let dumps = DUMPS.import(py, "pickle", "dumps")?;
        let pickle = dumps.call((object, 5), Some(&options))?;
        let pickle = pickle.cast_into::<PyBytes>()?;

        let mut head = Vec::with_capacity(HEADER + ENTRY * given.len());
        head.extend(MAGIC);
        head.extend(u32::try_from(given.len())?.to_le_bytes());
        let mut length = HEADER + ENTRY * given.len() + pickle.as_bytes().len();
        let mut buffers = Vec::with_capacity(given.len());
        for buffer in given {
            let raw = buffer.call_method0(intern!(py, "raw"))?;
            let data = MessageBytes::from_object("a buffer", &raw)?;
            let padding = length.wrapping_neg() % ALIGNMENT;
            length += padding;
            head.extend((length as u64).to_le_bytes());
            head.extend((data.len() as u64).to_le_bytes());
            head.extend(u64::from(!data.is_readonly()).to_le_bytes());
            length += data.len();
            buffers.push((padding, data));
        }
        Ok(Pickled {
            head,
            pickle,
            buffers,
            length,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The message in one piece, if it is short.
    pub(super) fn short(&self) -> Option<Vec<u8>> {
        (self.length < SHORT).then(|| self.parts().concat())
    }

    /// The pieces of the message, in their order.
    pub(super) fn parts(&self) -> Vec<&[u8]> {
        let behind = self.buffers.iter();
        let behind = behind.flat_map(|(padding, data)| [&PADDING[..*padding], data.as_slice()]);
        [&*self.head, self.pickle.as_bytes()]
            .into_iter()
            .chain(behind)
            .collect()
    }
}
