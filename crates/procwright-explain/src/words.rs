//! Waits, objects and doubts in words.

use crate::finding::Link;
use crate::graph::{Doubt, Edge, Why};
use crate::wait::{Children, Wait};
use crate::world::{Object, Process, World};

/// The thing behind a descriptor.
pub(crate) fn object(of: Object) -> String {
    match of {
        Object::Pipe(inode) => format!("pipe {inode}"),
        Object::Fifo { inode, .. } => format!("FIFO {inode}"),
        Object::Socket(inode) => format!("socket {inode}"),
        Object::Connection { to, .. } => format!("the connection to {to}"),
        Object::Listener { at, .. } => format!("connections to {at}"),
        Object::Terminal(device) => terminal(device),
        Object::OwnTerminal => String::from("its terminal"),
        Object::TerminalMaster(device) => format!("what is shown on {}", terminal(device)),
        Object::Process(pid) => format!("the end of {pid}"),
        Object::Epoll => String::from("an epoll set"),
        Object::Eventfd(Some(id)) => format!("eventfd {id}"),
        Object::Eventfd(None) => String::from("an eventfd"),
        Object::Timer => String::from("a timer"),
        Object::Signals => String::from("signals"),
        Object::Ring => String::from("an io_uring"),
        Object::File { .. } | Object::Path => String::from("a file"),
        Object::Other => String::from("a device or the like"),
    }
}

/// A terminal, by the name of its device.
pub(crate) fn terminal(device: u64) -> String {
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & !0xff);
    match major {
        136..=143 => format!("/dev/pts/{}", (major - 136) << 8 | minor),
        4 if minor < 64 => format!("/dev/tty{minor}"),
        4 => format!("/dev/ttyS{}", minor - 64),
        _ => String::from("its terminal"),
    }
}

/// The name of a descriptor: of the first three, those of the standard.
pub(crate) fn fd(number: i32) -> String {
    match number {
        0 => String::from("stdin"),
        1 => String::from("stdout"),
        2 => String::from("stderr"),
        number => format!("fd {number}"),
    }
}

/// What a thread does.
pub(crate) fn wait(process: &Process, wait: &Wait) -> String {
    let on = |number: i32| match process.fd(number) {
        Some(found) => format!("{}, {}", fd(number), object(found.of)),
        None => fd(number),
    };
    match wait {
        Wait::Runs => String::from("runs"),
        Wait::Read(number) => format!("waits to read from {}", on(*number)),
        Wait::Write(number) => format!("waits for room to write to {}", on(*number)),
        Wait::Set {
            read,
            write,
            finite,
        } => {
            let mut all: Vec<String> = read.iter().map(|number| on(*number)).collect();
            all.extend(
                write
                    .iter()
                    .map(|number| format!("room in {}", on(*number))),
            );
            let more = all.len().saturating_sub(4);
            all.truncate(4);
            let mut text = match all.as_slice() {
                [] => String::from("sleeps"),
                all => format!("waits for {}", all.join("; ")),
            };
            if more > 0 {
                text += &format!("; and {more} more");
            }
            if *finite {
                text += ", or until its time is up";
            }
            text
        }
        Wait::HiddenSet { finite: false } => String::from("waits in poll or the like"),
        Wait::HiddenSet { finite: true } => {
            String::from("waits in poll or the like, or until its time is up")
        }
        Wait::Child(Children::One(pid)) => format!("waits for its child {pid}"),
        Wait::Child(Children::Vfork) => {
            String::from("waits until its new child executes a program")
        }
        Wait::Child(_) => String::from("waits for a child"),
        Wait::FileLock(number) => format!("waits for a lock of the file that is {}", fd(*number)),
        Wait::Futex { mutex: Some(_), .. } => String::from("waits for a mutex in shared memory"),
        Wait::Futex { mutex: None, .. } => String::from("waits for a lock or another thread"),
        Wait::FifoPartner(path) if path.is_empty() => {
            String::from("waits for somebody who opens the other end of a FIFO")
        }
        Wait::FifoPartner(path) => {
            format!("waits for somebody who opens the other end of the FIFO {path}")
        }
        Wait::Time => String::from("sleeps until its time is up"),
        Wait::Signal => String::from("waits for a signal"),
        Wait::Accept(number) => match process.fd(*number).map(|fd| fd.of) {
            Some(Object::Listener { at, .. }) => {
                format!("waits for a connection to {at} ({})", fd(*number))
            }
            _ => format!("waits for a connection to it ({})", fd(*number)),
        },
        Wait::Connect(number) => match process.fd(*number).map(|fd| fd.of) {
            Some(Object::Connection { to, .. }) => {
                format!(
                    "waits for an answer of {to}, to which it connects ({})",
                    fd(*number)
                )
            }
            _ => format!(
                "waits for an answer of who it connects to ({})",
                fd(*number)
            ),
        },
        Wait::Uninterruptible(place) => {
            format!("is in an uninterruptible wait of the system ({place})")
        }
        Wait::Restarted => {
            String::from("goes on in a system call that was interrupted (restart_syscall)")
        }
        Wait::Other(_) => String::from("waits in a system call of another kind"),
        Wait::Hidden(place) if place.is_empty() || place == "0" => {
            String::from("waits; for what may not be seen")
        }
        Wait::Hidden(place) => format!("waits in {place}; its call may not be seen"),
        Wait::Stopped => String::from("is stopped by a signal"),
        Wait::Frozen => String::from("is frozen, by the freezer of a cgroup"),
        Wait::Traced => String::from("is held by a debugger"),
        Wait::Ended => String::from("has ended"),
    }
}

