//! The closing lines of flexAsynch: average, least, most and spread of a phase's rate over the loops.

/// Operations per second of one phase, loop by loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates(Vec<f64>);

impl Rates {
    /// Notes one loop.
    pub fn push(&mut self, operations: u64, seconds: f64) {
        self.0.push(if seconds > 0.0 { operations as f64 / seconds } else { 0.0 });
    }

    /// Operations per second over all loops.
    #[must_use]
    pub fn average(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.iter().sum::<f64>() / self.0.len() as f64 }
    }

    /// The best loop's.
    #[must_use]
    pub fn best(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// The closing line, in the words of NDB's tool.
    #[must_use]
    pub fn line(&self, phase: &str) -> String {
        let average = self.average();
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let least = if least.is_finite() { least } else { 0.0 };
        let variance = match self.0.len() {
            0 | 1 => 0.0,
            n => self.0.iter().map(|r| (r - average).powi(2)).sum::<f64>() / (n - 1) as f64,
        };
        let spread = if average > 0.0 { 100.0 * variance.sqrt() / average } else { 0.0 };
        format!(
            "{phase} average: {average:.0}/s min: {least:.0}/s max: {:.0}/s stddev: {spread:.0}%",
            self.best()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_is_ndbs() {
        let mut rates = Rates::default();
        assert_eq!(rates.line("read"), "read average: 0/s min: 0/s max: 0/s stddev: 0%");
        for (operations, seconds) in [(1000, 1.0), (2000, 1.0), (6000, 2.0)] {
            rates.push(operations, seconds);
        }
        assert_eq!(rates.line("insert"), "insert average: 2000/s min: 1000/s max: 3000/s stddev: 50%");
    }
}
