//! The time for which the program could not write because its pipe was full.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use procwright_os::pipe::FullProbe;
use procwright_os::time::Deadline;
use procwright_os::{pipe, poll, thread};
use rustix::fs::OFlags;

/// Measures from the reading side, as an upper bound.
///
/// Room is made by a read alone. So a pipe that is found full became full at some
/// time since our last read began, and the program was blocked for at most the time
/// from there to the end of the read that finds it full; a pipe that is found with room
/// has blocked nobody since then. Two such times share the read between them, which
/// counts once.
///
/// Times from the end of the last read lost: who loses the processor between the read and
/// the clock, as a virtual machine does unasked, missed all of that.
#[derive(Debug)]
pub(crate) struct BlockedTime {
    probe: Option<Arc<FullProbe>>,
    total: Duration,
    /// All up to here is in the total, where it counts.
    counted: Instant,
    /// The beginning of the latest look or read.
    looked: Instant,
    /// The end of the latest read.
    read: Instant,
    /// The last moment at which there was room for certain.
    clear: Instant,
    /// The pipe was empty at that moment.
    empty: bool,
    /// The end of a wait that began with the pipe empty.
    woke: Option<Instant>,
    found_full: bool,
    /// The least that a pipe of this size has given when it was full.
    full: Option<(usize, usize)>,
    /// The time that each thread this ran on has waited for a processor, all its life
    /// up to the latest look.
    queued: Vec<(ThreadId, Duration)>,
}

/// The unit in which a pipe counts its room.
const PAGE: usize = 4096;

/// A pause too short to fill a pipe in: 64 KiB in 4 µs would be 16 GB/s. Such
/// pauses are not looked into, which saves a system call a read in a flood.
const TOO_SHORT: Duration = Duration::from_micros(4);

/// The part of a sleep on an empty pipe in which the program may have filled the pipe
/// before the scheduler let us run. That much of the sleep counts, should it be found
/// full, and for how long we are known to have waited for a processor; the rest
/// of the sleep was the program's own silence.
const WAKE_UP: Duration = Duration::from_millis(1);

impl BlockedTime {
    pub(crate) fn new(probe: Option<Arc<FullProbe>>, now: Instant) -> BlockedTime {
        BlockedTime {
            probe,
            total: Duration::ZERO,
            counted: now,
            looked: now,
            read: now,
            clear: now,
            empty: true,
            woke: None,
            found_full: false,
            full: None,
            queued: Vec::new(),
        }
    }

    pub(crate) fn probe(&self) -> Option<Arc<FullProbe>> {
        self.probe.clone()
    }

    pub(crate) fn total(&self) -> Duration {
        self.total
    }

    /// Notes the end of a wait, whatever that was for.
    pub(crate) fn slept(&mut self, now: Instant) {
        if self.empty && self.woke.is_none() {
            self.woke = Some(now);
        }
    }

    /// Looks at the pipe right before a read.
    pub(crate) fn before_read(&mut self, now: Instant) {
        self.found_full = false;
        self.looked = now;
        if now.saturating_duration_since(self.read) < TOO_SHORT {
            return;
        }
        self.found_full = self.probe.as_ref().is_none_or(|probe| probe.is_full());
        if !self.found_full {
            self.clear = now;
            self.empty = false;
            self.woke = None;
        }
    }

    /// True if the read that follows may meet a full pipe.
    pub(crate) fn is_suspected(&self) -> bool {
        self.found_full
    }

    /// Notes that there was nothing to read, at some time after `then`.
    pub(crate) fn found_empty(&mut self, then: Instant) {
        self.clear = then;
        self.empty = true;
        self.woke = None;
    }

    /// Counts, right after the read of `n` bytes from a pipe of size `capacity` that
    /// [`before_read`](BlockedTime::before_read) was for.
    pub(crate) fn after_read(
        &mut self,
        n: usize,
        fd: BorrowedFd<'_>,
        capacity: usize,
        now: Instant,
    ) {
        // The pipe can become full between the look and the read. A read that gives
        // as much as a full pipe has given before, or could at most, tells as well.
        let probed = self.found_full && was_full(n, fd, capacity, self.probe.as_deref());
        if probed && n >= capacity / 2 {
            let least = match self.full {
                Some((of, least)) if of == capacity => least.min(n),
                _ => n,
            };
            self.full = Some((capacity, least));
        }
        let brim = match self.full {
            Some((of, least)) if of == capacity => least,
            _ => capacity.saturating_sub(PAGE - 1),
        };
        if probed || n >= brim {
            self.wake();
            self.count(now);
        }
        self.read = now;
        self.clear = match may_have_slept(fd, now.saturating_duration_since(self.looked)) {
            true => now,
            false => self.looked,
        };
        self.empty = false;
        self.woke = None;
    }

