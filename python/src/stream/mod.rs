//! The streams of a child; `procwright/_stream.py` and `_text.py` complete them.
//!
//! Data that is here already is given out with the interpreter lock held, which takes no
//! longer than to make the object. A call lets go of the lock only if it has to wait.
//!
//! The files of this folder, highest first; each imports only from lines below its own:
//!
//! ```text
//! text                 lines and characters of text, over a reader
//! reader, merged       the binary stream out of a child; both outputs as one
//! writer               the stream into a child
//! untaken              the streams that were not taken yet
//! shared_reader        a reading end, which the binary and the text stream share
//! errors, inside       errors as exceptions; the operations that are inside
//! converted, frame, figures
//! ```

mod converted;
mod errors;
mod figures;
mod frame;
mod inside;
mod merged;
mod reader;
mod shared_reader;
mod text;
mod untaken;
mod writer;

pub(crate) use errors::{failed, stalled};
pub(crate) use figures::figures;
pub(crate) use frame::Frame;
pub(crate) use merged::Merged;
pub(crate) use reader::Reader;
pub(crate) use shared_reader::SharedReader;
pub(crate) use text::TextReader;
pub(crate) use untaken::UntakenStreams;
pub(crate) use writer::Writer;
