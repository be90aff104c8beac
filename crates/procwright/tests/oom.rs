//! A program that the kernel kills for want of memory, in a cgroup with a limit.
#![cfg(any(target_os = "linux", target_os = "android"))]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{child, skip};
use procwright::process::Signal;
use procwright::{Command, Output};
use test_support::alone;

/// A new cgroup whose processes may have 64 MiB, which is removed at the end.
struct SmallCgroup {
    path: PathBuf,
    /// Where this process was before.
    home: PathBuf,
}

impl SmallCgroup {
    /// None, in plain sight, if none can be made.
    fn make(test: &str) -> Option<SmallCgroup> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        for mount in mounts.lines() {
            let fields: Vec<&str> = mount.split(' ').collect();
            let counts_memory = fields[3].split(',').any(|option| option == "memory");
            let limit = match fields[2] {
                "cgroup2" => "memory.max",
                "cgroup" if counts_memory => "memory.limit_in_bytes",
                _ => continue,
            };
            let home = PathBuf::from(fields[1]);
            let path = home.join(format!("procwright-{test}-{}", std::process::id()));
            if fs::create_dir(&path).is_ok() {
                let cgroup = SmallCgroup { path, home };
                if fs::write(cgroup.path.join(limit), "67108864").is_ok() {
                    return Some(cgroup);
                }
            }
        }
        skip(test, "no cgroup with a limit of memory can be made");
        None
    }

    /// Its path within the hierarchy.
    fn name(&self) -> String {
        format!("/{}", self.path.file_name().unwrap().to_str().unwrap())
    }
}

impl Drop for SmallCgroup {
    fn drop(&mut self) {
        let _ = join(&self.home);
        let _ = fs::remove_dir(&self.path);
    }
}

/// Moves this process into a cgroup.
fn join(directory: &Path) -> std::io::Result<()> {
    fs::write(
        directory.join("cgroup.procs"),
        std::process::id().to_string(),
    )
}

/// A program that takes all memory that it can get, and is chosen before this process is.
fn greedy() -> Command<'static> {
    // A line that never ends. The second limit is for a kernel that does not heed the first.
    let command = Command::new("tail").arg("/dev/zero").oom_score_adj(1000);
    command.rlimit("as", 1 << 30, 1 << 30)
}

#[track_caller]
fn is_told(output: &Output, end: &str, cgroup: &str) {
    let told = format!(
        "{end}; out of memory: the kernel killed 1 process of its cgroup {cgroup} while it ran"
    );
    assert_eq!(output.report.outcome(), told);
    assert!(output.report.summary().ends_with(&told), "{output:?}");
    let kills = output.report.oom_kills.as_ref().unwrap();
    assert_eq!((kills.cgroup.as_str(), kills.processes), (cgroup, 1));
}

alone! {
    fn in_a_cgroup_of_its_own() {
        let Some(cgroup) = SmallCgroup::make("in_a_cgroup_of_its_own") else { return; };
        let path = cgroup.path.to_str().unwrap();
        let output = greedy().cgroup(path).run().unwrap();
        is_told(&output, "killed by SIGKILL", path);
        // A shell tells of a command that was killed by its code.
        let output = Command::shell("tail /dev/zero; exit $?")
            .oom_score_adj(1000)
            .cgroup(path)
            .run()
            .unwrap();
        is_told(&output, "exited with code 137", path);
        let spawned = greedy().cgroup(path).spawn().unwrap();
        spawned.wait(None).unwrap();
        let kills = spawned.report().unwrap().oom_kills.unwrap();
        assert_eq!(kills.cgroup, path);
        // Of those before nothing is told.
        for argv in [&["signal-self", "KILL"][..], &["exit", "137"]] {
            let report = child(argv).cgroup(path).run().unwrap().report;
            assert_eq!(report.oom_kills, None);
            assert_eq!(report.outcome(), report.status.to_string());
        }
        let report = child(&["signal-self", "TERM"]).cgroup(path).run().unwrap().report;
        assert_eq!((report.status.signal(), report.oom_kills), (Some(Signal::TERM), None));
    }
}

alone! {
    fn in_the_cgroup_of_this_process() {
        let Some(cgroup) = SmallCgroup::make("in_the_cgroup_of_this_process") else { return; };
        // Its own cgroup is looked for here.
        assert!(child(&["exit", "0"]).run().unwrap().success());
        join(&cgroup.path).unwrap();
        // What was counted before is that of another cgroup: not known.
        let output = greedy().run().unwrap();
        assert_eq!(output.report.outcome(), "killed by SIGKILL");
        let output = greedy().run().unwrap();
        is_told(&output, "killed by SIGKILL", &cgroup.name());
    }
}