    /// Counts a pipe that is full as full since there was room for certain.
    fn count(&mut self, now: Instant) {
        self.total += now.saturating_duration_since(self.clear.max(self.counted));
        self.counted = now;
    }

    /// Leaves out of the time since there was room for certain what was the program's own
    /// silence.
    fn wake(&mut self) {
        if let Some(woke) = self.woke.take() {
            let late = self.late(woke);
            self.clear = woke.checked_sub(late).unwrap_or(self.clear);
            self.empty = false;
        }
    }

    /// The part of a sleep on an empty pipe, which ended at `woke`, that counts.
    fn late(&mut self, woke: Instant) -> Duration {
        let asleep = woke.saturating_duration_since(self.clear);
        let late = match asleep > WAKE_UP {
            // A system that does not tell: all of the sleep may have been a wait
            // for a processor.
            true => self.queued().map_or(asleep, |queued| WAKE_UP + queued),
            false => asleep,
        };
        late.min(asleep)
    }

    /// Notes that no read comes until there is room. What came before is counted here,
    /// so that [`running`](BlockedTime::running) need not ask.
    pub(crate) fn hold(&mut self, now: Instant) {
        self.before_read(now);
        self.wake();
    }

    /// The time that a read now would add to the total, while none comes. The pipe is
    /// `fd`.
    pub(crate) fn running(&self, fd: BorrowedFd<'_>, now: Instant) -> Duration {
        let is_full = || {
            let n = pipe::unread(fd).unwrap_or(u64::MAX);
            let capacity = pipe::capacity(fd).unwrap_or(pipe::DEFAULT_CAPACITY);
            let n = usize::try_from(n).unwrap_or(capacity);
            was_full(n, fd, capacity, self.probe.as_deref())
        };
        match self.probe.as_ref().is_none_or(|probe| probe.is_full()) && is_full() {
            true => {
                let since = self.woke.unwrap_or(self.clear).max(self.counted);
                now.saturating_duration_since(since)
            }
            false => Duration::ZERO,
        }
    }

    /// Counts the time since the latest read: no other comes.
    pub(crate) fn count_rest(&mut self, fd: BorrowedFd<'_>, now: Instant) {
        self.total += self.running(fd, now);
        self.counted = now;
        self.clear = now;
        self.woke = None;
    }

    /// Closes the probe: no other read comes.
    pub(crate) fn close_probe(&mut self) {
        self.probe = None;
    }

    /// The time that this thread has waited for a processor since the last call of
    /// this function.
    fn queued(&mut self) -> Option<Duration> {
        let all = thread::run_queue_delay()?;
        let this = std::thread::current().id();
        match self.queued.iter_mut().find(|(thread, _)| *thread == this) {
            Some((_, before)) => {
                let since = all.saturating_sub(*before);
                *before = all;
                Some(since)
            }
            None => {
                self.queued.push((this, all));
                Some(all)
            }
        }
    }
}

/// True if a read that took so long may have waited for the program: one of a pipe that was lent,
/// and is read in blocking mode meanwhile.
fn may_have_slept(fd: BorrowedFd<'_>, took: Duration) -> bool {
    let blocks = || rustix::fs::fcntl_getfl(fd).is_ok_and(|mode| !mode.contains(OFlags::NONBLOCK));
    took > WAKE_UP && blocks()
}

/// True if a pipe that the probe found full, and that then gave `n` bytes, had been
/// full. The probe also says "full" when the write end that it knows is closed.
fn was_full(n: usize, fd: BorrowedFd<'_>, capacity: usize, probe: Option<&FullProbe>) -> bool {
    // A short read says only how much room we had; what is left counts too.
    let n = match n < capacity / 2 {
        true => n + pipe::unread(fd).map_or(0, |left| usize::try_from(left).unwrap_or(0)),
        false => n,
    };
    // A write that does not fit into the last page takes a new one, so any two
    // neighbouring pages hold more than one page's bytes: a full pipe holds at
    // least half its size.
    if n < capacity / 2 {
        return false;
    }
    // Close to the brim there is no doubt, and below it the doubt is only about
    // whether the probe knows an open write end.
    n + PAGE > capacity || has_writer(fd, probe)
}

