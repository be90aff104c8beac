//! Where programs run: options of every subcommand that runs them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueHint};
use procwright::Spec;
use procwright::process::Signal;

use super::setup::SetupArgs;

/// Directory and variables of programs, their set-up, and whether they outlive this command.
#[derive(Debug, Args)]
pub(crate) struct SurroundingsArgs {
    /// Run in this directory
    ///
    /// A program with a slash in its name is looked for from there.
    #[arg(long, aliases = ["wd", "workdir"], value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,

    /// Set a variable; may be repeated
    #[arg(
        long,
        value_name = "NAME=VALUE",
        value_parser = OsStringValueParser::new().try_map(variable)
    )]
    pub(crate) env: Vec<(OsString, OsString)>,

    /// Kill what runs when this command dies, by SIGKILL too
    ///
    /// Without this, SIGKILL of the command leaves running what is there: nobody is
    /// left to stop it. The kernel then sends SIGKILL to each program itself, but to
    /// nobody whom it has started, and not to a set-user-ID program.
    #[arg(long)]
    pub(crate) die_with_parent: bool,

    #[command(flatten)]
    pub(crate) setup: SetupArgs,
}

impl SurroundingsArgs {
    /// Sets in `spec` what the options say.
    pub(crate) fn apply_to(&self, spec: &mut Spec) {
        if let Some(cwd) = &self.cwd {
            spec.cwd = Some(cwd.clone());
        }
        for (name, value) in &self.env {
            // Each name once, as the program will see it: the last value holds.
            spec.extra_env.retain(|(other, _)| other != name);
            spec.extra_env.push((name.clone(), Some(value.clone())));
        }
        if self.die_with_parent {
            spec.die_with_parent.get_or_insert(Signal::KILL);
        }
        self.setup.apply_to(spec);
    }
}

fn variable(text: OsString) -> Result<(OsString, OsString), String> {
    let bytes = text.as_bytes();
    match bytes.iter().position(|&byte| byte == b'=') {
        Some(0) => Err("the name before '=' is empty".into()),
        Some(at) => Ok((
            OsStr::from_bytes(&bytes[..at]).to_owned(),
            OsString::from_vec(bytes[at + 1..].to_vec()),
        )),
        None => Err(
            "there is no '='; write NAME=VALUE, or leave it out: what we have is passed on".into(),
        ),
    }
}
