use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Handle, HandleError, Patience};
use crate::poll::Flags;
use crate::time::Deadline;

fn pipe() -> (Arc<Handle>, PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    (
        Arc::new(Handle::new(OwnedFd::from(reader)).unwrap()),
        writer,
    )
}

fn read(handle: &Handle, deadline: Deadline) -> Result<usize, HandleError> {
    read_with(handle, Patience::until(deadline))
}

fn read_with(handle: &Handle, patience: Patience<'_>) -> Result<usize, HandleError> {
    let mut buffer = [0; 64];
    handle.operate(Flags::IN, patience, |fd| {
        Ok(rustix::io::read(fd, &mut buffer)?)
    })
}

/// Waits until some thread of this process sleeps on the handle.
fn until_slept_on(handle: &Handle) {
    while handle.wake.get().is_none() {
        thread::yield_now();
    }
}

#[test]
fn bytes_come_and_end() {
    let (handle, mut writer) = pipe();
    writer.write_all(b"abc").unwrap();
    assert_eq!(read(&handle, Deadline::NEVER).unwrap(), 3);
    assert!(
        handle.wake.get().is_none(),
        "no descriptor before the first sleep"
    );
    let reader = thread::spawn({
        let handle = handle.clone();
        move || read(&handle, Deadline::NEVER).unwrap()
    });
    until_slept_on(&handle);
    writer.write_all(b"defg").unwrap();
    assert_eq!(reader.join().unwrap(), 4);
    drop(writer);
    assert_eq!(read(&handle, Deadline::NEVER).unwrap(), 0);
}

#[test]
fn a_deadline_is_kept_and_not_early() {
    let (handle, _writer) = pipe();
    let begun = Instant::now();
    let deadline = Deadline::at(begun + Duration::from_millis(20));
    assert!(matches!(
        read(&handle, deadline),
        Err(HandleError::TimedOut)
    ));
    assert!(begun.elapsed() >= Duration::from_millis(20));
    // Also for one who only queues.
    let sleeper = thread::spawn({
        let handle = handle.clone();
        move || read(&handle, Deadline::NEVER)
    });
    until_slept_on(&handle);
    let deadline = Deadline::at(Instant::now() + Duration::from_millis(20));
    assert!(matches!(
        read(&handle, deadline),
        Err(HandleError::TimedOut)
    ));
    handle.close();
    assert!(matches!(sleeper.join().unwrap(), Err(HandleError::Closed)));
}

#[test]
fn a_close_releases_all_who_wait_and_tells_the_other_end() {
    let (handle, mut writer) = pipe();
    let readers: Vec<_> = (0..200)
        .map(|_| {
            let handle = handle.clone();
            thread::spawn(move || read(&handle, Deadline::NEVER))
        })
        .collect();
    until_slept_on(&handle);
    assert!(handle.close());
    assert!(!handle.close(), "once is enough");
    for reader in readers {
        assert!(matches!(reader.join().unwrap(), Err(HandleError::Closed)));
    }
    assert!(matches!(
        read(&handle, Deadline::NEVER),
        Err(HandleError::Closed)
    ));
    // A fork that another test makes has a copy of the reader for a moment.
    let error = std::iter::repeat_with(|| writer.write(b"x")).find_map(Result::err);
    assert_eq!(error.unwrap().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn an_interrupt_ends_a_wait_and_takes_nothing() {
    let (handle, mut writer) = pipe();
    let (interrupt, mut bell) = io::pipe().unwrap();
    let patience = Patience::NEVER_ENDING.or_readable(interrupt.as_fd());
    thread::scope(|scope| {
        // One polls, the others queue.
        let waiting: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| read_with(&handle, patience)))
            .collect();
        until_slept_on(&handle);
        bell.write_all(b"!").unwrap();
        for thread in waiting {
            assert!(matches!(
                thread.join().unwrap(),
                Err(HandleError::Interrupted)
            ));
        }
    });
    writer.write_all(b"abc").unwrap();
    // Bytes that are there go first.
    assert_eq!(read_with(&handle, patience).unwrap(), 3);
    assert!(matches!(
        read_with(&handle, patience),
        Err(HandleError::Interrupted)
    ));
}

