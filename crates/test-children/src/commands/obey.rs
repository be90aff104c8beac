//! `obey`: carries out orders, line by line on stdin, to change or end in all the odd
//! ways that a process can.
//!
//! - `exit CODE`, `signal NUMBER`: ends so. A core is dumped if the machine wants one.
//! - `exec ARG…`, `thread-exec ARG…`: becomes `test-child ARG…`; called by the first
//!   thread, by another.
//! - `leader-exit`: the first thread ends, another goes on obeying. Prints `left`
//!   before that.
//! - `thread-exit CODE`: this thread alone ends, with a code of its own.
//! - `lead`: makes a process group of its own. Prints `leads`.
//! - `vfork`: starts a child that shares the memory and neither execs nor ends before
//!   it gets another line, which it swallows. Prints `vforked`.
//! - `trace PID`, `untrace PID`: attaches to a process, which stops, or lets it go.
//!   Prints `traced`, `untraced`. `pass PID` hands on the stops of a traced process
//!   until it has ended; prints `passed`.
//!
//! Exits 0 at the end of stdin.

use std::ffi::{CString, c_int, c_void};
use std::io;
use std::ptr;

use crate::args::{Failure, Waiting};
use crate::process::{STDIN, STDOUT, leave, raise, read, restore, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "obey",
    usage: "[--print-ready] [--pidfile PATH] [--limit S|--no-limit]",
    about: "does what stdin says: exit CODE, signal N, exec ARG…, leader-exit, vfork, …",
    run,
};

fn run(mut args: Args) -> Outcome {
    let waiting = Waiting::take(&mut args)?;
    args.finish()?;
    waiting.limit.arm();
    // Permits any process to trace this one, where only parents may do so; elsewhere
    // no permission is needed.
    // SAFETY: a number, and no memory.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
    waiting.announce(&[rustix::process::getpid()])?;
    obey()
}

fn obey() -> Outcome {
    while let Some(line) = line()? {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["exit", code] => leave(number(code)? as u8),
            ["signal", signal] => {
                // A core is dumped even where that is off by default.
                cores()?;
                let signal = number(signal)?;
                if signal != libc::SIGKILL {
                    restore(signal)?;
                }
                raise(signal)?;
            }
            ["exec", ..] => return Err(exec(&words[1..])?.into()),
            ["thread-exec", ..] => {
                let words: Vec<String> = words[1..].iter().map(|word| (*word).to_owned()).collect();
                let thread = std::thread::spawn(move || {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    exec(&words)
                });
                let _ = thread.join();
                return Err(Failure::Failed("the thread did not exec".into()));
            }
            ["leader-exit"] => {
                std::thread::spawn(|| {
                    let code = obey().unwrap_or(1);
                    leave(code);
                });
                say("left")?;
                // Ends the thread alone: no destructor has to run, and the C library's
                // own pthread_exit would unwind through `main`.
                end_thread(0);
            }
            ["thread-exit", code] => end_thread(number(code)?),
            ["lead"] => {
                rustix::process::setpgid(None, None)?;
                say("leads")?;
            }
            ["vfork"] => vfork()?,
            ["trace", pid] => {
                trace(libc::PTRACE_SEIZE, number(pid)?)?;
                trace(libc::PTRACE_INTERRUPT, number(pid)?)?;
                wait_any_state(number(pid)?)?;
                say("traced")?;
            }
            ["untrace", pid] => {
                trace(libc::PTRACE_DETACH, number(pid)?)?;
                say("untraced")?;
            }
            ["pass", pid] => {
                let pid = number(pid)?;
                trace(libc::PTRACE_CONT, pid)?;
                say("passing")?;
                loop {
                    let status = wait_any_state(pid)?;
                    if !libc::WIFSTOPPED(status) {
                        break;
                    }
                    trace_with(libc::PTRACE_CONT, pid, libc::WSTOPSIG(status))?;
                }
                say("passed")?;
            }
            _ => return Err(Failure::usage(format!("no such order: {line:?}"))),
        }
    }
    Ok(0)
}

/// The next line of stdin, read byte by byte: another thread or another program may
/// read the line after it.
pub(crate) fn line() -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match read(STDIN, &mut byte)? {
            0 => return Ok(None),
            _ if byte[0] == b'\n' => break,
            _ => line.push(byte[0]),
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

pub(crate) fn say(text: &str) -> io::Result<()> {
    write_all(STDOUT, format!("{text}\n").as_bytes())
}

fn number(text: &str) -> Result<c_int, Failure> {
    let number = text.parse();
    number.map_err(|_| Failure::usage(format!("not a number: {text:?}")))
}

fn cores() -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Core).maximum;
    let current = maximum;
    Ok(setrlimit(Resource::Core, Rlimit { current, maximum })?)
}

/// Becomes another program; returns only if that failed.
fn exec(args: &[&str]) -> Result<io::Error, Failure> {
    let own = std::env::current_exe()?.to_string_lossy().into_owned();
    let words = std::iter::once(own.as_str()).chain(args.iter().copied());
    let words: Result<Vec<CString>, _> = words.map(CString::new).collect();
    let words = words.map_err(|error| Failure::usage(error.to_string()))?;
    let mut argv: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    argv.push(ptr::null());
    // SAFETY: NUL-terminated strings, and a list of them that ends with null.
    unsafe { libc::execv(argv[0], argv.as_ptr()) };
    Ok(io::Error::last_os_error())
}

fn end_thread(code: c_int) -> ! {
    // SAFETY: the call ends this thread alone, and no other thread uses its stack.
    unsafe { libc::syscall(libc::SYS_exit, code) };
    unreachable!("exit(2) does not return");
}

fn vfork() -> io::Result<()> {
    extern "C" fn child(_: *mut c_void) -> c_int {
        let mut byte = 0_u8;
        // SAFETY: raw calls on locals: the memory is the parent's, which
        // stands still meanwhile.
        unsafe {
            libc::write(1, c"vforked\n".as_ptr().cast(), 8);
            while libc::read(0, (&raw mut byte).cast(), 1) == 1 && byte != b'\n' {}
            libc::_exit(0)
        }
    }
    let mut stack = vec![0_u128; 4096];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is live until the child has ended, since the kernel
    // holds this thread until then, and `child` uses little of it.
    let pid = unsafe {
        let top = stack.as_mut_ptr_range().end;
        libc::clone(child, top.cast(), flags, ptr::null_mut())
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    wait_any_state(pid).map(drop)
}

fn wait_any_state(pid: c_int) -> io::Result<c_int> {
    let mut status = 0;
    loop {
        // SAFETY: a pointer to a live local.
        if unsafe { libc::waitpid(pid, &mut status, libc::__WALL) } == pid {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn trace(request: libc::c_uint, pid: c_int) -> io::Result<()> {
    trace_with(request, pid, 0)
}

fn trace_with(request: libc::c_uint, pid: c_int, signal: c_int) -> io::Result<()> {
    // SAFETY: none of the requests that are passed reads or writes memory of
    // this process: the two pointers are numbers.
    let result = unsafe {
        libc::ptrace(
            request,
            pid,
            ptr::null_mut::<c_void>(),
            ptr::without_provenance_mut::<c_void>(signal as usize),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
