//! From a [`Spec`] to a plan whose every byte is ready before the clone.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::{Unstarted, heirloom};
use crate::error::{Invalid, SpawnError, Step};
use crate::spec::{Account, Spec};
use crate::sys::spawn::{self, Action, Failed, Plan, SLOTS, Signed, Spawned, Where};

/// Where to look for programs when there is no `PATH` at all, as execvp does
/// without the current directory.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// The part of a plan that needs no descriptors: all that can be wrong in a
/// spec is found while making it, before anything is opened.
pub(super) struct Template {
    programs: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    limits: Vec<Action>,
    credentials: Vec<Action>,
    cwd: Option<CString>,
}

impl Template {
    pub(super) fn new(spec: &Spec) -> Result<Template, Unstarted> {
        let argv = arguments(spec)?;
        let env = environment(spec)?;
        let programs = programs(&spec.argv[0], &env);
        let env = env
            .into_iter()
            .map(|(key, value)| {
                let mut line = key.into_vec();
                line.push(b'=');
                line.extend_from_slice(value.as_bytes());
                c_string(line, || "env".into())
            })
            .collect::<Result<_, _>>()?;
        let cwd = match &spec.cwd {
            Some(cwd) => Some(c_string(cwd.as_os_str().as_bytes(), || "cwd".into())?),
            None => None,
        };
        let most = SLOTS - 3 - heirloom::most(spec);
        if spec.extra_fds.len() > most {
            return Err(Invalid::new(
                "extra_fds",
                format!("has {} descriptors", spec.extra_fds.len()),
                format!("at most {most} can be passed"),
            )
            .into());
        }
        if let Some((_, number)) = spec.extra_fds.iter().find(|(_, number)| *number < 3) {
            return Err(Invalid::new(
                "extra_fds",
                format!("would replace descriptor {number}"),
                "0, 1 and 2 are set by stdin, stdout and stderr",
            )
            .into());
        }
        for (i, (_, number)) in spec.extra_fds.iter().enumerate() {
            if spec.extra_fds[..i].iter().any(|(_, other)| other == number) {
                return Err(Invalid::new(
                    "extra_fds",
                    format!("has two descriptors for the number {number}"),
                    "each number can be one descriptor only",
                )
                .into());
            }
        }
        Ok(Template {
            programs,
            argv,
            env,
            limits: limits(spec)?,
            credentials: credentials(spec)?,
            cwd,
        })
    }

    /// The finished plan. The order of the actions is that of [`Step`].
    /// `terminal` is what the program does about one, if anything.
    pub(super) fn plan(
        self,
        spec: &Spec,
        placements: &[(RawFd, RawFd)],
        terminal: Option<Action>,
        signed: Vec<Signed>,
    ) -> Plan {
        let mut actions = Vec::with_capacity(16);
        if spec.new_session || spec.pty.is_some() {
            // A session leader leads its own group, and may not change it.
            actions.push(Action::Setsid);
        } else if spec.own_group() {
            actions.push(Action::Setpgid(0));
        } else if let Some(group) = spec.process_group {
            actions.push(Action::Setpgid(group));
        }
        // Before its descriptor can be overwritten.
        actions.extend(terminal);
        place(placements, &mut actions);
        actions.extend(self.limits);
        let changes_credentials = !self.credentials.is_empty();
        actions.extend(self.credentials);
        if let Some(signal) = spec.die_with_parent {
            actions.push(Action::DieWithParent {
                signal: signal.number(),
                parent: std::process::id().cast_signed(),
            });
        }
        if let Some(cwd) = self.cwd {
            actions.push(Action::Chdir(cwd));
        }
        if let Some(mask) = spec.umask {
            actions.push(Action::Umask(mask));
        }
        actions.push(Action::ResetSignals);
        Plan {
            actions,
            programs: self.programs,
            argv: self.argv,
            env: self.env,
            signed,
            changes_credentials,
        }
    }
}

/// Moves every descriptor to its number without overwriting one that is still
/// needed: a source that is also a target is first copied out of the way.
fn place(placements: &[(RawFd, RawFd)], actions: &mut Vec<Action>) {
    let above = placements
        .iter()
        .map(|(_, to)| to.saturating_add(1))
        .max()
        .unwrap_or(3)
        .max(3);
    let in_the_way = |from: RawFd| placements.iter().any(|&(f, to)| to == from && f != to);
    let mut sources = Vec::with_capacity(placements.len());
    let mut slot = 0;
    for &(from, _) in placements {
        if in_the_way(from) {
            actions.push(Action::Park { from, above, slot });
            sources.push(Where::Slot(slot));
            slot += 1;
        } else {
            sources.push(Where::Fd(from));
        }
    }
    // Before the placing, which takes the mark off again for what is passed.
    actions.push(Action::CloseFrom(3));
    for (&(_, to), from) in placements.iter().zip(sources) {
        actions.push(Action::Place { from, to });
    }
}

fn c_string(bytes: impl Into<Vec<u8>>, what: impl Fn() -> String) -> Result<CString, Invalid> {
    CString::new(bytes).map_err(|error| {
        Invalid::new(
            what(),
            format!("contains a NUL byte at position {}", error.nul_position()),
            "the system ends every string there; pass the text without it",
        )
    })
}

