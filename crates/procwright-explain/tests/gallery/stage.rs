//! How a scene is set up, looked at and compared with what has to be said of it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use procwright_explain::{Diagnosis, Pattern, Verdict, examine};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use test_support::{say, scaled, skip, watchdog};

/// Time between the two looks: enough for who runs to be seen to.
const BETWEEN: Duration = Duration::from_millis(30);

/// Programs that no machine is asked to have for the sake of a scene, by their size or its kind.
const LARGE: [&str; 4] = ["apt-get", "go", "java", "node"];

/// Programs that have threads which wake up by the clock.
const WAKEFUL: [&str; 4] = ["go", "java", "node", "ruby"];

pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) program: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) pattern: Option<Pattern>,
    /// Roles of those whom the finding names.
    pub(crate) names: &'static [&'static str],
    /// Roles of those behind it.
    pub(crate) behind: &'static [&'static str],
    /// Text that the sentence, the remedy, a link or a doubt has; without a finding, the sentence
    /// or a wait.
    pub(crate) says: &'static str,
    /// It is proven only where everybody may be looked at: who made the pipes has closed
    /// them, or has ended.
    pub(crate) all_seen: bool,
    /// Programs without which there is nothing to be seen.
    pub(crate) needs: &'static [&'static str],
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

def skip(why):
    'Tells that there is nothing to be seen here, and why.'
    print('SKIP', ' '.join(why.split()), flush=True)
    sys.exit()

def python(code, **options):
    return Popen([sys.executable, '-c', 'import fcntl, os, signal, sys, time\n' + code], **options)

def resume(pid, place):
    'Stops a program that sleeps at this place in the kernel, and has it go on.'
    while place not in open(f'/proc/{pid}/wchan').read():
        time.sleep(0.01)
    os.kill(pid, signal.SIGSTOP)
    while 'State:\tT' not in open(f'/proc/{pid}/status').read():
        time.sleep(0.01)
    os.kill(pid, signal.SIGCONT)

def freeze(pid):
    'Has a cgroup of its own hold a program, which goes when this one does.'
    mounts = [line.split() for line in open('/proc/self/mounts')]
    at = next((words[1] for words in mounts if words[2] == 'cgroup2'), None) or skip('no cgroup2')
    group = f'{at}/procwright-gallery-{ME}'
    try:
        os.mkdir(group)
    except OSError as error:
        skip(f'no cgroup can be made: {error}')
    # Of another session and parent, so that it outlives all that are killed.
    # What a shell has in the background gets /dev/null for its stdin.
    remove = 'exec 3<&0; (read end <&3; until rmdir $0 2>/dev/null; do sleep 0.1; done) &'
    # Its stdin is closed with this program, and not before.
    freeze.remover = Popen(['sh', '-c', remove, group], stdin=PIPE, start_new_session=True, stdout=DEVNULL)
    freeze.remover.wait()
    open(f'{group}/cgroup.procs', 'w').write(str(pid))
    open(f'{group}/cgroup.freeze', 'w').write('1')
    while 'frozen 1' not in open(f'{group}/cgroup.events').read():
        time.sleep(0.01)

def terminal(*words, asks=None, resumed=None):
    'A program with a terminal of its own, at which nobody types; or `asks`, which it starts.'
    pid, master = pty.fork()
    if pid == 0:
        os.environ['TERM'] = 'xterm'
        os.execvp(words[0], words)
    if resumed: resume(pid, resumed)
    say(asked=pid, program=below(pid, asks) if asks else pid)
    # What it shows is taken, so that it never waits for room.
    while True:
        try:
            os.read(master, 4096)
        except OSError:
            signal.pause()

def children(pid):
    'The children of all its threads.'
    threads = os.listdir(f'/proc/{pid}/task')
    return [int(word) for one in threads for word in open(f'/proc/{pid}/task/{one}/children').read().split()]

def below(pid, name):
    'The number of a process of this name that this one has started, or those that it has.'
    while True:
        todo = [pid]
        while todo:
            pids = children(todo.pop())
            for child in pids:
                if open(f'/proc/{child}/comm').read().strip() == name: return child
            todo += pids
        time.sleep(0.01)

def child_of(pid):
    while not (found := children(pid)):
        time.sleep(0.01)
    return found[0]
";

pub(crate) fn scene(name: &'static str, program: &'static str, verdict: Verdict) -> Scene {
    Scene {
        name,
        program,
        verdict,
        pattern: None,
        names: &[],
        behind: &[],
        says: "",
        all_seen: false,
        needs: &[],
    }
}

