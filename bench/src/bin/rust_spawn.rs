//! Ours from Rust: the spawn rate of `Command::run`, nothing captured.
use procwright::{Command, Sink};
use procwright_bench::subject;

fn base() -> Command<'static> {
    Command::new("/bin/true")
        .stdout(Sink::Inherit)
        .stderr(Sink::Inherit)
        .check()
}

fn main() {
    let plain = || drop(base().run().expect("run"));
    let changed = || {
        let command = base()
            .umask(0o027)
            .rlimit("nofile", 512, 512)
            .new_session()
            .cwd("/");
        drop(command.run().expect("run"));
    };
    subject::measure_spawn(plain, changed);
}
