//! A gallery of programs that hang and of programs that do not, each with its verdict, the
//! name of the hang, and who is named.
//!
//! A scene is a Python program that prints `role=PID …` when it is set up. It is looked at
//! until it is as it should be, since nothing announces that a program has begun to wait;
//! then it has to stay so. What must not be found is looked for from the beginning.
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use procwright_explain::{Diagnosis, Pattern, Verdict, examine};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use test_support::{say, scaled, skip, watchdog};

/// Time between the two looks: enough for who runs to be seen to.
const BETWEEN: Duration = Duration::from_millis(30);

struct Scene {
    name: &'static str,
    program: &'static str,
    verdict: Verdict,
    pattern: Option<Pattern>,
    /// Roles of those whom the finding names.
    names: &'static [&'static str],
    /// Roles of those behind it.
    behind: &'static [&'static str],
    /// Text that the sentence or the remedy has.
    says: &'static str,
    /// It is proven only where everybody may be looked at: who made the pipes has closed
    /// them, or has ended.
    all_seen: bool,
}

/// What each program begins with.
const PRELUDE: &str = r"
import fcntl, os, pty, select, signal, socket, subprocess, sys, tempfile, threading, time
from subprocess import DEVNULL, PIPE, Popen
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
ME = os.getpid()
# Start times are told in hundredths of a second: older than its pipes by more than that.
time.sleep(0.1)

def say(**roles):
    print(' '.join(f'{role}={pid}' for role, pid in roles.items()), flush=True)

def python(code, **options):
    return Popen([sys.executable, '-c', 'import fcntl, os, signal, sys, time\n' + code], **options)

def terminal(*words, **roles):
    'A program with a terminal of its own, at which nobody types.'
    pid, master = pty.fork()
    if pid == 0:
        os.execvp(words[0], words)
    say(asked=pid, program=pid)
    # What it shows is taken, so that it never waits for room.
    while True:
        try:
            os.read(master, 4096)
        except OSError:
            signal.pause()

def child_of(pid):
    while not (children := open(f'/proc/{pid}/task/{pid}/children').read().split()):
        time.sleep(0.01)
    return children[0]
";

fn scene(name: &'static str, program: &'static str, verdict: Verdict) -> Scene {
    Scene {
        name,
        program,
        verdict,
        pattern: None,
        names: &[],
        behind: &[],
        says: "",
        all_seen: false,
    }
}

fn hang(
    name: &'static str,
    verdict: Verdict,
    pattern: Pattern,
    names: &'static [&'static str],
    program: &'static str,
) -> Scene {
    Scene {
        pattern: Some(pattern),
        names,
        ..scene(name, program, verdict)
    }
}

/// A scene that runs, with its roles; it and all that it has started are killed on drop.
struct Running {
    child: Child,
    _dir: tempfile::TempDir,
    roles: BTreeMap<String, i32>,
}

