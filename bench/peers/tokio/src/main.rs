//! Peer: tokio's `Child::wait` on a runtime of one thread.
#[path = "../../../src/subject_wait.rs"]
#[allow(dead_code)]
mod wait;

use tokio::process::Command;
use tokio::time::timeout;

use wait::Task;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let task = Task::read(0);
    match task.case.as_str() {
        "one" => wait::one(&task, |argv| {
            runtime.block_on(async {
                let mut child = Command::new(&argv[0]).args(&argv[1..]).spawn().expect("spawn");
                assert!(child.wait().await.expect("wait").success());
                wait::now_ns()
            })
        }),
        "hold" => wait::hold(&task, |argv, time, meter| {
            runtime.block_on(async {
                let mut child = Command::new(&argv[0]).args(&argv[1..]).spawn().expect("spawn");
                meter();
                timeout(time, child.wait()).await.expect_err("nothing ends");
                meter();
                child.kill().await.expect("kill");
            })
        }),
        other => panic!("no case {other}"),
    }
}
