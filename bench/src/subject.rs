//! What the subjects in Rust share: the check and the one line of JSON.

use std::ffi::OsString;
use std::io::Write as _;
use std::time::Instant;

const BLOCK: usize = 4096;

/// Times `capture(argv) -> (stdout, stderr)` on the workload that the arguments
/// name: CHILD STREAMS BYTES WRITE.
///
/// # Panics
/// When the bytes are not exactly those that the child wrote.
pub fn measure(capture: impl FnOnce(&[OsString]) -> (Vec<u8>, Vec<u8>)) {
    let argv: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (streams, bytes) = (number(&argv, 1), number(&argv, 2) as usize);
    let started = Instant::now();
    let (out, err) = capture(&argv);
    let seconds = started.elapsed().as_secs_f64();
    let peak = peak_rss_kb();
    verify(&out, bytes, 0);
    verify(&err, if streams == 2 { bytes } else { 0 }, 1 << 32);
    print(&format!(
        r#"{{"seconds": {seconds:.6}, "peak_rss_kb": {peak}, "bytes_out": {}, "bytes_err": {}}}"#,
        out.len(),
        err.len()
    ));
}

/// Times `run` on the same workload where not everything is kept; it says how
/// many bytes it saw on each stream.
pub fn measure_counted(run: impl FnOnce(&[OsString]) -> (u64, u64)) {
    let argv: Vec<OsString> = std::env::args_os().skip(1).collect();
    let started = Instant::now();
    let (out, err) = run(&argv);
    let seconds = started.elapsed().as_secs_f64();
    print(&format!(
        r#"{{"seconds": {seconds:.6}, "peak_rss_kb": {}, "bytes_out": {out}, "bytes_err": {err}}}"#,
        peak_rss_kb()
    ));
}

/// Rates of `plain` and `changed`: `COUNT BATCHES RESIDENT_BYTES [CHANGED_COUNT]`.
pub fn measure_spawn(mut plain: impl FnMut(), mut changed: impl FnMut()) {
    let argv: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (count, batches) = (number(&argv, 0), number(&argv, 1));
    let changed_count = if argv.len() > 3 {
        number(&argv, 3)
    } else {
        count
    };
    let ballast = vec![1u8; number(&argv, 2) as usize];
    let (mut plain_rates, mut changed_rates) = (Vec::new(), Vec::new());
    for _ in 0..batches {
        plain_rates.push(rate(count, &mut plain));
        changed_rates.push(rate(changed_count, &mut changed));
    }
    print(&format!(
        r#"{{"plain_per_s": {plain_rates:?}, "changed_per_s": {changed_rates:?}}}"#
    ));
    drop(std::hint::black_box(ballast));
}

fn rate(count: u64, mut run: impl FnMut()) -> f64 {
    let started = Instant::now();
    for _ in 0..count {
        run();
    }
    count as f64 / started.elapsed().as_secs_f64()
}

fn number(argv: &[OsString], at: usize) -> u64 {
    let word = argv.get(at).and_then(|word| word.to_str());
    word.and_then(|word| word.parse().ok())
        .expect("a number among the arguments")
}

fn verify(data: &[u8], bytes: usize, first: u64) {
    assert_eq!(data.len(), bytes, "wrong length");
    for (number, block) in (first..).zip(data.chunks(BLOCK)) {
        let written = block.first_chunk().copied().map(u64::from_le_bytes);
        assert_eq!(written, Some(number), "wrong bytes");
    }
}

fn peak_rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn print(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout");
}
