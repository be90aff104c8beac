//! Logs that cannot be written: the program goes on, and what is missing is known
//! to the byte.

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::log::{Place, Talk, logged};
use common::{Ran, child, option, procwright};
use rustix::process::{Pid, Resource, Rlimit, prlimit, setrlimit};
use test_support::in_time;

/// Lets a process write no file beyond this size; none for no limit.
fn limit_files(pid: Option<Pid>, size: Option<u64>) {
    let limit = Rlimit {
        current: size,
        maximum: None,
    };
    match pid {
        Some(pid) => drop(prlimit(Some(pid), Resource::Fsize, limit).unwrap()),
        None => setrlimit(Resource::Fsize, limit).unwrap(),
    }
}

fn with_limit(mut command: Command, size: u64) -> Command {
    // SAFETY: a plain system call.
    unsafe {
        command.pre_exec(move || {
            limit_files(None, Some(size));
            Ok(())
        });
    }
    command
}

#[test]
fn a_full_disk_is_counted_marked_and_told() {
    let place = Place::new();
    let words = ["out:0123456789", "ack", "err:lost\\n", "ack", "out:next\\n"];
    let command = with_limit(place.command(&["--report", "json"], &words), 4);
    let mut talk = Talk::new(command);
    let told = talk.line();
    assert!(
        told.contains("cannot write the log") && told.contains("File too large"),
        "{told}"
    );
    assert!(talk.line().contains("the program goes on"));
    talk.go_on();
    assert_eq!(talk.line(), "lost\n");
    // The log gets its piece from another thread than stderr does.
    let pid = Pid::from_child(&talk.procwright);
    limit_files(Some(pid), None);
    talk.go_on();
    let (code, rest) = talk.end();
    assert_eq!(code, Some(0));
    let log = place.read(0);
    let lost = match &log[..] {
        "0123\nprocwright: 11 bytes are missing here\nnext\n" => 11,
        // The disk had room again before the second piece.
        "0123\nprocwright: 6 bytes are missing here\nlost\nnext\n" => 6,
        _ => panic!("{log:?}"),
    };
    assert!(
        rest.contains(&format!("procwright: {lost} bytes are missing in the log")),
        "{rest}"
    );
    assert!(
        rest.contains(&format!(
            "\"log\":{{\"bytes\":{},\"lost_bytes\":{lost},",
            20 - lost
        )),
        "{rest}"
    );
    assert_eq!(rest.matches("cannot write").count(), 0, "told once");
}

#[test]
fn in_a_log_with_times_the_count_is_the_programs_bytes() {
    for limit in [1, 30, 34, 39, 60, 100] {
        let place = Place::new();
        let words = ["out:hello\\n", "out:world\\n", "out:again"];
        let command = with_limit(
            place.command(&["--log-times", "--report", "json"], &words),
            limit,
        );
        let ran: Ran = { command }.output().unwrap().into();
        let log = fs::read(place.log()).unwrap();
        assert_eq!(log.len() as u64, limit.min(109));
        let own = "2026-01-02T03:04:05.678+00:00 out ".len();
        // The log has whole lines of 40 bytes. The end of the last one is the command's.
        let kept: usize = (0..3)
            .map(|line| {
                log.len()
                    .saturating_sub(line * 40 + own)
                    .min(if line == 2 { 5 } else { 6 })
            })
            .sum();
        let expected = format!("\"log\":{{\"bytes\":{kept},\"lost_bytes\":{},", 17 - kept);
        assert!(
            ran.stderr.contains(&expected),
            "{limit}: {kept} {}",
            ran.stderr
        );
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(0), "hello\nworld\nagain")
        );
    }
}

#[test]
fn the_status_tells_of_a_loss_only_if_asked() {
    let full = Path::new("/dev/full");
    for (options, code) in [(&[][..], 3), (&["--log-strict"], 125)] {
        let ran: Ran = logged(full, options, &["out:x\\n", "exit:3"])
            .output()
            .unwrap()
            .into();
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(code), "x\n"),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr
                .contains("2 bytes are missing in the log \"/dev/full\""),
            "{}",
            ran.stderr
        );
    }
    let place = Place::new();
    let ran = place.run(&["--log-strict"], &["out:x\\n"]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_real_disk_that_is_full() {
    let place = Place::new();
    let disk = place.0.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        // A mount needs root, and more in containers. The size limits above cover the case.
        return;
    }
    let mut command = procwright(["--report", "json", "--log"]);
    command.arg(disk.join("log")).arg("--");
    command.args(child(["flood", "--out", "1000000"]));
    let output = command.output().unwrap();
    assert_eq!(output.stdout.len(), 1_000_000);
    let ran = Ran::from(output);
    let kept = fs::read(disk.join("log")).unwrap().len();
    Command::new("umount")
        .arg("-l")
        .arg(&disk)
        .status()
        .unwrap();
    assert_eq!(ran.code(), Some(0));
    assert!(
        ran.stderr.contains("No space left on device"),
        "{}",
        ran.stderr
    );
    let expected = format!(
        "\"log\":{{\"bytes\":{kept},\"lost_bytes\":{},",
        1_000_000 - kept
    );
    assert!(ran.stderr.contains(&expected), "{kept} {}", ran.stderr);
}

#[test]
fn a_fifo_whose_reader_goes_is_the_programs_matter_not() {
    let place = Place::new();
    let reader = common::fifo(&place.log());
    let mut talk = Talk::new(place.command(&[], &["out:first", "ack", "out:second\\n"]));
    let mut first = [0; 5];
    (&reader).read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first");
    drop(reader);
    // A child that another test starts has a copy of the reader until its exec.
    let write_only = || {
        let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
        rustix::fs::open(place.log(), flags, rustix::fs::Mode::empty())
    };
    while write_only().is_ok() {
        std::thread::yield_now();
    }
    talk.go_on();
    let (code, rest) = talk.end();
    assert_eq!(code, Some(0));
    assert!(
        rest.contains("Broken pipe") && rest.contains("7 bytes are missing"),
        "{rest}"
    );
}

#[test]
fn a_log_that_takes_nothing_holds_up_no_deadline() {
    in_time(Duration::from_millis(500), |limit| {
        let place = Place::new();
        let reader = common::fifo(&place.log());
        let mut command = procwright(["--timeout", &option(limit), "--report", "json", "--log"]);
        command.arg(place.log()).arg("--");
        command.args(child(["flood-forever", "--no-limit"]));
        let output = command.stdout(Stdio::null()).output().unwrap();
        drop(reader);
        assert_eq!(output.status.code(), Some(124));
        let stderr = String::from_utf8(output.stderr).unwrap();
        let (_, json) = stderr.split_once("\n{").unwrap();
        let json: serde_json::Value = serde_json::from_str(&format!("{{{json}")).unwrap();
        let log = |name: &str| json["log"][name].as_u64().unwrap();
        // Each byte that was read is in the log or counted as lost.
        assert_eq!(
            log("bytes") + log("lost_bytes"),
            json["stdout_info"]["bytes"].as_u64().unwrap()
        );
        // The program was not held up: many times what the FIFO and its own pipe take.
        (log("lost_bytes") > 1 << 20).then_some(())
    });
}
