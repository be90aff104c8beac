//! `among-strangers [--numbers N] [--strangers K] PROGRAM ARG…`: runs PROGRAM in a pid
//! namespace of few numbers, beside processes that have nothing to do with it, and tells
//! who of these was signalled.
//!
//! The namespace has N numbers (400), of which the kernel gives those from 300 on away
//! again and again, so that a number comes round every few milliseconds once processes
//! are started fast. K strangers (40) live there, each for 50 to 500 ms; then another
//! takes its place. They are children of the first process of the namespace, as orphans
//! are, and some lead a group or a session of their own, some have a child in it, and
//! some of these children are orphans in a group without a leader.
//!
//! A stranger blocks all signals and writes down each that it gets, with its sender.
//! SIGKILL and SIGSTOP cannot be blocked: the parent sees them. A line for each goes to
//! stdout, and at the end `strangers K signalled K`. The exit status is that of PROGRAM,
//! or 99 if a stranger was signalled.
//!
//! Needs root. Exits 77 where no pid namespace with numbers of its own can be had (Linux
//! 6.14).

use std::collections::HashSet;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::time::{Duration, Instant};

use crate::args::Failure;
use crate::process::{STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "among-strangers",
    usage: "[--numbers N] [--strangers K] PROGRAM ARG…",
    about: "runs PROGRAM where pids come round fast, and tells which strangers it signals",
    run,
};

/// Exit code where this cannot be tried.
const SKIPPED: u8 = 77;
/// Exit code when a stranger was signalled.
const SIGNALLED: u8 = 99;

fn run(mut args: Args) -> Outcome {
    let numbers = args.number("--numbers")?.unwrap_or(400);
    let strangers = args.number("--strangers")?.unwrap_or(40) as usize;
    let program = args.raw();
    let words: Vec<CString> = program
        .iter()
        .filter_map(|word| CString::new(word.as_bytes()).ok())
        .collect();
    if words.is_empty() || words.len() != program.len() {
        return Err(Failure::usage("a program is needed"));
    }
    // SAFETY: a plain system call.
    if unsafe { libc::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWNS) } != 0 {
        return Ok(SKIPPED);
    }
    let machine = pid_max();
    let init = fork();
    if init == 0 {
        // The shell that has started this may end meanwhile, and the kernel tells whole
        // groups then.
        // SAFETY: a plain system call.
        unsafe { libc::setsid() };
        mount_proc();
        if std::fs::write("/proc/sys/kernel/pid_max", numbers.to_string()).is_err() {
            leave(SKIPPED);
        }
        leave(live_as_init(&words, strangers));
    }
    let status = wait_for(init);
    // The machine's own number of numbers is nobody's to change.
    if pid_max() != machine {
        let _ = std::fs::write("/proc/sys/kernel/pid_max", machine);
        return Ok(SKIPPED);
    }
    match libc::WIFEXITED(status) {
        true => Ok(libc::WEXITSTATUS(status) as u8),
        false => Err(Failure::Failed(format!("init ended with status {status}"))),
    }
}

fn pid_max() -> String {
    std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default()
}

/// The first process of the namespace: parent of the strangers and of all orphans.
fn live_as_init(words: &[CString], wanted: usize) -> u8 {
    let Some(lives) = Lives::new() else {
        return SKIPPED;
    };
    let program = fork();
    if program == 0 {
        exec(words);
    }
    let mut strangers = HashSet::new();
    let (mut born, mut signalled) = (0_u64, 0_u64);
    loop {
        while strangers.len() < wanted {
            let kind = born % 6;
            let stranger = fork();
            match stranger {
                0 => live_as_stranger(kind, born, &lives),
                -1 => break,
                _ => {
                    born += 1;
                    strangers.insert(stranger);
                }
            }
        }
        let mut status = 0;
        // SAFETY: the pointer is to a number of ours.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
        if ended <= 0 {
            pause(Duration::from_millis(1));
            continue;
        }
        if libc::WIFSTOPPED(status) {
            if strangers.contains(&ended) {
                say(&format!("{ended} stopped by {}", libc::WSTOPSIG(status)));
                signalled += 1;
                // SAFETY: a child that is not reaped.
                unsafe { libc::kill(ended, libc::SIGCONT) };
            }
            continue;
        }
        if ended == program {
            // The longest life of a stranger, and some time more.
            pause(Duration::from_millis(2500));
            let killed = lives.cut_short(born);
            if killed > 0 {
                say(&format!(
                    "{killed} orphans of strangers did not end by themselves"
                ));
            }
            signalled += killed;
            say(&format!("strangers {born} signalled {signalled}"));
            return match (signalled, libc::WIFEXITED(status)) {
                (0, true) => libc::WEXITSTATUS(status) as u8,
                (0, false) => 98,
                _ => SIGNALLED,
            };
        }
        // Orphans, of strangers and of the program, are reaped and not looked at.
        let was_stranger = strangers.remove(&ended);
        let is_told = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == SIGNALLED.into();
        let is_killed = was_stranger && libc::WIFSIGNALED(status);
        if is_killed {
            say(&format!("{ended} killed by {}", libc::WTERMSIG(status)));
        }
        if is_killed || (was_stranger && is_told) {
            signalled += 1;
        }
    }
}

