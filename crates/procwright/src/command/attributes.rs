//! The attributes of the program's process, and what it inherits.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::builder::Command;
use crate::spec::{Account, Rlimit};
use procwright_process::Signal;
use procwright_queue::Channel;

impl Command<'_> {
    /// Becomes another user. Groups stay as they are unless given too.
    #[doc(alias = "setuid")]
    #[doc(alias = "uid")]
    #[must_use]
    pub fn user(mut self, user: Account) -> Self {
        self.spec.user = Some(user);
        self
    }

    /// Becomes another group.
    #[doc(alias = "setgid")]
    #[doc(alias = "gid")]
    #[must_use]
    pub fn group(mut self, group: Account) -> Self {
        self.spec.group = Some(group);
        self
    }

    /// Sets the supplementary groups.
    #[doc(alias = "setgroups")]
    #[doc(alias = "groups")]
    #[must_use]
    pub fn extra_groups(mut self, groups: Vec<Account>) -> Self {
        self.spec.extra_groups = Some(groups);
        self
    }

    /// Sets the file mode creation mask.
    #[must_use]
    pub fn umask(mut self, mask: u32) -> Self {
        self.spec.umask = Some(mask);
        self
    }

    /// Sets a resource limit, by the name of setrlimit(2) in lower case, such
    /// as `nofile`. `u64::MAX` is no limit.
    #[doc(alias = "setrlimit")]
    #[doc(alias = "prlimit")]
    #[doc(alias = "ulimit")]
    #[must_use]
    pub fn rlimit(mut self, resource: impl Into<String>, soft: u64, hard: u64) -> Self {
        self.spec.rlimits.push(Rlimit {
            resource: resource.into(),
            soft,
            hard,
        });
        self
    }

    /// Adds to the nice value, as `nice(1)` does.
    #[doc(alias = "setpriority")]
    #[must_use]
    pub fn nice(mut self, increment: i32) -> Self {
        self.spec.nice = Some(increment);
        self
    }

    /// Joins a process group, 0 for a new one of its own.
    #[doc(alias = "setpgid")]
    #[doc(alias = "setpgrp")]
    #[must_use]
    pub fn process_group(mut self, group: i32) -> Self {
        self.spec.process_group = Some(group);
        self
    }

    /// Starts a session of its own, without a controlling terminal.
    #[doc(alias = "setsid")]
    #[doc(alias = "start_new_session")]
    #[must_use]
    pub fn new_session(mut self) -> Self {
        self.spec.new_session = true;
        self
    }

    /// Has a child of [`spawn`](Command::spawn) live on without this process.
    ///
    /// It leads a session of its own, so that neither Ctrl-C nor the end of our terminal
    /// reaches it, and nothing that it uses ends with us: its streams are files, `/dev/null` or
    /// ours. What would end with us is refused: captured outputs, which are the default, input
    /// from here, a pty, [`die_with_parent`](Command::die_with_parent) and
    /// [`channel`](Command::channel). While we are there it is our child as any other: it can be
    /// waited for and stopped, and is reaped.
    ///
    /// ```
    /// use procwright::{Command, Sink};
    ///
    /// let child = Command::new("true")
    ///     .stdout(Sink::Null)
    ///     .stderr(Sink::Null)
    ///     .detach()
    ///     .spawn()?;
    /// assert!(child.wait(None)?.unwrap().success());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// It stays in our cgroup: a service manager that ends all of that ends it as well.
    #[doc(alias = "daemon")]
    #[doc(alias = "nohup")]
    #[doc(alias = "setsid")]
    #[must_use]
    pub fn detach(mut self) -> Self {
        self.spec.detach = true;
        self
    }

    /// Makes the program's group the foreground group of the controlling
    /// terminal, if the caller's is that, and puts the caller's back at the
    /// program's end: see [`Spec::foreground`](crate::Spec::foreground).
    #[doc(alias = "tcsetpgrp")]
    #[must_use]
    pub fn foreground(mut self) -> Self {
        self.spec.foreground = true;
        self
    }

    /// Has the kernel send `signal` to the program when this process ends.
    ///
    /// Needs a thread for as long as the program runs, since the kernel watches
    /// the thread that started the program. The program inherits what the calling thread
    /// has (a sandbox, processors, namespaces), as without this. Its own children do not
    /// inherit the signal, and a program that changes its credentials loses it. A call of
    /// `exec` in this process is the end of the thread, too.
    ///
    /// A thread that has unshared the pid namespace of its children is refused:
    /// [`Error::Spawn`](crate::Error::Spawn) with
    /// [`Step::Thread`](crate::error::Step::Thread) and `EINVAL`.
    #[doc(alias = "PR_SET_PDEATHSIG")]
    #[must_use]
    pub fn die_with_parent(mut self, signal: Signal) -> Self {
        self.spec.die_with_parent = Some(signal);
        self
    }

    /// Lets the program watch this process: it can call
    /// [`Monitor::of_parent`](procwright_liveness::Monitor::of_parent), which tells it
    /// of our end for one load. (The other way round there is
    /// [`Child::monitor`](crate::Child::monitor), which needs nothing.)
    ///
    /// The program gets two descriptors, of the first two numbers from 20 on that
    /// [`pass_fd`](Command::pass_fd) leaves, and the variable `PROCWRIGHT_PARENT`.
    /// The first such start makes a [`Token`](procwright_liveness::Token) for all of
    /// them, which this process holds until its end, and with it a thread. Where
    /// there are no tokens the program watches us by our number.
    #[must_use]
    pub fn liveness(mut self) -> Self {
        self.spec.liveness = true;
        self
    }

    /// Gives a child of [`spawn`](Command::spawn) a [queue](procwright_queue): with
    /// [`Channel::FromChild`] it sends, by
    /// [`Sender::of_parent`](procwright_queue::Sender::of_parent), to
    /// [`Child::receiver`](crate::Child::receiver); with [`Channel::ToChild`] it
    /// receives, by [`Receiver::of_parent`](procwright_queue::Receiver::of_parent), from
    /// [`Child::sender`](crate::Child::sender). Each side is told of the other's end
    /// by the queue itself.
    ///
    /// ```no_run
    /// use procwright::Command;
    /// use procwright::queue::{Channel, Error};
    ///
    /// let mut child = Command::new("worker").channel(Channel::FromChild).spawn()?;
    /// let mut results = child.receiver()?;
    /// loop {
    ///     match results.recv() {
    ///         Ok(result) => println!("{} bytes", result.len()),
    ///         Err(Error::Closed) => break, // it has ended
    ///         Err(error) => return Err(error.into()),
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The program gets one to four descriptors, of the first numbers from 20 on that
    /// [`pass_fd`](Command::pass_fd) and [`liveness`](Command::liveness) leave, and the
    /// variable `PROCWRIGHT_CHANNEL`. It may become another program by exec (`env`,
    /// `nice`); those that it starts have no part in it.
    #[must_use]
    pub fn channel(mut self, channel: Channel) -> Self {
        self.spec.channel = Some(channel);
        self
    }

    /// Gives a child a queue as [`channel`](Command::channel) does, of this shape if it
    /// is made here. A child that receives says itself what its queue is like
    /// ([`Options::of_parent`](procwright_queue::Options::of_parent)).
    #[must_use]
    pub fn channel_with(mut self, channel: Channel, options: procwright_queue::Options) -> Self {
        self.spec.channel_options = options;
        self.channel(channel)
    }

    /// Gives the program `fd` as its descriptor `number`, beside stdin, stdout and
    /// stderr.
    #[doc(alias = "pass_fds")]
    #[doc(alias = "dup2")]
    #[must_use]
    pub fn pass_fd(mut self, fd: impl Into<OwnedFd>, number: i32) -> Self {
        self.spec.pass_fds.push((Arc::new(fd.into()), number));
        self
    }
}
