//! The faults of a [`Spec`]: found in this one place, before anything is started.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::launch::c_string;
use super::{Beyond, Launch, Sink, Spec, Stdin, Until, is_ours};
use crate::spool::Overflow;
use crate::std_stream::PerStream;
use procwright_os::Invalid;

/// The call that a [`Spec`] is for. Some options make sense in one of them alone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// `run`, which reads the streams itself.
    Run,
    /// `spawn`, whose caller reads them.
    Spawn {
        /// Policy for output that is not read; none for the bare pipe.
        overflow: Option<Overflow>,
    },
}

/// What is wrong with a limit of a program that lives on without us.
const KEPT_BY_US: &str = "is kept by us, and a program that lives on without us has nobody there";

impl Spec {
    /// Finds all that can be found wrong without opening or starting anything, and
    /// gives what was made of the spec on the way: nothing starts without.
    ///
    /// The errors name an option as [`Spec`] does, and speak of values; how these are
    /// spelled in another language is for the front end of that language to say.
    ///
    /// # Blocking
    /// While the names of users and groups are looked up.
    ///
    /// # Errors
    /// The first fault that was found.
    pub(crate) fn validate(&self, purpose: Purpose) -> Result<Launch, Invalid> {
        self.check_argv()?;
        if let (true, Purpose::Spawn { .. }) = (self.detach, purpose) {
            self.check_detached()?;
        }
        if self.pty.is_some() {
            self.check_pty()?;
        }
        self.check_streams()?;
        match purpose {
            Purpose::Run => self.check_run()?,
            Purpose::Spawn { overflow } => self.check_spawn(overflow)?,
        }
        if self.foreground && (self.own_session() || !self.own_group()) {
            return Err(Invalid::new(
                "foreground",
                "needs a process group of its own in this session",
                "say process_group 0, or a stop with the scope group",
            ));
        }
        self.check_setup()?;
        if let Some(mask) = self.umask.filter(|mask| *mask > 0o777) {
            return Err(Invalid::new(
                "umask",
                format!("is {mask:#o}, which is larger than 0o777"),
                "a mask has permission bits only, such as 0o022",
            ));
        }
        if self.process_group.is_some_and(|group| group < 0) {
            return Err(Invalid::new(
                "process_group",
                "is negative, and no group has such a number",
                "pass the number of a group, or 0 for a new one",
            ));
        }
        self.check_ok_codes()?;
        self.check_pass_fds()?;
        self.check_paths()?;
        Launch::new(self)
    }

    fn check_argv(&self) -> Result<(), Invalid> {
        let problem = match self.argv.first() {
            None => "is empty",
            Some(program) if program.is_empty() => "starts with an empty string",
            Some(_) => return Ok(()),
        };
        let hint = "the first element is the program to run";
        Err(Invalid::new("argv", problem, hint))
    }

    fn check_streams(&self) -> Result<(), Invalid> {
        if matches!(self.stdout, Sink::Merged) {
            return Err(Invalid::new(
                "stdout",
                "cannot be merged into itself",
                "only stderr can be merged into stdout",
            ));
        }
        if self.merged && self.keeps() != PerStream::new(true, true) {
            return Err(Invalid::new(
                "merged",
                "needs both streams captured",
                "capture stdout and stderr, or merge stderr into stdout",
            ));
        }
        let is_read = self.captures().chosen().next().is_some();
        let needs = [
            ("idle_timeout", !self.idle_timeout.is_never()),
            ("limit", self.limit.is_some()),
            ("keep_full", self.keep_full.is_some()),
            ("until", self.until.silence().is_some()),
        ];
        if self
            .until
            .silence()
            .is_some_and(|silence| silence.is_zero())
        {
            return Err(Invalid::new(
                "until",
                "is a silence of no time",
                "say exit, which waits for no silence, or a time above 0",
            ));
        }
        match needs.into_iter().find(|(_, is_set)| *is_set && !is_read) {
            Some((what, _)) => Err(Invalid::new(
                what,
                "needs a captured stream",
                "capture stdout or stderr: what the program writes elsewhere is not seen here",
            )),
            None => Ok(()),
        }
    }

