//! What a graph is made of.

use std::collections::HashSet;

use crate::world::Object;

/// One process.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) edges: Vec<Edge>,
    pub(crate) free: Vec<Free>,
    pub(crate) doubts: Vec<Doubt>,
}

/// A process that could end a wait of another, or its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Edge {
    pub(crate) from: i32,
    pub(crate) tid: i32,
    pub(crate) to: i32,
    pub(crate) why: Why,
}

/// The way in which one process waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Why {
    /// It reads what the other could write, or whose end the other could bring about.
    Reads {
        /// Descriptor of who waits.
        fd: i32,
        of: Object,
        /// Descriptor of the other.
        end: i32,
        /// It waits for others as well.
        set: bool,
    },
    /// It writes where the other could read, or close.
    Writes {
        fd: i32,
        of: Object,
        end: i32,
        set: bool,
    },
    /// The other is its child, or the process that it waits for.
    Ends,
    /// The other holds a lock of a file.
    Unlocks,
    /// The other holds a mutex that they share.
    Mutex,
    /// It waits for a mutex that this thread held and cannot give back: an edge to itself.
    Abandoned {
        owner: i32,
        /// The thread has certainly ended.
        ended: bool,
    },
    /// The other has the memory of a mutex that anybody may unlock, and nobody but its holder
    /// should: whoever waits is in no circle with it, and no proof holds against it.
    MayUnlock,
    /// A signal of the other's end would be handled.
    ChildSignal,
}

/// The reason why a process goes on, or is released from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Free {
    /// It runs.
    Runs,
    /// It has run between the two looks, or is not the same.
    Moves,
    /// Time ends its wait.
    Timer,
    /// The network, or whoever connects.
    Peer,
    /// A person at its terminal, read from this descriptor.
    Input(i32),
    /// A person at its terminal, by this descriptor, or its own clock.
    TimedInput(i32),
    /// A signal that it waits for.
    Signal,
    /// It is stopped or frozen, and SIGCONT or a thaw would have it go on.
    Stopped,
    /// A debugger holds it.
    Debugger,
    /// A device, or changes of files.
    Device,
}

/// Something that was not seen and could release a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    /// The call that it sleeps in may not be read.
    HiddenCall,
    /// Its descriptors may not be read.
    HiddenDescriptors,
    /// Which descriptors it waits for could not be read.
    HiddenSet,
    /// Its call was interrupted and goes on, and which it is may not be known.
    RestartedCall,
    /// Who ends this call is not known.
    OtherCall,
    /// It waits for a word in memory that other processes may have as well.
    SharedMemory,
    /// Somebody who may not be looked at could hold an end.
    UnseenHolder,
    /// Nobody who was seen has the other end, so somebody unseen must.
    NobodySeen,
    /// Anybody may open a FIFO by its name.
    OpenedByName,
    /// A socket may have a time limit that cannot be seen.
    SocketTimeLimit,
    /// A terminal may be held up by Ctrl-S, or its reader by a time limit.
    Terminal,
    /// A handler of a signal could release it.
    Handler,
    /// The system works for it, or waits for a device.
    Uninterruptible,
    /// The system itself may count an eventfd up.
    Eventfd,
    /// Who holds a lock of a file is not known.
    LockHolder,
    /// The thread that holds a mutex may be another than the one of that number.
    MutexHolder,
    /// The thread that held a mutex is there, and could get back to its memory.
    MutexLeft,
    /// Somebody who may not be looked at could have the memory of a mutex, and unlock it.
    UnseenUnlocker,
    /// A thread could not be told from one that has come or gone.
    Threads,
    /// It sleeps elsewhere in the system than its call does.
    Elsewhere,
    /// Whether it has timers could not be read.
    Timers,
    /// An io_uring of it may have a call under way.
    Ring,
}

impl Node {
    /// A copy; without what sets it free if `frozen`.
    pub(crate) fn clone_without_freedom(&self, frozen: bool) -> Node {
        Node {
            edges: if frozen {
                Vec::new()
            } else {
                self.edges.clone()
            },
            free: if frozen {
                Vec::new()
            } else {
                self.free.clone()
            },
            doubts: self.doubts.clone(),
        }
    }

    pub(super) fn add_free(&mut self, free: Free) {
        if !self.free.contains(&free) {
            self.free.push(free);
        }
    }

    pub(super) fn add_doubt(&mut self, doubt: Doubt) {
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }

    /// Leaves each edge once, the first, at a cost that goes with their number.
    pub(super) fn drop_repeated_edges(&mut self) {
        let mut seen = HashSet::with_capacity(self.edges.len());
        self.edges.retain(|edge| seen.insert(edge.clone()));
    }
}
