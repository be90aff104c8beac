//! Ours from Rust: `Command::run`, both streams kept.
use procwright_bench::subject;

fn main() {
    subject::measure(|argv| {
        let done = procwright::Command::new(&argv[0])
            .args(&argv[1..])
            .check()
            .run()
            .expect("run");
        (done.stdout, done.stderr)
    });
}
