//! Which run reads what which other writes.

use std::ops::Range;

/// Runs in a row, each of which reads what the one before it writes, but that the last ones may
/// stand side by side: these all read what the one before them writes.
///
/// The pipe behind a run has the number of that run. No other shape is here: one in which several
/// write into the same next one would need a rule of whose bytes come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    of: usize,
    /// How many stand side by side at the end, one at least if there are any.
    abreast: usize,
}

impl Shape {
    /// So many runs, of which the last `abreast` stand side by side.
    pub(crate) fn new(of: usize, abreast: usize) -> Shape {
        Shape {
            of,
            abreast: abreast.clamp(1, of.max(1)),
        }
    }

    /// The place of the first of those that nobody reads.
    pub(crate) fn first_of_last(self) -> usize {
        self.of.saturating_sub(self.abreast)
    }

    /// How many stand side by side at the end.
    pub(crate) fn abreast(self) -> usize {
        self.abreast
    }

    /// True if somebody reads what the run of this place writes.
    pub(crate) fn is_read(self, place: usize) -> bool {
        place < self.first_of_last()
    }

    /// The place of the run that the one of this place reads, and which of its readers it is.
    pub(crate) fn before(self, place: usize) -> Option<(usize, usize)> {
        let first = self.first_of_last();
        match place < first {
            true => Some((place.checked_sub(1)?, 0)),
            false => Some((first.checked_sub(1)?, place - first)),
        }
    }

    /// The places of the runs that read what the one of this place writes.
    pub(crate) fn behind(self, place: usize) -> Range<usize> {
        let first = self.first_of_last();
        match place + 1 {
            next if next < first => next..next + 1,
            next if next == first => first..self.of,
            _ => self.of..self.of,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row() {
        let shape = Shape::new(3, 1);
        let before: Vec<_> = (0..3).map(|place| shape.before(place)).collect();
        assert_eq!(before, [None, Some((0, 0)), Some((1, 0))]);
        let behind: Vec<_> = (0..3).map(|place| shape.behind(place)).collect();
        assert_eq!(behind, [1..2, 2..3, 3..3]);
        assert!(shape.is_read(1) && !shape.is_read(2));
    }

    #[test]
    fn the_last_side_by_side() {
        let shape = Shape::new(4, 2);
        let before: Vec<_> = (0..4).map(|place| shape.before(place)).collect();
        assert_eq!(before, [None, Some((0, 0)), Some((1, 0)), Some((1, 1))]);
        let behind: Vec<_> = (0..4).map(|place| shape.behind(place)).collect();
        assert_eq!(behind, [1..2, 2..4, 4..4, 4..4]);
        assert!(shape.is_read(1) && !shape.is_read(2));
    }

    #[test]
    fn one_and_none() {
        assert_eq!(Shape::new(1, 1).before(0), None);
        assert_eq!(Shape::new(1, 1).behind(0), 1..1);
        assert_eq!(Shape::new(0, 1).first_of_last(), 0);
        // All side by side read nobody.
        assert_eq!(Shape::new(2, 2).before(1), None);
    }
}
