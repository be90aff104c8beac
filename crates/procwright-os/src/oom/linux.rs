//! `memory.events` of cgroups of version 2, `memory.oom_control` of version 1.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::OomKills;
use crate::fork::PerProcess;
use crate::sync::Mutex;

/// How many processes of a cgroup had been killed for want of memory.
#[derive(Debug)]
pub struct OomCount {
    counter: Arc<Counter>,
    killed: u64,
    /// The cgroup is this process's, and was not named by the caller.
    is_own: bool,
}

/// The file that has the counter of a cgroup.
#[derive(Debug, PartialEq, Eq)]
struct Counter {
    /// The cgroup in words.
    cgroup: String,
    file: PathBuf,
}

/// The counter of the cgroup of this process. To find it takes 100 µs, to read it 7.
#[derive(Debug, Default)]
enum OwnCounter {
    #[default]
    NotLookedFor,
    Looked(Option<Arc<Counter>>),
}

static OWN: PerProcess<Mutex<OwnCounter>> = PerProcess::new();

impl OomCount {
    /// The count of the cgroup with this directory, or of the cgroup of this process if there is
    /// none, or it is of another controller's hierarchy. None if it cannot be known.
    pub fn now(directory: Option<&Path>) -> Option<OomCount> {
        let named = directory.and_then(|directory| {
            let counter = Counter::in_directory(directory, directory.display().to_string())?;
            Some((Arc::new(counter), false))
        });
        let (counter, is_own) = named.or_else(|| Some((own()?, true)))?;
        let killed = counter.read()?;
        Some(OomCount {
            counter,
            killed,
            is_own,
        })
    }

    /// The processes that were killed since; none if there was none, and if it cannot be known.
    pub fn kills_since(&self) -> Option<OomKills> {
        if self.is_own {
            // What was read may be of a cgroup that this process has been moved out of, long
            // before.
            OomCount::forget_own_cgroup();
            if own()? != self.counter {
                return None;
            }
        }
        let processes = self.counter.read()?.checked_sub(self.killed)?;
        (processes > 0).then(|| OomKills {
            cgroup: self.counter.cgroup.clone(),
            processes,
        })
    }

    /// Has the cgroup of this process be looked for anew, which may be another by now.
    pub fn forget_own_cgroup() {
        *OWN.get().lock() = OwnCounter::NotLookedFor;
    }
}

impl Counter {
    /// The counter that is in the directory of a cgroup; none if there is none.
    fn in_directory(directory: &Path, cgroup: String) -> Option<Counter> {
        ["memory.events", "memory.oom_control"]
            .iter()
            .map(|name| Counter {
                cgroup: cgroup.clone(),
                file: directory.join(name),
            })
            .find(|counter| counter.read().is_some())
    }

    fn read(&self) -> Option<u64> {
        // The longest has some 150 bytes.
        let mut text = [0; 1024];
        let length = File::open(&self.file).ok()?.read(&mut text).ok()?;
        std::str::from_utf8(&text[..length])
            .ok()?
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "))?
            .trim_end()
            .parse()
            .ok()
    }
}

fn own() -> Option<Arc<Counter>> {
    let mut own = OWN.get().lock();
    if let OwnCounter::Looked(counter) = &*own {
        return counter.clone();
    }
    let found = find().map(Arc::new);
    *own = OwnCounter::Looked(found.clone());
    found
}

fn find() -> Option<Counter> {
    let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    directories(&cgroups, &mounts)
        .find_map(|(cgroup, directory)| Counter::in_directory(&directory, cgroup.to_owned()))
}

