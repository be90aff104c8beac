//! A short form of the fuzzers that runs with the tests: a queue, one lane of which is
//! filled with nonsense. `fuzz/` has the long form, which is guided by coverage.

#[path = "../fuzz/driver.rs"]
mod driver;

use std::path::PathBuf;

use proptest::prelude::*;

/// Bytes that mean something: writes and acts that the driver knows.
fn program() -> impl Strategy<Value = Vec<u8>> {
    let write = (0..8u8, prop::collection::vec(any::<u8>(), 0..12))
        .prop_map(|(kind, bytes)| [&[0, kind], &bytes[..]].concat());
    let act = (0..6u8, prop::collection::vec(any::<u8>(), 0..4))
        .prop_map(|(kind, bytes)| [&[1, kind], &bytes[..]].concat());
    prop::collection::vec(prop_oneof![2 => write, 3 => act], 1..30).prop_map(|all| all.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::scaled(300, 20_000) as u32))]

    #[test]
    fn any_bytes_in_a_lane_harm_no_other(program in program()) {
        let _watchdog = test_support::watchdog("any_bytes_in_a_lane_harm_no_other");
        driver::run(&program);
    }

    #[test]
    fn writes_to_a_lane_meanwhile_harm_no_other(
        at in any::<u8>(),
        program in program(),
    ) {
        let _watchdog = test_support::watchdog("writes_to_a_lane_meanwhile_harm_no_other");
        driver::run_with_mutator(&[&[at], &program[..]].concat());
    }
}

/// Seeds of the fuzzers: each damage that is told apart, and each way to get near it.
/// `PROCWRIGHT_WRITE_SEEDS=1` writes them anew.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    // Programs as the driver reads them.
    let send = |length: u16| [&[1, 0], &length.to_le_bytes()[..]].concat();
    let receive = vec![1, 3, 255];
    let clean = vec![1, 2];
    let tail = |word: u64| [&[0, 0], &word.to_le_bytes()[..]].concat();
    let near = |block: u8, units: u16| [&[0, 1, block], &units.to_le_bytes()[..]].concat();
    let head = |word: u64| [&[0, 2], &word.to_le_bytes()[..]].concat();
    let record = |block: u8, at: u16, kind: u8, length: u16| {
        let bytes = [&[0, 5, block][..], &(at / 8).to_le_bytes(), &[0, kind]].concat();
        let length = length.to_le_bytes();
        let is_message = matches!(kind, 1 | 4);
        [&bytes[..], if is_message { &length } else { &length[..1] }].concat()
    };
    vec![
        (
            "growth",
            [send(4000), send(4000), send(8000), receive.clone()].concat(),
        ),
        (
            "tail-beyond-all",
            [tail(u64::MAX), receive.clone(), clean.clone()].concat(),
        ),
        (
            "tail-behind",
            [send(9), receive.clone(), tail(0), receive.clone()].concat(),
        ),
        (
            "tail-in-a-block-that-leads-nowhere",
            [near(2, 9), receive.clone()].concat(),
        ),
        (
            "tail-of-a-skip",
            [record(0, 0, 2, 0), near(0, 512), receive.clone()].concat(),
        ),
        ("jumps-in-a-ring", {
            let there = [record(0, 0, 3, 1), record(1, 0, 3, 0)].concat();
            [there, near(0, 9000), receive.clone()].concat()
        }),
        (
            "jump-beyond-the-window",
            [record(0, 0, 3, 9), near(0, 9), receive.clone()].concat(),
        ),
        ("message-longer-than-its-place", {
            [record(0, 0, 1, 60_000), near(0, 9), receive.clone()].concat()
        }),
        // The message's bytes would fit, but not from where they begin.
        ("aligned-message-longer-than-its-place", {
            [record(0, 8, 4, 4040), near(0, 512), receive.clone()].concat()
        }),
        (
            "aligned-messages",
            [send(1024), send(3), send(2000), receive.clone()].concat(),
        ),
        ("messages-of-nothing", {
            let all = (0..9).map(|at| record(0, 8 * at, 1, 0)).collect::<Vec<_>>();
            [all.concat(), near(0, 9), receive.clone()].concat()
        }),
        (
            "head-beyond",
            [send(9), head(900), send(9000), receive.clone()].concat(),
        ),
        (
            "head-refused",
            [send(9), head(u64::MAX), send(9000), receive.clone()].concat(),
        ),
        ("sleep-and-claims", {
            let words = (0..5u8).map(|word| vec![0, 6, word, 0xff, 0xff, 0xff, 0xff]);
            [
                words.collect::<Vec<_>>().concat(),
                clean.clone(),
                receive.clone(),
            ]
            .concat()
        }),
        ("lane-taken-anew", {
            let anew = vec![1, 5, 0];
            [
                tail(77),
                anew.clone(),
                send(9),
                receive.clone(),
                anew,
                send(9),
                clean,
            ]
            .concat()
        }),
    ]
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds")
}

#[test]
fn the_seeds_do_no_harm() {
    let _watchdog = test_support::watchdog("the_seeds_do_no_harm");
    let writes = std::env::var_os("PROCWRIGHT_WRITE_SEEDS").is_some();
    for (name, program) in seeds() {
        let file = directory().join(name);
        if writes {
            std::fs::create_dir_all(directory()).unwrap();
            std::fs::write(&file, &program).unwrap();
        }
        assert_eq!(std::fs::read(&file).unwrap(), program, "{name}");
        driver::run(&program);
        for at in [64, 128, 192] {
            driver::run_with_mutator(&[&[at], &program[..]].concat());
        }
    }
    assert_eq!(
        std::fs::read_dir(directory()).unwrap().count(),
        seeds().len()
    );
}
