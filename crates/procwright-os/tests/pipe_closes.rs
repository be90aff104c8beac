//! Which end of a pipe was closed last, of many pipes at once, in forks, and where the kernel has
//! no room for more.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd};

use procwright_os::pipe::EndsProbe;
use test_support::{alone, eventually, fds, root_or_skip, sys};

fn probed() -> (PipeReader, PipeWriter, EndsProbe) {
    let (read, write) = std::io::pipe().unwrap();
    let probe = EndsProbe::new(read.as_fd(), write.as_fd()).unwrap();
    (read, write, probe)
}

fn reader_left_first(probe: &EndsProbe) -> Option<bool> {
    probe.look().unwrap().reader_left_first
}

/// The instances of inotify of this process.
fn instances() -> usize {
    fds().iter().filter(|fd| fd.contains("inotify")).count()
}

alone! {
    fn all_pipes_share_an_instance_that_goes_after_them() {
        // More than a user may have instances, by default.
        let all: Vec<_> = (0..150).map(|_| probed()).collect();
        assert_eq!(instances(), 1);
        let mut probes = Vec::new();
        for (at, (read, write, probe)) in all.into_iter().enumerate() {
            let reader_first = at % 2 == 0;
            match reader_first {
                true => { drop(read); drop(write); }
                false => { drop(write); drop(read); }
            }
            probes.push((probe, reader_first));
        }
        for (probe, reader_first) in &probes {
            assert_eq!(reader_left_first(probe), Some(*reader_first));
        }
        drop(probes);
        eventually(|| instances() == 0);
        // And another one comes.
        let (read, write, probe) = probed();
        drop(write);
        drop(read);
        assert_eq!(reader_left_first(&probe), Some(false));
    }
}

alone! {
    fn a_fork_has_an_instance_of_its_own() {
        let (read, write, probe) = probed();
        let code = sys::fork_running(|| {
            let is_closed = instances() == 0;
            // Its number is that of the parent's.
            let (own_read, own_write, own) = probed();
            // SAFETY: the fork ends without another drop of it.
            drop(unsafe { std::ptr::read(&probe) });
            drop((own_read, own_write));
            let is_known = reader_left_first(&own) == Some(true);
            i32::from(!(is_closed && is_known))
        });
        assert_eq!(code, 0);
        drop(write);
        drop(read);
        assert_eq!(reader_left_first(&probe), Some(false));
    }
}

alone! {
    fn what_the_queue_had_no_room_for_is_unknown() {
        let (read, write, probe) = probed();
        let (other_read, other_write, other) = probed();
        let length = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let length: usize = length.trim().parse().unwrap();
        let again = |end: &PipeReader| {
            drop(File::open(format!("/proc/self/fd/{}", end.as_raw_fd())).unwrap());
        };
        // By turns: two of a kind would be one event.
        for _ in 0..length {
            again(&read);
            again(&other_read);
        }
        drop((read, write));
        assert_eq!(reader_left_first(&probe), None);
        // What comes later is known.
        drop(other_write);
        drop(other_read);
        assert_eq!(reader_left_first(&other), Some(false));
    }
}

alone! {
    fn without_an_instance_the_order_is_unknown() {
        if !root_or_skip("without_an_instance_the_order_is_unknown") { return; }
        // The limit is one of a user: one whom nobody else is has them all.
        sys::become_user(300_000 + std::process::id());
        let taken: Vec<_> = std::iter::from_fn(|| {
            rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC).ok()
        })
        .take(100_000)
        .collect();
        let (read, write, probe) = probed();
        assert!(!probe.knows_order(), "{} instances", taken.len());
        drop(read);
        assert_eq!(reader_left_first(&probe), Some(true));
        drop(write);
        assert_eq!(reader_left_first(&probe), None);
        drop(taken);
        assert!(probed().2.knows_order());
    }
}
