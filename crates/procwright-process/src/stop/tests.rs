//! Stops of real processes. The children are this test program again, sent by
//! an environment variable into [`child`].
//!
//! No test has an upper time limit: a stop that does not end hangs its test,
//! and the children end by themselves after a minute.

#![allow(clippy::print_stderr)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::last_started::LastStarted;
use super::{Counts, Phase, Stopping};
use crate::holders::{self, PipeId, Role, RunPipe};
use crate::proc_id::ProcId;
use crate::process_handle::ProcessHandle;
use crate::tree::{Orphans, StopTarget};
use crate::{Scope, Signal, Stop, Survivor};
use procwright_os::{job_control, pidfd, proc, signal};
use test_support::forked as testing;

const ROLE: &str = "PROCWRIGHT_TEST_ROLE";
const HOST: &str = "PROCWRIGHT_TEST_HOST";

/// Long enough never to end in a test that does not wait for it.
const LONG: Duration = Duration::from_secs(40);
const SHORT: Duration = Duration::from_millis(50);

/// Says "ready" and which processes there are.
fn ready(pids: &[i32]) {
    let mut line = String::from("ready");
    for pid in pids {
        line += &format!(" {pid}");
    }
    line.push('\n');
    rustix::io::write(std::io::stderr(), line.as_bytes()).unwrap();
}

fn own_pid() -> i32 {
    std::process::id() as i32
}

/// Forks a child that does `work`, tells us with one byte, and stays.
fn fork_ready(work: impl FnOnce()) -> i32 {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let pid = testing::fork();
    if pid == 0 {
        work();
        rustix::io::write(&writer, b"x").unwrap();
        drop((reader, writer));
        testing::pause_for_ever();
    }
    drop(writer);
    reader.read_exact(&mut [0]).unwrap();
    pid
}

/// Forks twice with the process between gone; the grandchild does `work`.
fn fork_twice(work: impl FnOnce()) -> i32 {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let middle = testing::fork();
    if middle == 0 {
        if testing::fork() == 0 {
            work();
            rustix::io::write(&writer, &own_pid().to_ne_bytes()).unwrap();
            drop((reader, writer));
            testing::pause_for_ever();
        }
        testing::exit(0);
    }
    drop(writer);
    testing::wait(middle, false);
    let mut pid = [0; 4];
    reader.read_exact(&mut pid).unwrap();
    i32::from_ne_bytes(pid)
}

/// Forks a replacement and ends, again and again. With a pause, or process 1
/// would not get on with the reaping and the machine would run out of numbers.
fn chain() -> ! {
    let end = Instant::now() + Duration::from_secs(60);
    let nap = Timespec {
        tv_sec: 0,
        tv_nsec: 2_000_000,
    };
    loop {
        let _ = poll(&mut [], Some(&nap));
        if testing::fork() > 0 || Instant::now() > end {
            testing::exit(0);
        }
    }
}

/// Not a test: what the children of tests do.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    testing::watchdog();
    let ignore_term = || testing::ignore(signal::SIGTERM);
    match role.as_str() {
        "obey" => ready(&[]),
        "ignore" => {
            ignore_term();
            ready(&[]);
        }
        "child-ignores" => ready(&[fork_ready(ignore_term)]),
        "child-stopped" => {
            let pid = testing::fork();
            if pid == 0 {
                testing::raise(signal::SIGSTOP);
                testing::pause_for_ever();
            }
            testing::wait(pid, true);
            ready(&[pid]);
        }
        "child-setsid" => ready(&[fork_ready(|| {
            ignore_term();
            testing::setsid();
        })]),
        "child-own-group" => ready(&[fork_ready(|| {
            ignore_term();
            testing::own_group();
        })]),
        "orphan-with-pipe" => ready(&[fork_twice(ignore_term)]),
        "orphan-setsid-no-pipe" => {
            // The session's leader is between and stays.
            let (mut reader, writer) = std::io::pipe().unwrap();
            let leader = fork_ready(|| {
                testing::setsid();
                let orphan = fork_twice(|| {
                    ignore_term();
                    testing::close_standard();
                });
                rustix::io::write(&writer, &orphan.to_ne_bytes()).unwrap();
            });
            let mut pid = [0; 4];
            reader.read_exact(&mut pid).unwrap();
            ready(&[leader, i32::from_ne_bytes(pid)]);
        }
        "orphan-no-pipe" => ready(&[fork_twice(|| {
            ignore_term();
            testing::close_standard();
        })]),
        "wide" => {
            let pids: Vec<i32> = (0..200).map(|_| fork_ready(ignore_term)).collect();
            ready(&pids);
        }
        "storm" => {
            ignore_term();
            for _ in 0..4 {
                if testing::fork() == 0 {
                    chain();
                }
            }
            ready(&[]);
            // And a parent that never ceases.
            loop {
                let pid = testing::fork();
                if pid == 0 {
                    testing::exit(0);
                }
                testing::wait(pid, false);
            }
        }
        other => panic!("{other}"),
    }
    testing::pause_for_ever();
}

