//! A terminal that is raw for a while.

mod common;

use std::os::fd::{AsFd, OwnedFd};

use procwright::terminal::{Modes, Raw};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

fn terminal() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    (master, slave)
}

fn modes(terminal: impl AsFd) -> String {
    format!("{:?}", Modes::of(terminal).unwrap())
}

#[test]
fn it_has_its_modes_back_after_a_panic() {
    let _dog = common::watchdog("it_has_its_modes_back_after_a_panic");
    let (_master, slave) = terminal();
    let before = modes(&slave);
    // A fork of a copy has one thread, as a command has.
    let status = common::sys::in_fork(|| {
        let raw = Raw::enter(slave.try_clone().unwrap()).unwrap();
        assert_ne!(modes(&slave), before);
        assert_eq!(format!("{:?}", raw.before()), before);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _raw = raw;
            std::panic::resume_unwind(Box::new("a bug"));
        }));
        i32::from(panicked.is_ok()) + 2 * i32::from(modes(&slave) != before)
    });
    assert_eq!(status, 0);
}

#[test]
fn it_has_its_modes_back_when_its_process_is_killed() {
    let _dog = common::watchdog("it_has_its_modes_back_when_its_process_is_killed");
    let (_master, slave) = terminal();
    let before = modes(&slave);
    let status = common::sys::in_fork(|| {
        let _raw = Raw::enter(slave.try_clone().unwrap()).unwrap();
        assert_ne!(modes(&slave), before);
        common::sys::kill(std::process::id().cast_signed(), libc::SIGKILL);
        0
    });
    assert_eq!(status, libc::SIGKILL);
    while modes(&slave) != before {
        std::thread::yield_now();
    }
}

#[test]
fn it_is_for_processes_of_one_thread() {
    let _dog = common::watchdog("it_is_for_processes_of_one_thread");
    let (_master, slave) = terminal();
    let before = modes(&slave);
    let error = Raw::enter(slave.try_clone().unwrap()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    assert_eq!(modes(&slave), before);
    let error = Raw::enter(std::fs::File::open("/dev/null").unwrap().into()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
}
