//! What is set up in the program's process before its first instruction, for the scheduler,
//! for signals, and to have less than the caller.

use std::path::PathBuf;

use super::builder::Command;
use crate::spec::{IoPriority, SchedPolicy};
use procwright_process::Signal;

impl Command<'_> {
    /// Starts it with these signals blocked, and no others. Without this none are.
    ///
    /// A blocked signal stays pending until the program unblocks it: one that shall stop it,
    /// such as SIGTERM, does nothing before SIGKILL. SIGKILL and SIGSTOP cannot be blocked,
    /// and are refused.
    #[doc(alias = "sigprocmask")]
    #[doc(alias = "pthread_sigmask")]
    #[must_use]
    pub fn blocked_signals(mut self, signals: impl IntoIterator<Item = Signal>) -> Self {
        self.spec.blocked_signals = signals.into_iter().collect();
        self
    }

    /// Has the program ignore `signals` from its start.
    ///
    /// Without this it ignores what this process ignores (SIGHUP under `nohup`, SIGINT of
    /// a job in the background), but for SIGPIPE, SIGXFSZ and SIGCHLD: these have their
    /// default actions, since runtimes and hosts ignore them for themselves, as Rust and
    /// Python do with SIGPIPE. A command that stands in front of a program can know that
    /// its own caller has ignored one of them, as by `trap '' PIPE` in a shell, and says
    /// so here. SIGKILL and SIGSTOP cannot be ignored, and are refused.
    #[doc(alias = "SIG_IGN")]
    #[doc(alias = "restore_signals")]
    #[must_use]
    pub fn ignored_signals(mut self, signals: impl IntoIterator<Item = Signal>) -> Self {
        self.spec.ignored_signals = signals.into_iter().collect();
        self
    }

    /// Has `signals` do what they do by default, whatever this process ignores: SIGHUP under
    /// `nohup`, SIGINT of a job in the background.
    #[doc(alias = "SIG_DFL")]
    #[must_use]
    pub fn default_signals(mut self, signals: impl IntoIterator<Item = Signal>) -> Self {
        self.spec.default_signals = signals.into_iter().collect();
        self
    }

    /// Runs it on these processors alone, by their numbers.
    ///
    /// One that is not there, or not in the cpuset of the cgroup, is
    /// [`Step::CpuAffinity`](crate::error::Step::CpuAffinity) with `EINVAL`: the kernel would
    /// take the others.
    #[doc(alias = "sched_setaffinity")]
    #[doc(alias = "taskset")]
    #[must_use]
    pub fn cpu_affinity(mut self, processors: impl IntoIterator<Item = u32>) -> Self {
        self.spec.cpu_affinity = Some(processors.into_iter().collect());
        self
    }

    /// Sets the policy by which it gets processor time, as `chrt(1)` does.
    #[doc(alias = "sched_setscheduler")]
    #[doc(alias = "chrt")]
    #[must_use]
    pub fn sched_policy(mut self, policy: SchedPolicy) -> Self {
        self.spec.sched_policy = Some(policy);
        self
    }

    /// Sets class and level of its input and output, as `ionice(1)` does.
    #[doc(alias = "ioprio_set")]
    #[must_use]
    pub fn ionice(mut self, priority: IoPriority) -> Self {
        self.spec.ionice = Some(priority);
        self
    }

    /// Sets how readily the kernel kills it where memory is short, from -1000, never, to
    /// 1000, first of all. To go below the least value that was set with CAP_SYS_RESOURCE, for
    /// this process or whom it comes from (0 if none was), needs that capability.
    #[doc(alias = "choom")]
    #[must_use]
    pub fn oom_score_adj(mut self, number: i32) -> Self {
        self.spec.oom_score_adj = Some(number);
        self
    }

    /// Starts it in the cgroup with this directory, of either version.
    ///
    /// It is there before its first instruction, and so is all that it starts. A cgroup that
    /// is frozen is refused: the start would wait until it is thawed.
    #[doc(alias = "CLONE_INTO_CGROUP")]
    #[doc(alias = "cgexec")]
    #[must_use]
    pub fn cgroup(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spec.cgroup = Some(directory.into());
        self
    }

    /// Makes this directory its root.
    ///
    /// The program, `PATH` and [`cwd`](Command::cwd) are looked for in there, and it starts
    /// in `/` unless a `cwd` is given. Files for its streams and the names of users and groups
    /// are looked for outside. This alone is no sandbox: root can leave it.
    #[must_use]
    pub fn chroot(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spec.chroot = Some(directory.into());
        self
    }

    /// Has no exec, of the program or of what it starts, give more rights than there are:
    /// set-user-ID bits and capabilities of files do nothing.
    #[doc(alias = "PR_SET_NO_NEW_PRIVS")]
    #[must_use]
    pub fn no_new_privs(mut self) -> Self {
        self.spec.no_new_privs = true;
        self
    }

    /// Gives it a session keyring of its own, which is empty.
    #[doc(alias = "keyctl")]
    #[doc(alias = "KEYCTL_JOIN_SESSION_KEYRING")]
    #[must_use]
    pub fn new_keyring(mut self) -> Self {
        self.spec.new_keyring = true;
        self
    }
}
