//! The parent of a program that was started to watch it.
//!
//! The program gets the descriptors of an invitation, if there is a token, and is told
//! the parent as `PID:INODE` or `PID`.

use std::os::unix::process::parent_id;

use super::{Error, Invitation, Monitor, Token};
use crate::inherited::{Inheritance, Told};
use procwright_os::fork::PerProcess;
use procwright_os::sync::Mutex;
use procwright_process::proc_id::ProcId;
use procwright_process::{Id, Process, ProcessError};

/// The environment variable that names the parent.
pub const VARIABLE: &str = "PROCWRIGHT_PARENT";

/// The token that all started programs watch. It is made for the first of them and
/// never dropped: it shall tell of the end of this process and of nothing else.
static TOKEN: PerProcess<Mutex<Option<Token>>> = PerProcess::new();

/// What a program that we start gets of us. It has no descriptors if there can be no
/// token now; the next may have them.
pub fn inheritance() -> Inheritance {
    let pid = std::process::id().cast_signed();
    let known = Process::open(pid).map(|process| process.id());
    let us = known.unwrap_or_else(|_| Id::of(ProcId::unread(pid, 0)));
    let invitation = invitation().ok();
    Inheritance {
        variable: VARIABLE,
        who: us.to_string(),
        ticket: invitation
            .as_ref()
            .map(Invitation::ticket)
            .unwrap_or_default(),
        files: invitation.map_or_else(Vec::new, |one| <[_; 2]>::from(one).into()),
        needs_files: false,
    }
}

fn invitation() -> Result<Invitation, Error> {
    let mut token = TOKEN.get().lock();
    let token = match &*token {
        Some(token) => token,
        None => token.insert(Token::new()?),
    };
    token.invite()
}

/// The parent, by its token or as a process.
#[derive(Debug)]
enum Parent {
    Token(Invitation),
    Process(Process),
}

/// The parent, once it was found. A fork has another parent.
static PARENT: PerProcess<Mutex<Option<Parent>>> = PerProcess::new();

impl Monitor {
    /// Watches the process that has started this one with
    /// [`Command::liveness`](https://docs.rs/procwright/latest/procwright/struct.Command.html#method.liveness), or in Python with
    /// `liveness=True`. It may be called any number of times, also when the parent has
    /// ended. The program may have been started by way of others that become it
    /// by exec, such as `nice` or `env`.
    ///
    /// ```no_run
    /// use procwright_liveness::Monitor;
    ///
    /// let parent = Monitor::of_parent()?;
    /// while parent.alive() {
    ///     // A piece of work.
    /// }
    /// # Ok::<(), procwright_liveness::Error>(())
    /// ```
    ///
    /// The first call takes over the descriptors that were inherited, so that the
    /// programs that this one starts do not have them. Where they were closed, or
    /// there are no tokens, the parent is watched as any process is; then
    /// [`guarantee`](Monitor::guarantee) says so.
    ///
    /// # Errors
    /// [`Error::NoParent`] if this process was not started so: nor by its own parent,
    /// though perhaps that one was; or if its parent cannot be known any more.
    /// [`Error::Io`] when there is no memory or descriptor left.
    pub fn of_parent() -> Result<Monitor, Error> {
        let mut parent = PARENT.get().lock();
        let parent = match &*parent {
            Some(parent) => parent,
            None => parent.insert(find()?),
        };
        match parent {
            Parent::Token(invitation) => Monitor::accept(invitation.try_clone()?),
            Parent::Process(process) => Monitor::of_process(process),
        }
    }
}

fn find() -> Result<Parent, Error> {
    let told = Told::of(VARIABLE).map_err(Error::NoParent)?;
    let parent = told.who.parse().map_err(|_| {
        let why = format!("{VARIABLE} says {:?}, which is no process", told.who);
        Error::NoParent(why)
    })?;
    match take_over(&told) {
        Some(invitation) => Ok(Parent::Token(invitation)),
        None => open(parent).map(Parent::Process),
    }
}

fn take_over(told: &Told) -> Option<Invitation> {
    let invitation = Invitation::from_parts(told.take().ok()?, &told.ticket).ok()?;
    Monitor::accept(invitation.try_clone().ok()?).ok()?;
    Some(invitation)
}

fn open(parent: Id) -> Result<Process, Error> {
    // A process that is the parent before and after the call has had the number all
    // the while.
    let is_it = || parent.inode().is_some() || parent_id() == parent.pid().cast_unsigned();
    let process = is_it().then(|| Process::open_id(parent));
    match process {
        Some(Ok(process)) if is_it() => Ok(process),
        None | Some(Ok(_) | Err(ProcessError::Gone(_))) => Err(Error::NoParent(format!(
            "process {parent}, which has started this one, has ended, or cannot be seen from here"
        ))),
        Some(Err(error)) => Err(Error::Io(std::io::Error::other(error))),
    }
}