/// One wait of a process for another.
pub(crate) fn link(edge: &Edge, to: &str) -> Link {
    let mut link = Link {
        from: edge.from,
        thread: edge.tid,
        to: edge.to,
        wait: "end",
        fd: None,
        other_fd: None,
        object: None,
        text: String::new(),
    };
    match edge.why {
        Why::Reads {
            fd: number,
            of,
            end,
            ..
        } => {
            let what = object(of);
            link.wait = "read";
            link.text = format!(
                "reads {}, {what}: empty, and open for writing in {to} ({})",
                fd(number),
                fd(end)
            );
            (link.fd, link.other_fd, link.object) = (Some(number), Some(end), Some(what));
        }
        Why::Writes {
            fd: number,
            of,
            end,
            ..
        } => {
            let what = object(of);
            link.wait = "write";
            link.text = format!(
                "writes to {}, {what}: full, and to be read by {to} ({})",
                fd(number),
                fd(end)
            );
            (link.fd, link.other_fd, link.object) = (Some(number), Some(end), Some(what));
        }
        Why::Ends | Why::ChildSignal => link.text = format!("waits for the end of {to}"),
        Why::Unlocks => {
            link.wait = "unlock";
            link.text = format!("waits for a lock of a file that {to} holds");
        }
        Why::Mutex => {
            link.wait = "unlock";
            link.text = format!("waits for a mutex in shared memory that {to} holds");
        }
        Why::MayUnlock => {
            link.wait = "unlock";
            link.text = format!("waits for a mutex in shared memory that {to} could unlock");
        }
        Why::Abandoned { owner, ended: true } => {
            link.wait = "unlock";
            link.text = format!(
                "waits for a mutex in shared memory that thread {owner} held when it ended"
            );
        }
        Why::Abandoned {
            owner,
            ended: false,
        } => {
            link.wait = "unlock";
            link.text = format!("waits for a mutex in shared memory that thread {owner} held");
        }
    }
    link
}

