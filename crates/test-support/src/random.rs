//! Random numbers for tests that can be repeated.

/// Pseudo-random numbers, equal for equal seeds; neighbouring seeds give unrelated
/// numbers. SplitMix64, by Steele, Lea and Flood.
pub struct Dice(pub u64);

impl Dice {
    /// A number from 0 up to and without `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 33) % sides
    }

    /// An index into something of this length.
    pub fn place(&mut self, length: usize) -> usize {
        self.roll(length as u64) as usize
    }

    /// One of these, or none if there are none.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.place(all.len())])
    }
}

/// A source of 31-bit numbers from a [`Dice`].
pub fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut dice = Dice(seed);
    move || dice.roll(1 << 31)
}
