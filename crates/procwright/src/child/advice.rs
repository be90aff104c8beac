//! What to do about a start that was refused.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use crate::error::{SpawnError, Step};
use crate::spec::Spec;

/// Adds what to do about an error, where that is known.
pub(super) fn add_to(error: SpawnError, spec: &Spec) -> SpawnError {
    if let Some((option, value)) = asked_by(error.step, spec) {
        return for_setup(error, option, value);
    }
    if spec.chroot.is_some() && error.step == Step::Exec {
        return error.with_hint(
            "the program, its interpreter and its loader are looked for below the chroot",
        );
    }
    let program = Path::new(&spec.argv[0]);
    let has_slash = spec.argv[0].as_bytes().contains(&b'/');
    let in_cwd = spec
        .cwd
        .as_ref()
        .map_or(program.to_path_buf(), |cwd| cwd.join(program));
    let is = |kind: Errno| error.errno() == kind.raw_os_error();
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
        Step::Exec if is(Errno::NOENT) && !has_slash => Some(not_found(&spec.argv[0])),
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

/// What may have been meant by a name that no program has.
fn not_found(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let is_number = name.strip_suffix(['s', 'm', 'h']).unwrap_or(&name);
    // As `export -f` leaves it for other shells.
    let function = format!("BASH_FUNC_{name}%%");
    if std::env::var_os(function).is_some() {
        format!("{name} is a function of bash, which runs it: bash -c '{name} \"$@\"' _ ARG")
    } else if SHELL_WORDS.contains(&&*name) {
        format!(
            "{name} is a word of the shell, which runs it: sh -c 'LINE' sh ARG, with \"$1\" in LINE \
             for ARG"
        )
    } else if name.contains('=') {
        "a variable of the program is set by an option: run(..., extra_env=), run --env NAME=VALUE"
            .to_owned()
    } else if name.starts_with(|c: char| c.is_ascii_digit()) && is_number.parse::<f64>().is_ok() {
        "a time limit is set by an option: run(..., timeout=), run --timeout DURATION".to_owned()
    } else {
        "no directory of PATH has it".to_owned()
    }
}

/// Words that shells know and that are no programs.
const SHELL_WORDS: [&str; 32] = [
    ".", "[[", "alias", "bg", "break", "case", "cd", "command", "continue", "declare", "eval",
    "exec", "exit", "export", "fg", "for", "function", "if", "jobs", "local", "pushd", "read",
    "return", "set", "shift", "shopt", "source", "trap", "ulimit", "unset", "until", "while",
];

/// The option of the set-up by which the child takes this step, and what was asked for.
fn asked_by(step: Step, spec: &Spec) -> Option<(&'static str, String)> {
    let text = |value: Option<String>| value.unwrap_or_default();
    Some(match step {
        Step::Cgroup => {
            let path = spec.cgroup.as_ref().map(|path| path.display().to_string());
            ("cgroup", text(path))
        }
        Step::OomScoreAdj => {
            let number = spec.oom_score_adj.map(|number| number.to_string());
            ("oom_score_adj", text(number))
        }
        Step::SchedPolicy => {
            let policy = spec.sched_policy.map(|policy| policy.to_string());
            ("sched_policy", text(policy))
        }
        Step::IoPriority => ("ionice", text(spec.ionice.map(|one| one.to_string()))),
        Step::CpuAffinity => {
            let numbers = spec.cpu_affinity.iter().flatten();
            let numbers: Vec<String> = numbers.map(u32::to_string).collect();
            ("cpu_affinity", numbers.join(","))
        }
        Step::Chroot => {
            let path = spec.chroot.as_ref().map(|path| path.display().to_string());
            ("chroot", text(path))
        }
        Step::NewKeyring => ("new_keyring", String::new()),
        Step::NoNewPrivs => ("no_new_privs", String::new()),
        _ => return None,
    })
}

/// The error of a step of the set-up, with the option that asked for it.
fn for_setup(mut error: SpawnError, option: &str, value: String) -> SpawnError {
    let is = |kinds: &[Errno]| {
        kinds
            .iter()
            .any(|kind| error.errno() == kind.raw_os_error())
    };
    let advice = match error.step {
        Step::Cgroup if error.errno() == 0 => {
            "name a directory of a cgroup file system; one that is frozen has to be thawed first, \
             or the start would wait for that"
        }
        Step::Cgroup if is(&[Errno::NOENT, Errno::NODEV]) => {
            "make it first, by mkdir in a cgroup file system"
        }
        Step::Cgroup if is(&[Errno::ACCESS, Errno::PERM]) => {
            "its cgroup.procs, and that of the next cgroup above both it and ours, have to be \
             writable to this user"
        }
        Step::Cgroup if is(&[Errno::BUSY, Errno::OPNOTSUPP]) => {
            "it has cgroups below it that controllers are enabled for, or is threaded: name one \
             that may have processes"
        }
        Step::OomScoreAdj if is(&[Errno::ACCESS, Errno::PERM]) => {
            "to go below the least value that was set with CAP_SYS_RESOURCE, 0 if none was, needs \
             that capability"
        }
        Step::OomScoreAdj if is(&[Errno::NOENT]) => "there is no /proc of ours: mount it",
        Step::SchedPolicy if is(&[Errno::PERM]) => {
            "fifo and rr need CAP_SYS_NICE, or the limit rtprio up to that priority"
        }
        Step::IoPriority if is(&[Errno::PERM]) => "realtime needs CAP_SYS_NICE or CAP_SYS_ADMIN",
        Step::CpuAffinity if is(&[Errno::INVAL]) => {
            "one of them is not there, is off, or is not in the cpuset of the cgroup"
        }
        Step::Chroot if is(&[Errno::PERM]) => "needs CAP_SYS_CHROOT",
        Step::NewKeyring if is(&[Errno::PERM, Errno::NOSYS]) => {
            "the kernel has no keyrings, or a sandbox such as a container's forbids them"
        }
        _ => "leave it out to have what the caller has",
    };
    error = error.with_hint(format!("{option}: {advice}"));
    error.object = value;
    error
}
