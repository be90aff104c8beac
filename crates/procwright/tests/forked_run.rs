//! Forks that a hook makes on the thread of its run, and returns in: there the call ends, and
//! takes nothing away from the run, which goes on in the parent.
#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use procwright::{BoxError, Command, Demand, Error, Moment, Watch};
use test_support::{alone, forked};

/// Forks when it is asked first. In the parent the fork has ended then, and its code is noted.
struct Forker<'a> {
    bell: PipeReader,
    /// The error that it returns in the fork.
    error: Option<&'static str>,
    code: &'a Cell<Option<i32>>,
}

impl Watch for Forker<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn ready(&mut self, _run: Moment<'_>) -> Result<Demand, BoxError> {
        self.bell.read_exact(&mut [0])?;
        match forked::fork() {
            0 => self
                .error
                .map_or(Ok(Demand::Nothing), |error| Err(error.into())),
            pid => {
                self.code.set(Some(forked::wait_code(pid)));
                Ok(Demand::Nothing)
            }
        }
    }
}

/// A program that writes for as long as it takes the reader to fork, and what rings for that.
fn program() -> (Command<'static>, PipeReader, PipeWriter) {
    let (bell, ring) = std::io::pipe().unwrap();
    let command = Command::new("sh")
        .args(["-c", "echo begun; echo x >&3; cat; echo over"])
        .stdin_bytes("input\n")
        .pass_fd(ring.try_clone().unwrap(), 3)
        .on_stdout_line(|_| Ok(()))
        .on_event(|_| Ok(()));
    (command, bell, ring)
}

/// Ends the process if it is a fork of that: with 0 if `result` is the error of a call in a
/// fork, with this source.
fn end_fork<T>(parent: u32, result: &Result<T, Error>, source: Option<&str>) {
    if std::process::id() == parent {
        return;
    }
    let right = match result {
        Err(Error::Forked {
            command,
            source: told,
        }) => {
            command.starts_with("sh -c")
                && told.as_ref().map(ToString::to_string).as_deref() == source
        }
        _ => false,
    };
    forked::exit(i32::from(!right));
}

fn a_watch_forks(error: Option<&'static str>) {
    let parent = std::process::id();
    let code = Cell::new(None);
    let (command, bell, ring) = program();
    let watch = Forker {
        bell,
        error,
        code: &code,
    };
    let result = command.watch(watch).run();
    drop(ring);
    end_fork(parent, &result, error);
    assert_eq!(result.unwrap().stdout, b"begun\ninput\nover\n");
    assert_eq!(code.get(), Some(0));
}

alone! {
    fn a_fork_that_a_watch_returns_in_has_no_run() {
        a_watch_forks(None);
    }
}

alone! {
    fn the_error_of_a_watch_in_a_fork_comes_through_there() {
        a_watch_forks(Some("of the fork"));
    }
}

alone! {
    fn a_fork_that_the_hook_of_the_clock_returns_in_has_no_run() {
        let parent = std::process::id();
        let code = Cell::new(None);
        // The program is there until the clock has come.
        let (input, mut forked_once) = std::io::pipe().unwrap();
        let result = Command::new("sh")
            .args(["-c", "read line <&3; echo $line"])
            .pass_fd(input, 3)
            .every(Duration::from_millis(10), |_| {
                if code.get().is_none() {
                    let pid = forked::fork();
                    if pid > 0 {
                        code.set(Some(forked::wait_code(pid)));
                        forked_once.write_all(b"forked\n").unwrap();
                    }
                }
            })
            .run();
        end_fork(parent, &result, None);
        assert_eq!(result.unwrap().stdout, b"forked\n");
        assert_eq!(code.get(), Some(0));
    }
}

alone! {
    fn a_watch_that_is_ready_before_the_start_may_fork() {
        let parent = std::process::id();
        let code = Cell::new(None);
        let (bell, mut ring) = std::io::pipe().unwrap();
        ring.write_all(b"x").unwrap();
        let watch = Forker { bell, error: None, code: &code };
        let result = Command::new("sh").args(["-c", "echo over"]).watch(watch).run();
        end_fork(parent, &result, None);
        assert_eq!(result.unwrap().stdout, b"over\n");
        assert_eq!(code.get(), Some(0));
    }
}

alone! {
    fn a_run_that_pauses_is_over_in_a_fork() {
        struct Bell(PipeReader);
        impl Watch for Bell {
            fn fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
            fn ready(&mut self, _run: Moment<'_>) -> Result<Demand, BoxError> {
                self.0.read_exact(&mut [0])?;
                Ok(Demand::Pause)
            }
        }
        let (command, bell, ring) = program();
        let mut run = command.watch(Bell(bell)).begin_into::<Vec<u8>>().unwrap();
        assert!(!run.proceed());
        let parent = std::process::id();
        let pid = forked::fork();
        if pid == 0 {
            if !run.proceed() {
                forked::exit(2);
            }
            end_fork(parent, &run.finish(), None);
            return;
        }
        assert_eq!(forked::wait_code(pid), 0);
        drop(ring);
        assert_eq!(run.finish().unwrap().stdout.unwrap(), b"begun\ninput\nover\n");
    }
}