struct Run {
    child: Child,
    pids: Vec<i32>,
    target: StopTarget,
}

fn spawn(role: &str) -> Run {
    spawn_with(role, |_| {})
}

fn spawn_with(role: &str, set_up: impl FnOnce(&mut Command)) -> Run {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "stop::tests::child", "--nocapture"])
        .env(ROLE, role)
        .env_remove(HOST)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    set_up(&mut command);
    let mut child = command.spawn().unwrap();
    let stdout = child.stdout.as_ref().unwrap();
    let stderr = child.stderr.take().unwrap();
    let pipe = |id: std::io::Result<PipeId>, label| RunPipe::new(id.unwrap(), Role::Writes, label);
    let pipes = vec![
        pipe(PipeId::of(stdout), "stdout"),
        pipe(PipeId::of(&stderr), "stderr"),
    ];
    let mut stderr = BufReader::new(stderr);
    let mut line = String::new();
    while !line.starts_with("ready") {
        line.clear();
        assert!(
            stderr.read_line(&mut line).unwrap() > 0,
            "child of role {role} failed"
        );
    }
    // Put back, so that the pipe stays ours to read.
    child.stderr = Some(stderr.into_inner());
    let mut pids = vec![child.id() as i32];
    pids.extend(
        line.split_whitespace()
            .skip(1)
            .map(|n| n.parse::<i32>().unwrap()),
    );
    Run {
        target: StopTarget {
            root: ProcId::of(child.id() as i32).unwrap(),
            pipes,
            session: job_control::own_session(),
            orphans: Orphans::Unknown,
        },
        pids,
        child,
    }
}

struct Stopped {
    survivors: Vec<Survivor>,
    counts: Counts,
    took: Duration,
}

/// Drives a stop as a loop of the library does.
fn stop(run: &mut Run, stop: Stop) -> Stopped {
    let begun = Instant::now();
    let root = ProcessHandle::open(run.pids[0]).ok();
    let mut stopping = Stopping::begin(stop, run.target.clone(), root, begun);
    while !stopping.finished() {
        // With nobody left whose end could be told, nothing else would wake us.
        if stopping.fd().is_some() && stopping.survivors().is_empty() {
            assert!(
                stopping.deadline().reached(Instant::now()),
                "it would sleep"
            );
        }
        let timeout = stopping.deadline().remaining(Instant::now());
        let timeout = timeout.map(|t| Timespec::try_from(t).unwrap());
        match stopping.fd() {
            Some(fd) => {
                let mut fds = [PollFd::new(&fd, PollFlags::IN)];
                let _ = poll(&mut fds, timeout.as_ref());
            }
            None => {
                let _ = poll(&mut [], timeout.as_ref());
            }
        }
        stopping.step(Instant::now());
        if run.child.try_wait().unwrap().is_some() {}
    }
    let _ = run.child.try_wait();
    Stopped {
        survivors: stopping.survivors(),
        counts: stopping.counts(),
        took: begun.elapsed(),
    }
}

fn is_gone(pid: i32) -> bool {
    proc::stat(pid).map_or(true, |stat| stat.is_gone())
}

