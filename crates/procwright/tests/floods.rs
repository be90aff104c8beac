//! More output than is read, in bounded memory: nothing is lost unless the policy
//! allows it, and then every byte is accounted for.

mod common;

use std::io::Read;
use std::time::Instant;
use test_support::alone;

use common::{child, figure, scaled, status_bytes, stress, timed};
use procwright::process::Exit;
use procwright::stream::{Chunk, Patience, Reader};
use procwright::{Child, Overflow};
use test_children::{Pattern, Stream};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The peak memory of this process.
fn peak() -> u64 {
    status_bytes("VmHWM")
}

/// Reads to the end and compares each byte with what the child wrote. Returns how many
/// were read, and how many had been dropped.
fn account(reader: &Reader, stream: Stream) -> (u64, u64) {
    let mut buffer = vec![0; 128 << 10];
    let pattern = Pattern::new(stream, buffer.len());
    let (mut kept, mut dropped) = (0, 0);
    loop {
        match reader
            .read_with(&mut buffer, Patience::NEVER_ENDING)
            .unwrap()
        {
            Chunk::Bytes(n) => {
                assert_eq!(pattern.mismatch(kept + dropped, &buffer[..n]), None);
                kept += n as u64;
            }
            Chunk::Gap(n) => dropped += n,
            Chunk::End => return (kept, dropped),
            other => panic!("{other:?}"),
        }
    }
}

fn flood(out: u64, err: u64) -> procwright::Command<'static> {
    let [out, err] = [out, err].map(|bytes| bytes.to_string());
    child(&["flood", "--out", &out, "--err", &err])
}

fn ends_well(child: &Child) {
    assert_eq!(child.wait(None).unwrap(), Some(Exit::Code(0)));
}

/// Bytes that the disk of the spool has room for, up to `wanted`.
fn fits(wanted: u64) -> u64 {
    // The first directory that the library would use as well.
    let output = std::process::Command::new("df")
        .args(["--output=avail", "-B1", "/var/tmp"])
        .output()
        .expect("df");
    let text = String::from_utf8_lossy(&output.stdout);
    let free: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    // Other programs need the disk too.
    let fits = wanted.min(free / 2);
    if fits < wanted {
        figure(&format!("no room for {wanted} bytes, only for {fits}"));
    }
    fits
}

alone! {
    fn a_flood_on_stderr_while_only_stdout_is_read() {
        let bytes = scaled(256 * MIB, 4 * GIB).min(fits(8 * GIB) / 2);
        let overflow = Overflow::Spill { memory: 16 * MIB, disk: Some(2 * bytes) };
        let begun = Instant::now();
        let mut noisy = flood(MIB, bytes).spawn_with(overflow).unwrap();
        // The end comes when the program ends, after all that it wrote.
        let stdout = noisy.stdout.take().unwrap();
        assert_eq!(account(&stdout, Stream::Stdout), (MIB, 0));
        ends_well(&noisy);
        let wrote = begun.elapsed();
        let stderr = noisy.stderr.take().unwrap();
        let figures = stderr.figures().unwrap();
        assert!(figures.bytes_in + 256 * 1024 >= bytes, "{figures:?}");
        let (counted, read) = timed(|| account(&stderr, Stream::Stderr));
        assert_eq!(counted, (bytes, 0));
        let figures = stderr.figures().unwrap();
        assert_eq!((figures.bytes_in, figures.bytes_out, figures.disk_bytes), (bytes, bytes, 0));
        assert!(peak() <= 64 * MIB, "{}", peak());
        figure(&format!(
            "{} MiB on stderr: written in {wrote:?}, read in {read:?}, at most {} KiB resident, {} MiB on disk",
            bytes / MIB, peak() >> 10, figures.disk_peak_bytes / MIB
        ));
    }
}

alone! {
    fn who_only_waits_gets_the_exit_however_much_is_on_both() {
        let bytes = scaled(64 * MIB, GIB).min(fits(4 * GIB) / 4);
        let overflow = Overflow::Spill { memory: MIB, disk: Some(2 * bytes) };
        let noisy = flood(bytes, bytes).spawn_with(overflow).unwrap();
        ends_well(&noisy);
        for (reader, stream) in [(&noisy.stdout, Stream::Stdout), (&noisy.stderr, Stream::Stderr)] {
            assert_eq!(account(reader.as_ref().unwrap(), stream), (bytes, 0));
        }
        assert!(peak() <= 64 * MIB, "{}", peak());
    }
}