pub(crate) fn hang(
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
pub(crate) struct Running {
    child: Child,
    _dir: tempfile::TempDir,
    roles: BTreeMap<String, i32>,
}

impl Running {
    /// Starts a scene; why there is nothing to be seen, if it says so.
    fn start(program: &str) -> Result<Running, String> {
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
        if let Some(why) = line.strip_prefix("SKIP ") {
            let _ = child.wait();
            return Err(why.trim_end().to_owned());
        }
        let roles = line
            .split_whitespace()
            .map(|word| {
                let (role, pid) = word.split_once('=').expect("role=PID");
                (role.to_owned(), pid.parse().expect("a pid"))
            })
            .collect();
        Ok(Running {
            child,
            _dir: dir,
            roles,
        })
    }

    fn pid(&self, role: &str) -> i32 {
        self.roles[role]
    }

    /// Whom the scene is asked about.
    fn asked(&self) -> i32 {
        let asked = self.roles.get("asked").or(self.roles.get("me"));
        *asked.expect("whom to ask about")
    }

    fn examine(&self) -> Diagnosis {
        examine(&[self.asked()], BETWEEN).expect("a diagnosis")
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
            [] => says(scene, &all_waits(diagnosis)),
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
    if finding.fix.is_empty() {
        return Err(String::from("nothing to do"));
    }
    let links: Vec<&str> = finding
        .links
        .iter()
        .map(|link| link.text.as_str())
        .collect();
    let (links, doubts) = (links.join(" "), finding.doubts.join(" "));
    let said = format!("{} {} {links} {doubts}", finding.sentence, finding.fix);
    says(scene, &said)
}

fn says(scene: &Scene, said: &str) -> Result<(), String> {
    match said.contains(scene.says) {
        true => Ok(()),
        false => Err(format!("{:?} is not said in {said:?}", scene.says)),
    }
}

/// The sentence, and what each thread waits for.
fn all_waits(diagnosis: &Diagnosis) -> String {
    let processes = diagnosis.processes.iter();
    let waits = processes.flat_map(|one| one.waits.iter().map(|wait| wait.text.as_str()));
    let texts: Vec<&str> = [diagnosis.sentence.as_str()]
        .into_iter()
        .chain(waits)
        .collect();
    texts.join("; ")
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

/// Has the program in `BESIDE`, if there is one, ask other tools about the scene. It is given the
/// name of the scene and whom it is asked about, and the diagnosis as JSON on its stdin.
///
/// Some attach to it, which interrupts its call: what is said of it has to be so afterwards, too.
fn ask_others(scene: &Scene, running: &Running) {
    let Some(program) = std::env::var_os("BESIDE") else {
        return;
    };
    let asked = running.asked().to_string();
    let mut others = Command::new(program)
        .args([scene.name, &asked])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program in BESIDE");
    let json = running.examine().json().expect("its JSON");
    let mut stdin = others.stdin.take().expect("its stdin");
    stdin.write_all(json.as_bytes()).expect("a reader");
    drop(stdin);
    assert!(others.wait().expect("its end").success(), "{}", scene.name);
}

pub(crate) fn show(scenes: &[Scene]) {
    let looks = scaled(3, 300);
    for scene in scenes {
        if let Some(missing) = scene.needs.iter().find(|program| !is_there(program)) {
            let missing = format!("there is no {missing}");
            match scene.needs.iter().any(|program| LARGE.contains(program)) {
                true => say(&format!("SKIPPED {}: {missing}", scene.name)),
                false => skip(scene.name, &missing),
            }
            continue;
        }
        let _watchdog = watchdog(scene.name);
        let running = match Running::start(scene.program) {
            Ok(running) => running,
            // The machine does not permit it, whatever is installed.
            Err(why) => {
                say(&format!("SKIPPED {}: {why}", scene.name));
                continue;
            }
        };
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
        ask_others(scene, &running);
        for _ in 0..looks {
            let diagnosis = running.examine();
            // On a busy machine one that wakes up by the clock waits for a processor.
            let is_awake = diagnosis.verdict == Verdict::Busy
                && scene.needs.iter().any(|program| WAKEFUL.contains(program));
            if is_awake {
                continue;
            }
            if let Err(fault) = fault(scene, &running, &diagnosis, true) {
                panic!("{}: {fault}\n{}", scene.name, diagnosis.text(false));
            }
            let text = diagnosis.text(false);
            let lines = text.lines().all(|line| line.chars().count() <= 80);
            assert!(lines, "{}:\n{text}", scene.name);
        }
    }
}

/// True if there is such a program in `PATH`.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

pub(crate) fn has_python(test: &str) -> bool {
    let found = is_there("python3");
    if !found {
        skip(test, "there is no python3");
    }
    found
}
