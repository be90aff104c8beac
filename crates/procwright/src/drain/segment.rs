//! The order in which two streams were read.

use crate::std_stream::StdStream;

/// A piece of the merged output: so many bytes of one stream, read in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The stream that was read.
    pub stream: StdStream,
    /// The number of bytes.
    pub bytes: u64,
}

/// Records that `bytes` of one stream came next, if the order is wanted.
pub(super) fn record(order: &mut Option<Vec<Segment>>, stream: StdStream, bytes: u64) {
    let Some(order) = order else { return };
    if bytes == 0 {
        return;
    }
    match order.last_mut() {
        Some(last) if last.stream == stream => last.bytes += bytes,
        _ => order.push(Segment { stream, bytes }),
    }
}
