//! bench
use procwright::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t = std::time::Instant::now();
    let o = Command::new(&a[1]).args(&a[2..]).run().unwrap();
    println!(
        "{:.3} s out {} err {} blocked {:?} {:?}",
        t.elapsed().as_secs_f64(),
        o.stdout.len(),
        o.stderr.len(),
        o.report.stdout_info.as_ref().unwrap().blocked,
        o.report.stderr_info.as_ref().unwrap().blocked
    );
}
