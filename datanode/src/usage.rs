//! Usage: how much CPU a worker used in the last 50 ms, second and 20 seconds, and its counters.
//!
//! The worker samples its own CPU clock every 50 ms and publishes; everybody else only reads. Figures are in
//! thousandths of one CPU, of the worker as a whole: roles that share a worker share its figure. Kept for
//! ndbinfo and for the decision who sends; that one leaves out the time spent spinning, which is time to
//! spare.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Time between samples.
pub const SAMPLE_MS: u64 = 50;
const SECOND_NS: u64 = 1_000_000_000;
const TWENTY_SECONDS_NS: u64 = 20 * SECOND_NS;
/// Samples are at least [`SAMPLE_MS`] long, so these cover 20 seconds.
const SAMPLES: usize = 400;

/// A worker's counters, as others see them.
#[derive(Default)]
pub struct Counters {
    /// Turns of its loop.
    pub turns: AtomicU64,
    /// Times it went to sleep.
    pub sleeps: AtomicU64,
    /// Signals handled.
    pub signals: AtomicU64,
    /// Bytes received from links.
    pub received_bytes: AtomicU64,
    /// Batches handed to links or other workers.
    pub batches: AtomicU64,
    /// Bytes in those batches.
    pub shipped_bytes: AtomicU64,
    /// Bytes it wrote to links itself, its own and others'.
    pub sent_bytes: AtomicU64,
    /// Times it spun before sleeping.
    pub spins: AtomicU64,
    /// Of those, the ones that found work.
    pub spins_paid: AtomicU64,
    /// Turns that took longer than they may.
    pub stalls: AtomicU64,
    /// CPU of the last 50 ms, in thousandths.
    pub cpu_50ms: AtomicU32,
    /// The same without spinning.
    pub busy_50ms: AtomicU32,
    /// CPU of the last second, in thousandths.
    pub cpu_1s: AtomicU32,
    /// CPU of the last 20 seconds, in thousandths.
    pub cpu_20s: AtomicU32,
}

impl Counters {
    /// Adds to a counter only its worker writes: no locked instruction is needed.
    #[inline]
    pub fn add(counter: &AtomicU64, value: u64) {
        counter.store(counter.load(Ordering::Relaxed) + value, Ordering::Relaxed);
    }
}

/// The windows over the samples.
pub struct Usage {
    /// CPU time and wall time of each sample in nanoseconds, a ring.
    samples: Vec<(u64, u64)>,
    next: usize,
    last_cpu: u64,
    last_wall: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { samples: vec![(0, 0); SAMPLES], next: 0, last_cpu: thread_cpu_ns(), last_wall: 0 }
    }
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

impl Usage {
    /// Whether it is time for [`Self::sample`].
    #[must_use]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.last_wall + SAMPLE_MS * 1_000_000
    }

    /// Wall time since the last sample.
    #[must_use]
    pub fn since_last(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.last_wall)
    }

    /// Takes a sample, on the worker itself; `spun` is the time it spun since the last one.
    pub fn sample(&mut self, now_ns: u64, spun: Duration, counters: &Counters) {
        let cpu = thread_cpu_ns();
        let (used, wall) = (cpu.saturating_sub(self.last_cpu), self.since_last(now_ns));
        self.push(used, wall);
        (self.last_cpu, self.last_wall) = (cpu, now_ns);
        let spun = u64::try_from(spun.as_nanos()).unwrap_or(u64::MAX);
        counters.busy_50ms.store(thousandths(used.saturating_sub(spun), wall), Ordering::Relaxed);
        counters.cpu_50ms.store(self.window(SAMPLE_MS * 1_000_000), Ordering::Relaxed);
        counters.cpu_1s.store(self.window(SECOND_NS), Ordering::Relaxed);
        counters.cpu_20s.store(self.window(TWENTY_SECONDS_NS), Ordering::Relaxed);
    }

    fn push(&mut self, cpu_ns: u64, wall_ns: u64) {
        self.samples[self.next] = (cpu_ns, wall_ns);
        self.next = (self.next + 1) % SAMPLES;
    }

    /// Thousandths of a CPU over the last samples that make up `window_ns`, or over all there are.
    fn window(&self, window_ns: u64) -> u32 {
        let (mut cpu, mut wall) = (0, 0);
        for back in 1..=SAMPLES {
            if wall >= window_ns {
                break;
            }
            let (c, w) = self.samples[(self.next + SAMPLES - back) % SAMPLES];
            cpu += c;
            wall += w;
        }
        thousandths(cpu, wall)
    }
}

fn thousandths(cpu_ns: u64, wall_ns: u64) -> u32 {
    u32::try_from((cpu_ns * 1000).checked_div(wall_ns).unwrap_or(0)).unwrap_or(1000).min(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_look_back_as_far_as_they_say() {
        let mut usage = Usage::default();
        let windows =
            |u: &Usage| [SAMPLE_MS * 1_000_000, SECOND_NS, TWENTY_SECONDS_NS].map(|window| u.window(window));
        assert_eq!(windows(&usage), [0, 0, 0]);
        for _ in 0..400 {
            usage.push(50_000_000, 50_000_000);
        }
        assert_eq!(windows(&usage), [1000, 1000, 1000]);
        for _ in 0..10 {
            usage.push(0, 50_000_000);
        }
        assert_eq!(windows(&usage), [0, 500, 975]);
        // Samples that came late count for as long as they lasted.
        for _ in 0..5 {
            usage.push(0, 200_000_000);
        }
        assert_eq!(windows(&usage), [0, 0, 925]);
    }

    #[test]
    fn a_busy_thread_shows() {
        let (mut usage, counters) = (Usage::default(), Counters::default());
        let begin = std::time::Instant::now();
        let mut sum = 0u64;
        while begin.elapsed().as_millis() < 60 {
            sum = sum.wrapping_mul(31).wrapping_add(1);
        }
        let now = begin.elapsed().as_nanos() as u64;
        assert!(usage.is_due(now) && usage.since_last(now) == now);
        usage.sample(now, Duration::from_secs(1), &counters);
        assert!(counters.cpu_50ms.load(Ordering::Relaxed) > 0, "{sum}");
        assert_eq!(counters.busy_50ms.load(Ordering::Relaxed), 0, "it only spun");
        assert!(!usage.is_due(now + 49_000_000));
    }
}
