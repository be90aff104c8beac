//! Hangs that have a name, and what to do about each.

/// A hang that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Pattern {
    /// One output of a program is full while the other is read.
    UnreadOutput,
    /// A parent waits for the end of a child whose output it does not read.
    WaitBeforeRead,
    /// A parent waits for the end of a child that reads until the parent closes its input.
    WaitBeforeClose,
    /// Each writes to the other, and neither reads.
    BothWrite,
    /// Each waits for a word of the other.
    BothRead,
    /// A process reads from a pipe whose only writer it is itself.
    OwnWriteEnd,
    /// A process that does not use it has inherited the write end of a pipe, so that its
    /// reader sees no end.
    LeakedWriteEnd,
    /// Each holds a lock of a file for which the other waits.
    FileLocks,
    /// Each holds a mutex in shared memory for which the other waits.
    Mutexes,
    /// A mutex in shared memory was held by a thread that has ended, or has that memory no more, and
    /// is not robust.
    DeadOwner,
    /// A program waits for a token of make's jobserver, and nobody is left to give one back.
    Jobserver,
    /// A circle of another kind.
    Circle,
    /// A program has ended, and somebody whom it has left behind holds its output open.
    HeldOpen,
    /// The other end of a FIFO was not opened.
    FifoPartner,
    /// The system does not come back from a call: a disk, a network file system, a device.
    Uninterruptible,
    /// A program was stopped because it read from, or wrote to, its terminal in the
    /// background.
    Background,
    /// A program was stopped by a signal.
    Stopped,
    /// A program stands still by the freezer of its cgroup, as under `docker pause`.
    Frozen,
    /// A program takes its input more slowly than it comes.
    SlowReader,
    /// A program waits for what is typed at its terminal.
    Terminal,
}

impl Pattern {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::UnreadOutput => "unread-output",
            Pattern::WaitBeforeRead => "wait-before-read",
            Pattern::WaitBeforeClose => "wait-before-close",
            Pattern::BothWrite => "both-write",
            Pattern::BothRead => "both-read",
            Pattern::OwnWriteEnd => "own-write-end",
            Pattern::LeakedWriteEnd => "leaked-write-end",
            Pattern::FileLocks => "file-locks",
            Pattern::Mutexes => "mutexes",
            Pattern::DeadOwner => "dead-owner",
            Pattern::Jobserver => "jobserver",
            Pattern::Circle => "circle",
            Pattern::HeldOpen => "held-open",
            Pattern::FifoPartner => "fifo-partner",
            Pattern::Uninterruptible => "uninterruptible",
            Pattern::Background => "background",
            Pattern::Stopped => "stopped",
            Pattern::Frozen => "frozen",
            Pattern::SlowReader => "slow-reader",
            Pattern::Terminal => "terminal",
        }
    }

    /// What to do, in general.
    pub fn fix(self) -> &'static str {
        match self {
            Pattern::UnreadOutput => {
                "Read both outputs at the same time (procwright run, subprocess.run with \
                 capture_output, Open3.capture3), or send one of them to a file or into the \
                 other (2>&1)."
            }
            Pattern::WaitBeforeRead => {
                "Read the output until its end, and only then wait for the child (procwright \
                 run and communicate() do both); or send the output to a file."
            }
            Pattern::WaitBeforeClose => {
                "Close the child's stdin before waiting for its end: it reads until then."
            }
            Pattern::BothWrite => {
                "Write the input and read the output at the same time: communicate(), a \
                 thread for one of them, or a file in between."
            }
            Pattern::BothRead => {
                "One of them has to speak first. What it has written may still lie in its \
                 buffer: flush after each message, or run it under stdbuf -oL. Or it should \
                 have closed its end."
            }
            Pattern::OwnWriteEnd => {
                "Close the write end in the process that reads, after it has given it to its \
                 children; or, if it was inherited, in the program that starts it (O_CLOEXEC, \
                 close_fds=True). A reader sees the end only when nobody has the other end open."
            }
            Pattern::LeakedWriteEnd => {
                "Open pipes close-on-exec (O_CLOEXEC; close_fds=True), and close the write \
                 end everywhere but in the writer."
            }
            Pattern::FileLocks => {
                "Take locks of files in the same order everywhere, or with a time limit."
            }
            Pattern::Mutexes => {
                "Take mutexes in the same order everywhere, or with a time limit \
                 (pthread_mutex_timedlock)."
            }
            Pattern::DeadOwner => {
                "End all who have that memory, and begin with a new mutex. A robust one \
                 (pthread_mutexattr_setrobust) goes to the next who waits, who is told \
                 (EOWNERDEAD) and puts in order what it guards."
            }
            Pattern::Jobserver => {
                "Look for who has taken a token and has not written it back: a program that was \
                 killed, or one that takes a token for its first job too, which make has granted \
                 it already. Until that is put right start it without the jobserver: \
                 env -u MAKEFLAGS -u CARGO_MAKEFLAGS in front of it, or make -j1."
            }
            Pattern::Circle => "Break the circle at any one of its waits.",
            Pattern::HeldOpen => {
                "Give what runs on in the background an output of its own (>/dev/null 2>&1), \
                 or wait for the exit instead of the end of output (procwright run --until \
                 exit)."
            }
            Pattern::FifoPartner => {
                "Start the program that opens the other end, or open the FIFO for both \
                 (O_RDWR)."
            }
            Pattern::Uninterruptible => {
                "Look at the disk, the mount or the device: dmesg, mount, /proc/PID/stack as \
                 root. No signal ends such a wait."
            }
            Pattern::Background => {
                "Bring it to the foreground (fg), or start it with an input of its own \
                 (</dev/null)."
            }
            Pattern::Stopped => "Have it go on: kill -CONT PID, or fg in its shell.",
            Pattern::Frozen => {
                "Thaw it by what has frozen it: docker unpause, systemctl thaw, or 0 into the file \
                 cgroup.freeze of that cgroup (THAWED into freezer.state)."
            }
            Pattern::SlowReader => {
                "Make the reader faster, or put an elastic stage between (procwright buffer) \
                 so that the writer can go ahead."
            }
            Pattern::Terminal => {
                "Answer at that terminal; or start it so that it asks nothing (--yes, \
                 </dev/null)."
            }
        }
    }
}
