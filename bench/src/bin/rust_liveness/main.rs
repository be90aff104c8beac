//! Ours from Rust: `bench-rust-liveness check|latency|waiters NUMBER…`, and beside
//! it what others would do. `… peer MIB` is the process whose life it is about.

mod check;
mod latency;
mod peer;
mod waiters;

/// A number of the case.
fn number(at: usize) -> u64 {
    let word = std::env::args().nth(2 + at);
    word.and_then(|word| word.parse().ok()).expect("a number")
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("check") => check::run(number(0) as usize, number(1)),
        Some("latency") => latency::run(number(0), number(1)),
        Some("waiters") => waiters::run(number(0), number(1)),
        Some("peer") => peer::live(number(0)),
        _ => panic!("check, latency, waiters or peer"),
    }
}
