//! What a thread waits for, as the system call tells that it sleeps in.

/// The thing that a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it runs, or is about to.
    Runs,
    /// Something to read from this descriptor.
    Read(i32),
    /// Room to write to this descriptor.
    Write(i32),
    /// One of several descriptors, in `poll`, `select` or `epoll`; or time, if `finite`.
    Set {
        /// Descriptors that may end the wait by having something to read.
        read: Vec<i32>,
        /// Descriptors that may end the wait by having room.
        write: Vec<i32>,
        /// Whether the wait ends by the clock, too.
        finite: bool,
    },
    /// One of several descriptors that could not be read from its memory.
    HiddenSet {
        /// Whether the wait ends by the clock, too.
        finite: bool,
    },
    /// A child.
    Child(Children),
    /// A lock of a file, by descriptor.
    FileLock(i32),
    /// A word in memory: a mutex, a condition, the end of a thread.
    Futex {
        /// Whether only threads of this process can change it.
        private: bool,
        /// The mutex that it is, if processes share it and it tells who holds it.
        mutex: Option<Mutex>,
    },
    /// Somebody who opens the other end of this FIFO.
    FifoPartner(String),
    /// Time.
    Time,
    /// A signal.
    Signal,
    /// Somebody who connects to this listening socket.
    Accept(i32),
    /// Somebody who answers the connection that this socket begins.
    Connect(i32),
    /// The system itself, where no signal reaches it; by the kernel's name of the place.
    Uninterruptible(String),
    /// A call that was interrupted and goes on, of which the kernel does not tell which it is.
    Restarted,
    /// A call of which is not known who ends it, by its number.
    Other(i64),
    /// A call that may not be seen; the kernel's name of the place where it waits.
    Hidden(String),
    /// SIGCONT, since a signal has stopped it.
    Stopped,
    /// To be thawed: the freezer of a cgroup holds it, in whatever call it was.
    Frozen,
    /// A debugger.
    Traced,
    /// Nothing: the thread has ended.
    Ended,
}

impl Wait {
    /// True of a set of descriptors, which others may change while it is waited for: by a set of
    /// epoll that they share, or memory.
    pub(crate) fn is_set(&self) -> bool {
        matches!(self, Wait::Set { .. } | Wait::HiddenSet { .. })
    }

    /// True if something to read could end it.
    pub(crate) fn could_read(&self) -> bool {
        matches!(self, Wait::Read(_) | Wait::Set { .. })
    }

    /// True if it may not be seen who ends it, time or anybody.
    pub(crate) fn is_hidden(&self) -> bool {
        match self {
            Wait::Hidden(place) => !place.contains("nanosleep"),
            Wait::Restarted => true,
            _ => false,
        }
    }
}

/// A mutex that processes share, and that tells which thread holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mutex {
    /// Number of that thread, as its own pid namespace has it.
    pub(crate) owner: i32,
    pub(crate) place: Place,
    /// Whether the C library lets anybody unlock it, and not its holder alone.
    pub(crate) anyone_unlocks: bool,
}

/// A place in memory that processes share, which each has at an address of its own: a file, or
/// memory that the kernel has numbered as one, and where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) offset: u64,
}

/// The children that a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Children {
    /// Any child.
    Any,
    /// One child.
    One(i32),
    /// Those of a process group.
    Group(i32),
    /// The one that has its parent's memory until it executes a program.
    Vfork,
}
