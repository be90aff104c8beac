//! The parts of a start in the system's form: strings that end in NUL, numbers in
//! place of names.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::io::Errno;

use super::{Account, Spec};
use procwright_os::Invalid;
use procwright_os::spawn::{self, Action, MAX_PARKED};
use procwright_process::Signal;

/// Directories to look for programs in when there is no `PATH` at all, as execvp
/// has them, without the current directory.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// The part of a [`Spec`] that the child needs and that may be faulty, ready for
/// the system before anything is opened. [`Spec::validate`] makes it: whoever has
/// one has a spec without faults.
#[derive(Debug)]
pub(crate) struct Launch {
    /// Files to try, in order.
    pub(crate) programs: Vec<CString>,
    pub(crate) argv: Vec<CString>,
    /// Variables as `NAME=value`.
    pub(crate) env: Vec<CString>,
    /// Steps of the child behind the placing of its descriptors, in their order.
    pub(crate) settings: Vec<Action>,
    /// True if one of them changes user or groups.
    pub(crate) changes_credentials: bool,
}

impl Launch {
    pub(super) fn new(spec: &Spec) -> Result<Launch, Invalid> {
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
        let mut settings = limits(spec)?;
        // What needs rights comes before they are given up, and what needs /proc before it
        // may be out of sight.
        settings.extend(scheduling(spec));
        if let Some(root) = &spec.chroot {
            let root = c_string(root.as_os_str().as_bytes(), || "chroot".into())?;
            settings.push(Action::Chroot(root));
        }
        let credentials = credentials(spec)?;
        let changes_credentials = !credentials.is_empty();
        settings.extend(credentials);
        // Behind the credentials: it is the new user's.
        if spec.new_keyring {
            settings.push(Action::NewKeyring);
        }
        // Behind the credentials: the kernel forgets it with a change of user.
        if let Some(signal) = spec.die_with_parent {
            settings.push(Action::DieWithParent {
                signal: signal.number(),
                parent: std::process::id().cast_signed(),
            });
        }
        // The directory must be open to the new user.
        if let Some(cwd) = &spec.cwd {
            let cwd = c_string(cwd.as_os_str().as_bytes(), || "cwd".into())?;
            settings.push(Action::Chdir(cwd));
        }
        if let Some(mask) = spec.umask {
            settings.push(Action::Umask(mask));
        }
        let numbers = |signals: &[Signal]| signals.iter().map(|one| one.number()).collect();
        settings.push(Action::ResetSignals {
            ignored: numbers(&spec.ignored_signals),
            default: numbers(&spec.default_signals),
            blocked: mask(&spec.blocked_signals),
        });
        if spec.no_new_privs {
            settings.push(Action::NoNewPrivs);
        }
        Ok(Launch {
            programs,
            argv,
            env,
            settings,
            changes_credentials,
        })
    }
}

impl Launch {
    /// Why an exec of the program of `spec` could not but fail, as far as can be told from
    /// here: where its root, its directory or its user is another, nothing can.
    pub(crate) fn missing_program(&self, spec: &Spec) -> Option<io::Error> {
        let is_relative = |program: &CString| program.to_bytes().first() != Some(&b'/');
        let is_elsewhere =
            spec.chroot.is_some() || (spec.cwd.is_some() && self.programs.iter().any(is_relative));
        if is_elsewhere || self.changes_credentials || self.programs.is_empty() {
            return None;
        }
        let mut missing = Errno::NOENT;
        for program in &self.programs {
            match rustix::fs::accessat(
                rustix::fs::CWD,
                program.as_c_str(),
                rustix::fs::Access::EXEC_OK,
                rustix::fs::AtFlags::EACCESS,
            ) {
                // Also a directory, of which the exec tells.
                Ok(()) => return None,
                Err(Errno::ACCESS) => missing = Errno::ACCESS,
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(_) => return None,
            }
        }
        Some(missing.into())
    }
}

impl Spec {
    /// The most descriptors that the program can inherit to find this process by.
    pub(crate) fn most_inherited_fds(&self) -> usize {
        let channel = match self.channel {
            Some(_) => procwright_queue::MOST_FILES,
            None => 0,
        };
        channel + if self.liveness { 2 } else { 0 }
    }

    /// The most descriptors that the caller can pass: as many as can be moved out of
    /// the way in the child, without stdin, stdout, stderr and the inherited ones.
    pub(super) fn most_pass_fds(&self) -> usize {
        MAX_PARKED - 3 - self.most_inherited_fds()
    }
}