/// Whether any process but us holds a pipe of the run: nothing it started can
/// hide from that which did not close all three.
fn pipe_holders(run: &Run) -> Vec<holders::Holder> {
    let ids: Vec<PipeId> = run.target.pipes.iter().map(|p| p.id).collect();
    let ends = holders::of_pipes(&ids, own_pid(), 0).unwrap();
    // A child of another test, just being started, holds a copy until its exec:
    // told by its holding our end too.
    let readers: Vec<_> = ends.iter().flat_map(|e| e.readers.list.clone()).collect();
    ends.into_iter()
        .flat_map(|e| e.writers.list)
        .filter(|h| !readers.contains(h))
        .collect()
}

fn assert_nothing_left(run: &Run, stopped: &Stopped) {
    assert_eq!(stopped.survivors, []);
    assert_none_lives(run);
}

/// As [`assert_nothing_left`], of a run that starts processes all the time: on a machine that
/// is busy enough it may outlive its stop, and that is told.
fn assert_nothing_left_of_a_storm(run: &Run, stopped: &Stopped) {
    if stopped.survivors.is_empty() {
        assert_none_lives(run);
    }
    while let Some(left) = pipe_holders(run).first() {
        let _ = signal::kill(left.pid, signal::SIGKILL);
    }
}

fn assert_none_lives(run: &Run) {
    for &pid in &run.pids {
        assert!(
            is_gone(pid),
            "{pid} of {:?} lives: {:?}",
            run.pids,
            proc::stat(pid)
        );
    }
    assert_eq!(pipe_holders(run), []);
}

fn tree(grace: Duration) -> Stop {
    Stop::new().with_grace(grace)
}

#[test]
fn one_that_obeys_ends_the_grace_at_once() {
    let mut run = spawn("obey");
    let stopped = stop(&mut run, tree(LONG));
    assert_nothing_left(&run, &stopped);
    assert!(stopped.took < LONG);
    assert_eq!(stopped.counts.freeze_passes, 0, "was killed");
    use std::os::unix::process::ExitStatusExt as _;
    let status = run.child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::TERM.number()));
}

#[test]
fn one_that_ignores_it_is_killed_after_the_grace() {
    for scope in [Scope::Process, Scope::Tree] {
        let mut run = spawn("ignore");
        let stopped = stop(&mut run, tree(SHORT).with_scope(scope));
        assert!(stopped.took >= SHORT);
        assert_nothing_left(&run, &stopped);
    }
}

#[test]
fn kill_has_no_grace() {
    let mut run = spawn("child-ignores");
    let stopped = stop(&mut run, Stop::kill().with_grace(LONG));
    assert_nothing_left(&run, &stopped);
    assert!(stopped.took < LONG);
}

#[test]
fn a_leader_that_goes_does_not_save_its_child() {
    let mut run = spawn("child-ignores");
    let stopped = stop(&mut run, tree(SHORT));
    assert!(stopped.took >= SHORT);
    assert_nothing_left(&run, &stopped);
}

#[test]
fn scope_process_leaves_the_child() {
    let mut run = spawn("child-ignores");
    let stopped = stop(&mut run, tree(LONG).with_scope(Scope::Process));
    assert_eq!(stopped.survivors, []);
    assert!(is_gone(run.pids[0]) && !is_gone(run.pids[1]));
    signal::kill(run.pids[1], signal::SIGKILL).unwrap();
}

#[test]
fn scope_group_outlives_its_leader_and_ends_at_its_border() {
    use std::os::unix::process::CommandExt as _;
    let mut run = spawn_with("child-ignores", |c| {
        c.process_group(0);
    });
    let stopped = stop(&mut run, tree(SHORT).with_scope(Scope::Group));
    assert!(stopped.took >= SHORT);
    assert_nothing_left(&run, &stopped);

    let mut run = spawn_with("child-own-group", |c| {
        c.process_group(0);
    });
    let stopped = stop(&mut run, tree(LONG).with_scope(Scope::Group));
    assert_eq!(stopped.survivors, []);
    assert!(is_gone(run.pids[0]) && !is_gone(run.pids[1]));
    signal::kill(run.pids[1], signal::SIGKILL).unwrap();
}

