//! What a check costs while the peer lives.

use std::hint::black_box;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use procwright::liveness::{Invitation, Monitor};
use procwright_bench::subject_liveness::{Check, measure};
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::peer::Peer;

pub(crate) fn run(batches: usize, batch_us: u64) {
    let peer = Peer::start(0);
    let invitation = peer.invitation();
    let word = word(&invitation);
    let token = Monitor::accept(invitation).expect("a monitor");
    let process = Monitor::of_process(&peer.process).expect("a monitor");
    let checks = vec![
        Check::new("plain load", || word.load(Ordering::Relaxed) != 0),
        Check::new("alive", || token.alive()),
        Check::new("alive process", || process.alive()),
        Check::new("plain load, found anew", || {
            black_box(word).load(Ordering::Relaxed) != 0
        }),
        Check::new("alive, found anew", || black_box(&token).alive()),
    ];
    measure(checks, batches, batch_us);
    let mut peer = peer;
    peer.kill();
    peer.reap();
}

/// The word that `alive()` looks at, mapped once more by ourselves.
fn word(invitation: &Invitation) -> &'static AtomicU32 {
    const CELL: usize = 64;
    let page = rustix::param::page_size();
    let [cells, _] = invitation.files();
    let cell = u32::from_str_radix(&invitation.ticket()[..8], 16).expect("the number of a cell");
    assert!((cell as usize) < page / CELL, "no cell of the page");
    // SAFETY: a fresh mapping at a place of the kernel's choice.
    let at = unsafe {
        mmap(
            ptr::null_mut(),
            page,
            ProtFlags::READ,
            MapFlags::SHARED,
            cells,
            0,
        )
    };
    let at = NonNull::new(at.expect("mmap").cast::<u8>()).expect("memory");
    // SAFETY: within the page, aligned, and never unmapped; the file is sealed
    // against getting shorter, as `Monitor::accept` goes on to check.
    unsafe { at.add(cell as usize * CELL).cast().as_ref() }
}
