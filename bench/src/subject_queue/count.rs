//! Instructions and system calls, counted from outside, step by step.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::{Plan, Rx, Tx, Way, party, payload};

/// What is counted between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Instructions outside of the kernel.
    Instructions,
    /// System calls.
    Calls,
}

/// In a program that is counted: from here, or until here.
pub fn mark(begins: bool) {
    let signal = match begins {
        true => Signal::SIGUSR1,
        false => Signal::SIGUSR2,
    };
    // The counter takes it away.
    let _ = kill(Pid::this(), signal);
}

/// Runs it in a process of its own, and counts what it and its children do between
/// their marks: of each process that has any, in the order of their first, all of
/// its counts. What two marks with nothing between cost is taken off.
///
/// # Errors
/// When this system lets nobody do so, or the program fails.
pub fn run(
    what: What,
    program: impl FnOnce() -> Result<(), String>,
) -> Result<Vec<Vec<u64>>, String> {
    if what == What::Instructions {
        // One of the two runs at a time: on one processor they change places faster.
        party::keep_to_one(0);
    }
    // SAFETY: this process has no other thread.
    let child = match unsafe { fork() }.map_err(|error| format!("fork: {error}"))? {
        ForkResult::Child => party::live(|| {
            ptrace::traceme().expect("ptrace");
            raise(Signal::SIGSTOP).expect("a signal");
            // The first count is what counting costs.
            mark(true);
            mark(false);
            program().expect("a subject that can be had");
        }),
        ForkResult::Parent { child } => child,
    };
    let mut counter = Counter {
        what,
        processes: BTreeMap::new(),
        order: Vec::new(),
        root: child,
    };
    let failed = |error| format!("ptrace: {error}");
    waitpid(child, None).map_err(failed)?;
    let options = Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_EXITKILL;
    ptrace::setoptions(child, options).map_err(failed)?;
    ptrace::cont(child, None).map_err(failed)?;
    while counter.step().map_err(failed)? {}
    counter.result()
}

#[derive(Debug)]
struct Counter {
    what: What,
    processes: BTreeMap<Pid, Process>,
    order: Vec<Pid>,
    root: Pid,
}

#[derive(Debug, Default)]
struct Process {
    is_counted: bool,
    /// Stops since the mark.
    stops: u64,
    counts: Vec<u64>,
    is_failed: bool,
}

impl Counter {
    /// Whether there is more to come.
    fn step(&mut self) -> nix::Result<bool> {
        let status = waitpid(None, Some(WaitPidFlag::__WALL))?;
        let mut signal = None;
        let Some(pid) = status.pid() else {
            return Ok(true);
        };
        let process = self.processes.entry(pid).or_default();
        match status {
            WaitStatus::Exited(_, code) => {
                process.is_counted = false;
                process.is_failed = code != 0;
                return Ok(pid != self.root);
            }
            WaitStatus::Signaled(..) => {
                process.is_counted = false;
                process.is_failed = true;
                return Ok(pid != self.root);
            }
            WaitStatus::Stopped(_, Signal::SIGUSR1) => {
                process.is_counted = true;
                process.stops = 0;
                if !self.order.contains(&pid) {
                    self.order.push(pid);
                }
            }
            WaitStatus::Stopped(_, Signal::SIGUSR2) => {
                process.is_counted = false;
                process.counts.push(process.stops);
            }
            WaitStatus::Stopped(_, Signal::SIGTRAP) | WaitStatus::PtraceSyscall(_) => {
                process.stops += 1;
            }
            // Of one that has just been born.
            WaitStatus::Stopped(_, Signal::SIGSTOP) | WaitStatus::PtraceEvent(..) => {}
            WaitStatus::Stopped(_, other) => signal = Some(other),
            _ => {}
        }
        let resumed = match (process.is_counted, self.what) {
            (false, _) => ptrace::cont(pid, signal),
            (true, What::Instructions) => ptrace::step(pid, signal),
            (true, What::Calls) => ptrace::syscall(pid, signal),
        };
        match resumed {
            // It was killed meanwhile.
            Ok(()) | Err(nix::Error::ESRCH) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn result(mut self) -> Result<Vec<Vec<u64>>, String> {
        if self.processes.values().any(|process| process.is_failed) {
            return Err("it fails when it is counted".into());
        }
        let root = &mut self.processes.get_mut(&self.root);
        let root = root.as_mut().ok_or("nothing was counted")?;
        if root.counts.is_empty() {
            return Err("nothing was counted".into());
        }
        let cost = root.counts.remove(0);
        // A stop on the way in, and one on the way out.
        let stops = match self.what {
            What::Instructions => 1,
            What::Calls => 2,
        };
        let found = self.order.iter().filter_map(|pid| {
            let counts = &self.processes.get(pid)?.counts;
            let net = |count: &u64| count.saturating_sub(cost) / stops;
            Some(counts.iter().map(net).collect::<Vec<u64>>())
        });
        Ok(found.filter(|counts| !counts.is_empty()).collect())
    }
}

/// A sender sends so many to a receiver that is awake all the time. Marks around all
/// of it, in both.
///
/// # Errors
/// Why it cannot be had.
pub fn awake<W: Way>(plan: Plan, messages: u64) -> Result<(), String> {
    if W::IS_OF_THREADS {
        return Err("it goes no further than a process".into());
    }
    let common = W::common(&plan)?;
    let sender = |_, door: UnixStream| {
        let mut tx = W::sender(&common, &plan, 0, &door);
        let mut send = |count: u64| {
            for number in 0..count {
                tx.send(plan.length, |bytes| payload::fill(bytes, number));
            }
        };
        // The first look at everything is not in the figures.
        send(1);
        party::hear(&door);
        mark(true);
        send(messages);
        mark(false);
        party::hear(&door);
    };
    party::run(false, 1, sender, |doors| {
        let mut rx = W::receiver(&common, &plan, &doors);
        let mut receive = |count: u64| {
            let mut received = 0;
            while received < count {
                rx.recv(|bytes| {
                    assert_eq!(payload::check(bytes, plan.length), received, "out of order");
                    received += 1;
                });
            }
        };
        receive(1);
        party::tell(&doors[0], 0);
        mark(true);
        receive(messages);
        mark(false);
        party::tell(&doors[0], 0);
    });
    Ok(())
}

/// One process has both ends: it sends some, and receives them, again and again.
/// Marks, in turn, around all that is sent and all that is received at a time.
///
/// # Errors
/// Why it cannot be had.
pub fn both_ends<W: Way>(plan: Plan, messages: u64, times: u64) -> Result<(), String> {
    let common = W::common(&plan)?;
    let (one, other) = UnixStream::pair().map_err(|error| error.to_string())?;
    let mut rx = W::receiver(&common, &plan, &[one]);
    let mut tx = W::sender(&common, &plan, 0, &other);
    // Caches, blocks and the first look at everything are not in the figures.
    const WARM: u64 = 50;
    for time in 0..WARM + times {
        let mark = |begins| {
            if time >= WARM {
                mark(begins);
            }
        };
        mark(true);
        for number in 0..messages {
            tx.send(plan.length, |bytes| payload::fill(bytes, number));
        }
        mark(false);
        mark(true);
        let mut received = 0;
        while received < messages {
            rx.recv(|bytes| {
                assert_eq!(payload::check(bytes, plan.length), received, "out of order");
                received += 1;
            });
        }
        mark(false);
    }
    Ok(())
}