/// What became of the child of each stranger, in memory that all share: nobody waits for
/// an orphan who could tell it from those of the program.
struct Lives(*mut u8);

const LIVES: u8 = 1;
const ENDED: u8 = 2;
/// Strangers that can be told of. Memory is taken for those that come.
const MOST: usize = 1 << 24;

impl Lives {
    fn new() -> Option<Lives> {
        // SAFETY: a new mapping, which nothing else knows.
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(ptr::null_mut(), MOST, access, kind, -1, 0)
        };
        (memory != libc::MAP_FAILED).then_some(Lives(memory.cast()))
    }

    fn note(&self, number: u64, state: u8) {
        // SAFETY: within the mapping, and no other process writes to this byte.
        unsafe { self.0.add(number as usize % MOST).write_volatile(state) }
    }

    /// The number of those that began and did not end well.
    fn cut_short(&self, born: u64) -> u64 {
        let state = |number: usize| {
            // SAFETY: within the mapping.
            unsafe { self.0.add(number).read_volatile() }
        };
        let all = 0..(born as usize).min(MOST);
        all.filter(|number| state(*number) == LIVES).count() as u64
    }
}

/// A stranger, or the parent of one. Its kind says where it lives.
fn live_as_stranger(kind: u64, number: u64, lives: &Lives) -> ! {
    let life = Duration::from_millis(50 + number * 37 % 450);
    // SAFETY: the set is a plain C structure that is filled before it is used.
    unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), ptr::null_mut());
        match kind {
            1 | 4 => {
                libc::setpgid(0, 0);
            }
            2 | 5 => {
                libc::setsid();
            }
            _ => {}
        }
    }
    let mut child = None;
    if kind >= 3 {
        let forked = fork();
        child = Some(forked).filter(|pid| *pid > 0);
        if forked == 0 {
            lives.note(number, LIVES);
            let code = watch(life);
            lives.note(number, if code == 0 { ENDED } else { LIVES });
            leave(code);
        }
    }
    // Of one kind the leader goes first, and its child is an orphan in its group.
    let own = if kind == 4 { life / 4 } else { life * 2 };
    let mut code = watch(own);
    if let Some(child) = child.filter(|_| kind != 4) {
        let status = wait_for(child);
        if libc::WIFSIGNALED(status) {
            say(&format!("{child} killed by {}", libc::WTERMSIG(status)));
            code = SIGNALLED;
        } else if libc::WEXITSTATUS(status) == SIGNALLED.into() {
            code = SIGNALLED;
        }
    }
    leave(code)
}

/// Waits for signals, and says which came.
fn watch(life: Duration) -> u8 {
    let end = Instant::now() + life;
    let mut code = 0;
    // SAFETY: the structures are plain, and filled before they are used.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigfillset(set.as_mut_ptr());
        libc::sigdelset(set.as_mut_ptr(), libc::SIGCHLD);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return code;
            }
            let timeout = libc::timespec {
                tv_sec: left.as_secs() as _,
                tv_nsec: left.subsec_nanos() as _,
            };
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            let signal = libc::sigtimedwait(set.as_ptr(), info.as_mut_ptr(), &raw const timeout);
            if signal > 0 {
                let (sender, why) = (
                    info.assume_init_ref().si_pid(),
                    info.assume_init_ref().si_code,
                );
                let own = std::process::id();
                say(&format!("{own} got {signal} from {sender} (code {why})"));
                code = SIGNALLED;
            }
        }
    }
}

fn say(text: &str) {
    // A reader that is gone wants to know nothing.
    let _ = write_all(STDOUT, format!("{text}\n").as_bytes());
}

fn pause(duration: Duration) {
    crate::process::sleep(duration);
}

fn fork() -> i32 {
    // SAFETY: this program has one thread.
    unsafe { libc::fork() }
}

fn leave(code: u8) -> ! {
    // SAFETY: it runs no handlers and touches no memory.
    unsafe { libc::_exit(code.into()) }
}

fn wait_for(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: the pointer is to a number of ours.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return 0;
        }
    }
    status
}

fn exec(words: &[CString]) -> ! {
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(ptr::null());
    // SAFETY: the words end in NUL and outlive the call, the list ends in null.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    leave(127)
}

fn mount_proc() {
    let none = ptr::null();
    // SAFETY: all paths end in NUL; the mounts are seen in this namespace alone.
    unsafe {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        libc::mount(none, c"/".as_ptr(), none, private, none.cast());
        let proc = c"proc".as_ptr();
        libc::mount(proc, c"/proc".as_ptr(), proc, 0, none.cast());
    }
}
