//! What has to be known of others to tell who could end a wait.

use std::collections::{BTreeSet, HashSet};

use crate::wait::Wait;
use crate::world::{Fd, Object, Process, World};

/// What has to be known of others to tell who could end the waits of some.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Who has one of these open.
    pub(crate) holders: HashSet<Object>,
    /// What these do, since their end is waited for.
    pub(crate) ends: BTreeSet<i32>,
    /// The children of these.
    pub(crate) parents: BTreeSet<i32>,
    /// Whom these trace, which counts as their children do.
    pub(crate) tracers: BTreeSet<i32>,
    /// Whose children all others are, and what they have open.
    pub(crate) all: bool,
}

impl Needs {
    /// True if whoever matters by what he has open has one of these pipes.
    pub(crate) fn are_of_pipes(&self) -> bool {
        let mut holders = self.holders.iter();
        !self.all && holders.all(|of| matches!(of, Object::Pipe(_)))
    }

    /// What the waits of `pids` need, of whom `family` has all its children in `world`.
    pub(crate) fn of(world: &World, pids: &BTreeSet<i32>, family: &BTreeSet<i32>) -> Needs {
        let mut needs = Needs::default();
        for process in pids.iter().filter_map(|pid| world.processes.get(pid)) {
            if !process.gone && !process.is_outline && !goes_on(process) {
                needs.add(process, family.contains(&process.pid));
            }
        }
        needs
    }

    fn add(&mut self, process: &Process, has_children_seen: bool) {
        match process.awaited() {
            Some(ends) => self.ends.extend(ends),
            None => _ = self.tracers.insert(process.pid),
        }
        // Of who reads a pipe it is asked whether a child has ended that wrote to it.
        let reads = process
            .threads
            .iter()
            .any(|thread| thread.wait.could_read());
        if !has_children_seen && (reads || self.tracers.contains(&process.pid)) {
            self.parents.insert(process.pid);
        }
        for thread in &process.threads {
            match &thread.wait {
                Wait::Read(fd) | Wait::Write(fd) => self.add_descriptor(process, *fd),
                Wait::Set { read, write, .. } => {
                    for fd in read.iter().chain(write) {
                        self.add_descriptor(process, *fd);
                    }
                }
                // A lock may be anybody's who has the file, or the memory.
                Wait::HiddenSet { .. } | Wait::FileLock(_) | Wait::Hidden(_) => self.all = true,
                Wait::Futex { mutex, .. } => self.all |= mutex.is_some(),
                // Their children are asked for already; of the others nobody is told.
                Wait::Child(_)
                | Wait::Runs
                | Wait::Time
                | Wait::Ended
                | Wait::FifoPartner(_)
                | Wait::Signal
                | Wait::Accept(_)
                | Wait::Connect(_)
                | Wait::Uninterruptible(_)
                | Wait::Other(_)
                | Wait::Restarted
                | Wait::Stopped
                | Wait::Frozen
                | Wait::Traced => {}
            }
        }
    }

    fn add_descriptor(&mut self, process: &Process, number: i32) {
        let Some(Fd { of, .. }) = process.fd(number) else {
            return;
        };
        let masters = |device| Object::TerminalMaster(device);
        match *of {
            Object::Pipe(_) | Object::Fifo { .. } | Object::Eventfd(Some(_)) => {
                self.holders.insert(*of);
            }
            Object::Terminal(device) => _ = self.holders.insert(masters(device)),
            Object::OwnTerminal => _ = self.holders.insert(masters(process.terminal)),
            // Whose terminal /dev/tty is the link does not say.
            Object::TerminalMaster(device) => {
                self.holders
                    .extend([Object::Terminal(device), Object::OwnTerminal]);
            }
            Object::Process(pid) => _ = self.ends.insert(pid),
            // Which sockets belong together is found among those of all.
            Object::Socket(_) | Object::Connection { .. } | Object::Listener { .. } => {
                self.all = true;
            }
            Object::Eventfd(None)
            | Object::Epoll
            | Object::Timer
            | Object::Signals
            | Object::Ring
            | Object::File { .. }
            | Object::Path
            | Object::Other => {}
        }
    }
}

