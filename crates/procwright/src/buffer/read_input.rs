//! The caller's thread: from the input into the queue.

use std::io;
use std::os::fd::BorrowedFd;

use super::pipe_growth::PipeGrowth;
use crate::spool::elastic::{ElasticProducer, Space};
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// Why nothing more is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stopped {
    /// The input is at its end.
    End,
    /// The output has no reader any more.
    ReaderGone,
    /// The queue takes no more; its consumer knows why.
    Closed,
    /// More came than may be kept, from this offset on.
    Overflowed(u64),
}

/// Reads until there is a reason to stop. `reader` is the output if its other
/// end can tell that it is gone, so that this is noticed while nothing is
/// written.
pub(super) fn read_input(
    producer: &mut ElasticProducer,
    input: BorrowedFd<'_>,
    reader: Option<BorrowedFd<'_>>,
    room: &Wake,
) -> io::Result<Stopped> {
    let mut growth = PipeGrowth::default();
    let mut held = false;
    loop {
        let mut fds = vec![Fd::new(room, Flags::IN)];
        // Errors are reported without being asked for.
        fds.extend(reader.iter().map(|fd| Fd::new(fd, Flags::empty())));
        if !held {
            fds.push(Fd::new(&input, Flags::IN));
        }
        match poll::poll(&mut fds, Deadline::NEVER) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        let is_ready = |at: usize| !fds[at].revents().is_empty();
        if reader.is_some() && is_ready(1) {
            return Ok(Stopped::ReaderGone);
        }
        let rung = is_ready(0);
        if rung {
            room.silence();
        }
        let readable = !held && is_ready(fds.len() - 1);
        if !rung && !readable {
            continue;
        }
        // The area is asked for now and not before the wait: meanwhile room may have
        // been made for what would otherwise be dropped.
        match producer.area()? {
            Space::Closed => {
                return Ok(match producer.overflowed() {
                    Some(offset) => Stopped::Overflowed(offset),
                    None => Stopped::Closed,
                });
            }
            Space::Held => held = true,
            // The input may be blocking, so it is read only when it is ready.
            Space::Area(_) if !readable => held = false,
            Space::Area(area) => match rustix::io::read(input, area) {
                Ok(0) => return Ok(Stopped::End),
                Ok(n) => {
                    producer.commit(n);
                    growth.moved(input, n);
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            },
        }
    }
}
