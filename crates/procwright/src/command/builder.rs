//! The program, its arguments and its environment.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::run::Hooks;
use crate::spec::Spec;

/// A program to run, and how.
///
/// A program reads nothing by default, both outputs are captured whole, there is no
/// timeout, and when it must be stopped the whole tree gets SIGTERM and five
/// seconds later SIGKILL.
///
/// ```
/// use procwright::Command;
///
/// let output = Command::new("echo").arg("hello").run()?;
/// assert_eq!(output.stdout, b"hello\n");
/// assert!(output.success());
/// # Ok::<(), procwright::Error>(())
/// ```
#[doc(alias = "std::process::Command")]
#[doc(alias = "preexec_fn")]
pub struct Command<'a> {
    pub(crate) spec: Spec,
    pub(crate) hooks: Hooks<'a>,
    pub(super) check: bool,
    pub(super) stopped_is_error: bool,
}

impl std::fmt::Debug for Command<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl<'a> Command<'a> {
    /// Runs `program`, looked up in `PATH` if it has no slash.
    pub fn new(program: impl Into<OsString>) -> Command<'a> {
        Command::from_spec(Spec::new([program.into()]))
    }

    /// Runs `line` by `/bin/sh -c`.
    #[doc(alias = "system")]
    pub fn shell(line: impl Into<OsString>) -> Command<'a> {
        Command::from_spec(Spec::shell(line))
    }

    /// Runs the program of `spec`.
    pub fn from_spec(spec: Spec) -> Command<'a> {
        Command {
            spec,
            hooks: Hooks::default(),
            check: false,
            stopped_is_error: true,
        }
    }

    /// The options that have been set so far.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.spec.argv.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.spec.argv.extend(args);
        self
    }

    /// Sets a variable on top of the environment.
    #[must_use]
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.spec.extra_env.push((key.into(), Some(value.into())));
        self
    }

    /// Removes a variable from the environment.
    #[must_use]
    pub fn env_remove(mut self, key: impl Into<OsString>) -> Self {
        self.spec.extra_env.push((key.into(), None));
        self
    }

    /// Replaces the whole environment. What [`Command::env`] sets comes on top.
    #[doc(alias = "env_clear")]
    #[doc(alias = "envs")]
    #[must_use]
    pub fn env_replace<I, K, V>(mut self, env: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let env = env.into_iter().map(|(k, v)| (k.into(), v.into()));
        self.spec.env = Some(env.collect());
        self
    }

    /// Sets the working directory. A relative program is looked for there.
    #[doc(alias = "chdir")]
    #[doc(alias = "current_dir")]
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.spec.cwd = Some(cwd.into());
        self
    }
}
