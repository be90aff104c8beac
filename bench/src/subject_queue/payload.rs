//! What messages say.

/// Each word is one more than the one before.
#[inline]
pub fn fill(bytes: &mut [u8], first: u64) {
    for (word, bytes) in (0..).zip(bytes.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&first.wrapping_add(word).to_le_bytes());
    }
}

/// The first word of a message, all of which was read.
///
/// # Panics
/// When it is not what [`fill`] writes.
#[inline]
pub fn check(bytes: &[u8], length: usize) -> u64 {
    assert_eq!(bytes.len(), length, "a message of another length");
    let words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    let sum = words.fold(0, u64::wrapping_add);
    let first = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
    let count = (length / 8) as u64;
    let steps = count * count.saturating_sub(1) / 2;
    assert_eq!(
        sum,
        count.wrapping_mul(first).wrapping_add(steps),
        "the bytes are not those that were sent"
    );
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        let mut bytes = [0; 64];
        for first in [0, 5, u64::MAX] {
            fill(&mut bytes, first);
            assert_eq!(check(&bytes, 64), first);
        }
        bytes[63] ^= 1;
        assert!(std::panic::catch_unwind(|| check(&bytes, 64)).is_err());
    }
}