#[test]
fn scope_group_never_means_our_own_group() {
    // No group was made for it.
    let mut run = spawn("obey");
    let stopped = stop(&mut run, tree(LONG).with_scope(Scope::Group));
    assert_nothing_left(&run, &stopped);
}

#[test]
fn a_stopped_member_acts_on_the_signal() {
    let mut run = spawn("child-stopped");
    let stopped = stop(&mut run, tree(LONG));
    assert_nothing_left(&run, &stopped);
    assert_eq!(stopped.counts.freeze_passes, 0, "was killed");
}

#[test]
fn sessions_and_groups_of_their_own() {
    for role in ["child-setsid", "child-own-group", "orphan-setsid-no-pipe"] {
        let mut run = spawn(role);
        let stopped = stop(&mut run, tree(SHORT));
        assert_nothing_left(&run, &stopped);
    }
}

#[test]
fn an_orphan_is_found_by_our_pipe() {
    let mut run = spawn("orphan-with-pipe");
    let stopped = stop(&mut run, tree(SHORT));
    assert_nothing_left(&run, &stopped);
}

#[test]
fn an_orphan_is_found_after_the_root_was_reaped() {
    let mut run = spawn("orphan-with-pipe");
    signal::kill(run.pids[0], signal::SIGKILL).unwrap();
    run.child.wait().unwrap();
    let stopped = stop(&mut run, tree(SHORT));
    assert!(stopped.took >= SHORT);
    assert_nothing_left(&run, &stopped);
}

/// The limit that the documentation states.
#[test]
fn an_orphan_without_pipe_session_or_group_is_not_found() {
    let mut run = spawn("orphan-no-pipe");
    let stopped = stop(&mut run, tree(SHORT));
    assert_eq!(stopped.survivors, []);
    assert!(is_gone(run.pids[0]) && !is_gone(run.pids[1]));
    signal::kill(run.pids[1], signal::SIGKILL).unwrap();
}

#[test]
fn another_runs_processes_are_left_alone() {
    let mut other = spawn("child-ignores");
    let mut run = spawn("storm");
    let stopped = stop(&mut run, Stop::kill());
    assert_nothing_left_of_a_storm(&run, &stopped);
    assert!(other.pids.iter().all(|&pid| !is_gone(pid)));
    let stopped = stop(&mut other, Stop::kill());
    assert_nothing_left(&other, &stopped);
}

#[test]
fn two_hundred_members() {
    let mut run = spawn("wide");
    assert_eq!(run.pids.len(), 201);
    let stopped = stop(&mut run, tree(SHORT));
    assert_nothing_left(&run, &stopped);
}

#[test]
fn a_fork_storm() {
    for _ in 0..5 {
        let mut run = spawn("storm");
        let stopped = stop(&mut run, tree(SHORT));
        eprintln!("storm: {:?} {:?}", stopped.took, stopped.counts);
        assert_nothing_left_of_a_storm(&run, &stopped);
    }
}

/// A stop by SIGKILL that is late: its members have been killed and have ended, there was no
/// step since, and the time for the killed is long over.
fn late_stop(run: &mut Run) -> Stopping {
    // The clock of a stop must not be ahead: a step looks who has ended until then.
    let now = Instant::now().checked_sub(LATE).unwrap();
    let root = ProcessHandle::open(run.pids[0]).ok();
    let mut stopping = Stopping::begin(Stop::kill(), run.target.clone(), root, now);
    while !matches!(stopping.phase, Phase::Kill { .. }) {
        let nap = Timespec::try_from(Duration::from_millis(1)).unwrap();
        let _ = poll(&mut [], Some(&nap));
        // The clock stands still, so that the time to stand still is never over.
        stopping.step(now);
    }
    run.child.wait().unwrap();
    stopping
}

