//! The two output streams of a program, and one value for each.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::os::fd::RawFd;

/// Which of a program's two output streams.
///
/// ```
/// use procwright::StdStream;
///
/// assert_eq!((StdStream::Stderr.name(), StdStream::Stderr.fd()), ("stderr", 2));
/// assert_eq!(StdStream::from_fd(2), Some(StdStream::Stderr));
/// assert_eq!(StdStream::from_fd(7), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StdStream {
    /// Its standard output.
    #[doc(alias = "STDOUT_FILENO")]
    Stdout,
    /// Its standard error.
    #[doc(alias = "STDERR_FILENO")]
    Stderr,
}

impl StdStream {
    /// Stdout, then stderr.
    pub const BOTH: [StdStream; 2] = [StdStream::Stdout, StdStream::Stderr];

    /// `stdout` or `stderr`.
    pub const fn name(self) -> &'static str {
        match self {
            StdStream::Stdout => "stdout",
            StdStream::Stderr => "stderr",
        }
    }

    /// The number of its descriptor in the program: 1 or 2.
    pub const fn fd(self) -> RawFd {
        match self {
            StdStream::Stdout => 1,
            StdStream::Stderr => 2,
        }
    }

    /// The stream whose descriptor has this number, none but for 1 and 2.
    pub const fn from_fd(number: RawFd) -> Option<StdStream> {
        match number {
            1 => Some(StdStream::Stdout),
            2 => Some(StdStream::Stderr),
            _ => None,
        }
    }

    /// The one of the two that this is not.
    pub const fn other(self) -> StdStream {
        match self {
            StdStream::Stdout => StdStream::Stderr,
            StdStream::Stderr => StdStream::Stdout,
        }
    }
}

/// The [name](StdStream::name).
impl fmt::Display for StdStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A value for each of the two streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerStream<T> {
    pub(crate) stdout: T,
    pub(crate) stderr: T,
}

impl<T> PerStream<T> {
    pub(crate) const fn new(stdout: T, stderr: T) -> PerStream<T> {
        PerStream { stdout, stderr }
    }

    /// What `make` returns for each stream.
    pub(crate) fn from_fn(mut make: impl FnMut(StdStream) -> T) -> PerStream<T> {
        PerStream {
            stdout: make(StdStream::Stdout),
            stderr: make(StdStream::Stderr),
        }
    }

    pub(crate) const fn as_ref(&self) -> PerStream<&T> {
        PerStream {
            stdout: &self.stdout,
            stderr: &self.stderr,
        }
    }

    pub(crate) const fn as_mut(&mut self) -> PerStream<&mut T> {
        PerStream {
            stdout: &mut self.stdout,
            stderr: &mut self.stderr,
        }
    }

    pub(crate) fn map<U>(self, mut map: impl FnMut(T) -> U) -> PerStream<U> {
        PerStream {
            stdout: map(self.stdout),
            stderr: map(self.stderr),
        }
    }

    pub(crate) fn zip<U>(self, other: PerStream<U>) -> PerStream<(T, U)> {
        PerStream {
            stdout: (self.stdout, other.stdout),
            stderr: (self.stderr, other.stderr),
        }
    }

    /// Each stream with its value, stdout first.
    pub(crate) fn iter(&self) -> <PerStream<&T> as IntoIterator>::IntoIter {
        self.as_ref().into_iter()
    }

    /// Each stream with its value, stdout first.
    pub(crate) fn iter_mut(&mut self) -> <PerStream<&mut T> as IntoIterator>::IntoIter {
        self.as_mut().into_iter()
    }

    /// The values alone, stdout's first.
    pub(crate) fn values(&self) -> std::array::IntoIter<&T, 2> {
        <[&T; 2]>::from(self.as_ref()).into_iter()
    }

    /// The values alone, stdout's first.
    pub(crate) fn values_mut(&mut self) -> std::array::IntoIter<&mut T, 2> {
        <[&mut T; 2]>::from(self.as_mut()).into_iter()
    }
}

impl PerStream<bool> {
    /// The streams for which it is true.
    pub(crate) fn chosen(self) -> impl Iterator<Item = StdStream> {
        let all = self.into_iter();
        all.filter_map(|(stream, is_chosen)| is_chosen.then_some(stream))
    }
}

impl<T> From<PerStream<T>> for [T; 2] {
    fn from(both: PerStream<T>) -> [T; 2] {
        [both.stdout, both.stderr]
    }
}

impl<T> IntoIterator for PerStream<T> {
    type Item = (StdStream, T);
    type IntoIter = std::array::IntoIter<(StdStream, T), 2>;

    fn into_iter(self) -> Self::IntoIter {
        let both = [
            (StdStream::Stdout, self.stdout),
            (StdStream::Stderr, self.stderr),
        ];
        both.into_iter()
    }
}

impl<T> Index<StdStream> for PerStream<T> {
    type Output = T;

    fn index(&self, stream: StdStream) -> &T {
        match stream {
            StdStream::Stdout => &self.stdout,
            StdStream::Stderr => &self.stderr,
        }
    }
}

impl<T> IndexMut<StdStream> for PerStream<T> {
    fn index_mut(&mut self, stream: StdStream) -> &mut T {
        match stream {
            StdStream::Stdout => &mut self.stdout,
            StdStream::Stderr => &mut self.stderr,
        }
    }
}
