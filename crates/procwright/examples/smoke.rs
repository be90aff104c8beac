//! smoke
use procwright::*;
use std::time::Duration;
fn main() {
    let o = Command::new("sh")
        .args(["-c", "echo out; echo err >&2; exit 3"])
        .run()
        .unwrap();
    println!("{o:?}");
    let o = Command::new("nonono").run().unwrap_err();
    println!("{o}");
    let o = Command::new("ls -l").run().unwrap_err();
    println!("{o}");
    let o = Command::new("ls").cwd("/nonono").run().unwrap_err();
    println!("{o}");
    let o = Command::new("sh")
        .args(["-c", "sleep 100 & echo hi; cat"])
        .stdin_inherit()
        .timeout(Duration::from_millis(500))
        .run()
        .unwrap_err();
    println!("{o}");
    let o = Command::new("sh")
        .args(["-c", "sleep 2 & echo hi"])
        .run()
        .unwrap();
    println!("{o:?}");
    let o = Command::new("sh")
        .args(["-c", "sleep 2 & echo hi"])
        .until(Until::Exit)
        .run()
        .unwrap();
    println!("{o:?}");
    let d: Vec<u8> = (0..100_000_000u32).map(|i| (i / 7) as u8).collect();
    let o = Command::new("cat").stdin_bytes(d.clone()).run().unwrap();
    println!("{} {:?}", o.stdout == d, o.report);
    let o = Command::new("head")
        .args(["-c", "1000000000", "/dev/zero"])
        .limit(Limit {
            bytes: 1000,
            beyond: Beyond::HeadAndTail,
        })
        .run()
        .unwrap();
    println!("{} {:?}", o.stdout.len(), o.report);
}
