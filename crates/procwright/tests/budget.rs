//! The memory and disk that all children may take together.

mod common;

use std::io::{Read, Write};
use test_support::alone;

use common::child;
use procwright::process::Exit;
use procwright::{Budget, Child, Error, Overflow, Stdin};
use test_children::{Pattern, Stream};

const SIZE: usize = 1 << 20;

fn flood() -> Child {
    let size = SIZE.to_string();
    child(&["flood", "--out", &size]).spawn().unwrap()
}

fn memory(children: &[Child]) -> u64 {
    let figures = |child: &Child| child.stdout.as_ref().unwrap().figures().unwrap();
    children
        .iter()
        .map(|child| figures(child).memory_bytes)
        .sum()
}

fn is_whole(child: &mut Child) {
    let mut data = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut data).unwrap();
    assert_eq!(data.len(), SIZE);
    assert_eq!(Pattern::new(Stream::Stdout, SIZE).mismatch(0, &data), None);
}

alone! {
    fn many_children_take_no_more_than_the_budget_and_lose_nothing() {
        let budget = Budget { memory: 4 << 20, disk: None };
        budget.set();
        assert_eq!(Budget::current(), budget);
        let mut children: Vec<_> = (0..40).map(|_| flood()).collect();
        for child in &children {
            // Each child goes on, by way of the disk.
            assert_eq!(child.wait(None).unwrap(), Some(Exit::Code(0)));
        }
        // Each has at least the smallest share, and some blocks in use.
        let most = (4 << 20) + 40 * ((64 << 10) + 6 * (16 << 10));
        assert!(memory(&children) <= most, "{}", memory(&children));
        children.iter_mut().for_each(is_whole);
    }
}

alone! {
    fn a_single_one_has_all_of_it() {
        Budget { memory: 2 << 20, disk: None }.set();
        let idle: Vec<_> = (0..40).map(|_| child(&["sleep-forever"]).spawn().unwrap()).collect();
        let mut busy = flood();
        assert_eq!(busy.wait(None).unwrap(), Some(Exit::Code(0)));
        let figures = busy.stdout.as_ref().unwrap().figures().unwrap();
        common::eventually(|| busy.stdout.as_ref().unwrap().figures().unwrap().bytes_in == SIZE as u64);
        assert_eq!(figures.spilled_bytes, 0, "{figures:?}");
        is_whole(&mut busy);
        idle.iter().for_each(|child| drop(child.stop()));
    }
}

alone! {
    fn the_budget_of_the_disk_holds_back_and_loses_nothing() {
        Budget { memory: 1 << 20, disk: Some(2 << 20) }.set();
        let overflow = Overflow::Spill { memory: 64 << 10, disk: Some(1 << 30) };
        let mut flood = child(&["flood", "--out", "8M"]).spawn_with(overflow).unwrap();
        let mut stdout = flood.stdout.take().unwrap();
        common::eventually(|| stdout.figures().unwrap().refused > std::time::Duration::ZERO);
        let mut data = Vec::new();
        stdout.read_to_end(&mut data).unwrap();
        assert_eq!(data.len(), 8 << 20);
        assert_eq!(Pattern::new(Stream::Stdout, 8 << 20).mismatch(0, &data), None);
        let peak = stdout.figures().unwrap().disk_peak_bytes;
        assert!(peak > 0 && peak <= 2 << 20, "{peak}");
        assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
    }
}

alone! {
    fn a_budget_that_cannot_be_read_is_told_before_anything_starts() {
        common::sys::set_variable("PROCWRIGHT_MEMORY_BUDGET", "much".as_ref());
        let error = child(&["exit", "0"]).spawn().unwrap_err();
        let Error::Invalid(invalid) = &error else {
            panic!("{error}");
        };
        assert_eq!(invalid.what(), "PROCWRIGHT_MEMORY_BUDGET");
        assert!(error.to_string().contains("256MiB"), "{error}");
        // A budget that is set explicitly makes the variable irrelevant.
        let budget = Budget { memory: 1 << 20, disk: Some(u64::MAX) };
        budget.set();
        assert_eq!(child(&["exit", "0"]).spawn().unwrap().wait(None).unwrap(), Some(Exit::Code(0)));
        assert!(Budget::current().disk >= Some(u64::MAX - 1), "{:?}", Budget::current());
    }
}

alone! {
    fn who_was_held_back_for_others_goes_on_when_they_are_done() {
        Budget { memory: 1 << 20, disk: None }.set();
        let overflow = Overflow::Block { memory: 16 << 20 };
        let flood = |size: &str| child(&["flood", "--out", size]).spawn_with(overflow).unwrap();
        // Each keeps more than the smallest share, and was never refused itself.
        let others: Vec<_> = (0..8).map(|_| flood("100K")).collect();
        for other in &others {
            assert_eq!(other.wait(None).unwrap(), Some(Exit::Code(0)));
        }
        let one = flood("600K");
        let stdout = one.stdout.as_ref().unwrap();
        common::eventually(|| stdout.figures().unwrap().refused > std::time::Duration::ZERO);
        for other in &others {
            let mut data = Vec::new();
            other.stdout.as_ref().unwrap().read_to_end(&mut data).unwrap();
            assert_eq!(data.len(), 100 << 10);
        }
        // The output is not read, and there is room now.
        assert_eq!(one.wait(None).unwrap(), Some(Exit::Code(0)));
    }
}

alone! {
    fn what_was_kept_of_a_larger_share_holds_nobody_up() {
        const HALF: usize = 20 << 20;
        Budget { memory: 64 << 20, disk: None }.set();
        let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn().unwrap();
        let mut stdin = cat.stdin.take().unwrap();
        let mut stdout = cat.stdout.take().unwrap();
        stdin.write_all(&vec![b'a'; HALF]).unwrap();
        common::eventually(|| {
            let figures = stdout.figures().unwrap();
            figures.spilled_bytes > 0 && figures.bytes_in == HALF as u64
        });
        // The oldest bytes, which the reader wants first, stay in memory, and are more
        // than the stream may have there from now on.
        Budget { memory: 1 << 20, disk: None }.set();
        stdin.write_all(&vec![b'b'; HALF]).unwrap();
        drop(stdin);
        assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
        let mut data = Vec::new();
        stdout.read_to_end(&mut data).unwrap();
        let (first, second) = data.split_at(HALF);
        assert!(first.iter().all(|byte| *byte == b'a') && second.len() == HALF);
        assert!(second.iter().all(|byte| *byte == b'b'));
    }
}

alone! {
    fn streams_at_their_end_leave_their_share_to_others() {
        Budget { memory: 4 << 20, disk: None }.set();
        let over: Vec<_> = (0..64).map(|_| child(&["exit", "0"]).spawn().unwrap()).collect();
        for stream in over.iter().flat_map(|child| [&child.stdout, &child.stderr]) {
            let mut stream = stream.as_ref().unwrap();
            assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
        }
        let mut one = flood();
        let stdout = one.stdout.as_ref().unwrap();
        common::eventually(|| stdout.figures().unwrap().bytes_in >= 100 << 10);
        // The blocks are of the size for one stream of two, and not of 130.
        let memory = stdout.figures().unwrap().memory_bytes;
        assert!(memory.is_multiple_of(128 << 10), "{memory}");
        is_whole(&mut one);
        drop(over);
    }
}
