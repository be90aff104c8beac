//! The name of a process that can be written down.

use std::fmt;
use std::str::FromStr;

use crate::proc_id::ProcId;
use procwright_os::Invalid;

/// Which process, as text: `PID:INODE`, or `PID` where the system gives no inode.
///
/// The inode is that of the process in the kernel's pidfs (Linux 6.9): no other
/// process of this boot has it, before or after. util-linux's `kill` and
/// `waitpid` write and read the same form. A bare number means whoever has it
/// when it is looked up.
///
/// ```
/// use procwright_process::Id;
///
/// let id: Id = "1234:5678".parse()?;
/// assert_eq!((id.pid(), id.inode()), (1234, Some(5678)));
/// assert_eq!(id.to_string(), "1234:5678");
/// assert!("12:".parse::<Id>().is_err());
/// # Ok::<(), procwright_process::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    pid: i32,
    inode: Option<u64>,
}

impl Id {
    /// The identity of the process that has this number, and this inode if one is given.
    ///
    /// # Errors
    /// [`Invalid`] for a number that no process can have: less than 1.
    pub fn new(pid: i32, inode: Option<u64>) -> Result<Id, Invalid> {
        if pid < 1 {
            return Err(invalid(&pid.to_string()));
        }
        Ok(Id { pid, inode })
    }

    /// What can be written of an identity.
    #[doc(hidden)]
    pub const fn of(id: ProcId) -> Id {
        Id {
            pid: id.pid(),
            inode: id.inode(),
        }
    }

    /// The number.
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// The inode, if one is given.
    pub const fn inode(&self) -> Option<u64> {
        self.inode
    }
}

fn invalid(text: &str) -> Invalid {
    Invalid::new(
        "process",
        format!("is {text:?}, which names none"),
        "write a process number such as 1234, or number and inode such as 1234:5678",
    )
}

impl FromStr for Id {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Id, Invalid> {
        // Stricter than `parse`, which takes a plus sign.
        let number = |digits: &str| {
            digits
                .bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| digits.parse::<u64>().ok())
                .flatten()
        };
        let (pid, inode) = match text.split_once(':') {
            Some((pid, inode)) => (number(pid), Some(number(inode))),
            None => (number(text), None),
        };
        let pid = pid.and_then(|pid| i32::try_from(pid).ok());
        match (pid, inode) {
            (Some(pid), None) if pid > 0 => Ok(Id { pid, inode: None }),
            (Some(pid), Some(Some(inode))) if pid > 0 => Ok(Id {
                pid,
                inode: Some(inode),
            }),
            _ => Err(invalid(text)),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inode {
            Some(inode) => write!(f, "{}:{inode}", self.pid),
            None => write!(f, "{}", self.pid),
        }
    }
}