/// Starts an orphan that holds a pipe of the run: one that a survey has missed.
fn start_missed(run_stdout: &std::fs::File) {
    let mut parent = Command::new("sh")
        .args(["-c", "sleep 60 &"])
        .stdin(Stdio::null())
        .stdout(run_stdout.try_clone().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    parent.wait().unwrap();
}

/// The program's end of its stdout.
fn stdout_of(run: &Run) -> std::fs::File {
    let path = format!("/proc/{}/fd/1", run.pids[0]);
    std::fs::File::options().write(true).open(path).unwrap()
}

/// Longer than the time that the killed have.
const LATE: Duration = Duration::from_secs(5);

#[test]
fn a_step_that_comes_late_looks_once_more() {
    let mut run = spawn("obey");
    let mut stopping = late_stop(&mut run);
    let before = stopping.counts().surveys;
    stopping.step(Instant::now());
    assert!(stopping.finished());
    // One for what was forked before all stood, one when all had ended.
    assert!(stopping.counts().surveys - before >= 2);
    assert_eq!(stopping.survivors(), []);
}

#[test]
fn who_was_there_before_the_first_signal_gets_it_whatever_the_system_says() {
    let mut run = spawn("obey");
    let root = ProcessHandle::open(run.pids[0]).ok();
    let mut stopping = Stopping::prepare(tree(LONG), run.target.clone(), root);
    // The numbers of another namespace: everybody seems to have been started later.
    stopping.signalled_after = Some(LastStarted::NONE);
    stopping.send_first_signal();
    let ended = run.child.wait().unwrap();
    assert_eq!(ended.signal(), Some(signal::SIGTERM));
}

#[test]
fn who_outruns_a_stop_is_told_of() {
    let mut run = spawn("obey");
    let stdout = stdout_of(&run);
    let mut stopping = late_stop(&mut run);
    start_missed(&stdout);
    stopping.kill_work = Duration::ZERO;
    stopping.tree.always_cut = true;
    stopping.step(Instant::now());
    assert!(stopping.finished());
    let survivors = stopping.survivors();
    // The missed one itself may not have ended yet.
    assert_eq!(
        survivors.last().map(|one| one.pid),
        Some(None),
        "{survivors:?}"
    );
}

#[test]
fn who_outruns_a_stop_is_looked_for_again() {
    let mut run = spawn("obey");
    let stdout = stdout_of(&run);
    let mut stopping = late_stop(&mut run);
    start_missed(&stdout);
    stopping.kill_work = Duration::MAX;
    stopping.tree.always_cut = true;
    while !stopping.outruns {
        stopping.step(Instant::now());
    }
    for _ in 0..3 {
        stopping.step(Instant::now());
        assert!(!stopping.finished());
    }
}

#[test]
fn strangers_that_come_and_go_are_no_news() {
    let mut run = spawn("obey");
    let mut stopping = late_stop(&mut run);
    stopping.tree.always_cut = true;
    stopping.step(Instant::now());
    assert!(stopping.finished());
    assert_eq!(stopping.survivors(), []);
}

fn in_own_process(test: &str) -> bool {
    if std::env::var_os(HOST).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("stop::tests::{test}"), "--nocapture"])
        .env(HOST, "1")
        .env_remove(ROLE)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

#[test]
fn a_reaper_finds_every_orphan() {
    if !in_own_process("a_reaper_finds_every_orphan") {
        return;
    }
    testing::become_reaper();
    let mut run = spawn("orphan-no-pipe");
    run.target.orphans = Orphans::OfRun;
    let stopped = stop(&mut run, tree(SHORT));
    assert_nothing_left(&run, &stopped);
    assert_eq!(testing::reap_all(), 1);
}

#[test]
fn without_pidfds() {
    if !in_own_process("without_pidfds") {
        return;
    }
    deny_pidfd_open();
    assert!(matches!(
        pidfd::open(own_pid()),
        Err(pidfd::OpenError::Unavailable)
    ));
    for role in ["child-ignores", "child-setsid", "orphan-with-pipe", "storm"] {
        let mut run = spawn(role);
        let stopped = stop(&mut run, tree(SHORT));
        match role {
            "storm" => assert_nothing_left_of_a_storm(&run, &stopped),
            _ => assert_nothing_left(&run, &stopped),
        }
        assert!(stopped.counts.rechecks > 0);
    }
    let mut run = spawn("obey");
    let stopped = stop(&mut run, tree(LONG));
    assert_nothing_left(&run, &stopped);
    assert!(stopped.took < LONG);
}

