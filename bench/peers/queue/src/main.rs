//! The subjects of the suite `queue`, and the suite itself in one program.
//!
//! `bench-queue SUBJECT CASE …` prints a line of JSON. `bench-queue queue --json OUT
//! [--quick | --rounds N]` runs the whole suite but for Python, on a machine that has
//! nothing else of it.

#[cfg(feature = "cloudtoid")]
mod cloudtoid;
#[cfg(feature = "iceoryx2")]
mod iceoryx;
#[cfg(feature = "ipc-channel")]
mod ipc;
mod mq;
mod pipe;
#[cfg(feature = "rtrb")]
mod rtrb;
mod suite;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

use procwright_bench::subject_queue::Plan;
use procwright_bench::subject_queue::case::{self, Case};
use procwright_bench::subject_queue::floor::{Fresh, Futex, Words};
#[cfg(feature = "ours")]
use procwright_bench::subject_queue::ours::{Many, Reserved, Sent};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.split_first() {
        Some((first, rest)) if first == "queue" => suite::run(rest),
        Some((subject, rest)) => case::parse(rest).and_then(|case| {
            case::watch();
            let line = subject_of(subject, &case);
            clean();
            print(&line?)
        }),
        None => Err("SUBJECT CASE …, or queue --json OUT".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> Result<(), String> {
    writeln!(std::io::stdout(), "{text}").map_err(|error| error.to_string())
}

/// The case, of the subject of that name.
fn subject_of(name: &str, case: &Case) -> Result<String, String> {
    match name {
        #[cfg(feature = "ours")]
        "procwright" => case.run::<Sent>(),
        #[cfg(feature = "ours")]
        "procwright-reserve" => case.run::<Reserved>(),
        #[cfg(feature = "ours")]
        "procwright-many" => case.run::<Many>(),
        #[cfg(feature = "iceoryx2")]
        "iceoryx2" => case.run::<iceoryx::Iceoryx2>(),
        #[cfg(feature = "cloudtoid")]
        "cloudtoid" => case.run::<cloudtoid::Single>(),
        #[cfg(feature = "cloudtoid")]
        "cloudtoid-batch" => case.run::<cloudtoid::Batch>(),
        #[cfg(feature = "ipc-channel")]
        "ipc-channel" => case.run::<ipc::Bytes>(),
        #[cfg(feature = "ipc-channel")]
        "ipc-channel-memory" => case.run::<ipc::Memory>(),
        #[cfg(feature = "rtrb")]
        "rtrb-threads" => case.run::<rtrb::Rtrb>(),
        "mq" => case.run::<mq::Mq>(),
        "pipe" => case.run::<pipe::Pipe>(),
        "seqpacket" => case.run::<pipe::Seqpacket>(),
        "floor-words" => case.run::<Words>(),
        "floor-futex" => case.run::<Futex>(),
        "floor-memory" => case.run::<Fresh>(),
        _ => Err(format!("{name} is not built into this program")),
    }
}

/// That no other queue on this machine has.
fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("procwright-bench-{}-{count}", std::process::id())
}

/// What some leave behind under such a name.
fn clean() {
    let ours = format!("procwright-bench-{}-", std::process::id());
    for file in std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten()
    {
        if file.file_name().to_string_lossy().contains(&ours) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// How many messages a queue of fixed size has room for: what stays in the caches
/// goes fastest.
fn room(plan: &Plan, least: usize) -> usize {
    match plan.room {
        0 => ((1 << 20) / plan.length).clamp(least, 4096),
        room => room / plan.length + 1,
    }
}
