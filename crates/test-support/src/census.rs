//! Descriptors, threads and children of this process, compared before and after.

use crate::eventually;

/// Everything that this process has and that could leak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Census {
    /// Open descriptors, as by [`fds`].
    pub fds: Vec<String>,
    /// Names of threads, as by [`threads`].
    pub threads: Vec<String>,
    /// Pids of children, zombies included.
    pub children: Vec<i32>,
}

impl Census {
    /// Counts what this process has now.
    pub fn now() -> Census {
        Census {
            fds: fds(),
            threads: threads(),
            children: children(),
        }
    }

    /// Fails unless this process still has what it had.
    pub fn unchanged(&self) {
        assert_eq!(self, &Census::now());
    }

    /// Fails if this process has something that it had not. (A command's own
    /// descriptors may be gone with it.)
    pub fn nothing_more(&self) {
        let now = Census::now();
        assert!(
            now.fds.iter().all(|fd| self.fds.contains(fd)),
            "{self:?}\n{now:?}"
        );
        assert_eq!(
            (&now.threads, &now.children),
            (&self.threads, &self.children)
        );
    }

    /// Waits until this process has what it had: for threads that end on their own some
    /// time after the run. A watchdog ends the wait.
    pub fn comes_back(&self) {
        eventually(|| *self == Census::now());
    }
}

/// All open descriptors of this process, as `number -> target`.
pub fn fds() -> Vec<String> {
    let numbers: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .expect("/proc/self/fd")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a number")
        })
        .collect();
    let mut fds: Vec<String> = numbers
        .into_iter()
        // The directory's own descriptor is closed by now.
        .filter_map(|number| {
            let target = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
            Some(format!("{number} -> {}", target.display()))
        })
        .collect();
    fds.sort();
    fds
}

/// The names of this process's threads, sorted; without those that are about to end.
///
/// A thread that has been joined stays in `/proc` for a moment: the kernel wakes who joins
/// it before it takes it off its list.
pub fn threads() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir("/proc/self/task")
        .expect("/proc/self/task")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter_map(|stat| name_unless_exiting(&stat))
        .collect();
    names.sort();
    names
}

/// The name in a `/proc/PID/task/TID/stat`, unless the kernel has marked the thread as
/// exiting (`PF_EXITING` in the ninth field), which it does before anybody learns of it.
fn name_unless_exiting(stat: &str) -> Option<String> {
    const PF_EXITING: u32 = 4;
    let (before, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let (_, name) = before.split_once(" (").expect("a name in brackets");
    let flags: u32 = fields
        .split(' ')
        .nth(6)
        .expect("nine fields")
        .parse()
        .expect("a number");
    (flags & PF_EXITING == 0).then(|| name.to_owned())
}

/// The pids of this process's children, zombies included.
pub fn children() -> Vec<i32> {
    let mut children: Vec<i32> = std::fs::read_dir("/proc/self/task")
        .expect("/proc/self/task")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("children")).ok())
        .flat_map(|line| {
            line.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect();
    children.sort_unstable();
    children
}
