//! The way in which `lines()` cuts a stream.

use procwright::stream::{self, Framing, Separator, TooLong};
use pyo3::prelude::*;

use crate::errors::invalid;

/// The way in which `lines()` cuts a stream.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct Frame {
    pub(super) frame: stream::Frame,
    keep_ends: bool,
}

#[pymethods]
impl Frame {
    /// A newline or a carriage return is the separator if None is given.
    #[new]
    fn new(
        py: Python<'_>,
        separator: Option<Vec<u8>>,
        max_length: Option<usize>,
        fails: bool,
        keep_ends: bool,
    ) -> PyResult<Frame> {
        let separator = match separator {
            None => Separator::NewlineOrReturn,
            Some(bytes) if bytes == b"\n" => Separator::Newline,
            Some(bytes) => Separator::Bytes(bytes),
        };
        let framing = Framing {
            separator,
            max_length,
            too_long: match fails {
                true => TooLong::Fail,
                false => TooLong::Split,
            },
        };
        let frame = stream::Frame::new(framing).map_err(|error| invalid(py, &error))?;
        Ok(Frame { frame, keep_ends })
    }
}

impl Frame {
    /// The line, without its separator unless that is wanted.
    pub(super) fn cut<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        match self.keep_ends {
            true => line,
            false => self.frame.strip(line),
        }
    }
}