/// The bytes with a NUL behind them; none may be inside.
pub(crate) fn c_string(
    bytes: impl Into<Vec<u8>>,
    what: impl Fn() -> String,
) -> Result<CString, Invalid> {
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
    // Names that the caller gives are looked at: an inherited one may be as odd as it
    // likes.
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
    // The program gets its own values of these, and not ours, if we were started so.
    let liveness = spec.liveness.then_some(procwright_liveness::VARIABLE);
    let channel = spec.channel.map(|_| procwright_queue::VARIABLE);
    env.retain(|(key, _)| liveness.iter().chain(&channel).all(|own| key != own));
    for (key, value) in &spec.extra_env {
        env.retain(|(other, _)| other != key);
        if let Some(value) = value {
            env.push((key.clone(), value.clone()));
        }
    }
    Ok(env)
}

/// The files to try for `program`, in order.
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

/// Resource limits, what becomes of it where memory is short, and the nice value.
fn limits(spec: &Spec) -> Result<Vec<Action>, Invalid> {
    let mut actions = Vec::new();
    // Opens a file, for which the limits may leave no descriptor.
    if let Some(number) = spec.oom_score_adj {
        actions.push(Action::OomScoreAdj(number.to_string()));
    }
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

/// Which processors it gets, and when it gets them and the disks.
fn scheduling(spec: &Spec) -> Vec<Action> {
    let policy = spec.sched_policy.map(|policy| {
        let (policy, priority) = policy.numbers();
        Action::SchedPolicy { policy, priority }
    });
    let input_and_output = spec.ionice.map(|one| Action::IoPriority(one.number()));
    let processors = spec.cpu_affinity.as_ref().map(|numbers| {
        let most = numbers.iter().max().copied().unwrap_or(0) as usize;
        let mut words = vec![0u64; most / 64 + 1];
        for number in numbers {
            words[*number as usize / 64] |= 1 << (number % 64);
        }
        Action::CpuAffinity(words)
    });
    [policy, input_and_output, processors]
        .into_iter()
        .flatten()
        .collect()
}

/// The signals as the kernel has a mask.
fn mask(signals: &[Signal]) -> u64 {
    let bit = |signal: &Signal| 1u64.checked_shl(signal.number().cast_unsigned() - 1);
    signals
        .iter()
        .filter_map(bit)
        .fold(0, |mask, bit| mask | bit)
}

/// Changes of groups and user, in the order in which they are allowed.
fn credentials(spec: &Spec) -> Result<Vec<Action>, Invalid> {
    let mut actions = Vec::new();
    if let Some(groups) = &spec.extra_groups {
        let ids = groups
            .iter()
            .map(|group| group_id("extra_groups", group))
            .collect::<Result<_, _>>()?;
        actions.push(Action::Setgroups(ids));
    }
    if let Some(group) = &spec.group {
        actions.push(Action::Setgid(group_id("group", group)?));
    }
    if let Some(user) = &spec.user {
        actions.push(Action::Setuid(user_id(user)?));
    }
    Ok(actions)
}

fn user_id(user: &Account) -> Result<u32, Invalid> {
    let id = match user {
        Account::Id(id) => *id,
        Account::Name(name) => match nix::unistd::User::from_name(name) {
            Ok(Some(user)) => user.uid.as_raw(),
            Ok(None) => return Err(unknown("user", name)),
            Err(error) => return Err(unreadable("user", name, error)),
        },
    };
    possible("user", id)
}

fn group_id(what: &str, group: &Account) -> Result<u32, Invalid> {
    let id = match group {
        Account::Id(id) => *id,
        Account::Name(name) => match nix::unistd::Group::from_name(name) {
            Ok(Some(group)) => group.gid.as_raw(),
            Ok(None) => return Err(unknown(what, name)),
            Err(error) => return Err(unreadable(what, name, error)),
        },
    };
    possible(what, id)
}

/// Refuses the number that no account has: `(uid_t) -1`, by which setresuid(2) and its
/// kin mean "no change". The program would keep the user that it was to lose.
fn possible(what: &str, id: u32) -> Result<u32, Invalid> {
    if id <= Account::GREATEST_ID {
        return Ok(id);
    }
    Err(Invalid::new(
        what,
        format!("is {id}, which means \"no change\" to the system and is nobody's number"),
        format!("pass a name, or a number up to {}", Account::GREATEST_ID),
    ))
}

fn unknown(what: &str, name: &str) -> Invalid {
    Invalid::new(
        what,
        format!("is {name:?}, which is not known on this system"),
        "pass an existing name or a number",
    )
}

fn unreadable(what: &str, name: &str, error: nix::Error) -> Invalid {
    Invalid::new(
        what,
        format!("is {name:?}, which could not be looked up ({error})"),
        "pass a number, which needs no look-up",
    )
}