/// True if the probe's write end is open, or, without a probe, any.
///
/// A poll for POLLHUP alone lost: a write end that closes leaves its epoll instances
/// before the pipe counts a writer less, and a program preempted in between, or one that
/// opened the pipe anew by `/dev/stdout`, was told to have been blocked. A probe that
/// finds room after the read knows its write end, and that costs as little as POLLHUP.
fn has_writer(fd: BorrowedFd<'_>, probe: Option<&FullProbe>) -> bool {
    if let Some(probe) = probe {
        return !probe.is_full() || probe.is_registered();
    }
    let mut fds = [poll::Fd::from_borrowed_fd(fd, poll::Flags::empty())];
    let _ = poll::poll(&mut fds, Deadline::at(Instant::now()));
    !fds[0].revents().contains(poll::Flags::HUP)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// What remains of the writer is a description that the probe does not know; so it is,
    /// for a moment, with every writer that closes.
    #[test]
    fn a_writer_that_the_probe_lost_has_not_been_blocked() {
        let (read, write) = pipe::pipe().unwrap();
        let probe = FullProbe::new(write.as_fd()).unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&write));
        let reopened = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        rustix::io::write(&reopened, &[0; 40_000]).unwrap();
        drop(write);
        let started = Instant::now();
        let mut blocked = BlockedTime::new(Some(Arc::new(probe)), started);
        let read_at = started + Duration::from_millis(10);
        blocked.before_read(read_at);
        assert!(blocked.is_suspected(), "this shows nothing");
        assert_eq!(blocked.running(read.as_fd(), read_at), Duration::ZERO);
        let n = rustix::io::read(&read, &mut [0; 65_536]).unwrap();
        blocked.after_read(n, read.as_fd(), pipe::capacity(&read).unwrap(), read_at);
        assert_eq!((n, blocked.total()), (40_000, Duration::ZERO));
    }

    /// The processor is lost between a read and the clock behind it, and the writer is
    /// quick: what it waits from there on counts, and none of it twice.
    #[test]
    fn a_clock_that_is_read_late_misses_nothing() {
        let (read, write) = pipe::pipe().unwrap();
        let mode = rustix::fs::fcntl_getfl(&read).unwrap();
        rustix::fs::fcntl_setfl(&read, mode | OFlags::NONBLOCK).unwrap();
        let capacity = pipe::capacity(&read).unwrap();
        let probe = FullProbe::new(write.as_fd()).unwrap();
        let started = Instant::now();
        let at = |millis| started + Duration::from_millis(millis);
        let mut blocked = BlockedTime::new(Some(Arc::new(probe)), started);
        let mut total = |wrote: usize, looked: u64, late: u64| {
            rustix::io::write(&write, &vec![0; wrote]).unwrap();
            blocked.before_read(at(looked));
            let n = rustix::io::read(&read, &mut vec![0; capacity]).unwrap();
            assert_eq!(n, wrote);
            blocked.after_read(n, read.as_fd(), capacity, at(late));
            blocked.total().as_millis()
        };
        assert_eq!(total(100, 10, 30), 0);
        assert_eq!(total(capacity, 31, 32), 22);
        assert_eq!(total(capacity, 40, 60), 50);
        assert_eq!(total(capacity, 61, 62), 52);
    }

    /// A pipe that was lent is read in blocking mode: the program's silence is none of ours.
    #[test]
    fn what_a_read_has_slept_is_no_time_of_the_program() {
        let (read, write) = pipe::pipe().unwrap();
        let capacity = pipe::capacity(&read).unwrap();
        let probe = FullProbe::new(write.as_fd()).unwrap();
        let started = Instant::now();
        let at = |seconds| started + Duration::from_secs(seconds);
        let mut blocked = BlockedTime::new(Some(Arc::new(probe)), started);
        let writes = |n: usize| rustix::io::write(&write, &vec![0; n]).unwrap();
        let reads = |blocked: &mut BlockedTime, late: u64| {
            let n = rustix::io::read(&read, &mut vec![0; capacity]).unwrap();
            blocked.after_read(n, read.as_fd(), capacity, at(late));
            blocked.total().as_secs()
        };
        // It sleeps from the first second to the 3,600th.
        blocked.before_read(at(1));
        writes(100);
        assert_eq!(reads(&mut blocked, 3600), 0);
        writes(capacity);
        blocked.before_read(at(3601));
        assert_eq!(reads(&mut blocked, 3602), 2);
    }
}
