//! A thread that looks after the others of its process sees why these do not go on.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use procwright_explain::{Verdict, examine_as_onlooker};
use rustix::process::{Signal, set_parent_process_death_signal};
use test_support::{alone, eventually};

/// Enough for a look to be shared among threads of the one who looks.
const MANY: usize = 300;

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    // SAFETY: one system call, which allocates nothing.
    unsafe {
        // Not beyond its test, however that ends.
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    command
}

struct Crowd(Vec<Child>);

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

alone! {
    /// Its threads that help to look are no more of those who are looked at than itself is.
    fn a_deadlock_with_its_own_process_is_proven_among_many_processes() {
        let sleep = |_| command("sleep").arg("100000").spawn().expect("sleep");
        let _crowd = Crowd((0..MANY).map(sleep).collect());
        let mut writer = command("yes").stdout(Stdio::piped()).spawn().expect("yes");
        // Kept by this process, which does not read it.
        let _full = writer.stdout.take();
        let pid = writer.id() as i32;
        std::thread::scope(|scope| {
            // Waits for the end of who waits for a read of this process.
            scope.spawn(|| writer.wait());
            eventually(|| {
                let own = std::process::id() as i32;
                let between = Duration::from_millis(20);
                let diagnosis = examine_as_onlooker(&[own], between).expect("a look");
                let mut findings = diagnosis.findings.iter();
                findings.any(|one| matches!(one.verdict, Verdict::Proven | Verdict::Possible) && one.processes.contains(&pid))
            });
            let pid = rustix::process::Pid::from_raw(pid).expect("a number");
            rustix::process::kill_process(pid, Signal::KILL).expect("its end");
        });
    }
}