    /// Finds what cannot be had together with a terminal.
    fn check_pty(&self) -> Result<(), Invalid> {
        if !is_ours(&self.stdout) {
            return Err(Invalid::new(
                "stdout",
                "does not come to us, and with a pty it is the terminal",
                "capture or relay it; without a pty it can go anywhere",
            ));
        }
        if matches!(self.stderr, Sink::Inherit) {
            return Err(Invalid::new(
                "stderr",
                "is inherited, and with a pty it is the terminal",
                "capture or relay it, then it arrives as stdout; or send it to a file",
            ));
        }
        if self.process_group.is_some() {
            return Err(Invalid::new(
                "process_group",
                "cannot be chosen for a program on a pty",
                "leave it out: it leads a session and a group of its own",
            ));
        }
        if self.merged {
            return Err(Invalid::new(
                "merged",
                "is for two streams, and a pty is one",
                "leave it out: stdout has all of it, in the order in which it was written",
            ));
        }
        Ok(())
    }

    fn check_ok_codes(&self) -> Result<(), Invalid> {
        match self.ok_codes.iter().find(|code| !(0..=255).contains(*code)) {
            None => Ok(()),
            Some(code) => Err(Invalid::new(
                "ok_codes",
                format!("has {code}, with which no program exits"),
                "name exit codes, from 0 to 255",
            )),
        }
    }

    fn check_run(&self) -> Result<(), Invalid> {
        if matches!(self.stdin, Stdin::Pipe) {
            return Err(Invalid::new(
                "stdin",
                "is a pipe that nobody would write to",
                "pass bytes, an iterator or a reader, or use spawn()",
            ));
        }
        if self.channel.is_some() {
            return Err(Invalid::new(
                "channel",
                "is for spawn(), not for run()",
                "spawn the child, and take its end of the queue there",
            ));
        }
        if self.detach {
            return Err(Invalid::new(
                "detach",
                "is for spawn(), not for run()",
                "a run waits for its program: spawn one that is to live on",
            ));
        }
        Ok(())
    }

    /// Finds what a program needs of us that is to live on without us.
    fn check_detached(&self) -> Result<(), Invalid> {
        let to_us = "comes to us, and a program that lives on without us has nobody there";
        let elsewhere = "send it to a file, to nowhere, or where our own goes";
        let from_us = "comes from us, and a program that lives on without us has nobody there";
        let own_source = "give it a file, a descriptor, or nothing";
        let is_fed = matches!(self.stdin, Stdin::Pipe | Stdin::Bytes(_));
        let needs = [
            ("stdout", is_ours(&self.stdout), to_us, elsewhere),
            ("stderr", is_ours(&self.stderr), to_us, elsewhere),
            ("stdin", is_fed, from_us, own_source),
            (
                "pty",
                self.pty.is_some(),
                "hangs up on the program when we end",
                "leave it out, and send its output to a file",
            ),
            (
                "die_with_parent",
                self.die_with_parent.is_some(),
                "ends a program that is to live on",
                "leave it or detach out",
            ),
            (
                "channel",
                self.channel.is_some(),
                "is between the program and us, and it is to live on without us",
                "leave it or detach out",
            ),
            (
                "timeout",
                !self.timeout.is_never(),
                KEPT_BY_US,
                "have `timeout` or `procwright run --timeout` start it, or leave this or detach out",
            ),
            (
                "idle_timeout",
                !self.idle_timeout.is_never(),
                KEPT_BY_US,
                "have `procwright run --idle-timeout` start it, or leave this or detach out",
            ),
            (
                "limit",
                self.limit.is_some(),
                KEPT_BY_US,
                "give it an rlimit `fsize` for the file that it writes, or leave this or detach out",
            ),
            (
                "keep_full",
                self.keep_full.is_some(),
                "is written by us, and a program that lives on without us has nobody there",
                "send its stdout to that file",
            ),
            (
                "until",
                self.until != Until::default(),
                "is about streams that come to us, and a program that lives on has none",
                "leave it out: a wait is for its exit alone",
            ),
        ];
        match needs.into_iter().find(|(_, is_set, ..)| *is_set) {
            Some((what, _, problem, hint)) => Err(Invalid::new(what, problem, hint)),
            None => Ok(()),
        }
    }

