//! Leaders of process groups and sessions that have ended before those that they lead.

use std::io;

use crate::chase::is_newborn;
use procwright_os::job_control::{group_of, session_of};
use procwright_os::proc::{self, Scan};

/// Number of passes over all processes that may be uncertain before one is believed to
/// have missed somebody.
const PASSES: usize = 8;

/// Number of processes that may be started during a pass before it is given up: where
/// others fork faster than it looks, it would go after them for ever.
const NEWBORNS: usize = 1000;

/// Whether the number of this child, which has ended and is not reaped, still names
/// others: a process group or a session that it has led, and that has living members.
///
/// While it is a zombie nobody else can get its number, so that these members can be
/// found by it. True as well where that cannot be known: no `/proc`, or processes that
/// come and go faster than one can look.
pub fn leads_others(child: i32) -> bool {
    // Most children are in a group of ours and lead nobody, which two system calls tell.
    if !leads(child) {
        return false;
    }
    for _ in 0..PASSES {
        match look(child) {
            Ok(Found::Nobody) => return false,
            Ok(Found::Somebody) | Err(_) => return true,
            Ok(Found::Uncertain) => {}
        }
    }
    true
}

/// Whether the process is the leader of its group or of its session.
fn leads(child: i32) -> bool {
    group_of(child) == Some(child) || session_of(child) == Some(child)
}

/// The outcome of a pass over all processes.
enum Found {
    Nobody,
    Somebody,
    /// Nobody, but a process was gone before it was looked at, and may have left another
    /// where the pass had been.
    Uncertain,
}

fn look(leader: i32) -> io::Result<Found> {
    let mut found = Found::Nobody;
    let mut newborns = 0;
    let begun = proc::now_ticks();
    proc::each_pid(&mut |pid, is_above| {
        let stat = match proc::stat(pid) {
            Ok(stat) => Some(stat),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_newborn = is_newborn(is_above, stat, begun);
        newborns += usize::from(is_newborn);
        let living = stat.filter(|stat| !stat.is_gone() && pid != leader);
        if living.is_some_and(|stat| stat.pgrp == leader || stat.session == leader) {
            found = Found::Somebody;
            return Ok(Scan::Stop);
        }
        if is_newborn && living.is_none() && pid != leader {
            found = Found::Uncertain;
        }
        if newborns > NEWBORNS {
            found = Found::Uncertain;
            return Ok(Scan::Stop);
        }
        Ok(Scan::Next)
    })?;
    Ok(found)
}
