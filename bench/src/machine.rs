//! The machine and the versions that a measurement belongs to.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::tools::Tools;

/// Where a suite ran.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// The processor's own name.
    pub cpu: String,
    /// How many of them this process may use.
    pub cpus: usize,
    /// Main memory, in KiB.
    pub memory_kb: u64,
    /// The kernel's release.
    pub kernel: String,
    /// Its setting for huge pages.
    pub huge_pages: String,
    /// The day, UTC.
    pub date: String,
    /// What each tool says of itself.
    pub versions: BTreeMap<String, String>,
}

impl Machine {
    /// Asks the machine and the tools.
    pub fn here(tools: &Tools) -> Machine {
        let python = tools.python.display().to_string();
        let versions = [
            ("procwright", vec!["git", "describe", "--always", "--dirty"]),
            ("rustc", vec!["rustc", "--version"]),
            ("cc", vec!["cc", "--version"]),
            ("python", vec![python.as_str(), "--version"]),
            ("ruby", vec!["ruby", "--version"]),
            ("node", vec!["node", "--version"]),
            ("go", vec!["go", "version"]),
            ("java", vec!["java", "--version"]),
            ("mbuffer", vec!["dpkg-query", "-Wf${Version}", "mbuffer"]),
            ("pv", vec!["pv", "--version"]),
            ("tail", vec!["tail", "--version"]),
            (
                "psutil",
                vec![&python, "-c", "import psutil; print(psutil.__version__)"],
            ),
        ];
        let package = |name| format!("import importlib.metadata as m; print(m.version({name:?}))");
        let [plumbum, sh, fifo] = ["plumbum", "sh", "faster-fifo"].map(package);
        let versions = versions.into_iter().chain([
            ("plumbum", vec![python.as_str(), "-c", plumbum.as_str()]),
            ("sh", vec![python.as_str(), "-c", sh.as_str()]),
            ("faster-fifo", vec![python.as_str(), "-c", fifo.as_str()]),
        ]);
        let mut versions: BTreeMap<String, String> = versions
            .map(|(name, argv)| (name.to_owned(), first_line(&argv)))
            .collect();
        for (peer, package) in [
            ("duct", "duct"),
            ("tokio", "tokio"),
            ("iceoryx2", "iceoryx2-bb-posix"),
        ] {
            let lock = lock(&tools.peers, peer);
            versions.insert(peer.to_owned(), locked(&lock, package));
        }
        let lock = lock(&tools.peers, "queue");
        for peer in QUEUE_PEERS {
            versions.insert(peer.to_owned(), locked(&lock, peer));
        }
        Machine {
            cpu: field("/proc/cpuinfo", "model name"),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_kb: field("/proc/meminfo", "MemTotal")
                .trim_end_matches(" kB")
                .parse()
                .unwrap_or(0),
            kernel: read("/proc/sys/kernel/osrelease"),
            huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled"),
            date: first_line(&["date", "-u", "+%F"]),
            versions,
        }
    }
}

/// Crates of the suite `queue`.
pub const QUEUE_PEERS: [&str; 4] = ["iceoryx2", "cloudtoid-interprocess", "ipc-channel", "rtrb"];

/// What a peer outside the workspace is built with.
fn lock(peers: &Path, peer: &str) -> String {
    let lock = peers.join(peer).join("Cargo.lock");
    std::fs::read_to_string(lock).unwrap_or_default()
}

/// The version of a crate in the text of a `Cargo.lock`.
pub fn locked(lock: &str, name: &str) -> String {
    let after = lock
        .split(&format!("name = \"{name}\"\nversion = \""))
        .nth(1)
        .unwrap_or_default();
    after.split('"').next().unwrap_or_default().to_owned()
}

fn first_line(argv: &[&str]) -> String {
    let done = argv
        .split_first()
        .map(|(program, args)| Command::new(program).args(args).output());
    let text = match done {
        Some(Ok(done)) => done.stdout,
        _ => Vec::new(),
    };
    let text = String::from_utf8_lossy(&text);
    text.lines().next().unwrap_or("not found").to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn field(path: &str, name: &str) -> String {
    let text = read(path);
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .unwrap_or_default();
    line.split_once(':')
        .map_or_else(String::new, |(_, value)| value.trim().to_owned())
}