    fn check_spawn(&self, overflow: Option<Overflow>) -> Result<(), Invalid> {
        if self.pty.is_some() && overflow.is_none() {
            return Err(Invalid::new(
                "overflow",
                "is the bare pipe, and a pty is none",
                "have a bounded amount read ahead: the program waits once that is unread",
            ));
        }
        if self.pty.is_some() && matches!(self.stdin, Stdin::Inherit) {
            return Err(Invalid::new(
                "stdin",
                "is inherited, and nobody would pass on what is typed there",
                "have a pipe and write what is to be typed, or use run()",
            ));
        }
        self.check_spawn_limits(overflow)?;
        let unmergeable = match overflow {
            _ if !self.merged => None,
            // Nothing would note which stream was first.
            None => Some("needs the streams to be read ahead, and they are bare pipes"),
            // Bytes are taken out at the front, one by one.
            Some(Overflow::DropOldest { .. }) => {
                Some("cannot be had where the oldest bytes are dropped")
            }
            Some(_) => None,
        };
        match unmergeable {
            Some(problem) => Err(Invalid::new(
                "merged",
                problem,
                "spill, block, drop the newest or fail in place of that, or read the two apart",
            )),
            None => Ok(()),
        }
    }

    /// Finds limits that mean nothing where the caller reads.
    fn check_spawn_limits(&self, overflow: Option<Overflow>) -> Result<(), Invalid> {
        let kept = self
            .limit
            .filter(|limit| limit.beyond == Beyond::HeadAndTail);
        let for_runs = [
            (
                "limit",
                kept.is_some(),
                "keep of what you read as much as you want, bound what is not read by an \
                 overflow, or have a limit that fails",
            ),
            (
                "until",
                self.until.silence().is_some(),
                "read with timeouts of your own, or have the streams end with the program",
            ),
        ];
        for (what, is_set, hint) in for_runs {
            if is_set {
                return Err(Invalid::new(what, "is for run(), not for spawn()", hint));
            }
        }
        let of_read_ahead = [
            ("idle_timeout", !self.idle_timeout.is_never()),
            ("limit", self.limit.is_some()),
            ("keep_full", self.keep_full.is_some()),
            ("until", self.until == Until::Exit),
        ];
        let is_bare = overflow.is_none();
        match of_read_ahead.into_iter().find(|(_, set)| *set && is_bare) {
            Some((what, _)) => Err(Invalid::new(
                what,
                "needs the streams to be read ahead, and they are bare pipes",
                "spill, block with memory, or drop in place of that",
            )),
            None => Ok(()),
        }
    }

    /// Finds paths that end in the middle: the system takes a NUL for the end.
    fn check_paths(&self) -> Result<(), Invalid> {
        fn of_sink(sink: &Sink) -> Option<&PathBuf> {
            match sink {
                Sink::File { path, .. } => Some(path),
                _ => None,
            }
        }
        let stdin = match &self.stdin {
            Stdin::File(path) => Some(path),
            _ => None,
        };
        let paths = [
            ("stdin", stdin),
            ("stdout", of_sink(&self.stdout)),
            ("stderr", of_sink(&self.stderr)),
            ("keep_full", self.keep_full.as_ref()),
            ("cgroup", self.cgroup.as_ref()),
        ];
        for (what, path) in paths {
            if let Some(path) = path {
                c_string(path.as_os_str().as_bytes(), || what.into())?;
            }
        }
        Ok(())
    }

    fn check_pass_fds(&self) -> Result<(), Invalid> {
        let invalid = |problem: String, hint: String| Err(Invalid::new("pass_fds", problem, hint));
        let most = self.most_pass_fds();
        if self.pass_fds.len() > most {
            let problem = format!("has {} descriptors", self.pass_fds.len());
            return invalid(problem, format!("at most {most} can be passed"));
        }
        for (i, (_, number)) in self.pass_fds.iter().enumerate() {
            if *number < 3 {
                return invalid(
                    format!("would replace descriptor {number}"),
                    "0, 1 and 2 are set by stdin, stdout and stderr".to_owned(),
                );
            }
            if self.pass_fds[..i].iter().any(|(_, other)| other == number) {
                return invalid(
                    format!("has two descriptors for the number {number}"),
                    "each number can be one descriptor only".to_owned(),
                );
            }
        }
        Ok(())
    }
}
