//! The limits on silence and on output.

mod common;

use common::{child, run};

#[test]
fn silence() {
    let ran = run(["--idle-timeout", "200ms"], &child(["sleep-forever"]));
    assert_eq!(ran.code(), Some(124));
    assert!(
        ran.stderr.contains(" was silent for 0.2 s (stopped in "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_program_that_speaks_in_time_goes_on() {
    let ran = run(["--idle-timeout", "1h"], &child(["progress", "3", "1"]));
    assert_eq!(ran.code(), Some(0));
    assert_eq!(ran.stdout, "\r0/3\r1/3\r2/3\r3/3\n");
}

#[test]
fn too_much_output_on_either_stream() {
    for words in [child(["flood-forever"]), child(["flood-forever", "--err"])] {
        let ran = run(["--limit", "64KiB"], &words);
        assert_eq!(ran.code(), Some(124));
        let said = " wrote more than 65536 bytes (stopped in ";
        assert!(ran.stderr.contains(said), "{}", ran.stderr.len());
        assert!(ran.stdout.len().max(ran.stderr.len()) >= 64 << 10);
    }
}

#[test]
fn exactly_the_limit_is_not_too_much() {
    let ran = run(["--limit", "4"], &child(["print-bytes", "61626364"]));
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), "abcd"));
    let ran = run(["--limit", "3"], &child(["print-bytes", "61626364"]));
    assert_eq!(ran.code(), Some(124));
}
