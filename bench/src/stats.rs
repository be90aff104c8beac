//! Medians and their intervals, without assumptions about the distribution.

/// Least, middle and greatest of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// How many there are.
    pub n: usize,
}

/// A median with an interval that holds the true one as often as `confidence`
/// says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The middle of the figures.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The probability, exact: from the binomial distribution of ranks.
    pub confidence: f64,
    /// How many figures there are.
    pub n: usize,
}

/// None for no figures.
pub fn summary(values: &[f64]) -> Option<Summary> {
    let sorted = sorted(values);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    Some(Summary {
        median: middle(&sorted),
        min,
        max,
        n: sorted.len(),
    })
}

/// The figure below which that share of the figures lies, by rank: one of them,
/// nothing in between. None for no figures.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// The median with the narrowest interval of order statistics that reaches 95 %,
/// or with the widest there is if there are too few figures for that.
pub fn interval(values: &[f64]) -> Option<Interval> {
    let sorted = sorted(values);
    let n = sorted.len();
    let rank = (0..n.div_ceil(2))
        .rev()
        .find(|&rank| coverage(n, rank) >= 0.95)
        .unwrap_or(0);
    let (low, high) = (*sorted.get(rank)?, *sorted.get(n - 1 - rank)?);
    Some(Interval {
        median: middle(&sorted),
        low,
        high,
        confidence: coverage(n, rank),
        n,
    })
}

/// How probable it is that the true median lies between the figures at `rank`
/// from below and from above: 1 - 2 P(Binomial(n, 1/2) <= rank).
fn coverage(n: usize, rank: usize) -> f64 {
    let mut term = 0.5f64.powi(n as i32);
    let mut tail = term;
    for k in 0..rank {
        term *= (n - k) as f64 / (k + 1) as f64;
        tail += term;
    }
    (1.0 - 2.0 * tail).max(0.0)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_and_odd() {
        assert_eq!(summary(&[3.0, 1.0, 2.0]).map(|s| s.median), Some(2.0));
        assert_eq!(summary(&[4.0, 1.0, 2.0, 3.0]).map(|s| s.median), Some(2.5));
        assert_eq!(summary(&[]), None);
    }

    #[test]
    fn quantiles_are_figures_that_were_seen() {
        let values: Vec<f64> = (1..=300).rev().map(f64::from).collect();
        let found = [0.0, 0.5, 0.99, 1.0].map(|share| quantile(&values, share));
        assert_eq!(found, [1.0, 150.0, 297.0, 300.0].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn fifteen_pairs_give_the_textbook_interval() {
        let values: Vec<f64> = (1..=15).map(f64::from).collect();
        let interval = interval(&values).expect("figures");
        assert_eq!(
            (interval.low, interval.median, interval.high),
            (4.0, 8.0, 12.0)
        );
        assert!((interval.confidence - 0.964_843_75).abs() < 1e-12);
    }

    #[test]
    fn few_figures_say_that_they_are_few() {
        let interval = interval(&[1.0, 2.0, 3.0]).expect("figures");
        assert_eq!(
            (interval.low, interval.high, interval.confidence),
            (1.0, 3.0, 0.75)
        );
    }
}
