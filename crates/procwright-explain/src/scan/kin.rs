//! Whose children processes are by now that are otherwise as an earlier look has seen them.

use std::io;
use std::os::fd::OwnedFd;

use super::process::{self, Stat};
use super::{among, files};
use crate::wait::Wait;
use crate::world::{Process, World};

/// Asks of those of `pids` that have slept since `before` whose kin may be another all the same: a
/// parent ends, or another process of a terminal comes to the foreground.
pub(super) fn renew_since(proc: &OwnedFd, pids: &[i32], before: &World, world: &mut World) {
    if before.processes.is_empty() {
        return;
    }
    let lives_on = |pid: i32| {
        let both = world.processes.get(&pid).zip(before.processes.get(&pid));
        both.is_some_and(|(now, before)| now.start == before.start && !now.gone)
    };
    let may_have_changed = |pid: &i32| {
        let both = world.processes.get(pid).zip(before.processes.get(pid));
        let slept = both.filter(|(now, before)| now.has_slept_since(before));
        slept.is_some_and(|(now, _)| now.terminal != 0 || !lives_on(now.ppid))
    };
    let pids: Vec<i32> = pids.iter().copied().filter(may_have_changed).collect();
    renew(proc, &pids, world);
}

/// Asks of these whose children they are by now, and takes those out of `world` that are others
/// or not there any more.
pub(super) fn renew(proc: &OwnedFd, pids: &[i32], world: &mut World) {
    let kin = among::gather(pids, |pid, kin: &mut Vec<(i32, io::Result<Stat>)>| {
        kin.push((pid, process::stat(proc, &format!("{pid}/stat"))));
    });
    for (looker, part) in kin {
        world.lookers.insert(looker);
        for (pid, stat) in part {
            let Some(process) = world.processes.get_mut(&pid) else {
                continue;
            };
            match stat {
                Ok(stat) if stat.start == process.start => process.set_kin(&stat),
                Err(error) if !files::is_gone(&error) => {
                    world.unseen.processes.push(pid);
                    world.unseen.processes.sort_unstable();
                    world.unseen.processes.dedup();
                }
                Ok(_) | Err(_) => {
                    world.processes.remove(&pid);
                    world.unseen.processes.retain(|unseen| *unseen != pid);
                }
            }
        }
    }
}

impl Process {
    /// Takes over what may be another while it sleeps, or that it has ended.
    fn set_kin(&mut self, stat: &Stat) {
        self.ppid = stat.ppid;
        self.pgrp = stat.pgrp;
        self.terminal = stat.terminal;
        self.foreground = stat.foreground;
        if stat.is_gone() && !self.gone {
            self.gone = true;
            self.fds = None;
            let threads = self.threads.iter_mut();
            threads.for_each(|thread| thread.wait = Wait::Ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::look::{look, look_since};
    use crate::wait::Wait;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use test_support::{eventually, watchdog};

    #[test]
    fn who_sleeps_while_its_parent_ends_has_another() {
        let _watchdog = watchdog("who_sleeps_while_its_parent_ends_has_another");
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 600 >/dev/null & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(shell.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let pid: i32 = line.trim().parse().unwrap();
        let sleeps = |pid| {
            let world = look().unwrap();
            let process = world.processes.get(&pid).cloned();
            process.filter(|one| one.threads[0].wait == Wait::Time && one.name == "sleep")
        };
        let mut process = None;
        eventually(|| {
            process = sleeps(pid);
            process.is_some()
        });
        let process = process.unwrap();
        assert_eq!(process.ppid, shell.id().cast_signed());
        let mut before = look().unwrap();
        // Told by what a whole look would not have read.
        before.processes.get_mut(&pid).unwrap().caught = u64::MAX;
        shell.kill().unwrap();
        shell.wait().unwrap();
        let since = &look_since(&before).unwrap().processes[&pid];
        assert_eq!(since.caught, u64::MAX, "it has slept");
        assert_ne!(since.ppid, process.ppid);
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
    }
}