fn arguments(spec: &Spec) -> Result<Vec<CString>, Invalid> {
    spec.argv
        .iter()
        .enumerate()
        .map(|(i, argument)| c_string(argument.as_bytes(), || format!("argv[{i}]")))
        .collect()
}

fn environment(spec: &Spec) -> Result<Vec<(OsString, OsString)>, Invalid> {
    // Only what the caller says: an inherited name may be as odd as it likes.
    let set = spec.env.iter().flatten().map(|(key, _)| key);
    for key in set.chain(spec.extra_env.iter().map(|(key, _)| key)) {
        if key.is_empty() || key.as_bytes().contains(&b'=') {
            return Err(Invalid::new(
                "env",
                format!("has the impossible name {key:?}"),
                "a name is not empty and contains no '='",
            ));
        }
    }
    let mut env: Vec<(OsString, OsString)> = match &spec.env {
        Some(env) => env.clone(),
        None => std::env::vars_os().collect(),
    };
    let variables = heirloom::variables(spec);
    env.retain(|(key, _)| variables.iter().all(|variable| key != variable));
    for (key, value) in &spec.extra_env {
        env.retain(|(other, _)| other != key);
        if let Some(value) = value {
            env.push((key.clone(), value.clone()));
        }
    }
    Ok(env)
}

/// The files to try, in order.
fn programs(program: &OsStr, env: &[(OsString, OsString)]) -> Vec<CString> {
    let bytes = program.as_bytes();
    let mut programs = Vec::new();
    let mut add = |path: Vec<u8>| {
        // A directory of PATH with a NUL cannot exist, and argv[0] was checked.
        programs.extend(CString::new(path));
    };
    if bytes.contains(&b'/') {
        add(bytes.to_vec());
        return programs;
    }
    let path = env.iter().find(|(key, _)| key == "PATH");
    let path = path.map_or(DEFAULT_PATH, |(_, value)| value.as_bytes());
    for directory in path.split(|&b| b == b':') {
        // An empty entry means the current directory, as POSIX has it.
        let mut candidate = directory.to_vec();
        if !directory.is_empty() {
            candidate.push(b'/');
        }
        candidate.extend_from_slice(bytes);
        add(candidate);
    }
    programs
}

fn limits(spec: &Spec) -> Result<Vec<Action>, Invalid> {
    let mut actions = Vec::new();
    for limit in &spec.rlimits {
        let name = limit.resource.to_ascii_lowercase();
        let name = name.strip_prefix("rlimit_").unwrap_or(&name);
        let resource = spawn::resource_number(name).ok_or_else(|| {
            Invalid::new(
                "rlimits",
                format!("names the unknown resource {:?}", limit.resource),
                "use a name of setrlimit(2) in lower case, such as nofile, core, as, cpu",
            )
        })?;
        if limit.soft > limit.hard {
            return Err(Invalid::new(
                "rlimits",
                format!("has a soft limit above the hard one for {name}"),
                "the soft limit may at most equal the hard one",
            ));
        }
        actions.push(Action::Rlimit {
            resource,
            soft: limit.soft,
            hard: limit.hard,
        });
    }
    if let Some(nice) = spec.nice {
        actions.push(Action::Nice(spawn::system_niceness().saturating_add(nice)));
    }
    Ok(actions)
}

fn credentials(spec: &Spec) -> Result<Vec<Action>, Invalid> {
    let mut actions = Vec::new();
    if let Some(groups) = &spec.extra_groups {
        let ids = groups.iter().map(group_id).collect::<Result<_, _>>()?;
        actions.push(Action::Setgroups(ids));
    }
    if let Some(group) = &spec.group {
        actions.push(Action::Setgid(group_id(group)?));
    }
    if let Some(user) = &spec.user {
        actions.push(Action::Setuid(user_id(user)?));
    }
    Ok(actions)
}

fn user_id(user: &Account) -> Result<u32, Invalid> {
    match user {
        Account::Id(id) => Ok(*id),
        Account::Name(name) => match nix::unistd::User::from_name(name) {
            Ok(Some(user)) => Ok(user.uid.as_raw()),
            Ok(None) => Err(unknown("user", name)),
            Err(error) => Err(unreadable("user", name, error)),
        },
    }
}

fn group_id(group: &Account) -> Result<u32, Invalid> {
    match group {
        Account::Id(id) => Ok(*id),
        Account::Name(name) => match nix::unistd::Group::from_name(name) {
            Ok(Some(group)) => Ok(group.gid.as_raw()),
            Ok(None) => Err(unknown("group", name)),
            Err(error) => Err(unreadable("group", name, error)),
        },
    }
}

fn unknown(what: &str, name: &str) -> Invalid {
    Invalid::new(
        what,
        format!("{name:?} is not known on this system"),
        "pass an existing name or a number",
    )
}

fn unreadable(what: &str, name: &str, error: nix::Error) -> Invalid {
    Invalid::new(
        what,
        format!("{name:?} could not be looked up ({error})"),
        "pass a number, which needs no look-up",
    )
}

