//! Many commands, so many at a time: what `xargs -P`, GNU parallel and a pool of threads
//! around a `run` are used for.
//!
//! ```
//! use procwright::Spec;
//! use procwright::map::Map;
//!
//! let commands = (0..20).map(|number| Spec::new(["echo".to_owned(), number.to_string()]));
//! let mut seen = 0;
//! for ended in Map::new(commands).parallel(4).start()? {
//!     let ended = ended?;
//!     assert!(ended.success(), "{}", ended.summary());
//!     seen += 1;
//! }
//! assert_eq!(seen, 20);
//! # Ok::<(), procwright::map::Error>(())
//! ```
//!
//! The commands come from an iterator that may be endless: it is asked for the next one when
//! there is a place for it, on a thread of the map, and no sooner. The results come from
//! [`Running`], an iterator too, as the commands end, or in the order of the input
//! ([`Map::ordered`]). A consumer that is slow holds the starts up, so that results never pile
//! up without a bound ([`Map::ahead`]).
//!
//! Each command is a [`run`](crate::Command::run) with all that a run promises. What ends the
//! map ends the commands by their own [`Stop`](crate::process::Stop): a failure, if
//! [`Map::stop_after_failures`] says so, [`Map::deadline`], [`Map::cancel_on`], an error of the
//! input, and the drop of the iterator, which returns when they have ended.
//!
//! With a [`Journal`] a map can be taken up again after whatever ended it, the death of
//! this process too: each command is done once, or told of as [`Outcome::Unknown`].

mod builder;
mod ended;
mod error;
mod input;
#[cfg(feature = "serde")]
mod journal;
mod past;
mod pool;
mod running;
mod state;

pub use builder::Map;
pub use ended::{Ended, Outcome};
pub use error::{Error, StoppedBy};
#[cfg(feature = "serde")]
pub use journal::{Joblog, Journal, JournalError};
pub use past::{Past, PastEnd};
pub use running::{Remote, Running, Step};
pub use state::Progress;