/// The output is read only after the child has ended, so no reader can have held the
/// child up.
fn is_accounted_for(overflow: Overflow) {
    let bytes = scaled(256 * MIB, 10 * GIB);
    let begun = Instant::now();
    let flood = flood(bytes, 0).spawn_with(overflow).unwrap();
    ends_well(&flood);
    let took = begun.elapsed();
    let stdout = flood.stdout.as_ref().unwrap();
    // The rest of the pipe has to be read as well before room is made.
    common::eventually(|| stdout.figures().unwrap().bytes_in == bytes);
    let (kept, dropped) = account(stdout, Stream::Stdout);
    assert_eq!(kept + dropped, bytes);
    // The dropped bytes may be the last ones, which the final gap shows.
    let memory = overflow.memory();
    assert!(kept <= memory && kept >= memory / 2, "{kept} were kept");
    let figures = stdout.figures().unwrap();
    assert_eq!((figures.bytes_in, figures.bytes_out), (bytes, kept));
    assert_eq!((figures.dropped_bytes, figures.lost_bytes), (dropped, 0));
    assert!(peak() <= 32 * MIB, "{}", peak());
    figure(&format!(
        "{overflow:?}: {} MiB in {took:?}, {kept} kept, {dropped} dropped, at most {} KiB resident",
        bytes / MIB,
        peak() >> 10
    ));
}

alone! {
    fn the_oldest_are_dropped_and_counted() {
        is_accounted_for(Overflow::DropOldest { memory: Overflow::MEMORY });
    }
}

alone! {
    fn the_newest_are_dropped_and_counted() {
        is_accounted_for(Overflow::DropNewest { memory: Overflow::MEMORY });
    }
}

/// The reader falls behind, so that there are gaps everywhere.
fn is_accounted_for_in_place(overflow: Overflow) {
    let bytes = scaled(64 * MIB, GIB);
    let flood = flood(bytes, bytes).spawn_with(overflow).unwrap();
    let err = flood.stderr.clone().unwrap();
    let other = std::thread::spawn(move || account(&err, Stream::Stderr));
    let (kept, dropped) = account(flood.stdout.as_ref().unwrap(), Stream::Stdout);
    assert_eq!(kept + dropped, bytes);
    let (kept_err, dropped_err) = other.join().unwrap();
    assert_eq!(kept_err + dropped_err, bytes);
    ends_well(&flood);
    let figures = flood.stdout.as_ref().unwrap().figures().unwrap();
    assert_eq!((figures.bytes_in, figures.dropped_bytes), (bytes, dropped));
    assert!(peak() <= 32 * MIB, "{}", peak());
    figure(&format!(
        "{overflow:?} and a reader: dropped {dropped} and {dropped_err} of {bytes}"
    ));
}

alone! {
    fn gaps_are_where_bytes_are_missing() {
        for memory in [4 << 10, 10_000, 64 << 10, MIB] {
            is_accounted_for_in_place(Overflow::DropOldest { memory });
            is_accounted_for_in_place(Overflow::DropNewest { memory });
        }
    }
}

alone! {
    fn a_child_whose_output_is_dropped_is_held_up_by_nobody() {
        // Measured beside a reader that discards everything. A figure and no assertion:
        // the speed of a machine is not the library's.
        let bytes = scaled(128 * MIB, 2 * GIB);
        let size = bytes.to_string();
        let run = |overflow: Option<Overflow>, discards: bool| {
            let command = child(&["flood-blocked", "--out", &size]);
            let mut flood = command.spawn_with(overflow).unwrap();
            let mut stderr = flood.stderr.take().unwrap();
            let begun = Instant::now();
            let mut stdout = flood.stdout.take().unwrap();
            let mut buffer = vec![0; 256 << 10];
            while discards && stdout.read(&mut buffer).unwrap() > 0 {}
            ends_well(&flood);
            let took = begun.elapsed();
            let mut report = String::new();
            stderr.read_to_string(&mut report).unwrap();
            figure(&format!("{size} bytes, {overflow:?}, discards: {discards}: {took:?}, {}", report.trim()));
        };
        let memory = Overflow::MEMORY;
        for _ in 0..scaled(1, 5) {
            run(None, true);
            run(Some(Overflow::DropOldest { memory }), false);
            run(Some(Overflow::DropNewest { memory }), false);
        }
        if !stress() {
            return;
        }
        run(Some(Overflow::default()), true);
    }
}
