//! Waiting a moment for room before growth.

use super::heap::Heap;
use super::{drain, put, reader, writer};
use crate::format::Geometry;
use crate::lane::ReserveError;

/// A sender that has shown something on the way does not wait before the receiver is told:
/// one that sleeps makes no room.
#[test]
fn a_sender_that_waits_a_moment_has_woken_the_receiver() {
    let heap = Heap::new(Geometry::tiny(20, 3, 3));
    let (mut writer, mut reader) = (writer(&heap), reader(&heap));
    let bytes = vec![7; 400 << 10];
    // Seven messages take blocks of 1 and 2 MiB; the next one would take more than is good
    // for the caches.
    for _ in 0..7 {
        put(&mut writer, &bytes).unwrap();
    }
    assert!(matches!(
        put(&mut writer, &bytes),
        Err(ReserveError::WakeFirst)
    ));
    assert_eq!(drain(&mut reader).len(), 7);
    put(&mut writer, &bytes).unwrap();
    assert_eq!(writer.cursor().block, 1);
    assert!(writer.publish());
}

/// A call that must not wait looks no longer for a long message than for a short one.
#[test]
fn only_calls_that_may_wait_spin_longer_for_long_messages() {
    let looks = |may_wait| {
        let heap = Heap::new(Geometry::tiny(20, 3, 3));
        let mut writer = writer(&heap);
        let bytes = vec![7; 400 << 10];
        for _ in 0..7 {
            put(&mut writer, &bytes).unwrap();
        }
        writer.publish();
        let before = heap.looks.get();
        writer.reserve(bytes.len() as u64, may_wait).unwrap();
        heap.looks.get() - before
    };
    if cfg!(miri) {
        return;
    }
    let [short, long] = [looks(false), looks(true)];
    assert!((10..100).contains(&short), "{short}");
    // The long message has six times 64 KiB.
    assert!(long > 5 * short, "{long} and {short}");
}
