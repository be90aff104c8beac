//! What a program waits for, for those who started it.

/// The thing that a program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum WaitKind {
    /// What a person types at its terminal, or what somebody writes to its stdin.
    Input,
    /// Room for what it writes.
    Output,
    /// A child that goes on, or of which is not known what it does.
    Child,
    /// A lock of a file, or a word in memory: another thread, for the most part.
    Lock,
    /// Time. One who sleeps over its terminal with a time limit may wait for input there as well:
    /// then `terminal` of [`Waiting`] is true.
    Timer,
    /// Somebody else: over a network, or by a pipe or socket that is not its stdin.
    Peer,
    /// Nothing that is known: it runs, is stopped, has ended, or may not be looked at.
    Nothing,
}

impl WaitKind {
    /// The name in JSON and for front ends.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Input => "input",
            WaitKind::Output => "output",
            WaitKind::Child => "child",
            WaitKind::Lock => "lock",
            WaitKind::Timer => "timer",
            WaitKind::Peer => "peer",
            WaitKind::Nothing => "nothing",
        }
    }
}

/// What a program waits for.
///
/// Where it waits for a child, or for what another process of its tree writes or reads, this
/// is what that one waits for: of `sh -c 'cp -i a b'` that `cp` waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Waiting {
    /// The thing that is waited for.
    pub kind: WaitKind,
    /// Number of the process that waits: the program, or one of its tree.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// The descriptor by which it waits, if it is one.
    pub fd: Option<i32>,
    /// True if that is its terminal. With [`WaitKind::Timer`] it may wait for input there, and
    /// may as well look there now and then while it waits for something else.
    pub terminal: bool,
    /// Those who could end the wait, by what they have open.
    pub holders: Vec<WaitedFor>,
    /// All in words, without a full stop: `cat (123) waits for input on stdin, pipe 77, held
    /// by python3 (55)`.
    pub text: String,
}

/// A process that could end a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WaitedFor {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Its descriptor of the other end, the first if it has several; `None` if it is waited for
    /// otherwise: by its end, or by a lock of a file.
    pub fd: Option<i32>,
    /// Its start, in ticks since boot: with the number it means this process and no other.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub start_ticks: u64,
}

impl Waiting {
    /// What is said of a program that is over.
    pub fn ended(pid: i32, name: &str) -> Waiting {
        Waiting {
            kind: WaitKind::Nothing,
            pid,
            name: name.to_owned(),
            fd: None,
            terminal: false,
            holders: Vec::new(),
            text: format!("{name} ({pid}) has ended"),
        }
    }

    /// Its text, if it tells why a program does not go on: it waits for input, or may do so, for
    /// room, for a lock, or for somebody else.
    pub fn why(&self) -> Option<&str> {
        match self.kind {
            WaitKind::Input | WaitKind::Output | WaitKind::Lock | WaitKind::Peer => {
                Some(&self.text)
            }
            WaitKind::Timer if self.terminal => Some(&self.text),
            WaitKind::Child | WaitKind::Timer | WaitKind::Nothing => None,
        }
    }
}
