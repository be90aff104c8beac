//! A reader of our output that goes away.

mod common;

use std::io::Read;
use std::process::Stdio;

use common::{child, procwright};

#[test]
fn ends_quietly_as_without_us() {
    for options in [&["--"][..], &["--idle-timeout", "1h", "--"]] {
        let mut command = procwright(options);
        command.args(child(["flood-forever", "--no-limit"]));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut procwright = command.spawn().unwrap();
        let mut stdout = procwright.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 100]).unwrap();
        drop(stdout);
        let output = procwright.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let code = output.status.code();
        assert_eq!((code, stderr.as_str()), (Some(128 + 13), ""), "{options:?}");
    }
}

#[test]
fn a_full_disk_is_told() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        return;
    };
    let mut command = procwright(["--until", "eof", "--"]);
    command.args(child(["flood-forever", "--no-limit"]));
    let output = command.stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("No space left"), "{stderr}");
}
