//! Signals: by name, by number, as people write them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use procwright_os::Invalid;
use procwright_os::signal as sys;

/// A signal that can be sent.
///
/// ```
/// use procwright_process::Signal;
///
/// assert_eq!("TERM".parse::<Signal>()?, Signal::TERM);
/// assert_eq!("sigterm".parse::<Signal>()?, Signal::TERM);
/// assert_eq!("15".parse::<Signal>()?, Signal::TERM);
/// assert_eq!(Signal::TERM.to_string(), "SIGTERM");
/// # Ok::<(), procwright_process::Invalid>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "SIGTERM")]
pub struct Signal(i32);

macro_rules! signals {
    ($($(#[$doc:meta])* $name:ident = $number:ident;)*) => {
        impl Signal {
            $($(#[$doc])* pub const $name: Signal = Signal(sys::$number);)*
        }

        /// The portable signals with the names that they have in `kill -l`.
        const NAMED: &[(&str, i32)] = &[$((stringify!($number), sys::$number),)*];
    };
}

signals! {
    /// The terminal is gone; for daemons, by habit: read your configuration again.
    HUP = SIGHUP;
    /// Interrupt from the terminal, Ctrl-C.
    INT = SIGINT;
    /// Quit from the terminal with a core dump, Ctrl-\.
    QUIT = SIGQUIT;
    /// An illegal instruction.
    ILL = SIGILL;
    /// A breakpoint.
    TRAP = SIGTRAP;
    /// `abort()`.
    ABRT = SIGABRT;
    /// An access to memory that is not there, for example past a file's end.
    BUS = SIGBUS;
    /// An arithmetic error.
    FPE = SIGFPE;
    /// Ends a process at once; cannot be caught or ignored.
    KILL = SIGKILL;
    /// Free for the program's own use.
    USR1 = SIGUSR1;
    /// An access to memory that is not the program's.
    SEGV = SIGSEGV;
    /// Free for the program's own use.
    USR2 = SIGUSR2;
    /// A write to a pipe that no one reads.
    PIPE = SIGPIPE;
    /// `alarm()`.
    ALRM = SIGALRM;
    /// Asks a process to end. What `kill` sends when not told otherwise.
    TERM = SIGTERM;
    /// A child ended, stopped or went on.
    CHLD = SIGCHLD;
    /// Lets a stopped process go on.
    CONT = SIGCONT;
    /// Stops a process; cannot be caught or ignored.
    STOP = SIGSTOP;
    /// Stop from the terminal, Ctrl-Z.
    TSTP = SIGTSTP;
    /// A process in the background read from the terminal.
    TTIN = SIGTTIN;
    /// A process in the background wrote to the terminal.
    TTOU = SIGTTOU;
    /// Urgent data at a socket.
    URG = SIGURG;
    /// The processor time is used up.
    XCPU = SIGXCPU;
    /// The file is larger than allowed.
    XFSZ = SIGXFSZ;
    /// A timer of processor time in user mode.
    VTALRM = SIGVTALRM;
    /// A timer of processor time.
    PROF = SIGPROF;
    /// The terminal's size changed.
    WINCH = SIGWINCH;
    /// Input or output has become possible.
    IO = SIGIO;
    /// A system call that is not allowed.
    SYS = SIGSYS;
}

/// Aliases of signals in `kill -l`.
const ALIASES: &[(&str, i32)] = &[
    ("SIGIOT", sys::SIGABRT),
    ("SIGCLD", sys::SIGCHLD),
    ("SIGPOLL", sys::SIGIO),
];

impl Signal {
    /// The signal of this number.
    ///
    /// # Errors
    /// [`Invalid`] if no signal has it. 0 is none: it only asks whether a
    /// process is there.
    pub fn new(number: i32) -> Result<Signal, Invalid> {
        let signal = Signal(number);
        if signal.known_name().is_some() {
            Ok(signal)
        } else {
            Err(invalid(&number.to_string()))
        }
    }

    /// Whether this process ignores it, which a child inherits. What a caller
    /// has ignored on purpose (SIGHUP by `nohup`, SIGINT for a job in the
    /// background) should stay so.
    pub fn is_ignored(self) -> bool {
        sys::is_ignored(self.0)
    }

    /// The signal that the system says ended a process. Not checked: what the
    /// system reports is reported on, even if this crate has no name for it.
    #[allow(dead_code)]
    pub(crate) const fn reported(number: i32) -> Signal {
        Signal(number)
    }

    /// Its number, as `kill(2)` takes it.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Its name with `SIG` in front: `SIGTERM`, `SIGRTMIN+3`.
    pub fn name(self) -> Cow<'static, str> {
        self.known_name()
            .unwrap_or_else(|| Cow::Owned(format!("signal {}", self.0)))
    }

    fn known_name(self) -> Option<Cow<'static, str>> {
        if let Some((name, _)) = all_named().find(|(_, n)| *n == self.0) {
            return Some(Cow::Borrowed(name));
        }
        let realtime = sys::realtime()?;
        if !realtime.contains(&self.0) {
            return None;
        }
        Some(match self.0 - realtime.start() {
            0 => Cow::Borrowed("SIGRTMIN"),
            above => Cow::Owned(format!("SIGRTMIN+{above}")),
        })
    }
}

fn all_named() -> impl Iterator<Item = &'static (&'static str, i32)> {
    NAMED.iter().chain(sys::EXTRA)
}

impl FromStr for Signal {
    type Err = Invalid;

    /// Takes a name with or without `SIG`, in either case, `RTMIN+n`,
    /// `RTMAX-n`, or a number.
    fn from_str(text: &str) -> Result<Signal, Invalid> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return text
                .parse()
                .map_err(|_| invalid(text))
                .and_then(|n| Signal::new(n).map_err(|_| invalid(text)));
        }
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        if let Some((_, number)) = all_named()
            .chain(ALIASES)
            .find(|(known, _)| known.strip_prefix("SIG") == Some(name))
        {
            return Ok(Signal(*number));
        }
        realtime(name).ok_or_else(|| invalid(text))
    }
}

