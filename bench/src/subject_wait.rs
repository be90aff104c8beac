//! What the subjects of the suite `wait` share: the processes to wait for, the
//! clock, the meter and the line of JSON.
//!
//! Arguments: `HELPERS SLOTS CASE NUMBER…`, as `floors/wait_one.c` and
//! `floors/wait_many.c` say. Used by a peer outside the workspace too, so it
//! stands on `std` and `nix` alone.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{self, Resource, UsageWho};
use nix::time::{ClockId, clock_gettime};

const SLOTS: usize = 4096;

/// The clock that helpers write down, in nanoseconds.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// What a process has used: milliseconds of processor, voluntary switches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Use {
    /// User and system time.
    pub cpu_ms: f64,
    /// How often it has slept.
    pub switches: i64,
}

impl Use {
    /// This process, all its threads.
    pub fn own() -> Use {
        Use::of(UsageWho::RUSAGE_SELF)
    }

    /// Its children that were reaped.
    pub fn children() -> Use {
        Use::of(UsageWho::RUSAGE_CHILDREN)
    }

    fn of(who: UsageWho) -> Use {
        let usage = resource::getrusage(who).expect("getrusage");
        let ms = |time: nix::sys::time::TimeVal| {
            time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3
        };
        Use {
            cpu_ms: ms(usage.user_time()) + ms(usage.system_time()),
            switches: usage.voluntary_context_switches(),
        }
    }

    /// What was used since.
    pub fn since(self, before: Use) -> Use {
        Use {
            cpu_ms: self.cpu_ms - before.cpu_ms,
            switches: self.switches - before.switches,
        }
    }
}

/// The arguments.
#[derive(Debug)]
pub struct Task {
    helpers: PathBuf,
    slots: PathBuf,
    /// Which case.
    pub case: String,
    numbers: Vec<u64>,
}

impl Task {
    /// Reads them, behind the first `skip` that the subject reads itself.
    pub fn read(skip: usize) -> Task {
        let mut words = std::env::args_os().skip(1 + skip);
        let mut next = || words.next().expect("HELPERS SLOTS CASE NUMBER…");
        let (helpers, slots) = (next().into(), next().into());
        let case = next().into_string().expect("a case");
        let number =
            |word: OsString| -> u64 { word.to_str().and_then(|w| w.parse().ok()).expect("number") };
        Task {
            helpers,
            slots,
            case,
            numbers: words.map(number).collect(),
        }
    }

    /// A number of the case.
    pub fn number(&self, at: usize) -> u64 {
        *self.numbers.get(at).expect("a number more")
    }

    /// The processes that end by themselves, and what to write down of each:
    /// `exiter SLOTS INDEX LIFE_US`, with lives spread evenly.
    pub fn exiters(&self) -> impl Iterator<Item = Vec<OsString>> {
        let [least, most] = [1, 2].map(|at| self.number(at));
        let mut noise = 1u32;
        (0..self.number(0)).map(move |index| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            self.exiter(index, least + u64::from(noise >> 8) % (most - least))
        })
    }

    /// One that outlives a wait of `seconds`.
    pub fn lasting(&self, seconds: u64) -> Vec<OsString> {
        self.exiter(0, (seconds + 60) * 1_000_000)
    }

    fn exiter(&self, index: u64, life_us: u64) -> Vec<OsString> {
        vec![
            self.helpers.join("exiter").into(),
            self.slots.clone().into(),
            index.to_string().into(),
            life_us.to_string().into(),
        ]
    }

    /// Strangers.
    pub fn hold(&self, count: u64) -> Strangers {
        raise_nofile();
        Strangers::start(&self.helpers, &self.slots, count)
    }

    /// How long before `now` the process of this index ended, in microseconds.
    ///
    /// # Panics
    /// If it has not.
    pub fn late_us(&self, index: usize, now: u64) -> f64 {
        self.ended_us(index, now)
            .expect("the process has not ended")
    }

    /// The same, none if it has not.
    pub fn ended_us(&self, index: usize, now: u64) -> Option<f64> {
        let mut bytes = [0; 8];
        let file = File::open(&self.slots).expect("the slots");
        let at = (index % SLOTS * bytes.len()) as u64;
        file.read_exact_at(&mut bytes, at).expect("the slots");
        let ended = u64::from_le_bytes(bytes);
        (ended > 0 && ended <= now).then(|| (now - ended) as f64 / 1e3)
    }
}

/// As many descriptors as this process may have.
pub fn raise_nofile() {
    let (_, hard) = resource::getrlimit(Resource::RLIMIT_NOFILE).expect("getrlimit");
    resource::setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("setrlimit");
}

/// A command from its words.
pub fn command(argv: &[OsString]) -> Command {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]);
    command
}

/// Processes that are not ours, and their parent.
#[derive(Debug)]
pub struct Strangers {
    holder: Child,
    /// Their numbers.
    pub pids: Vec<i32>,
}

