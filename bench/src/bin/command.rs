//! A command with something in front of it:
//! `bench-command PROCESS FILE WORD… -- CASE ARGUMENT…`.
//!
//! The words are those in front, and PROCESS the name that the process in front
//! has. See `src/command/mod.rs` for the words that mean something else.
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procwright_bench::subject_streams::{CHUNK, discard, number, print, words};

struct Front {
    process: String,
    file: OsString,
    words: Vec<OsString>,
}

impl Front {
    /// The program with everything in front of it, its stdin /dev/null.
    fn command(&self, program: &[OsString]) -> Command {
        let mut argv = Vec::new();
        let mut is_line = false;
        for word in &self.words {
            let text = word.to_str().expect("words in UTF-8");
            if text == "LINE" {
                is_line = true;
                argv.push(line(program));
            } else {
                let file = self.file.to_str().expect("a path in UTF-8");
                argv.push(text.replace("FILE", file).into());
            }
        }
        if !is_line {
            argv.extend_from_slice(program);
        }
        // What is appended to begins empty.
        let _ = fs::remove_file(&self.file);
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).stdin(Stdio::null());
        command
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // It may be large, and lie in memory.
        let _ = fs::remove_file(&self.file);
    }
}

/// Words for a shell.
fn line(program: &[OsString]) -> OsString {
    let quoted = |word: &OsString| {
        let word = word.to_str().expect("words in UTF-8");
        format!("'{}'", word.replace('\'', "'\\''"))
    };
    let words: Vec<String> = program.iter().map(quoted).collect();
    words.join(" ").into()
}

fn main() {
    let words = words(0);
    // The last one: there may be others in front of the program.
    let split = words.iter().rposition(|word| word == "--").expect("--");
    let front = Front {
        process: words[0].to_str().expect("a name").to_owned(),
        file: {
            // Beside the note itself, which stays where it is.
            let mut file = words[1].clone();
            file.push(".copy");
            file
        },
        words: words[2..split].to_vec(),
    };
    let case = &words[split + 1..];
    match case[0].to_str() {
        Some("start") => start(&front, number(case, 1)),
        Some("null") => output(&front, false, &case[1..]),
        Some("pipe") => output(&front, true, &case[1..]),
        Some("held") => held(&front, Duration::from_millis(number(case, 1)), &case[2..]),
        _ => panic!("no case {case:?}"),
    }
}

/// Processor time and page faults of what was started and has ended.
fn used() -> (f64, i64) {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("getrusage");
    let ms =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3;
    (
        ms(usage.user_time()) + ms(usage.system_time()),
        usage.minor_page_faults(),
    )
}

fn start(front: &Front, count: u64) {
    let mut command = front.command(&["/bin/true".into()]);
    command.stdout(Stdio::null());
    let (cpu_ms, faults) = used();
    let once = |_| {
        let started = Instant::now();
        assert!(command.status().expect("spawn").success(), "it failed");
        started.elapsed().as_secs_f64() * 1e3
    };
    let ms: Vec<f64> = (0..count).map(once).collect();
    let now = used();
    print(&format!(
        r#"{{"ms": {ms:?}, "cpu_ms": {:.4}, "faults": {:.1}}}"#,
        (now.0 - cpu_ms) / count as f64,
        (now.1 - faults) as f64 / count as f64
    ));
}

fn output(front: &Front, piped: bool, program: &[OsString]) {
    let mut command = front.command(program);
    command.stdout(if piped { Stdio::piped() } else { Stdio::null() });
    let started = Instant::now();
    let mut child = command.spawn().expect("spawn");
    let bytes = child.stdout.take().map_or(0, |out| discard(out).bytes);
    assert!(child.wait().expect("wait").success(), "it failed");
    let seconds = started.elapsed().as_secs_f64();
    print(&format!(r#"{{"seconds": {seconds:.6}, "bytes": {bytes}}}"#));
}

/// The program writes, says `ready` and sleeps.
fn held(front: &Front, silence: Duration, program: &[OsString]) {
    let then_sleep = r#""$@"; echo ready; exec sleep 1000"#;
    let mut argv: Vec<OsString> = ["sh", "-c", then_sleep, "sh"].map(OsString::from).into();
    argv.extend_from_slice(program);
    let mut child = front
        .command(&argv)
        .stdout(Stdio::piped())
        .spawn()
        .expect("spawn");
    read_until_ready(child.stdout.take().expect("piped"));
    let family = family(std::process::id());
    let pid = *family
        .iter()
        .find(|pid| name(**pid).as_deref() == Some(&front.process))
        .expect("the process in front");
    // Until it has done nothing for a while: the last piece may just have come.
    let mut before = at_rest(pid);
    loop {
        pass(Duration::from_millis(50));
        let now = at_rest(pid);
        if now == before {
            break;
        }
        before = now;
    }
    pass(silence);
    let after = at_rest(pid);
    let status = status(pid, "VmHWM");
    print(&format!(
        r#"{{"peak_rss_kb": {status}, "private_kb": {}, "threads": {}, "switches": {}, "cpu_ms": {:.3}}}"#,
        self::status(pid, "RssAnon"),
        self::status(pid, "Threads"),
        after.0 - before.0,
        (after.1 - before.1) as f64 / 1e6
    ));
    for pid in family {
        // Who has ended with the one before is none to be sure of.
        let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    }
    child.wait().expect("wait");
}

fn read_until_ready(mut out: impl Read) {
    let mut buffer = vec![0; CHUNK];
    let mut tail = Vec::new();
    while !tail.trim_ascii_end().ends_with(b"ready") {
        let n = out.read(&mut buffer).expect("read");
        assert_ne!(n, 0, "it has ended");
        tail.extend_from_slice(&buffer[..n]);
        let beyond = tail.len().saturating_sub(16);
        tail.drain(..beyond);
    }
    // The pipe stays open: who writes into it is to live.
    std::mem::forget(out);
}

/// All descendants.
fn family(of: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid else { continue };
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut at) = (vec![of], 0);
    while let Some(parent) = found.get(at) {
        found.extend(children.remove(parent).unwrap_or_default());
        at += 1;
    }
    found.split_off(1)
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

fn name(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

fn status(pid: u32, field: &str) -> u64 {
    number_in(Path::new(&format!("/proc/{pid}/status")), field)
}

fn number_in(path: &Path, field: &str) -> u64 {
    let text = fs::read_to_string(path).expect("it has ended");
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let words = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    words.and_then(|word| word.parse().ok()).expect("a number")
}

/// Of all its threads: how often they have slept or were interrupted, and the
/// nanoseconds on a processor.
fn at_rest(pid: u32) -> (u64, u64) {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it has ended");
    let mut sum = (0, 0);
    for thread in threads.flatten() {
        let path = thread.path();
        let status = path.join(OsStr::new("status"));
        sum.0 += number_in(&status, "voluntary_ctxt_switches");
        sum.0 += number_in(&status, "nonvoluntary_ctxt_switches");
        let ran = fs::read_to_string(path.join("schedstat")).expect("schedstat");
        let ran = ran
            .split_whitespace()
            .next()
            .and_then(|ns| ns.parse::<u64>().ok());
        sum.1 += ran.expect("nanoseconds");
    }
    sum
}

#[expect(clippy::disallowed_methods, reason = "time itself is waited for")]
fn pass(time: Duration) {
    std::thread::sleep(time);
}