fn realtime(name: &str) -> Option<Signal> {
    let range = sys::realtime()?;
    let offset = |digits: &str| -> Option<i32> {
        if digits.bytes().all(|b| b.is_ascii_digit()) {
            digits.parse().ok()
        } else {
            None
        }
    };
    let number = if let Some(rest) = name.strip_prefix("RTMIN") {
        match rest.strip_prefix('+') {
            Some(digits) => range.start().checked_add(offset(digits)?)?,
            None if rest.is_empty() => *range.start(),
            None => return None,
        }
    } else {
        let rest = name.strip_prefix("RTMAX")?;
        match rest.strip_prefix('-') {
            Some(digits) => range.end().checked_sub(offset(digits)?)?,
            None if rest.is_empty() => *range.end(),
            None => return None,
        }
    };
    range.contains(&number).then_some(Signal(number))
}

fn invalid(text: &str) -> Invalid {
    let mut names = String::new();
    for (name, _) in all_named() {
        names.push_str(name.strip_prefix("SIG").unwrap_or(name));
        names.push(' ');
    }
    let realtime = if sys::realtime().is_some() {
        ", RTMIN, RTMIN+n, RTMAX-n"
    } else {
        ""
    };
    Invalid::new(
        "signal",
        format!("is {text:?}, which is not known"),
        format!(
            "use a name with or without SIG ({}{realtime}), or its number",
            names.trim_end()
        ),
    )
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_come_back() {
        for (name, number) in all_named() {
            let signal: Signal = name.parse().unwrap();
            assert_eq!(signal.number(), *number);
            assert_eq!(signal.name(), *name);
            assert_eq!(signal.number().to_string().parse(), Ok(signal));
            assert_eq!(name.to_lowercase().parse(), Ok(signal));
            assert_eq!(name[3..].parse(), Ok(signal));
        }
        assert_eq!("CLD".parse(), Ok(Signal::CHLD));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn realtime_signals() {
        let range = sys::realtime().unwrap();
        for number in range.clone() {
            let signal = Signal::new(number).unwrap();
            assert_eq!(signal.name().parse(), Ok(signal));
        }
        let third: Signal = "RTMIN+3".parse().unwrap();
        assert_eq!(third.number(), range.start() + 3);
        assert_eq!(third.to_string(), "SIGRTMIN+3");
        assert_eq!("rtmax".parse(), Ok(Signal(*range.end())));
        assert_eq!("SIGRTMAX-1".parse(), Ok(Signal(range.end() - 1)));
    }

    #[test]
    fn what_is_no_signal_is_refused_with_the_choices() {
        for text in [
            "",
            "0",
            "-9",
            "+9",
            "65",
            "99999999999",
            "SIG",
            "SIGSIGTERM",
            "TERM ",
            "RTMIN+99",
            "RTMIN+-1",
            "RTMIN+",
            "RTMAX+1",
            "RTMIN3",
        ] {
            let error = text.parse::<Signal>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
            assert!(error.contains("TERM"), "{error}");
        }
        assert!(Signal::new(0).is_err() && Signal::new(-1).is_err());
    }
}
