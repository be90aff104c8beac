//! The parent of a program that was started to watch it.
//!
//! The program gets the descriptors of an invitation and a variable. It says, with
//! a space between: the parent as `PID:INODE` or `PID`; if there is a token, the
//! numbers of the descriptors and the ticket; and the number of the program's own
//! process. By the last a program knows that the variable is meant for it and not
//! for the one that it was started by, which inherits environment and descriptors
//! as well. Its parent's number alone would not tell: that is another as soon as
//! the parent has ended, which is what it wants to know.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::parent_id;
use std::sync::{Mutex, PoisonError};

use super::{Error, Invitation, Monitor, Token};
use crate::ident::ProcId;
use crate::process::{Id, Process, ProcessError};
use crate::sys::fd;
use crate::sys::fork::PerProcess;

/// The variable.
pub(crate) const VARIABLE: &str = "PROCWRIGHT_PARENT";

/// What a program that we start gets of us.
#[derive(Debug)]
pub(crate) struct Keepsake {
    us: Id,
    /// None where there are no tokens.
    invitation: Option<Invitation>,
}

/// The token that all programs watch which we start. Made when the first needs it,
/// and held for ever: only our end shall be told of.
static TOKEN: PerProcess<Mutex<Option<Token>>> = PerProcess::new();

impl Keepsake {
    /// It has no invitation if there can be no token now; the next may have one.
    pub(crate) fn of_ourselves() -> Keepsake {
        let pid = std::process::id().cast_signed();
        let known = Process::open(pid).map(|process| process.id());
        Keepsake {
            us: known.unwrap_or_else(|_| Id::of(ProcId::unread(pid, 0))),
            invitation: invitation().ok(),
        }
    }

    pub(crate) fn files(&self) -> Vec<BorrowedFd<'_>> {
        self.invitation.iter().flat_map(Invitation::files).collect()
    }

    pub(crate) fn without_files(self) -> Keepsake {
        Keepsake {
            invitation: None,
            ..self
        }
    }

    /// What the variable says, up to the number of the program's process, if the
    /// files have these numbers there.
    pub(crate) fn text(&self, numbers: &[RawFd]) -> String {
        let mut text = self.us.to_string();
        for number in numbers {
            text += &format!(" {number}");
        }
        if let Some(invitation) = &self.invitation {
            text += &format!(" {}", invitation.ticket());
        }
        text
    }
}

fn invitation() -> Result<Invitation, Error> {
    let mut token = TOKEN.get().lock().unwrap_or_else(PoisonError::into_inner);
    let token = match &*token {
        Some(token) => token,
        None => token.insert(Token::new()?),
    };
    token.invite()
}

/// How the parent is known.
#[derive(Debug)]
enum Parent {
    Token(Invitation),
    Process(Process),
}

/// Once it was found. A fork has another parent.
static PARENT: PerProcess<Mutex<Option<Parent>>> = PerProcess::new();

impl Monitor {
    /// Watches the process that has started this one with
    /// [`Command::liveness`](crate::Command::liveness), or in Python with
    /// `liveness=True`. It can be called as often as one likes, also when the parent
    /// has ended. The program may have been started by way of others that become it
    /// by exec, such as `nice` or `env`.
    ///
    /// ```no_run
    /// use procwright::liveness::Monitor;
    ///
    /// let parent = Monitor::of_parent()?;
    /// while parent.alive() {
    ///     // A piece of work.
    /// }
    /// # Ok::<(), procwright::liveness::Error>(())
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
        let mut parent = PARENT.get().lock().unwrap_or_else(PoisonError::into_inner);
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
    let Some(text) = std::env::var_os(VARIABLE) else {
        let why = format!("there is no variable {VARIABLE}");
        return Err(Error::NoParent(why));
    };
    let told = text.to_str().and_then(Told::read).ok_or_else(|| {
        let why = format!("{VARIABLE} is {text:?}, which says nothing");
        Error::NoParent(why)
    })?;
    let own = std::process::id();
    if told.child != own {
        return Err(Error::NoParent(format!(
            "{VARIABLE} was told to process {}, and this is process {own}, which was started \
             by it or by one of its descendants",
            told.child
        )));
    }
    match told.files.and_then(take_over) {
        Some(invitation) => Ok(Parent::Token(invitation)),
        None => open(told.parent).map(Parent::Process),
    }
}

/// What the variable says.
struct Told<'a> {
    parent: Id,
    files: Option<([RawFd; FILES], &'a str)>,
    child: u32,
}

const FILES: usize = 2;

impl Told<'_> {
    fn read(text: &str) -> Option<Told<'_>> {
        let words: Vec<_> = text.split(' ').collect();
        let (parent, rest) = words.split_first()?;
        let (child, rest) = rest.split_last()?;
        let files = match rest {
            [] => None,
            [numbers @ .., ticket] => {
                let numbers: Option<Vec<_>> = numbers.iter().map(|n| n.parse().ok()).collect();
                Some((numbers?.try_into().ok()?, *ticket))
            }
        };
        Some(Told {
            parent: parent.parse().ok()?,
            files,
            child: child.parse().ok()?,
        })
    }
}

/// The invitation, if the descriptors are still what was put there. They may have
/// been closed since, and their numbers be anybody's: so they are looked at first.
fn take_over((numbers, ticket): ([RawFd; FILES], &str)) -> Option<Invitation> {
    let invitation = |open: fn(RawFd) -> std::io::Result<OwnedFd>| {
        let mut files = Vec::with_capacity(FILES);
        for number in numbers {
            files.push(open(number).ok()?);
        }
        Invitation::from_parts(files.try_into().ok()?, ticket).ok()
    };
    Monitor::accept(invitation(fd::duplicate)?).ok()?;
    // The nonce is right: nobody else puts such a file under this number.
    invitation(fd::take)
}

fn open(parent: Id) -> Result<Process, Error> {
    // Whoever is our parent before and after has had the number all the while.
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