/// True if it goes on, or will when its time is up, whatever others do.
fn goes_on(process: &Process) -> bool {
    let by_itself = |wait: &Wait| matches!(wait, Wait::Runs | Wait::Time | Wait::Ended);
    process.threads.iter().all(|thread| by_itself(&thread.wait))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::scan;
    use crate::wait::{Children, Mutex, Place};

    const OF: [Object; 7] = [
        Object::Other,
        Object::Pipe(70),
        Object::Socket(71),
        Object::OwnTerminal,
        Object::Process(72),
        Object::TerminalMaster(73),
        Object::File {
            device: 1,
            inode: 2,
        },
    ];

    fn own() -> i32 {
        rustix::process::getpid().as_raw_nonzero().get()
    }

    /// What this process needs if its threads wait so, over descriptors of [`OF`], and if all its
    /// children are seen or not.
    fn needs(waits: &[Wait], has_children_seen: bool) -> Needs {
        let own = own();
        let mut world = scan::own_family();
        let process = world.processes.get_mut(&own).expect("this process");
        (process.caught, process.terminal) = (0, 88);
        let fds = (0..).zip(OF).map(|(number, of)| Fd {
            number,
            of,
            read: true,
            write: true,
        });
        process.fds = Some(fds.collect());
        let thread = process.threads[0].clone();
        process.threads = vec![thread; waits.len()];
        for (thread, wait) in process.threads.iter_mut().zip(waits) {
            thread.wait = wait.clone();
        }
        let family = has_children_seen.then_some(own);
        Needs::of(
            &world,
            &BTreeSet::from([own]),
            &family.into_iter().collect(),
        )
    }

    fn all() -> Needs {
        Needs {
            all: true,
            ..Needs::default()
        }
    }

    fn holders(of: &[Object]) -> Needs {
        Needs {
            holders: of.iter().copied().collect(),
            ..Needs::default()
        }
    }

    #[test]
    fn who_goes_on_needs_nobody() {
        for waits in [vec![Wait::Runs], vec![Wait::Time, Wait::Ended]] {
            assert_eq!(needs(&waits, false), Needs::default(), "{waits:?}");
        }
        // It tells what else its threads wait for.
        assert_eq!(
            needs(&[Wait::Time, Wait::Write(1)], false),
            holders(&OF[1..2])
        );
    }

    #[test]
    fn by_a_descriptor_those_who_have_its_other_end() {
        let set = |read: &[i32]| Wait::Set {
            read: read.to_vec(),
            write: vec![1],
            finite: true,
        };
        assert_eq!(needs(&[Wait::Read(1)], true), holders(&[Object::Pipe(70)]));
        let both = [Object::Pipe(70), Object::TerminalMaster(88)];
        assert_eq!(needs(&[set(&[3, 0])], true), holders(&both));
        let slaves = [Object::Terminal(73), Object::OwnTerminal];
        assert_eq!(needs(&[Wait::Write(5)], false), holders(&slaves));
        assert_eq!(needs(&[Wait::Write(2)], false), all());
        for device in [0, 6, 99] {
            assert_eq!(needs(&[Wait::Write(device)], false), Needs::default());
        }
    }

    #[test]
    fn of_a_reader_who_is_not_of_the_family_the_children_count() {
        let own = BTreeSet::from([own()]);
        assert_eq!(needs(&[Wait::Read(1)], false).parents, own);
        for (wait, has_children_seen) in [(Wait::Read(1), true), (Wait::Write(1), false)] {
            assert!(needs(&[wait], has_children_seen).parents.is_empty());
        }
    }

    #[test]
    fn for_a_child_that_one_or_all() {
        let ends = |pid| Needs {
            ends: BTreeSet::from([pid]),
            ..Needs::default()
        };
        assert_eq!(needs(&[Wait::Child(Children::One(7))], true), ends(7));
        assert_eq!(needs(&[Wait::Write(4)], true), ends(72));
        let own = BTreeSet::from([own()]);
        for any in [Children::Any, Children::Group(0), Children::Vfork] {
            let of_family = needs(&[Wait::Child(any)], true);
            assert_eq!((&of_family.tracers, of_family.parents.len()), (&own, 0));
            let other = needs(&[Wait::Child(any)], false);
            assert_eq!((&other.tracers, &other.parents), (&own, &own));
            assert!(!of_family.all && !other.all);
        }
    }

    #[test]
    fn a_lock_may_be_anybodys() {
        let place = Place {
            device: 1,
            inode: 2,
            offset: 3,
        };
        let mutex = |mutex: Option<Mutex>| Wait::Futex {
            private: mutex.is_none(),
            mutex,
        };
        let known = Mutex {
            owner: 7,
            place,
            anyone_unlocks: false,
        };
        for wait in [
            mutex(Some(known)),
            Wait::FileLock(6),
            Wait::Hidden(String::from("pipe_read")),
            Wait::HiddenSet { finite: true },
        ] {
            assert!(needs(std::slice::from_ref(&wait), true).all, "{wait:?}");
        }
        assert_eq!(needs(&[mutex(None)], true), Needs::default());
    }
}
