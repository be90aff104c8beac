//! Peer: tokio's `Child::stdout` on a runtime of one thread: `streams chunks|lines CHILD …`.
#[path = "../../../../src/subject_streams.rs"]
#[allow(dead_code)]
mod streams;

use std::process::Stdio;

use streams::{CHUNK, Seen};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStdout, Command};

async fn chunks(mut source: ChildStdout) -> Seen {
    let mut buffer = vec![0; CHUNK];
    let mut seen = Seen::default();
    loop {
        match source.read(&mut buffer).await.expect("read") {
            0 => return seen,
            n => seen.bytes += n as u64,
        }
    }
}

async fn lines(source: ChildStdout) -> Seen {
    let mut source = BufReader::with_capacity(CHUNK, source);
    let mut line = Vec::new();
    let mut seen = Seen::default();
    while source.read_until(b'\n', &mut line).await.expect("read") > 0 {
        seen.line(&line);
        line.clear();
    }
    seen
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let what = std::env::args().nth(1);
    streams::measure(1, |argv| {
        runtime.block_on(async {
            let mut child =
                Command::new(&argv[0]).args(&argv[1..]).stdout(Stdio::piped()).spawn().expect("spawn");
            let stdout = child.stdout.take().expect("piped");
            let seen = match what.as_deref() {
                Some("chunks") => chunks(stdout).await,
                Some("lines") => lines(stdout).await,
                _ => panic!("chunks or lines"),
            };
            assert!(child.wait().await.expect("wait").success(), "the child failed");
            seen
        })
    });
}