#[test]
fn who_may_be_interrupted_is_woken_as_others_are() {
    let (handle, mut writer) = pipe();
    let (interrupt, _never) = io::pipe().unwrap();
    let patience = Patience::NEVER_ENDING.or_readable(interrupt.as_fd());
    thread::scope(|scope| {
        let readers: Vec<_> = (0..40)
            .map(|number| {
                let handle = &handle;
                scope.spawn(move || match number % 2 {
                    0 => read_with(handle, patience),
                    _ => read(handle, Deadline::NEVER),
                })
            })
            .collect();
        until_slept_on(&handle);
        // Each write is read by one, who passes its turn on.
        for _ in 0..20 {
            writer.write_all(b"x").unwrap();
            while rustix::io::ioctl_fionread(&writer).unwrap() > 0 {
                thread::yield_now();
            }
        }
        handle.close();
        let closed = readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .filter(|read| matches!(read, Err(HandleError::Closed)))
            .count();
        assert_eq!(closed, 20);
    });
}

#[test]
fn two_handles_on_one_file_are_two() {
    let (reader, mut writer) = io::pipe().unwrap();
    let twin: PipeReader = reader.try_clone().unwrap();
    let one = Arc::new(Handle::new(reader.into()).unwrap());
    let two = Arc::new(Handle::new(twin.into()).unwrap());
    let waiting = thread::spawn({
        let two = two.clone();
        move || read(&two, Deadline::NEVER)
    });
    until_slept_on(&two);
    assert!(one.close());
    assert!(!two.is_closed());
    writer.write_all(b"still").unwrap();
    assert_eq!(waiting.join().unwrap().unwrap(), 5);
}

#[test]
fn a_writer_that_waits_for_room_is_released() {
    let (reader, writer) = io::pipe().unwrap();
    let handle = Arc::new(Handle::new(OwnedFd::from(writer)).unwrap());
    let blocked = thread::spawn({
        let handle = handle.clone();
        move || loop {
            let chunk = [7; 4096];
            let wrote = handle.operate(Flags::OUT, Patience::NEVER_ENDING, |fd| {
                Ok(rustix::io::write(fd, &chunk)?)
            });
            if let Err(refused) = wrote {
                return refused;
            }
        }
    });
    until_slept_on(&handle);
    handle.close();
    assert!(matches!(blocked.join().unwrap(), HandleError::Closed));
    drop(reader);
}

/// Operations, closes and opens race. Whoever is inside must find his own file
/// behind the number, to the last moment.
#[test]
fn no_number_is_reused_while_an_operation_is_inside() {
    static WRONG: AtomicUsize = AtomicUsize::new(0);
    let rounds = if std::env::var_os("STRESS").is_some() {
        100_000
    } else {
        2_000
    };
    let over = Arc::new(AtomicBool::new(false));
    // Takes every number that becomes free at once.
    let thief = thread::spawn({
        let over = over.clone();
        move || {
            while !over.load(Ordering::Relaxed) {
                let files: Vec<_> = (0..8)
                    .map(|_| std::fs::File::open("/dev/null").unwrap())
                    .collect();
                drop(files);
            }
        }
    });
    for _ in 0..rounds {
        let (handle, mut writer) = pipe();
        writer.write_all(b"x").unwrap();
        let inode = {
            let inside = handle.enter().unwrap();
            rustix::fs::fstat(inside.get().unwrap()).unwrap().st_ino
        };
        let users: Vec<_> = (0..2)
            .map(|_| {
                let handle = handle.clone();
                thread::spawn(move || {
                    while let Some(inside) = handle.enter() {
                        let number = inside.get().unwrap().as_raw_fd();
                        thread::yield_now();
                        let now = rustix::fs::fstat(inside.get().unwrap()).map(|stat| stat.st_ino);
                        if now != Ok(inode) || inside.get().unwrap().as_raw_fd() != number {
                            WRONG.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        thread::yield_now();
        handle.close();
        for user in users {
            user.join().unwrap();
        }
    }
    over.store(true, Ordering::Relaxed);
    thief.join().unwrap();
    assert_eq!(WRONG.load(Ordering::Relaxed), 0);
}