/// Starts the plan's program.
pub(super) fn spawn(plan: &Plan) -> Result<Spawned, SpawnError> {
    spawn::spawn(plan).map_err(|failed| match failed {
        Failed::Clone(error) => SpawnError::new(Step::Clone, "", error),
        Failed::Action(index, error) => {
            let (step, object) = plan
                .actions
                .get(index)
                .map_or((Step::Exec, String::new()), name);
            SpawnError::new(step, object, error)
        }
        Failed::Exec(error) => {
            let program = plan.argv.first().map(|program| program.to_string_lossy());
            SpawnError::new(Step::Exec, program.unwrap_or_default(), error)
        }
    })
}

/// The step that an action is, and what it is about.
fn name(action: &Action) -> (Step, String) {
    let text = |number: &dyn std::fmt::Display| number.to_string();
    match action {
        Action::Setsid => (Step::Setsid, String::new()),
        Action::ControllingTerminal(_) => (Step::ControllingTerminal, String::new()),
        Action::Setpgid(group) => (Step::Setpgid, text(group)),
        // Cannot fail.
        Action::Foreground { .. } => (Step::Setpgid, String::new()),
        Action::Rlimit { soft, hard, .. } => (Step::Rlimit, format!("{soft}:{hard}")),
        Action::Nice(value) => (Step::Nice, text(value)),
        Action::Setgroups(groups) => (Step::Setgroups, format!("{groups:?}")),
        Action::Setgid(gid) => (Step::Setgid, text(gid)),
        Action::Setuid(uid) => (Step::Setuid, text(uid)),
        Action::DieWithParent { .. } => (Step::DieWithParent, String::new()),
        Action::Chdir(directory) => (Step::Chdir, directory.to_string_lossy().into_owned()),
        Action::Umask(mask) => (Step::Umask, format!("{mask:o}")),
        Action::CloseFrom(first) => (Step::CloseRange, text(first)),
        Action::Park { from, .. } => (Step::Dup, text(from)),
        Action::Place { to, .. } => (Step::Dup, text(to)),
        Action::ResetSignals => (Step::Signals, String::new()),
    }
}

/// Adds what to do about an error, where it can be told.
pub(super) fn hint(error: SpawnError, spec: &Spec) -> SpawnError {
    let program = Path::new(&spec.argv[0]);
    let has_slash = spec.argv[0].as_bytes().contains(&b'/');
    let in_cwd = spec
        .cwd
        .as_ref()
        .map_or(program.to_path_buf(), |cwd| cwd.join(program));
    let is = |kind: rustix::io::Errno| error.errno() == kind.raw_os_error();
    use rustix::io::Errno;
    let hint = match error.step {
        Step::Exec if is(Errno::NOENT) && has_slash && in_cwd.exists() => Some(
            "the file exists, but the interpreter or loader that it names does not: \
             see its first line (#!…), or `file` for a binary"
                .to_owned(),
        ),
        Step::Exec if is(Errno::NOENT) && has_slash && spec.cwd.is_some() && program.exists() => {
            Some(format!(
                "a relative program is looked for in cwd, that is as {}",
                in_cwd.display()
            ))
        }
        Step::Exec if is(Errno::NOENT) && !has_slash && looks_like_a_line(&spec.argv) => Some(
            "this looks like a whole shell line: pass a list of arguments, \
             or ask for a shell (shell=True, --shell)"
                .to_owned(),
        ),
        Step::Exec if is(Errno::NOENT) && !has_slash => {
            Some("no directory of PATH has it".to_owned())
        }
        Step::Exec if is(Errno::ACCESS) && in_cwd.is_dir() => Some("it is a directory".to_owned()),
        Step::Exec if is(Errno::ACCESS) => {
            Some("it may not be executed: chmod +x, or a mount with noexec".to_owned())
        }
        Step::Exec if is(Errno::NOEXEC) => Some(
            "it is no program: a script needs a first line such as #!/bin/sh, \
             a binary must be of this machine's kind"
                .to_owned(),
        ),
        Step::Exec if is(Errno::TOOBIG) => Some(
            "arguments and environment together are too large (one string: 128 KiB, all: \
             a quarter of the stack limit): pass data by stdin or in a file"
                .to_owned(),
        ),
        Step::Pipe | Step::Pty | Step::Clone | Step::Open | Step::Dup | Step::CloseRange
            if is(Errno::MFILE) =>
        {
            Some(
                "this process has no descriptor left: raise RLIMIT_NOFILE or close some".to_owned(),
            )
        }
        Step::Pty if is(Errno::NOSPC) => {
            Some("all pseudo-terminals are in use: see /proc/sys/kernel/pty/max".to_owned())
        }
        Step::Pty if is(Errno::NOENT) => {
            Some("there is no /dev/ptmx: mount a devpts file system".to_owned())
        }
        Step::Setuid | Step::Setgid | Step::Setgroups if is(Errno::PERM) => {
            Some("only root may change user or group".to_owned())
        }
        _ => None,
    };
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn looks_like_a_line(argv: &[OsString]) -> bool {
    argv.len() == 1 && argv[0].as_bytes().contains(&b' ')
}