/// A doubt, and what would settle it.
pub(crate) fn doubt(doubt: Doubt, name: &str) -> String {
    match doubt {
        Doubt::HiddenCall => format!(
            "The system call that {name} is in may not be read. As root, or with \
             kernel.yama.ptrace_scope=0, it may."
        ),
        Doubt::HiddenDescriptors => {
            format!("The descriptors of {name} may not be read. As root they may.")
        }
        Doubt::HiddenSet => format!(
            "Which descriptors {name} waits for could not be read from its memory. As root \
             they can."
        ),
        Doubt::RestartedCall => format!(
            "The call that {name} is in was interrupted, as by a stop, and the kernel does not \
             tell which it is (restart_syscall). Where /proc/PID/wchan names the place in which \
             it sleeps, that tells."
        ),
        Doubt::OtherCall => format!("{name} is in a system call that is not known here."),
        Doubt::SharedMemory => {
            format!("{name} waits for a word in memory that it may share with other processes.")
        }
        Doubt::UnseenHolder => String::from(
            "Somebody who could not be looked at may have an end of a pipe or socket open.",
        ),
        Doubt::NobodySeen => format!("Nobody was seen who could end the wait of {name}."),
        Doubt::OpenedByName => {
            String::from("It goes through a FIFO, which anybody may open by its name.")
        }
        Doubt::SocketTimeLimit => {
            format!("A socket of {name} may have a time limit (SO_RCVTIMEO), which nobody can see.")
        }
        Doubt::Terminal => {
            String::from("It goes through a terminal, which a person may hold up or feed.")
        }
        Doubt::Handler => format!("{name} has a handler of a signal that may release it."),
        Doubt::Uninterruptible => {
            format!("{name} is in a call in which the system itself has to do something.")
        }
        Doubt::Eventfd => format!(
            "{name} waits for an eventfd, which the system may count up as well, for a device or \
             a file."
        ),
        Doubt::LockHolder => {
            format!("Who holds the lock that {name} waits for could not be seen.")
        }
        Doubt::MutexHolder => format!(
            "The mutex that {name} waits for names its holder by a number, which may be that of \
             another pid namespace."
        ),
        Doubt::MutexLeft => format!(
            "There is a thread of the number of the one that held the mutex that {name} waits for: \
             where it is that one, it may get the memory back and unlock it."
        ),
        Doubt::UnseenUnlocker => format!(
            "Somebody who could not be looked at may have the mutex that {name} waits for in its \
             memory, and unlock it: of this type (PTHREAD_MUTEX_DEFAULT) not its holder alone can."
        ),
        Doubt::Elsewhere => format!(
            "{name} sleeps in another place than that of its call: it may be held by a filter, \
             or be about to go on."
        ),
        Doubt::Timers => format!("Whether {name} has timers could not be read."),
        Doubt::Ring => {
            format!("{name} has an io_uring, which may have calls under way that nobody can see.")
        }
        Doubt::Threads => format!("The threads of {name} could not be read."),
    }
}

/// The doubt that these others could unlock what the process of this name waits for.
pub(crate) fn may_unlock(name: &str, others: &str) -> String {
    format!(
        "Others have the mutex that {name} waits for in their memory, and could unlock it: \
         {others}. Of this type (PTHREAD_MUTEX_DEFAULT) not its holder alone can."
    )
}

/// What a look could not see, each with what would help.
pub(crate) fn unseen(world: &World) -> Vec<String> {
    let unseen = &world.unseen;
    let mut all = Vec::new();
    if let Some(first) = unseen.processes.first() {
        let count = unseen.processes.len();
        let name = world
            .processes
            .get(first)
            .map_or("", |one| one.name.as_str());
        let (s, may) = if count == 1 {
            ("", "its")
        } else {
            ("es", "their")
        };
        all.push(format!(
            "{count} process{s} may not be looked at ({}), and {may} descriptors are not known; \
             as root most are",
            match count {
                1 => format!("{name}, {first}"),
                _ => format!("such as {name}, {first}"),
            }
        ));
    }
    if world.ancestors_only {
        all.push(String::from(
            "kernel.yama.ptrace_scope shows the calls of processes to their ancestors alone; as \
             root they are seen, or where it is 0",
        ));
    }
    if unseen.hidepid {
        all.push(String::from(
            "/proc is mounted with hidepid, so that processes of other users are not there at \
             all; as root they are",
        ));
    }
    if unseen.namespace {
        all.push(String::from(
            "this is a pid namespace (a container), and processes outside of it are not seen; \
             from the host, as root, they are",
        ));
    }
    if unseen.hurried {
        all.push(String::from(
            "processes came faster than they could be looked at; when the machine is calmer, \
             they can",
        ));
    }
    if let Some(first) = unseen.rings.first() {
        all.push(format!(
            "files that {first} has given to an io_uring (as others may) are open, and in no list \
             of descriptors: a pipe that seems to have no other end may have it there. A second \
             look after such processes have ended is complete"
        ));
    }
    if unseen.peers {
        all.push(String::from(
            "which Unix sockets belong together is not told here (a netlink socket is refused, as \
             by a filter of system calls), so that circles over them are not found; outside of \
             the filter they are",
        ));
    }
    if unseen.in_flight {
        all.push(String::from(
            "descriptors lie in a socket, on their way to somebody; once they are taken out, \
             they are seen",
        ));
    }
    all
}
