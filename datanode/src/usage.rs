//! Usage: how much CPU a worker used in the last 50 ms, second and 20 seconds, and its counters.
//!
//! The worker samples its own CPU clock every 50 ms and publishes; everybody else only reads. Figures are in
//! thousandths of one CPU. Kept for ndbinfo and for the decision who sends.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Time between samples.
pub const SAMPLE_MS: u64 = 50;
const SECOND: usize = 20;
const TWENTY_SECONDS: usize = 400;

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
    /// Turns that took longer than they may.
    pub stalls: AtomicU64,
    /// CPU of the last 50 ms, in thousandths.
    pub cpu_50ms: AtomicU32,
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
        Self { samples: vec![(0, 0); TWENTY_SECONDS], next: 0, last_cpu: thread_cpu_ns(), last_wall: 0 }
    }
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

impl Usage {
    /// Takes a sample if it is time; call it from the worker itself.
    pub fn sample(&mut self, now_ns: u64, counters: &Counters) {
        if now_ns < self.last_wall + SAMPLE_MS * 1_000_000 {
            return;
        }
        let cpu = thread_cpu_ns();
        self.push(cpu.saturating_sub(self.last_cpu), now_ns - self.last_wall);
        (self.last_cpu, self.last_wall) = (cpu, now_ns);
        counters.cpu_50ms.store(self.window(1), Ordering::Relaxed);
        counters.cpu_1s.store(self.window(SECOND), Ordering::Relaxed);
        counters.cpu_20s.store(self.window(TWENTY_SECONDS), Ordering::Relaxed);
    }

    fn push(&mut self, cpu_ns: u64, wall_ns: u64) {
        self.samples[self.next] = (cpu_ns, wall_ns);
        self.next = (self.next + 1) % TWENTY_SECONDS;
    }

    /// Thousandths of a CPU over the last `count` samples.
    fn window(&self, count: usize) -> u32 {
        let (mut cpu, mut wall) = (0, 0);
        for back in 1..=count {
            let (c, w) = self.samples[(self.next + TWENTY_SECONDS - back) % TWENTY_SECONDS];
            cpu += c;
            wall += w;
        }
        u32::try_from((cpu * 1000).checked_div(wall).unwrap_or(0)).unwrap_or(1000).min(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_look_back_as_far_as_they_say() {
        let mut usage = Usage::default();
        for _ in 0..400 {
            usage.push(50_000_000, 50_000_000);
        }
        assert_eq!((usage.window(1), usage.window(SECOND), usage.window(TWENTY_SECONDS)), (1000, 1000, 1000));
        for _ in 0..10 {
            usage.push(0, 50_000_000);
        }
        assert_eq!((usage.window(1), usage.window(SECOND), usage.window(TWENTY_SECONDS)), (0, 500, 975));
    }

    #[test]
    fn a_busy_thread_shows() {
        let (mut usage, counters) = (Usage::default(), Counters::default());
        let begin = std::time::Instant::now();
        let mut sum = 0u64;
        while begin.elapsed().as_millis() < 60 {
            sum = sum.wrapping_mul(31).wrapping_add(1);
        }
        usage.sample(begin.elapsed().as_nanos() as u64, &counters);
        assert!(counters.cpu_50ms.load(Ordering::Relaxed) > 0, "{sum}");
    }
}
