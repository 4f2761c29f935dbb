//! Random numbers of a run: one seed, from which everything that is left to chance draws in a fixed order.
//!
//! Parts that must not disturb each other (the network, the clients, the fault script) draw from streams of
//! their own, split off by name, so that a client that makes one draw more does not change the weather.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use std::ops::RangeInclusive;
use xxhash_rust::xxh3::xxh3_64;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng(Pcg64Mcg);

impl Rng {
    /// The stream a seed stands for.
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not have neighbouring streams.
        let high = xxh3_64(&seed.to_le_bytes());
        Self(Pcg64Mcg::new(u128::from(high) << 64 | u128::from(seed)))
    }

    /// A stream of its own for the part called `name`; the same name at the same point gives the same.
    pub(crate) fn split(&mut self, name: &str) -> Self {
        Self::new(self.next() ^ xxh3_64(name.as_bytes()))
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `n`; 0 for `n` = 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        // Multiply-and-shift: the bias is below 2^-32 for the ranges used here.
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// An index into something of length `n`.
    pub(crate) fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// A number of the range.
    pub(crate) fn range(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end().saturating_sub(*range.start()).saturating_add(1))
    }

    /// A number of the range whose logarithm is even: small ones as often as great ones.
    pub(crate) fn log_range(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = (*range.start(), *range.end());
        let octaves = u64::from(high.max(1).ilog2() - low.max(1).ilog2());
        let bits = self.range(0..=octaves);
        let begin = low.max(1) << bits;
        self.range(begin.min(high)..=begin.saturating_mul(2).saturating_sub(1).min(high)).max(low)
    }

    /// True with a probability of `thousandths`.
    pub(crate) fn chance(&mut self, thousandths: u64) -> bool {
        self.below(1000) < thousandths
    }

    /// One of a list that is not empty.
    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kept seeds live on this: the stream of a seed must never change.
    #[test]
    fn the_stream_of_a_seed_is_fixed_and_ranges_hold() {
        let mut rng = Rng::new(7);
        let first: Vec<u64> = (0..3).map(|_| rng.next()).collect();
        assert_eq!(first, FIRST_OF_SEED_7);
        let mut seen = [0u32; 5];
        for _ in 0..1000 {
            seen[rng.range(3..=7) as usize - 3] += 1;
            assert!((10..=1000).contains(&rng.log_range(10..=1000)));
        }
        assert!(seen.iter().all(|n| *n > 150), "{seen:?}");
        assert_ne!(Rng::new(7).split("a").next(), Rng::new(7).split("b").next());
    }

    const FIRST_OF_SEED_7: [u64; 3] =
        [13_879_435_954_361_842_155, 9_246_046_964_993_380_775, 3_432_881_228_005_951_703];
}
