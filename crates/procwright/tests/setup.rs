//! The set-up of a program's process: each option is seen in the program, and what the
//! kernel refuses is a typed error, with nothing started.

mod common;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use common::{Census, child, root_or_skip, shown, skip, sys};
use procwright::error::{SpawnError, Step};
use procwright::process::Signal;
use procwright::spec::{Account, IoPriority, SchedPolicy};
use procwright::{Command, Error};
use serde_json::{Value, json};
use test_support::alone;

const NOBODY: u32 = 65534;

fn show(change: impl FnOnce(Command<'static>) -> Command<'static>) -> Value {
    shown(&change(child(&["show"])).run().unwrap())
}

/// The error of a step that the system refuses, which names the option.
#[track_caller]
fn refused(command: Command<'_>, step: Step, option: &str) -> SpawnError {
    let before = Census::now();
    let error = match command.run() {
        Err(Error::Spawn { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    before.nothing_more();
    assert_eq!(error.step, step, "{error}");
    let hint = error.hint.as_deref().unwrap_or("");
    assert!(hint.starts_with(&format!("{option}: ")), "{error}");
    error
}

#[track_caller]
fn invalid(command: Command<'_>, begins: &str) {
    let before = Census::now();
    let error = match command.run() {
        Err(Error::Invalid(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    before.nothing_more();
    assert!(error.starts_with(begins), "{error}");
}

alone! {
    fn signals_blocked_and_by_default() {
        sys::default_signals();
        sys::ignore(libc::SIGHUP);
        sys::ignore(libc::SIGQUIT);
        let realtime: Signal = "RTMIN+1".parse().unwrap();
        let seen = show(|command| command
            .blocked_signals([Signal::USR1, Signal::TERM, realtime])
            .ignored_signals([Signal::WINCH])
            .default_signals([Signal::HUP, Signal::USR2]));
        assert_eq!(seen["sig_blocked"], json!([libc::SIGUSR1, libc::SIGTERM, realtime.number()]));
        let ignored = seen["sig_ignored"].as_array().unwrap();
        assert!(ignored.contains(&json!(libc::SIGWINCH)), "{ignored:?}");
        assert!(ignored.contains(&json!(libc::SIGQUIT)), "{ignored:?}");
        assert!(!ignored.contains(&json!(libc::SIGHUP)), "{ignored:?}");
        assert_eq!(show(|command| command)["sig_blocked"], json!([]));
    }
}

alone! {
    fn signals_that_cannot_be_had_so() {
        let begins = "blocked_signals has SIGKILL, which no process can block";
        invalid(child(&["show"]).blocked_signals([Signal::KILL]), begins);
        let begins = "ignored_signals has SIGSTOP, which no process can ignore";
        invalid(child(&["show"]).ignored_signals([Signal::STOP]), begins);
        let both = child(&["show"]).ignored_signals([Signal::INT]).default_signals([Signal::INT]);
        invalid(both, "default_signals has SIGINT, which is in ignored_signals");
        assert!(show(|command| command.default_signals([Signal::KILL]))["pid"].is_u64());
    }
}

alone! {
    fn processors() {
        let ours = show(|command| command)["cpus"].clone();
        let last = ours.as_array().unwrap().last().unwrap().as_u64().unwrap();
        let last = u32::try_from(last).unwrap();
        let seen = show(|command| command.cpu_affinity([last, last]));
        assert_eq!(seen["cpus"], json!([last]));
        let all: Vec<u32> = serde_json::from_value(ours.clone()).unwrap();
        assert_eq!(show(|command| command.cpu_affinity(all))["cpus"], ours);
        // The kernel would run it on the one that there is.
        let error = refused(child(&["show"]).cpu_affinity([last, 8191]), Step::CpuAffinity, "cpu_affinity");
        assert_eq!((error.errno(), &*error.object), (libc::EINVAL, &*format!("{last},8191")));
        refused(child(&["show"]).cpu_affinity([8191]), Step::CpuAffinity, "cpu_affinity");
        // Only the child was changed.
        assert_eq!(show(|command| command)["cpus"], ours);
        invalid(child(&["show"]).cpu_affinity([]), "cpu_affinity is empty: pass a list");
        invalid(child(&["show"]).cpu_affinity([0, 8192]), "cpu_affinity has 8192, and no kernel");
    }
}

alone! {
    fn memory_that_is_short() {
        let ours = show(|command| command)["oom_score_adj"].as_i64().unwrap();
        let ours = i32::try_from(ours).unwrap();
        let more = (ours + 200).min(1000);
        assert_eq!(show(|command| command.oom_score_adj(more))["oom_score_adj"], more);
        // Another user takes nothing away from it.
        if sys::effective_uid() == 0 {
            let seen = show(|command| command
                .oom_score_adj(more)
                .user(Account::Id(NOBODY))
                .die_with_parent(Signal::KILL));
            assert_eq!((&seen["oom_score_adj"], &seen["uid"]), (&json!(more), &json!(NOBODY)));
            sys::become_user(NOBODY);
        }
        // The limit leaves no descriptor for a file; it is the program that cannot open one.
        assert!(child(&["show"]).oom_score_adj(more).rlimit("nofile", 3, 3).run().is_ok());
        assert_eq!(fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim(), ours.to_string());
        let error = refused(child(&["show"]).oom_score_adj(-1000), Step::OomScoreAdj, "oom_score_adj");
        assert_eq!((error.errno(), &*error.object), (libc::EACCES, "-1000"));
        assert!(error.hint.unwrap().contains("CAP_SYS_RESOURCE"));
        invalid(child(&["show"]).oom_score_adj(1001), "oom_score_adj is 1001, which is out of range: pass a number from -1000");
    }
}

alone! {
    fn input_and_output() {
        for (priority, number) in [
            (IoPriority::Idle, 3 << 13),
            (IoPriority::BestEffort(7), 2 << 13 | 7),
            (IoPriority::BestEffort(0), 2 << 13),
        ] {
            assert_eq!(show(|command| command.ionice(priority))["ioprio"], number, "{priority}");
        }
        if root_or_skip("input_and_output: realtime") {
            let seen = show(|command| command.ionice(IoPriority::Realtime(3)).user(Account::Id(NOBODY)));
            assert_eq!((&seen["ioprio"], &seen["uid"]), (&json!(1 << 13 | 3), &json!(NOBODY)));
            sys::become_user(NOBODY);
        }
        let error = refused(child(&["show"]).ionice(IoPriority::Realtime(0)), Step::IoPriority, "ionice");
        assert_eq!((error.errno(), &*error.object), (libc::EPERM, "realtime:0"));
        invalid(child(&["show"]).ionice(IoPriority::Realtime(8)), "ionice is \"realtime:8\", which is not known");
    }
}

alone! {
    fn scheduling() {
        let policy = |policy| {
            let seen = show(|command| command.sched_policy(policy).nice(1));
            (seen["sched_policy"].as_i64().unwrap(), seen["sched_priority"].as_i64().unwrap())
        };
        assert_eq!(policy(SchedPolicy::Batch), (3, 0));
        assert_eq!(policy(SchedPolicy::Idle), (5, 0));
        assert_eq!(policy(SchedPolicy::Other), (0, 0));
        if sys::effective_uid() == 0 {
            sys::become_user(NOBODY);
        }
        let command = child(&["show"]).sched_policy(SchedPolicy::Fifo(9)).rlimit("rtprio", 0, 0);
        let error = refused(command, Step::SchedPolicy, "sched_policy");
        assert_eq!((error.errno(), &*error.object), (libc::EPERM, "fifo:9"));
        invalid(child(&["show"]).sched_policy(SchedPolicy::RoundRobin(0)), "sched_policy is \"rr:0\", which");
    }
}

alone! {
    fn rights_for_good() {
        assert_eq!(show(|command| command)["no_new_privs"], 0);
        assert_eq!(show(Command::no_new_privs)["no_new_privs"], 1);
        // The last step but the exec: a change of user comes before it.
        if root_or_skip("rights_for_good: a user") {
            let seen = show(|command| command.no_new_privs().user(Account::Id(NOBODY)));
            assert_eq!((&seen["no_new_privs"], &seen["uid"]), (&json!(1), &json!(NOBODY)));
        }
        assert_eq!(show(|command| command)["no_new_privs"], 0);
        sys::deny_prctl(libc::PR_SET_NO_NEW_PRIVS, libc::EINVAL);
        let error = refused(child(&["show"]).no_new_privs(), Step::NoNewPrivs, "no_new_privs");
        assert_eq!(error.errno(), libc::EINVAL);
    }
}

alone! {
    fn keyrings() {
        let ours = show(|command| command)["session_keyring"].clone();
        match child(&["show"]).new_keyring().run() {
            Ok(output) => {
                let theirs = shown(&output)["session_keyring"].clone();
                assert!(theirs.is_u64() && theirs != ours, "{ours} {theirs}");
            }
            Err(error) => {
                assert!(error.to_string().contains("KEYCTL_JOIN_SESSION_KEYRING"), "{error}");
                skip("keyrings", "there are none, or they are forbidden");
            }
        }
        assert_eq!(show(|command| command)["session_keyring"], ours);
        sys::deny(&[libc::SYS_keyctl], libc::EPERM);
        let error = refused(child(&["show"]).new_keyring(), Step::NewKeyring, "new_keyring");
        assert_eq!(error.errno(), libc::EPERM);
    }
}

/// A directory with `test-child` and the libraries that it needs, and its path in there.
fn root_with_test_child() -> (tempfile::TempDir, String) {
    let root = tempfile::tempdir().unwrap();
    let copy = |from: &Path, to: &Path| {
        let to = root.path().join(to.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    copy(test_children::path().as_ref(), Path::new("/bin/test-child"));
    // Those of this program are those of that one.
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut libraries: Vec<&Path> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().contains(".so"))
        })
        .collect();
    libraries.dedup();
    for library in libraries {
        for directory in [
            library.parent().unwrap(),
            Path::new("/lib"),
            Path::new("/lib64"),
        ] {
            copy(library, &directory.join(library.file_name().unwrap()));
        }
    }
    (root, "/bin/test-child".to_owned())
}

alone! {
    fn another_root() {
        if !root_or_skip("another_root") { return; }
        let (root, program) = root_with_test_child();
        let path = root.path().canonicalize().unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        fs::create_dir(path.join("inside")).unwrap();
        let links = |cwd: Option<&str>, user: bool| {
            let mut command = Command::new("test-child").arg("sleep-forever").env("PATH", "/bin").chroot(&path);
            if let Some(cwd) = cwd {
                command = command.cwd(cwd);
            }
            if user {
                command = command.user(Account::Id(NOBODY));
            }
            let child = command.spawn().unwrap();
            let link = |name: &str| fs::read_link(format!("/proc/{}/{name}", child.pid())).unwrap();
            let links = (link("root"), link("cwd"));
            child.stop();
            links
        };
        assert_eq!(links(None, false), (path.clone(), path.clone()));
        assert_eq!(links(Some("/inside"), false), (path.clone(), path.join("inside")));
        assert_eq!(links(Some("inside"), true), (path.clone(), path.join("inside")));
        let output = Command::new(&program).args(["echo", "hi"]).chroot(&path).run().unwrap();
        assert_eq!(output.stdout, b"hi\n");
    }
}

alone! {
    fn a_root_that_cannot_be_had() {
        if !root_or_skip("a_root_that_cannot_be_had") { return; }
        let (root, program) = root_with_test_child();
        let path = root.path();
        // What is outside is not there.
        let error = Command::new("/bin/sh").chroot(path).run().unwrap_err().to_string();
        assert!(error.contains("No such file") && error.contains("below the chroot"), "{error}");
        let missing = Command::new(&program).chroot(path.join("missing"));
        let error = refused(missing, Step::Chroot, "chroot");
        assert_eq!(error.errno(), libc::ENOENT);
        assert!(error.object.ends_with("/missing"), "{error}");
        invalid(Command::new(&program).chroot("a\0b"), "chroot contains a NUL byte");
        sys::become_user(NOBODY);
        let error = refused(Command::new(&program).chroot("/"), Step::Chroot, "chroot");
        assert_eq!(error.errno(), libc::EPERM);
    }
}

/// A new cgroup in a hierarchy of this kind, which is removed at the end.
struct NewCgroup(PathBuf);

impl NewCgroup {
    /// None, in plain sight, if no such hierarchy may be written.
    fn make(test: &str, kind: &str) -> Option<NewCgroup> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        for mount in mounts.lines() {
            let fields: Vec<&str> = mount.split(' ').collect();
            // Cgroups of others have a cpuset that a new one has not.
            if fields[2] != kind || fields[3].contains("cpuset") {
                continue;
            }
            let name = format!("procwright-{test}-{}", std::process::id());
            let path = Path::new(fields[1]).join(name);
            if fs::create_dir(&path).is_ok() {
                return Some(NewCgroup(path));
            }
        }
        skip(test, &format!("no cgroup of the kind {kind} can be made"));
        None
    }

    /// How the line of a member ends.
    fn ends(&self) -> String {
        format!("/{}", self.0.file_name().unwrap().to_str().unwrap())
    }

    #[track_caller]
    fn has(&self, seen: &Value) {
        let lines = seen["cgroups"].as_array().unwrap();
        let is_in = lines
            .iter()
            .any(|line| line.as_str().unwrap().ends_with(&self.ends()));
        assert!(is_in, "{lines:?}");
    }
}

impl Drop for NewCgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

alone! {
    fn a_cgroup() {
        let Some(cgroup) = NewCgroup::make("a_cgroup", "cgroup2") else { return; };
        let path = cgroup.0.clone();
        cgroup.has(&show(|command| command.cgroup(&path)));
        let all = show(|command| command
            .cgroup(&path)
            .die_with_parent(Signal::KILL)
            .pass_fd(fs::File::open("/dev/null").unwrap(), 3)
            .pass_fd(fs::File::open("/dev/null").unwrap(), 4)
            .pass_fd(fs::File::open("/dev/null").unwrap(), 5)
            .user(Account::Id(sys::effective_uid())));
        cgroup.has(&all);
        assert_eq!(all["fds"].as_object().unwrap().len(), 6);
        // No way to make a process is left but the one that makes it there.
        sys::deny(&[libc::SYS_clone], libc::EPERM);
        cgroup.has(&show(|command| command.cgroup(&path)));
        assert!(child(&["show"]).run().is_err());
    }
}

alone! {
    fn a_cgroup_where_no_process_can_be_made_in_one() {
        for errno in [libc::ENOSYS, libc::EPERM] {
            let Some(cgroup) = NewCgroup::make("joined", "cgroup2") else { return; };
            sys::deny(&[libc::SYS_clone3], errno);
            let path = cgroup.0.clone();
            cgroup.has(&show(|command| command.cgroup(&path).new_session()));
            let error = refused(child(&["show"]).cgroup(path.join("missing")), Step::Cgroup, "cgroup");
            assert_eq!(error.errno(), libc::ENOENT);
        }
    }
}

alone! {
    fn a_cgroup_of_version_1() {
        let Some(cgroup) = NewCgroup::make("version_1", "cgroup") else { return; };
        let path = cgroup.0.clone();
        cgroup.has(&show(|command| command.cgroup(&path)));
    }
}

alone! {
    fn cgroups_that_cannot_be_had() {
        let elsewhere = tempfile::tempdir().unwrap();
        let file = elsewhere.path().join("cgroup.procs");
        fs::write(&file, "").unwrap();
        let error = refused(child(&["show"]).cgroup(elsewhere.path()), Step::Cgroup, "cgroup");
        assert!(error.to_string().contains("no cgroup"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"");
        let error = refused(child(&["show"]).cgroup(&file), Step::Cgroup, "cgroup");
        assert_eq!(error.errno(), libc::ENOTDIR);
        invalid(child(&["show"]).cgroup("a\0b"), "cgroup contains a NUL byte");
        let Some(cgroup) = NewCgroup::make("refused", "cgroup2") else { return; };
        fs::write(cgroup.0.join("cgroup.freeze"), "1").unwrap();
        let error = refused(child(&["show"]).cgroup(&cgroup.0), Step::Cgroup, "cgroup");
        assert!(error.to_string().contains("frozen"), "{error}");
        fs::write(cgroup.0.join("cgroup.freeze"), "0").unwrap();
        let path = cgroup.0.clone();
        cgroup.has(&show(|command| command.cgroup(&path)));
        if sys::effective_uid() == 0 {
            sys::pass_for_user(NOBODY);
            let error = refused(child(&["show"]).cgroup(&path), Step::Cgroup, "cgroup");
            assert_eq!(error.errno(), libc::EACCES);
            sys::become_root_again();
        }
    }
}

alone! {
    fn a_child_that_is_held_has_all_of_it() {
        let mut child = child(&["show"])
            .blocked_signals([Signal::USR1])
            .ionice(IoPriority::Idle)
            .no_new_privs()
            .spawn()
            .unwrap();
        let mut said = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
        let seen: Value = serde_json::from_slice(&said).unwrap();
        assert_eq!(seen["sig_blocked"], json!([libc::SIGUSR1]));
        assert_eq!((&seen["ioprio"], &seen["no_new_privs"]), (&json!(3 << 13), &json!(1)));
    }
}
