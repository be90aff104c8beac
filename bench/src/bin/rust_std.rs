//! Peer: Rust's standard library, `Command::output`.
use procwright_bench::subject;

fn main() {
    subject::measure(|argv| {
        let done = std::process::Command::new(&argv[0])
            .args(&argv[1..])
            .output()
            .expect("output");
        assert!(done.status.success(), "the child failed");
        (done.stdout, done.stderr)
    });
}
