//! The processes that take part.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::panic::{self, AssertUnwindSafe};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use super::Plan;

/// Runs `party` so many times, each in a process of its own (or a thread), with a
/// door to `main`, which runs here with the other ends.
///
/// # Panics
/// When one of them does. They end when this process does.
pub fn run<R>(
    are_threads: bool,
    count: usize,
    party: impl Fn(usize, UnixStream) + Sync,
    main: impl FnOnce(Vec<UnixStream>) -> R,
) -> R {
    let pairs: Vec<_> = (0..count)
        .map(|_| UnixStream::pair().expect("a pair of sockets"))
        .collect();
    if are_threads {
        return std::thread::scope(|scope| {
            let mut doors = Vec::new();
            for (number, (ours, theirs)) in pairs.into_iter().enumerate() {
                let party = &party;
                scope.spawn(move || party(number, theirs));
                doors.push(ours);
            }
            main(doors)
        });
    }
    let mut children = Vec::new();
    let mut doors: Vec<UnixStream> = Vec::new();
    for (number, (ours, theirs)) in pairs.into_iter().enumerate() {
        // SAFETY: this process has no other thread.
        match unsafe { fork() }.expect("fork") {
            ForkResult::Child => {
                // Or its end would not be seen.
                drop(ours);
                doors.clear();
                live(|| party(number, theirs));
            }
            ForkResult::Parent { child } => {
                children.push(child);
                doors.push(ours);
            }
        }
    }
    let result = main(doors);
    for child in children {
        end(child);
    }
    result
}

/// What a child does, and nothing of what the parent would do after it.
pub(super) fn live(party: impl FnOnce()) -> ! {
    // Under a debugger of ours, too, it dies with its parent.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    let is_done = panic::catch_unwind(AssertUnwindSafe(party)).is_ok();
    // SAFETY: ends the process, without the parent's handlers and destructors.
    unsafe { nix::libc::_exit(i32::from(!is_done)) }
}

fn end(child: Pid) {
    let status = waitpid(child, None).expect("a child");
    assert_eq!(status, WaitStatus::Exited(child, 0), "a party has failed");
}

/// Puts a party that spins on a processor of its own, the one of that number. Who
/// sleeps is where the system wants it, as in life.
pub fn keep_to(plan: Plan, number: usize) {
    if plan.is_spinning {
        keep_to_one(number);
    }
}

/// Puts this thread on the processor of that number, if there are so many.
pub(super) fn keep_to_one(number: usize) {
    let me = Pid::from_raw(0);
    let Ok(may) = sched_getaffinity(me) else {
        return;
    };
    let mut may = (0..CpuSet::count()).filter(|cpu| may.is_set(*cpu) == Ok(true));
    if let Some(cpu) = may.nth(number) {
        let mut one = CpuSet::new();
        // Else it runs anywhere, as before.
        let _ = one.set(cpu).and_then(|()| sched_setaffinity(me, &one));
    }
}

/// Tells the other side of a door a number.
///
/// # Panics
/// When nobody is there.
pub fn tell(mut door: &UnixStream, number: u64) {
    door.write_all(&number.to_le_bytes())
        .expect("the other party");
}

/// Waits for a number.
///
/// # Panics
/// When nobody is there.
pub fn hear(mut door: &UnixStream) -> u64 {
    let mut number = [0; 8];
    door.read_exact(&mut number).expect("the other party");
    u64::from_le_bytes(number)
}
