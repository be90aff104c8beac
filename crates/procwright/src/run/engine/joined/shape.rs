//! Which run reads what which other writes.

use std::ops::Range;

/// Runs in a row, each of which reads what the one before it writes. The first ones may stand side
/// by side: the next one reads what all of them write. So may the last ones: these all read what
/// the one before them writes.
///
/// The pipe behind a run has the number of that run. What is between several and the next one
/// belongs to the pipe of the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    of: usize,
    /// How many stand side by side at the start, one at least.
    sources: usize,
    /// How many stand side by side at the end, one at least if there are any.
    abreast: usize,
}

impl Shape {
    /// So many runs, of which the first `sources` and the last `abreast` stand side by side.
    pub(crate) fn new(of: usize, sources: usize, abreast: usize) -> Shape {
        let within = |count: usize| count.clamp(1, of.max(1));
        Shape {
            of,
            sources: within(sources),
            abreast: within(abreast),
        }
    }

    /// How many stand side by side at the start.
    pub(crate) fn sources(self) -> usize {
        self.sources
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

    /// The place of the run that the one of this place reads, of several the first, and which of
    /// its readers it is.
    pub(crate) fn before(self, place: usize) -> Option<(usize, usize)> {
        let first = self.first_of_last();
        if self.sources > 1 && place <= self.sources {
            return (place == self.sources).then_some((0, 0));
        }
        match place < first {
            true => Some((place.checked_sub(1)?, 0)),
            false => Some((first.checked_sub(1)?, place - first)),
        }
    }

    /// The places of all runs that the one of this place reads.
    pub(crate) fn all_before(self, place: usize) -> Range<usize> {
        match self.before(place) {
            None => 0..0,
            Some((0, _)) => 0..self.sources,
            Some((before, _)) => before..before + 1,
        }
    }

    /// The places of the runs that read what the one of this place writes.
    pub(crate) fn behind(self, place: usize) -> Range<usize> {
        let first = self.first_of_last();
        let place = match place < self.sources {
            true => self.sources - 1,
            false => place,
        };
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
        let shape = Shape::new(3, 1, 1);
        let before: Vec<_> = (0..3).map(|place| shape.before(place)).collect();
        assert_eq!(before, [None, Some((0, 0)), Some((1, 0))]);
        let behind: Vec<_> = (0..3).map(|place| shape.behind(place)).collect();
        assert_eq!(behind, [1..2, 2..3, 3..3]);
        assert!(shape.is_read(1) && !shape.is_read(2));
    }

    #[test]
    fn the_last_side_by_side() {
        let shape = Shape::new(4, 1, 2);
        let before: Vec<_> = (0..4).map(|place| shape.before(place)).collect();
        assert_eq!(before, [None, Some((0, 0)), Some((1, 0)), Some((1, 1))]);
        let behind: Vec<_> = (0..4).map(|place| shape.behind(place)).collect();
        assert_eq!(behind, [1..2, 2..4, 4..4, 4..4]);
        assert!(shape.is_read(1) && !shape.is_read(2));
    }

    #[test]
    fn the_first_side_by_side() {
        let shape = Shape::new(4, 2, 1);
        let before: Vec<_> = (0..4).map(|place| shape.before(place)).collect();
        assert_eq!(before, [None, None, Some((0, 0)), Some((2, 0))]);
        let before: Vec<_> = (0..4).map(|place| shape.all_before(place)).collect();
        assert_eq!(before, [0..0, 0..0, 0..2, 2..3]);
        let behind: Vec<_> = (0..4).map(|place| shape.behind(place)).collect();
        assert_eq!(behind, [2..3, 2..3, 3..4, 4..4]);
        let both = Shape::new(5, 2, 2);
        assert_eq!(both.behind(1), 2..3);
        assert_eq!(both.behind(2), 3..5);
        assert_eq!(both.before(4), Some((2, 1)));
        assert_eq!(both.all_before(4), 2..3);
    }

    #[test]
    fn one_and_none() {
        assert_eq!(Shape::new(1, 1, 1).before(0), None);
        assert_eq!(Shape::new(1, 1, 1).behind(0), 1..1);
        assert_eq!(Shape::new(0, 1, 1).first_of_last(), 0);
        // All side by side read nobody.
        assert_eq!(Shape::new(2, 1, 2).before(1), None);
    }
}
