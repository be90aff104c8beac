//! Queues. Users get these classes themselves, without a wrapper in Python: to send or to
//! receive a short message is one call of a native method and nothing else.
//!
//! `procwright/_queue.py` has what needs modules of Python's.
//!
//! An end of a queue, a `Sender` or a `Receiver`, lives so:
//!
//! 1. The class has an [`Endpoint`](endpoint::Endpoint). A call takes the core's end out of it,
//!    as an [`EndpointGuard`](guard::EndpointGuard), and a call that comes meanwhile raises `Busy`.
//! 2. The guard puts the end back when it is dropped. `close` drops an end that is in its
//!    place; one that is out is dropped by its guard.
//! 3. A message that is read or made in place, a `View` or a `Reservation`, takes the guard
//!    along, as an [`InPlace`](guard::InPlace), until it is released. [`Exports`] counts the
//!    memoryviews of it and refuses the release while there are any.
//!
//! [`Exports`]: exports::Exports
//!
//! The files of this folder, highest first; each imports only from lines below its own:
//!
//! ```text
//! receiver                       the receiving side
//! sender, unpickled              the sending side; messages as objects
//! view, reservation, waiting     messages in place; waiting for messages and for room
//! exports, readiness             memory of messages in place; descriptors of receivers
//! guard                          an end in use, with a message in place or without
//! endpoint                       a place for an end
//! deferred, lends                what the next call is told; which memory an end lends
//! other_side                     what has become of a child at the other side
//! stat                           a queue from outside
//! arguments                      numbers and words of callers
//! pickled, invitation            objects as messages; places at a queue on their way
//! message_bytes, copy            bytes of a message; messages as bytes objects
//! errors, calls                  exceptions; calls of the Python half
//! ```

mod arguments;
mod calls;
mod copy;
mod deferred;
mod endpoint;
mod errors;
mod exports;
mod guard;
mod invitation;
mod lends;
mod message_bytes;
mod other_side;
mod pickled;
mod readiness;
mod receiver;
mod reservation;
mod sender;
mod stat;
mod unpickled;
mod view;
mod waiting;

pub(crate) use guard::OwnedReceiver;
pub(crate) use invitation::Invitation;
pub(crate) use receiver::Receiver;
pub(crate) use reservation::Reservation;
pub(crate) use sender::Sender;
pub(crate) use stat::{queue_names, queue_stat};
pub(crate) use view::View;
