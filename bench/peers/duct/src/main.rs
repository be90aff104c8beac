//! Peer: the duct crate.
#[path = "../../../src/subject.rs"]
mod subject;

fn main() {
    subject::measure(|argv| {
        let done = duct::cmd(&argv[0], &argv[1..]).stdout_capture().stderr_capture().run().expect("run");
        (done.stdout, done.stderr)
    });
}
