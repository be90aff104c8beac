//! The plan of a start: every byte that is needed between clone and exec, from a [`Spec`].

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{SpawnError, Step};
use crate::spec::{Launch, Spec};
use procwright_os::proc;
use procwright_os::spawn::{self, Action, FailedStep, FdSource, PidVariable, Plan, Spawned};
use procwright_process::Scope;

/// Makes the finished plan. The order of the actions is that of [`Step`].
/// `terminal` is what the program does about one, if anything.
pub(super) fn plan(
    launch: Launch,
    spec: &Spec,
    placements: &[(RawFd, RawFd)],
    terminal: Option<Action>,
    signed: Vec<PidVariable>,
) -> Plan {
    let mut actions = Vec::with_capacity(16);
    if spec.own_session() {
        // A session leader leads its own group, and may not change it.
        actions.push(Action::Setsid);
    } else if spec.own_group() {
        actions.push(Action::Setpgid(0));
    } else if let Some(group) = spec.process_group {
        actions.push(Action::Setpgid(group));
    } else if spec.stop.scope() == Scope::Tree && proc::is_missing() {
        // Where no tree can be seen a stop is for the group.
        actions.push(Action::Setpgid(0));
    }
    // The terminal comes before `place`, which may overwrite its descriptor.
    actions.extend(terminal);
    place(placements, &mut actions);
    actions.extend(launch.settings);
    Plan {
        actions,
        programs: launch.programs,
        argv: launch.argv,
        env: launch.env,
        signed,
        changes_credentials: launch.changes_credentials,
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
            sources.push(FdSource::Slot(slot));
            slot += 1;
        } else {
            sources.push(FdSource::Fd(from));
        }
    }
    // CloseFrom comes before the placing, which clears close-on-exec for what is passed.
    actions.push(Action::CloseFrom(3));
    for (&(_, to), from) in placements.iter().zip(sources) {
        actions.push(Action::Place { from, to });
    }
}

/// Starts the program of the plan.
pub(super) fn spawn(plan: &Plan) -> Result<Spawned, SpawnError> {
    spawn::spawn(plan).map_err(|failed| match failed {
        FailedStep::Clone(error) => SpawnError::new(Step::Clone, "", error),
        FailedStep::Action(index, error) => {
            let (step, object) = plan
                .actions
                .get(index)
                .map_or((Step::Exec, String::new()), describe);
            SpawnError::new(step, object, error)
        }
        FailedStep::Exec(error) => {
            let program = plan.argv.first().map(|program| program.to_string_lossy());
            SpawnError::new(Step::Exec, program.unwrap_or_default(), error)
        }
    })
}

/// The step that an action is, and what it is about.
fn describe(action: &Action) -> (Step, String) {
    let text = |number: &dyn std::fmt::Display| number.to_string();
    match action {
        Action::Setsid => (Step::Setsid, String::new()),
        Action::ControllingTerminal(_) => (Step::ControllingTerminal, String::new()),
        Action::Setpgid(group) => (Step::Setpgid, text(group)),
        // An error of this step is ignored in the child.
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
        Action::ResetSignals { .. } => (Step::Signals, String::new()),
    }
}

/// Adds what to do about an error, where that is known.
pub(super) fn add_hint(error: SpawnError, spec: &Spec) -> SpawnError {
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
        Step::Exec if is(Errno::NOENT) && !has_slash && looks_like_a_shell_line(&spec.argv) => {
            Some(
                "this looks like a whole shell line: pass a list of arguments, \
             or ask for a shell (shell=True, run --shell, or sh -c by name)"
                    .to_owned(),
            )
        }
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
        Step::Thread | Step::Clone if is(Errno::AGAIN) => Some(
            "this user, or the container, has as many processes and threads as it may: raise \
             RLIMIT_NPROC (ulimit -u) or pids.max, or end some"
                .to_owned(),
        ),
        Step::Thread if is(Errno::INVAL) => Some(
            "the calling thread makes its children in another namespace, where no thread of this \
             process can be to die with them: leave out die_with_parent, or start the program \
             from a thread that has not called unshare or setns"
                .to_owned(),
        ),
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

fn looks_like_a_shell_line(argv: &[OsString]) -> bool {
    argv.len() == 1 && argv[0].as_bytes().contains(&b' ')
}