impl Running {
    fn start(program: &str) -> Running {
        let dir = tempfile::tempdir().expect("a folder");
        let mut python = Command::new("python3");
        // SAFETY: one system call, which allocates nothing.
        unsafe {
            // Some scenes never end, and must not go on beyond their test.
            python.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let mut child = python
            .current_dir(&dir)
            .args(["-c", &format!("{PRELUDE}{program}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("python3");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its stdout");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let roles = line
            .split_whitespace()
            .map(|word| {
                let (role, pid) = word.split_once('=').expect("role=PID");
                (role.to_owned(), pid.parse().expect("a pid"))
            })
            .collect();
        Running {
            child,
            _dir: dir,
            roles,
        }
    }

    fn pid(&self, role: &str) -> i32 {
        self.roles[role]
    }

    fn examine(&self) -> Diagnosis {
        let asked = self.roles.get("asked").or(self.roles.get("me"));
        examine(&[*asked.expect("whom to ask about")], BETWEEN).expect("a diagnosis")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let own = Pid::from_child(&self.child);
        // Sessions of their own: those of terminals.
        let others = self.roles.values().filter_map(|pid| Pid::from_raw(*pid));
        for pid in others.chain([own]) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        let _ = kill_process_group(own, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// What of the diagnosis is not as the scene says.
fn fault(
    scene: &Scene,
    running: &Running,
    diagnosis: &Diagnosis,
    may_be_doubted: bool,
) -> Result<(), String> {
    let doubted = scene.verdict == Verdict::Proven
        && diagnosis.verdict == Verdict::Possible
        && !diagnosis.unseen.is_empty()
        && (may_be_doubted || scene.all_seen);
    if diagnosis.verdict != scene.verdict && !doubted {
        return Err(format!(
            "{:?} and not {:?}",
            diagnosis.verdict, scene.verdict
        ));
    }
    let Some(pattern) = scene.pattern else {
        return match diagnosis.findings.as_slice() {
            [] => Ok(()),
            _ => Err(String::from("a finding too many")),
        };
    };
    let Some(finding) = diagnosis.findings.first() else {
        return Err(String::from("no finding"));
    };
    if finding.pattern != pattern {
        return Err(format!("{:?} and not {pattern:?}", finding.pattern));
    }
    let mut named: Vec<i32> = scene.names.iter().map(|role| running.pid(role)).collect();
    named.sort_unstable();
    if finding.processes != named {
        return Err(format!(
            "it names {:?} and not {named:?}",
            finding.processes
        ));
    }
    for role in scene.behind {
        if !finding.behind.contains(&running.pid(role)) {
            return Err(format!("{role} is not behind it: {:?}", finding.behind));
        }
    }
    let said = format!("{} {}", finding.sentence, finding.fix);
    match said.contains(scene.says) && !finding.fix.is_empty() {
        true => Ok(()),
        false => Err(format!("{:?} is not said in {said:?}", scene.says)),
    }
}

/// True if a deadlock whose pipes' maker is seen is proven here, though process 1 may not be
/// looked at: pipes tell when they were made from Linux 6.15 on, and as root nobody else is
/// hidden.
fn always_proves() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release
        .split('.')
        .map_while(|number| number.parse::<u32>().ok());
    let release = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    release >= (6, 15) && rustix::process::geteuid().is_root()
}

fn show(scenes: &[Scene]) {
    let looks = scaled(3, 300);
    for scene in scenes {
        let _watchdog = watchdog(scene.name);
        let running = Running::start(scene.program);
        let mut last = String::new();
        // The watchdog ends this.
        loop {
            let diagnosis = running.examine();
            // What others of this machine hide is no fault, as an io_uring does.
            let has_ring = diagnosis.unseen.iter().any(|one| one.contains("io_uring"));
            let may_be_doubted = has_ring || !always_proves();
            let fault = fault(scene, &running, &diagnosis, may_be_doubted);
            let false_proof =
                diagnosis.verdict == Verdict::Proven && scene.verdict != Verdict::Proven;
            assert!(!false_proof, "{}: {}", scene.name, diagnosis.text(false));
            match fault {
                Ok(()) => break,
                Err(fault) if fault != last => {
                    // For whoever reads what the watchdog has ended.
                    say(&format!(
                        "{}: {fault}\n{}",
                        scene.name,
                        diagnosis.text(false)
                    ));
                    last = fault;
                }
                Err(_) => {}
            }
        }
        for _ in 0..looks {
            let diagnosis = running.examine();
            if let Err(fault) = fault(scene, &running, &diagnosis, true) {
                panic!("{}: {fault}\n{}", scene.name, diagnosis.text(false));
            }
            let text = diagnosis.text(false);
            let lines = text.lines().all(|line| line.chars().count() <= 80);
            assert!(lines, "{}:\n{text}", scene.name);
        }
    }
}

fn has_python(test: &str) -> bool {
    let found = Command::new("python3")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        skip(test, "there is no python3");
    }
    found
}

#[test]
fn circles_of_pipes_are_proven() {
    use Pattern::{
        BothRead, BothWrite, Circle, LeakedWriteEnd, OwnWriteEnd, UnreadOutput, WaitBeforeClose,
        WaitBeforeRead,
    };
    use Verdict::Proven;
    if !has_python("circles_of_pipes_are_proven") {
        return;
    }
    show(&[
        Scene {
            says: "stderr of it is full",
            ..hang(
                "stderr is full while stdout is read",
                Proven,
                UnreadOutput,
                &["me", "child"],
                r"
child = python('os.write(2, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
child.stdout.read()
",
            )
        },
        Scene {
            says: "stdout of it is full",
            ..hang(
                "stdout is full while stderr is read",
                Proven,
                UnreadOutput,
                &["me", "child"],
                r"
child = python('os.write(1, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
child.stderr.read()
",
            )
        },
        // The shell has put its stdout aside, as descriptor 10.
        Scene {
            says: "reads something else, of sh",
            ..hang(
                "stderr of a shell's program is full while stdout is read",
                Proven,
                UnreadOutput,
                &["me", "shell", "seq"],
                r"
child = Popen(['sh', '-c', 'seq 200000 >&2; echo done'], stdout=PIPE, stderr=PIPE)
say(me=ME, shell=child.pid, seq=child_of(child.pid))
child.stdout.read()
",
            )
        },
        Scene {
            says: "waits for the end of sh",
            ..hang(
                "a wait before the read of a shell's program",
                Proven,
                WaitBeforeRead,
                &["me", "shell", "seq"],
                r"
child = Popen(['sh', '-c', 'seq 200000; echo done'], stdout=PIPE)
say(me=ME, shell=child.pid, seq=child_of(child.pid))
child.wait()
",
            )
        },
        hang(
            "a wait before the read",
            Proven,
            WaitBeforeRead,
            &["me", "child"],
            r"
child = python('os.write(1, bytes(1 << 20))', stdout=PIPE)
say(me=ME, child=child.pid)
child.wait()
",
        ),
        hang(
            "stdin is written while stdout fills",
            Proven,
            BothWrite,
            &["me", "child"],
            r"
child = Popen(['cat'], stdin=PIPE, stdout=PIPE)
say(me=ME, child=child.pid)
child.stdin.write(bytes(1 << 20))
",
        ),
        hang(
            "a wait for who reads until the end",
            Proven,
            WaitBeforeClose,
            &["me", "child"],
            r"
child = Popen(['cat'], stdin=PIPE)
say(me=ME, child=child.pid)
child.wait()
",
        ),
        hang(
            "each waits for a word",
            Proven,
            BothRead,
            &["me", "child"],
            r"
child = Popen(['cat'], stdin=PIPE, stdout=PIPE)
say(me=ME, child=child.pid)
child.stdout.read(1)
",
        ),
        Scene {
            says: "In python3",
            ..hang(
                "its own write end",
                Proven,
                OwnWriteEnd,
                &["me"],
                r"
signal.signal(signal.SIGINT, signal.SIG_DFL)
read, write = os.pipe()
say(me=ME)
os.read(read, 1)
",
            )
        },
        Scene {
            behind: &["me"],
            all_seen: true,
            ..hang(
                "a child inherits the write end of its stdin",
                Proven,
                OwnWriteEnd,
                &["child"],
                r"
read, write = os.pipe()
child = Popen(['cat'], stdin=read, pass_fds=[write])
os.close(read); os.close(write)
say(me=ME, child=child.pid)
child.wait()
",
            )
        },
        Scene {
            says: "has inherited the write end",
            all_seen: true,
            ..hang(
                "a sibling has the write end",
                Proven,
                LeakedWriteEnd,
                &["me", "one", "two"],
                r"
one = Popen(['cat'], stdin=PIPE)
two = Popen(['cat'], stdin=PIPE, pass_fds=[one.stdin.fileno()])
one.stdin.close()
say(me=ME, one=one.pid, two=two.pid)
one.wait()
",
            )
        },
        Scene {
            all_seen: true,
            ..hang(
                "three in a ring",
                Proven,
                Circle,
                &["a", "b", "c"],
                r"
pipes = [os.pipe() for _ in range(3)]
ring = [Popen(['cat'], stdin=pipes[i][0], stdout=pipes[(i + 1) % 3][1]) for i in range(3)]
for read, write in pipes:
    os.close(read); os.close(write)
say(me=ME, a=ring[0].pid, b=ring[1].pid, c=ring[2].pid)
for one in ring: one.wait()
",
            )
        },
        Scene {
            behind: &["me"],
            ..hang(
                "a shell waits for those who hang",
                Proven,
                UnreadOutput,
                &["parent", "child"],
                r"
code = '''
import os, subprocess, sys, time
time.sleep(0.1)
child = subprocess.Popen([sys.executable, '-c', 'import os; os.write(2, bytes(1 << 20))'],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
os.write(int(sys.argv[1]), str(child.pid).encode())
child.stdout.read()
'''
read, write = os.pipe()
parent = Popen([sys.executable, '-c', code, str(write)], pass_fds=[write])
child = int(os.read(read, 100))
say(me=ME, parent=parent.pid, child=child)
parent.wait()
",
            )
        },
        hang(
            "other threads that wait for locks",
            Proven,
            WaitBeforeClose,
            &["me", "child"],
            r"
lock = threading.Lock(); lock.acquire()
for _ in range(3): threading.Thread(target=lock.acquire, daemon=True).start()
child = Popen(['cat'], stdin=PIPE)
say(me=ME, child=child.pid)
child.wait()
",
        ),
        hang(
            "a poll without a limit",
            Proven,
            UnreadOutput,
            &["me", "child"],
            r"
child = python('os.write(2, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
poll = select.poll(); poll.register(child.stdout, select.POLLIN); poll.poll()
",
        ),
        hang(
            "an epoll without a limit",
            Proven,
            UnreadOutput,
            &["me", "child"],
            r"
child = python('os.write(2, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
poll = select.epoll(); poll.register(child.stdout, select.EPOLLIN); poll.poll()
",
        ),
        hang(
            "a select without a limit",
            Proven,
            UnreadOutput,
            &["me", "child"],
            r"
child = python('os.write(2, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
select.select([child.stdout], [], [])
",
        ),
    ]);
}

#[test]
fn circles_of_locks_are_proven() {
    if !has_python("circles_of_locks_are_proven") {
        return;
    }
    show(&[Scene {
        all_seen: true,
        ..hang(
            "two files in the wrong order",
            Verdict::Proven,
            Pattern::FileLocks,
            &["a", "b"],
            r"
a, b = tempfile.TemporaryFile(), tempfile.TemporaryFile()
files = [f'/proc/{ME}/fd/{file.fileno()}' for file in (a, b)]
code = '''
first, second = open(sys.argv[1], 'r+'), open(sys.argv[2], 'r+')
fcntl.flock(first, fcntl.LOCK_EX)
os.write(1, b'x'); os.read(0, 1)
os.close(0); os.close(1)
fcntl.flock(second, fcntl.LOCK_EX)
'''
def locker(*files):
    return Popen([sys.executable, '-c', 'import fcntl, os, sys' + code, *files], stdin=PIPE, stdout=PIPE)
one, two = locker(*files), locker(*reversed(files))
one.stdout.read(1); two.stdout.read(1)
for each in (one, two): each.stdin.write(b'x'); each.stdin.flush()
say(me=ME, a=one.pid, b=two.pid)
one.wait()
",
        )
    }]);
    show(&[Scene {
        all_seen: true,
        says: "waits for a lock of a file that it holds itself",
        ..hang(
            "a lock that was inherited",
            Verdict::Proven,
            Pattern::FileLocks,
            &["taker"],
            r"
held = tempfile.TemporaryFile()
fcntl.flock(held, fcntl.LOCK_EX)
path = f'/proc/{ME}/fd/{held.fileno()}'
taker = Popen(['flock', path, 'true'], pass_fds=[held.fileno()])
say(me=ME, taker=taker.pid)
taker.wait()
",
        )
    }]);
}

#[test]
fn what_was_not_seen_is_no_proof() {
    use Verdict::{Healthy, Possible};
    if !has_python("what_was_not_seen_is_no_proof") {
        return;
    }
    show(&[
        Scene {
            says: "",
            ..hang(
                "a handler that may be called",
                Possible,
                Pattern::WaitBeforeClose,
                &["me", "child"],
                r"
signal.signal(signal.SIGALRM, lambda *_: None)
child = Popen(['cat'], stdin=PIPE)
say(me=ME, child=child.pid)
child.wait()
",
            )
        },
        hang(
            "a pipe to oneself that a handler of SIGINT may feed",
            Possible,
            Pattern::OwnWriteEnd,
            &["me"],
            r"
read, write = os.pipe()
signal.signal(signal.SIGINT, lambda *_: os.write(write, b'x'))
say(me=ME)
os.read(read, 1)
",
        ),
        scene(
            "an epoll whose member has another number by now",
            r"
signal.signal(signal.SIGINT, signal.SIG_DFL)
idle = Popen(['sleep', '10000'], stdout=PIPE)
number = idle.stdout.fileno()
poll = select.epoll(); poll.register(number, select.EPOLLIN)
keep = os.dup(number)
read, write = os.pipe()
os.dup2(read, number); os.close(read)
say(me=ME, idle=idle.pid)
poll.poll()
",
            Healthy,
        ),
        hang(
            "a pipe to oneself that a handler may feed",
            Possible,
            Pattern::OwnWriteEnd,
            &["me"],
            r"
read, write = os.pipe()
signal.signal(signal.SIGTERM, lambda *_: os.write(write, b'x'))
say(me=ME)
os.read(read, 1)
",
        ),
        hang(
            "sockets may have time limits",
            Possible,
            Pattern::BothRead,
            &["me", "child"],
            r"
ours, theirs = socket.socketpair()
child = Popen(['cat'], stdin=theirs, stdout=theirs)
theirs.close()
say(me=ME, child=child.pid)
ours.recv(1)
",
        ),
        hang(
            "a FIFO may be opened by anybody",
            Possible,
            Pattern::BothRead,
            &["me", "child"],
            r"
path = os.path.abspath('fifo')
os.mkfifo(path)
keep = os.open(path, os.O_RDWR)
child = python(f'f = os.open({path!r}, os.O_RDONLY); os.write(1, b\'x\'); os.read(f, 1)', stdout=PIPE)
child.stdout.read(1)
write = os.open(path, os.O_WRONLY); os.close(keep)
say(me=ME, child=child.pid)
child.stdout.read(1)
",
        ),
        scene(
            "a thread that sleeps may yet read",
            r"
threading.Thread(target=time.sleep, args=[10000], daemon=True).start()
child = Popen(['cat'], stdin=PIPE)
say(me=ME, child=child.pid)
child.wait()
",
            Healthy,
        ),
        hang(
            "a poll with a limit",
            Verdict::Slow,
            Pattern::SlowReader,
            &["me", "child"],
            r"
child = python('os.write(2, bytes(1 << 20))', stdout=PIPE, stderr=PIPE)
say(me=ME, child=child.pid)
select.select([child.stdout], [], [], 10000)
",
        ),
        scene(
            "somebody else has the write end, and sleeps",
            r"
child = Popen(['cat'], stdin=PIPE)
other = Popen(['sleep', '10000'], pass_fds=[child.stdin.fileno()])
say(me=ME, child=child.pid, other=other.pid)
child.wait()
",
            Healthy,
        ),
    ]);
}

#[test]
fn hangs_that_are_no_circles() {
    use Verdict::{Possible, Slow, Stopped};
    if !has_python("hangs_that_are_no_circles") {
        return;
    }
    show(&[
        Scene {
            says: "nobody opens its other end",
            ..hang(
                "a FIFO that nobody reads",
                Possible,
                Pattern::FifoPartner,
                &["child"],
                r"
path = os.path.abspath('fifo')
os.mkfifo(path)
child = python(f'open({path!r}, \'w\')')
say(asked=child.pid, me=ME, child=child.pid)
child.wait()
",
            )
        },
        Scene {
            behind: &["me"],
            says: "/fifo",
            ..hang(
                "a FIFO that nobody writes",
                Possible,
                Pattern::FifoPartner,
                &["child"],
                r"
path = os.path.abspath('fifo')
os.mkfifo(path)
child = Popen(['cat', path])
say(me=ME, child=child.pid)
child.wait()
",
            )
        },
        Scene {
            says: "holds open",
            ..hang(
                "what a program has left behind holds its output",
                Possible,
                Pattern::HeldOpen,
                &["me"],
                r"
child = Popen(['sh', '-c', 'sleep 10000 & echo $!'], stdout=PIPE)
left = int(child.stdout.readline())
say(me=ME, child=child.pid, left=left)
child.stdout.read()
",
            )
        },
        Scene {
            behind: &["me"],
            says: "is stopped by SIGSTOP",
            ..hang(
                "a child is stopped",
                Stopped,
                Pattern::Stopped,
                &["child"],
                r"
child = Popen(['sleep', '10000'])
os.kill(child.pid, signal.SIGSTOP)
say(me=ME, child=child.pid)
child.wait()
",
            )
        },
        Scene {
            behind: &["writer", "me"],
            ..hang(
                "a stage is stopped",
                Stopped,
                Pattern::Stopped,
                &["reader"],
                r"
writer = Popen(['yes'], stdout=PIPE)
reader = Popen(['cat'], stdin=writer.stdout, stdout=DEVNULL)
writer.stdout.close()
os.kill(reader.pid, signal.SIGSTOP)
say(me=ME, reader=reader.pid, writer=writer.pid)
writer.wait()
",
            )
        },
        Scene {
            behind: &["me"],
            says: "does not read",
            ..hang(
                "a reader that sleeps",
                Slow,
                Pattern::SlowReader,
                &["writer", "reader"],
                r"
writer = Popen(['yes'], stdout=PIPE)
reader = Popen(['sleep', '10000'], stdin=writer.stdout)
writer.stdout.close()
say(me=ME, reader=reader.pid, writer=writer.pid)
writer.wait()
",
            )
        },
        Scene {
            behind: &["first"],
            ..hang(
                "the last stage holds up all",
                Slow,
                Pattern::SlowReader,
                &["second", "reader"],
                r"
first = Popen(['yes'], stdout=PIPE)
second = Popen(['cat'], stdin=first.stdout, stdout=PIPE)
reader = Popen(['sleep', '10000'], stdin=second.stdout)
first.stdout.close(); second.stdout.close()
say(me=ME, reader=reader.pid, second=second.pid, first=first.pid)
first.wait()
",
            )
        },
        Scene {
            behind: &["asked"],
            says: "in the background",
            ..hang(
                "a read of the terminal in the background",
                Stopped,
                Pattern::Background,
                &["child"],
                r"
read, write = os.pipe()
leader, master = pty.fork()
if leader == 0:
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.read(0, 1)
    os.write(write, str(child).encode())
    os.waitpid(child, 0)
    os._exit(0)
say(asked=leader, leader=leader, child=int(os.read(read, 100)))
signal.pause()
",
            )
        },
    ]);
}

#[test]
fn who_waits_for_input_is_told() {
    use Verdict::Input;
    if !has_python("who_waits_for_input_is_told") {
        return;
    }
    let input = |name, program| hang(name, Input, Pattern::Terminal, &["program"], program);
    show(&[
        input("cat of a terminal", "terminal('cat')"),
        input(
            "read of a shell",
            "terminal('sh', '-c', 'printf \"name? \"; read name')",
        ),
        input(
            "read -p of bash",
            "terminal('bash', '-c', 'read -p \"name? \" name')",
        ),
        input(
            "input() of Python",
            "terminal(sys.executable, '-c', 'input(\"name? \")')",
        ),
        input(
            "an interactive Python",
            "terminal(sys.executable, '-i', '-q')",
        ),
        input(
            "a poll of the terminal",
            r"
terminal(sys.executable, '-c', 'import select; select.select([0], [], [])')
",
        ),
        Scene {
            behind: &["asked"],
            ..hang(
                "a shell waits for who asks",
                Input,
                Pattern::Terminal,
                &["child"],
                r"
read, write = os.pipe()
leader, master = pty.fork()
if leader == 0:
    child = Popen(['cat'])
    os.write(write, str(child.pid).encode())
    child.wait()
    os._exit(0)
say(asked=leader, leader=leader, child=int(os.read(read, 100)))
signal.pause()
",
            )
        },
    ]);
}

#[test]
fn what_does_not_hang_is_left_alone() {
    use Verdict::{Busy, Healthy};
    if !has_python("what_does_not_hang_is_left_alone") {
        return;
    }
    let well = |name, program| scene(name, program, Healthy);
    show(&[
        well("a sleep", "say(me=ME); time.sleep(10000)"),
        scene("a loop", "say(me=ME)\nwhile True: pass", Busy),
        well("a wait for a signal", "say(me=ME); signal.pause()"),
        well(
            "a server",
            r"
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()
say(me=ME); server.accept()
",
        ),
        well(
            "an idle service",
            r"
stop = threading.Event(); signal.signal(signal.SIGTERM, lambda *_: stop.set())
say(me=ME); stop.wait()
",
        ),
        well(
            "a follower of a file",
            r"
child = Popen(['tail', '-f', '/dev/null'])
say(me=ME, child=child.pid); child.wait()
",
        ),
        well(
            "an idle pipe from a writer that sleeps",
            r"
writer = Popen(['sleep', '10000'], stdout=PIPE)
reader = Popen(['cat'], stdin=writer.stdout)
writer.stdout.close()
say(me=ME, writer=writer.pid, reader=reader.pid); reader.wait()
",
        ),
        well(
            "a child that sleeps",
            r"
child = Popen(['sleep', '10000'])
say(me=ME, child=child.pid); child.wait()
",
        ),
        well(
            "a poll of the terminal with a timer",
            r"
terminal(sys.executable, '-c', 'import select; select.select([0], [], [], 10000)')
",
        ),
        well(
            "a terminal beside a network",
            r"
terminal(sys.executable, '-c', '''
import select, socket
server = socket.socket(); server.bind((\'127.0.0.1\', 0)); server.listen()
select.select([0, server], [], [])
''')
",
        ),
        well(
            "a thread at the terminal beside one that waits for a time",
            r"
terminal(sys.executable, '-c', '''
import os, threading, time
threading.Thread(target=os.read, args=[0, 1], daemon=True).start()
time.sleep(10000)
''')
",
        ),
        scene(
            "a thread at the terminal beside one that works",
            r"
terminal(sys.executable, '-c', '''
import os, threading
threading.Thread(target=os.read, args=[0, 1], daemon=True).start()
while True: pass
''')
",
            Busy,
        ),
        well(
            "a program with a terminal that sleeps",
            "terminal('sleep', '10000')",
        ),
        well(
            "a program in the background of a terminal",
            r"
read, write = os.pipe()
leader, master = pty.fork()
if leader == 0:
    child = Popen(['sleep', '10000'], process_group=0)
    os.write(write, str(child.pid).encode())
    child.wait()
    os._exit(0)
say(asked=leader, leader=leader, child=int(os.read(read, 100)))
signal.pause()
",
        ),
    ]);
}