/// The cgroups that may count memory, and their directories. The hierarchy of version 1 comes
/// first: where there is one, it has the controller.
fn directories<'a>(
    cgroups: &'a str,
    mounts: &'a str,
) -> impl Iterator<Item = (&'a str, PathBuf)> + 'a {
    let members = |version| {
        cgroups.lines().filter_map(move |line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            is_of(version, controllers).then_some((version, path))
        })
    };
    members(Version::One)
        .chain(members(Version::Two))
        .flat_map(move |(version, path)| {
            let of = move |line| directory(line, version, path);
            mounts
                .lines()
                .filter_map(of)
                .map(move |found| (path, found))
        })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Whether a hierarchy with these controllers is the one of memory.
fn is_of(version: Version, controllers: &str) -> bool {
    match version {
        Version::One => controllers.split(',').any(|name| name == "memory"),
        Version::Two => controllers.is_empty(),
    }
}

/// The directory of a cgroup in the hierarchy that this line of `mountinfo` tells of.
fn directory(line: &str, version: Version, path: &str) -> Option<PathBuf> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (unescaped(place.next()?), unescaped(place.next()?));
    let mut kind = kind.split(' ');
    let is_it = match version {
        Version::One => kind.next()? == "cgroup" && is_of(version, kind.nth(1)?),
        Version::Two => kind.next()? == "cgroup2",
    };
    let below = match root.as_str() {
        "/" => path,
        root => path.strip_prefix(root)?,
    };
    let is_below = below.is_empty() || below.starts_with('/');
    (is_it && is_below).then(|| PathBuf::from(point + below))
}

/// A path of `mountinfo`, in which a space is `\040`.
fn unescaped(path: &str) -> String {
    [
        (r"\040", " "),
        (r"\011", "\t"),
        (r"\012", "\n"),
        (r"\134", "\\"),
    ]
    .iter()
    .fold(path.to_owned(), |path, (escape, byte)| {
        path.replace(escape, byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cgroups: &str, mounts: &str) -> Vec<(String, String)> {
        directories(cgroups, mounts)
            .map(|(cgroup, path)| (cgroup.to_owned(), path.display().to_string()))
            .collect()
    }

    fn pair(one: &str, other: &str) -> (String, String) {
        (one.to_owned(), other.to_owned())
    }

    #[test]
    fn version_2() {
        let mounts = "25 30 0:23 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n\
                      30 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
        assert_eq!(
            found("0::/user.slice/a b.scope\n", mounts),
            [pair(
                "/user.slice/a b.scope",
                "/sys/fs/cgroup/user.slice/a b.scope"
            )]
        );
        assert_eq!(found("0::/\n", mounts), [pair("/", "/sys/fs/cgroup/")]);
        assert_eq!(found("", mounts), []);
        assert_eq!(
            found("0::/x\n", "30 1 8:1 / / rw - ext4 /dev/sda1 rw\n"),
            []
        );
    }

    #[test]
    fn both_versions() {
        let cgroups = "9:name=systemd:/\n4:hugetlb,memory:/jobs/7\n1:cpu:/\n0::/init\n";
        let mounts = "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu\n\
                      35 31 0:32 / /cg/with\\040space rw shared:9 - cgroup cgroup rw,memory,hugetlb\n\
                      41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            found(cgroups, mounts),
            [
                pair("/jobs/7", "/cg/with space/jobs/7"),
                pair("/init", "/cg/unified/init")
            ]
        );
    }

    #[test]
    fn a_part_of_a_hierarchy_in_a_container() {
        let mounts = "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        assert_eq!(
            found("4:memory:/docker/ab\n", mounts),
            [pair("/docker/ab", "/sys/fs/cgroup/memory")]
        );
        assert_eq!(
            found("4:memory:/docker/ab/c\n", mounts),
            [pair("/docker/ab/c", "/sys/fs/cgroup/memory/c")]
        );
        // Of a cgroup that the mount does not show nothing is known.
        assert_eq!(found("4:memory:/docker/abc\n", mounts), []);
        assert_eq!(found("4:memory:/\n", mounts), []);
    }

    #[test]
    fn nobody_was_killed() {
        let Some(count) = OomCount::now(None) else {
            return;
        };
        // Another test's, if it is one.
        if let Some(kills) = count.kills_since() {
            assert!(kills.processes > 0);
        }
        let elsewhere = OomCount::now(Some(Path::new("/nonexistent")));
        assert!(elsewhere.is_some_and(|other| other.counter == count.counter));
    }
}