impl Strangers {
    fn start(helpers: &Path, slots: &Path, count: u64) -> Strangers {
        let mut holder = Command::new(helpers.join("holder"))
            .arg(slots)
            .arg(count.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("holder");
        let mut line = String::new();
        let out = holder.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("holder");
        let pids: Vec<i32> = line
            .split_whitespace()
            .map(|word| word.parse().expect("a number"))
            .collect();
        assert_eq!(pids.len() as u64, count, "the holder started fewer");
        Strangers { holder, pids }
    }

    /// Has `count` killed, one every `step_us`.
    pub fn end_each(&mut self, count: u64, step_us: u64) {
        self.tell(&format!("each {count} {step_us}\n"));
    }

    /// Has all killed at once.
    pub fn end_all(&mut self) {
        self.tell("all\n");
    }

    fn tell(&mut self, line: &str) {
        let stdin = self.holder.stdin.as_mut().expect("piped");
        stdin.write_all(line.as_bytes()).expect("holder");
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// Case `one`: `COUNT LEAST_US MOST_US`. `wait` starts the command, waits for it,
/// and says when that was over.
pub fn one(task: &Task, mut wait: impl FnMut(&[OsString]) -> u64) {
    let latencies: Vec<f64> = task
        .exiters()
        .enumerate()
        .map(|(index, argv)| {
            let now = wait(&argv);
            task.late_us(index, now)
        })
        .collect();
    print_latencies(&latencies);
}

/// Case `hold`: `SECONDS`. `wait` starts the command, calls what it is given,
/// waits so long, and calls it again; nothing ends.
pub fn hold(task: &Task, wait: impl FnOnce(&[OsString], Duration, &mut dyn FnMut())) {
    let seconds = task.number(0);
    let mut uses = Vec::new();
    wait(
        &task.lasting(seconds),
        Duration::from_secs(seconds),
        &mut || {
            uses.push(Use::own());
        },
    );
    let [before, after] = uses[..] else {
        panic!("two readings, not {}", uses.len())
    };
    print_use(after.since(before));
}

/// A way to wait for many.
pub trait Many {
    /// The places of who has ended since the last call; waits for at least one.
    fn ended(&mut self, timeout: Option<Duration>) -> Vec<usize>;
}

/// The cases `idle`, `among` and `mass`; `watch` begins to watch.
///
/// # Panics
/// For another case, and if strangers end too early.
pub fn many<M: Many>(task: &Task, watch: impl FnOnce(&[i32]) -> M) {
    match task.case.as_str() {
        "idle" => idle(task, watch),
        "among" => among(task, watch),
        "mass" => mass(task, watch),
        other => panic!("no case {other}"),
    }
}

/// `N SECONDS LOOK_MS`
fn idle<M: Many>(task: &Task, watch: impl FnOnce(&[i32]) -> M) {
    let strangers = task.hold(task.number(0));
    let started = Instant::now();
    let mut set = watch(&strangers.pids);
    let mut early = set.ended(Some(Duration::ZERO)).len();
    let setup = started.elapsed();
    let (from, mut looks) = (Instant::now(), 0u32);
    while looks < 3 || from.elapsed() < Duration::from_millis(task.number(2)) {
        early += set.ended(Some(Duration::ZERO)).len();
        looks += 1;
    }
    let look_ns = from.elapsed().as_secs_f64() * 1e9 / f64::from(looks);
    let before = Use::own();
    early += set.ended(Some(Duration::from_secs(task.number(1)))).len();
    let used = Use::own().since(before);
    assert_eq!(early, 0, "some ended");
    let setup_us = setup.as_secs_f64() * 1e6 / strangers.pids.len() as f64;
    print(&format!(
        r#"{{"setup_us": {setup_us:.3}, "look_ns": {look_ns:.1}, "cpu_ms": {:.3}, "switches": {}}}"#,
        used.cpu_ms, used.switches
    ));
}

/// `N COUNT STEP_US`
fn among<M: Many>(task: &Task, watch: impl FnOnce(&[i32]) -> M) {
    let mut strangers = task.hold(task.number(0));
    let mut set = watch(&strangers.pids);
    strangers.end_each(task.number(1), task.number(2));
    let mut latencies = Vec::new();
    while (latencies.len() as u64) < task.number(1) {
        let places = set.ended(None);
        let now = now_ns();
        latencies.extend(places.iter().map(|place| task.late_us(*place, now)));
    }
    print_latencies(&latencies);
}

/// `N`
fn mass<M: Many>(task: &Task, watch: impl FnOnce(&[i32]) -> M) {
    let mut strangers = task.hold(task.number(0));
    let started = Instant::now();
    let mut set = watch(&strangers.pids);
    let setup = started.elapsed();
    let before = Use::own();
    strangers.end_all();
    let mut seen = 0;
    while seen < strangers.pids.len() {
        seen += set.ended(None).len();
    }
    let now = now_ns();
    let used = Use::own().since(before);
    let each = |us: f64| us / strangers.pids.len() as f64;
    print(&format!(
        r#"{{"setup_us": {:.3}, "exit_us": {:.3}, "cpu_us": {:.3}, "switches": {}}}"#,
        each(setup.as_secs_f64() * 1e6),
        each(task.late_us(0, now)),
        each(used.cpu_ms * 1e3),
        used.switches
    ));
}

/// The line of JSON of a case that measures latencies.
pub fn print_latencies(us: &[f64]) {
    print(&format!(r#"{{"latency_us": {us:?}}}"#));
}

/// The line of JSON of a case that measures what a wait uses.
pub fn print_use(used: Use) {
    print(&format!(
        r#"{{"switches": {}, "cpu_ms": {:.3}}}"#,
        used.switches, used.cpu_ms
    ));
}

/// A line of JSON.
pub fn print(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout");
}
