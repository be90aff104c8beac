//! Ours from Rust: `Command::run` under a limit of 1 MiB a stream, head and
//! tail.
use procwright::{Beyond, Command, Limit};
use procwright_bench::subject;

const LIMIT: Limit = Limit {
    bytes: 1 << 20,
    beyond: Beyond::HeadAndTail,
};

fn main() {
    subject::measure_counted(|argv| {
        let done = Command::new(&argv[0])
            .args(&argv[1..])
            .limit(LIMIT)
            .check()
            .run()
            .expect("run");
        assert!(
            done.stdout.len() as u64 <= LIMIT.bytes,
            "more kept than the limit"
        );
        let count =
            |info: &Option<procwright::StreamInfo>| info.as_ref().map_or(0, |info| info.bytes);
        (
            count(&done.report.stdout_info),
            count(&done.report.stderr_info),
        )
    });
}
