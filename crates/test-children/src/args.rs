//! Arguments, parsed by hand: options first, then what remains by position.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Pid;

use crate::process::{Limit, STDOUT, write_all};

/// Why a subcommand gave up.
pub(crate) enum Failure {
    /// Bad arguments: exit status 125.
    Usage(String),
    /// A system call failed: exit status 1.
    Failed(String),
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<rustix::io::Errno> for Failure {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// The arguments after the subcommand's name.
pub(crate) struct Args {
    rest: Vec<OsString>,
}

impl Args {
    pub(crate) fn new(rest: Vec<OsString>) -> Self {
        Self { rest }
    }

    /// All arguments, unparsed.
    pub(crate) fn raw(self) -> Vec<OsString> {
        self.rest
    }

    /// Takes the option `name` out, wherever it stands.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let found = self.rest.iter().position(|arg| arg == name);
        found.map(|index| self.rest.remove(index)).is_some()
    }

    /// Takes the option `name` and the value after it out.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<OsString>, Failure> {
        let Some(index) = self.rest.iter().position(|arg| arg == name) else {
            return Ok(None);
        };
        self.rest.remove(index);
        if index == self.rest.len() {
            return Err(Failure::usage(format!("{name} needs a value")));
        }
        Ok(Some(self.rest.remove(index)))
    }

    /// The value of the option `name` as a whole number.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u64>, Failure> {
        let value = self.value(name)?;
        value.map(|value| parse_number(name, value)).transpose()
    }

    /// The value of the option `name` as a size with an optional K, M or G.
    pub(crate) fn size(&mut self, name: &str) -> Result<Option<u64>, Failure> {
        let value = self.value(name)?;
        value.map(|value| parse_size(name, value)).transpose()
    }

    /// `--chunk N`: how many bytes one write passes.
    pub(crate) fn chunk(&mut self) -> Result<usize, Failure> {
        match self.size("--chunk")? {
            None => Ok(64 << 10),
            Some(chunk @ 1..=0x1000_0000) => Ok(chunk as usize),
            Some(_) => Err(Failure::usage("--chunk is 1 to 256M")),
        }
    }

    /// The next argument by position, if there is one.
    pub(crate) fn optional(&mut self) -> Result<Option<OsString>, Failure> {
        match self.rest.first() {
            None => Ok(None),
            Some(arg) if arg.as_bytes().starts_with(b"--") => {
                Err(Failure::usage(format!("unknown option {arg:?}")))
            }
            Some(_) => Ok(Some(self.rest.remove(0))),
        }
    }

    pub(crate) fn next(&mut self, what: &str) -> Result<OsString, Failure> {
        self.optional()?
            .ok_or_else(|| Failure::usage(format!("{what} is missing")))
    }

    pub(crate) fn next_number(&mut self, what: &str) -> Result<u64, Failure> {
        let arg = self.next(what)?;
        parse_number(what, arg)
    }

    pub(crate) fn next_size(&mut self, what: &str) -> Result<u64, Failure> {
        let arg = self.next(what)?;
        parse_size(what, arg)
    }

    pub(crate) fn next_millis(&mut self) -> Result<Duration, Failure> {
        self.next_number("MS").map(Duration::from_millis)
    }

    /// An exit status.
    pub(crate) fn next_code(&mut self) -> Result<u8, Failure> {
        let code = self.next_number("CODE")?;
        u8::try_from(code).map_err(|_| Failure::usage("CODE is 0 to 255"))
    }

    /// Refuses whatever has not been taken out.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        match self.optional()? {
            None => Ok(()),
            Some(arg) => Err(Failure::usage(format!("unexpected {arg:?}"))),
        }
    }
}

fn parse_number(what: &str, value: OsString) -> Result<u64, Failure> {
    value
        .to_str()
        .and_then(|text| text.parse::<u64>().ok())
        .filter(|number| *number <= 1 << 50)
        .ok_or_else(|| Failure::usage(format!("{what} is not a whole number: {value:?}")))
}

fn parse_size(what: &str, value: OsString) -> Result<u64, Failure> {
    let bad = || Failure::usage(format!("{what} is not a size: {value:?}"));
    let text = value.to_str().ok_or_else(bad)?;
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| bad())?;
    number.checked_mul(1 << shift).ok_or_else(bad)
}

/// The options of every subcommand that waits: `--print-ready` writes `ready PID…` to
/// stdout once all is set up, `--pidfile PATH` puts the pids there, one a line (the
/// file appears whole), `--limit S` and `--no-limit` change after how many seconds it
/// dies.
pub(crate) struct Waiting {
    pub(crate) limit: Limit,
    print_ready: bool,
    pidfile: Option<PathBuf>,
}

impl Waiting {
    /// Takes these options out of the arguments.
    pub(crate) fn take(args: &mut Args) -> Result<Self, Failure> {
        Ok(Self {
            limit: take_limit(args)?,
            print_ready: args.flag("--print-ready"),
            pidfile: args.value("--pidfile")?.map(PathBuf::from),
        })
    }

    /// Says that the processes `pids` are set up.
    pub(crate) fn announce(&self, pids: &[Pid]) -> io::Result<()> {
        let pids: Vec<String> = pids
            .iter()
            .map(|pid| pid.as_raw_pid().to_string())
            .collect();
        if let Some(path) = &self.pidfile {
            let mut unfinished = path.clone().into_os_string();
            unfinished.push(".part");
            std::fs::write(&unfinished, pids.join("\n") + "\n")?;
            std::fs::rename(&unfinished, path)?;
        }
        if self.print_ready {
            write_all(STDOUT, format!("ready {}\n", pids.join(" ")).as_bytes())?;
        }
        Ok(())
    }
}

/// Takes `--limit S` or `--no-limit` out.
pub(crate) fn take_limit(args: &mut Args) -> Result<Limit, Failure> {
    if args.flag("--no-limit") {
        return Ok(Limit::NONE);
    }
    match args.number("--limit")? {
        None => Ok(Limit::DEFAULT),
        Some(seconds @ 1..=86_400) => Ok(Limit::seconds(seconds as u32)),
        Some(_) => Err(Failure::usage("--limit is 1 to 86400 seconds")),
    }
}
