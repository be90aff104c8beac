//! Which run reads what which other writes.

use std::ops::Range;
use std::sync::Arc;

/// Runs in a row, each of which reads what the one before it writes. At each place of the row
/// several may stand side by side: all of them read what the one before them writes, and the one
/// behind them reads what all of them write. Before and behind several stands one.
///
/// The pipe behind a run has the number of that run. What is between several and the next one
/// belongs to the pipe of the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// For each place the number of the first run behind it.
    ends: Arc<[usize]>,
}

impl Shape {
    /// A row with so many runs at each of its places.
    pub(crate) fn new(sizes: impl IntoIterator<Item = usize>) -> Shape {
        let ends = sizes.into_iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        });
        Shape {
            ends: ends.collect(),
        }
    }

    /// The runs at a place of the row, none where there is no such place.
    fn runs_at(&self, place: Option<usize>) -> Range<usize> {
        let end = |place: usize| self.ends.get(place).copied();
        let found = place.and_then(|place| {
            let first = place.checked_sub(1).and_then(end);
            Some(first.unwrap_or(0)..end(place)?)
        });
        let of = self.ends.last().copied().unwrap_or(0);
        found.unwrap_or(of..of)
    }

    /// The place in the row of the run of this number.
    fn place(&self, run: usize) -> usize {
        self.ends.partition_point(|end| *end <= run)
    }

    /// The numbers of the runs at each place, the first one first.
    pub(crate) fn row(&self) -> impl Iterator<Item = Range<usize>> {
        (0..self.ends.len()).map(|place| self.runs_at(Some(place)))
    }

    /// The runs that stand side by side with that of this number, with it.
    pub(crate) fn beside(&self, run: usize) -> Range<usize> {
        self.runs_at(Some(self.place(run)))
    }

    /// The runs that nobody reads.
    pub(crate) fn last(&self) -> Range<usize> {
        self.runs_at(self.ends.len().checked_sub(1))
    }

    /// True if somebody reads what the run of this number writes.
    pub(crate) fn is_read(&self, run: usize) -> bool {
        run < self.last().start
    }

    /// The number of the run that the one of this number reads, of several the first, and which of
    /// its readers it is.
    pub(crate) fn before(&self, run: usize) -> Option<(usize, usize)> {
        let before = self.all_before(run);
        let reader = run.checked_sub(self.beside(run).start)?;
        (!before.is_empty()).then_some((before.start, reader))
    }

    /// The numbers of all runs that the one of this number reads.
    pub(crate) fn all_before(&self, run: usize) -> Range<usize> {
        self.runs_at(self.place(run).checked_sub(1))
    }

    /// The numbers of the runs that read what the one of this number writes.
    pub(crate) fn behind(&self, run: usize) -> Range<usize> {
        self.runs_at(self.place(run).checked_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(shape: &Shape, runs: usize) -> Vec<Option<(usize, usize)>> {
        (0..runs).map(|run| shape.before(run)).collect()
    }

    fn behind(shape: &Shape, runs: usize) -> Vec<Range<usize>> {
        (0..runs).map(|run| shape.behind(run)).collect()
    }

    #[test]
    fn a_row() {
        let shape = Shape::new([1, 1, 1]);
        assert_eq!(before(&shape, 3), [None, Some((0, 0)), Some((1, 0))]);
        assert_eq!(behind(&shape, 3), [1..2, 2..3, 3..3]);
        assert!(shape.is_read(1) && !shape.is_read(2));
        assert_eq!(shape.row().collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
    }

    #[test]
    fn the_last_side_by_side() {
        let shape = Shape::new([1, 1, 2]);
        let expected = [None, Some((0, 0)), Some((1, 0)), Some((1, 1))];
        assert_eq!(before(&shape, 4), expected);
        assert_eq!(behind(&shape, 4), [1..2, 2..4, 4..4, 4..4]);
        assert!(shape.is_read(1) && !shape.is_read(2));
        assert_eq!((shape.last(), shape.beside(3)), (2..4, 2..4));
    }

    #[test]
    fn the_first_side_by_side() {
        let shape = Shape::new([2, 1, 1]);
        let expected = [None, None, Some((0, 0)), Some((2, 0))];
        assert_eq!(before(&shape, 4), expected);
        let all: Vec<_> = (0..4).map(|run| shape.all_before(run).len()).collect();
        assert_eq!(all, [0, 0, 2, 1]);
        assert_eq!(behind(&shape, 4), [2..3, 2..3, 3..4, 4..4]);
    }

    #[test]
    fn side_by_side_at_several_places() {
        let shape = Shape::new([2, 1, 3, 1, 2]);
        let expected = [
            None,
            None,
            Some((0, 0)),
            Some((2, 0)),
            Some((2, 1)),
            Some((2, 2)),
            Some((3, 0)),
            Some((6, 0)),
            Some((6, 1)),
        ];
        assert_eq!(before(&shape, 9), expected);
        assert_eq!(shape.all_before(6), 3..6);
        assert_eq!(shape.behind(2), 3..6);
        assert_eq!(shape.behind(4), 6..7);
        assert_eq!(shape.behind(6), 7..9);
        assert_eq!(shape.beside(4), 3..6);
        assert!(shape.is_read(6) && !shape.is_read(7));
    }

    #[test]
    fn one_and_none() {
        assert_eq!(Shape::new([1]).before(0), None);
        assert_eq!(Shape::new([1]).behind(0), 1..1);
        assert_eq!(Shape::new([]).last(), 0..0);
        assert!(!Shape::new([]).is_read(0));
        // All side by side read nobody.
        assert_eq!(Shape::new([2]).before(1), None);
    }
}
