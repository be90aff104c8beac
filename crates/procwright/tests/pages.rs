//! The pages of the memory that a run reads into.
#![cfg(target_os = "linux")]

mod common;

use common::child;
use test_support::{alone, mapping_flags};

/// What a run captures, and whether the kernel was asked for huge pages for it.
fn capture(size: &str) -> (Vec<u8>, bool) {
    let output = child(&["flood", "--out", size]).run().unwrap();
    let start = output.stdout.as_ptr().addr();
    let is_huge = mapping_flags(start).contains(" hg ");
    (output.stdout, is_huge)
}

alone! {
    fn a_process_takes_no_huge_pages_before_it_knows_the_price_of_small_ones() {
        // Huge pages may take ten times as long here, and nobody has looked.
        let (data, is_huge) = capture("24M");
        assert_eq!(data.len(), 24 << 20);
        assert!(!is_huge);
        // The look is for one page of 2 MiB, whichever capture comes to it; whether more
        // follow is up to the machine.
        for size in ["24M", "48M"] {
            assert_eq!(capture(size).0.len() % (24 << 20), 0);
        }
    }
}