fn deny_pidfd_open() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let filter = SeccompFilter::new(
        [(libc_numbers::PIDFD_OPEN, vec![])].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(1),
        std::env::consts::ARCH.try_into().unwrap(),
    )
    .unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

mod libc_numbers {
    /// This number is the same on every architecture.
    pub(super) const PIDFD_OPEN: i64 = 434;
}

#[test]
fn without_a_free_descriptor() {
    if !in_own_process("without_a_free_descriptor") {
        return;
    }
    let mut run = spawn("child-ignores");
    // For a survey, and one pidfd; the epoll instance takes the first.
    let next = rustix::io::dup(std::io::stderr()).unwrap();
    use std::os::fd::AsRawFd as _;
    let lowest = next.as_raw_fd() as u64;
    drop(next);
    testing::limit_files(lowest + 3);
    let stopped = stop(&mut run, tree(SHORT));
    testing::limit_files(lowest + 3);
    assert_nothing_left(&run, &stopped);
    assert!(stopped.counts.rechecks > 0);
}

#[test]
fn another_users_process_survives_and_is_named() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("REQUIRE_ALL").is_none(), "needs root");
        eprintln!("skipped: needs root");
        return;
    }
    if !in_own_process("another_users_process_survives_and_is_named") {
        return;
    }
    // It goes when we do, of its own accord: no one here may kill it.
    let (mut reader, writer) = std::io::pipe().unwrap();
    let pid = testing::fork();
    if pid == 0 {
        drop(writer);
        let _ = reader.read(&mut [0]);
        testing::exit(0);
    }
    let target = StopTarget {
        root: ProcId::of(pid).unwrap(),
        pipes: Vec::new(),
        session: None,
        orphans: Orphans::Unknown,
    };
    testing::become_user(65534);
    for stop in [
        tree(SHORT),
        tree(SHORT).with_scope(Scope::Process),
        Stop::kill(),
    ] {
        let root = ProcessHandle::open(pid).ok();
        let mut stopping = Stopping::begin(stop, target.clone(), root, Instant::now());
        while !stopping.finished() {
            let timeout = stopping.deadline().remaining(Instant::now()).unwrap();
            let fd = stopping.fd().unwrap();
            let mut fds = [PollFd::new(&fd, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&Timespec::try_from(timeout).unwrap()));
            stopping.step(Instant::now());
        }
        let survivors = stopping.survivors();
        assert_eq!(survivors.len(), 1);
        assert_eq!(survivors[0].pid, Some(pid));
        assert_eq!(survivors[0].state, 'S');
    }
}

#[test]
fn many_stops_leave_nothing() {
    if !in_own_process("many_stops_leave_nothing") {
        return;
    }
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    let mut sum = Duration::ZERO;
    let mut counts = Counts::default();
    for i in 0..200 {
        let role = ["child-ignores", "child-setsid", "orphan-with-pipe", "obey"][i % 4];
        let mut run = spawn(role);
        let grace = if i % 8 < 4 {
            SHORT / 10
        } else {
            Duration::ZERO
        };
        let stopped = stop(&mut run, tree(grace));
        assert_nothing_left(&run, &stopped);
        sum += stopped.took;
        counts.surveys += stopped.counts.surveys;
        counts.freeze_passes += stopped.counts.freeze_passes;
    }
    assert_eq!(open(), before);
    assert_eq!(testing::reap_all(), 0, "a zombie was left");
    eprintln!("200 stops in {sum:?}, {counts:?}");
}

#[test]
fn who_is_blocked_is_told() {
    // Its parent reads nothing, and says nothing but "ready".
    let run = spawn("obey");
    let activity = holders::activity(run.pids[0], &run.target.pipes).unwrap();
    assert_eq!(activity.pid, run.pids[0]);
    // The first thread of a test program waits for the one that runs the test.
    assert!(
        !matches!(
            activity.doing,
            holders::Doing::Zombie | holders::Doing::Stopped
        ),
        "{activity}"
    );
    let mut run = run;
    signal::kill(run.pids[0], signal::SIGSTOP).unwrap();
    let stopped = stop(&mut run, Stop::kill());
    assert_nothing_left(&run, &stopped);
    let _ = run.child.stdout.as_ref().map(|s| s.as_fd());
}
