//! Spin: how long an idle worker looks for work before it sleeps - as long as that has been paying off.
//!
//! A sleep costs the sleeper tens of microseconds until it runs again, and its waker some of its own time; a
//! spin costs CPU. Which is cheaper depends on how long idle periods last, so that is measured: every
//! [`PROBE_EVERY`]th idle period is a probe, spun to the configured limit, and what it finds goes into a
//! histogram that fades ([`Histogram`], half-life about a quarter of a second). Only probes are entered:
//! how long a sleep lasted says little, it contains the wake-up itself. Every 50 ms the histogram says which
//! spin pays best, and that is spun until the next look; zero if none pays.
//!
//! ```text
//!   spinning for N us ── every 50 ms: N = best of the histogram ──► spinning for N us
//!        │
//!     somebody wants this CPU: seen while spinning (a yield that took long) or every 50 ms (waits for a CPU)
//!        ▼
//!   resting: no spin, no probe ── 200 ms, doubled each time up to 3.2 s ──► spinning
//! ```
//!
//! Between two looks for work a spinner yields. If another thread is runnable on this CPU, it runs then, and
//! the long time until the yield returns is the proof that somebody wants the CPU: nothing is asked of the
//! system for it. What a worker suffers while it works - waiting for a CPU though it is runnable - is read
//! from its schedstat file when the usage is sampled ([`SchedStat`]).
//!
//! The limit is `spintime` or `SchedulerSpinTimer`; what an avoided sleep is worth is `SpinMethod`'s. This
//! module reads no clock: times come in.

use crate::usage::Counters;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// One of this many idle periods is spun to the limit to see how long it lasts.
const PROBE_EVERY: u32 = 16;
/// Upper bounds of the histogram: 1, 2, 4 ... 2048 us.
const BUCKETS: usize = 12;
/// Weight of a fresh entry; fading needs room below.
const WEIGHT: u32 = 64;
/// A yield that takes longer has let somebody else run.
pub const DISPLACED: Duration = Duration::from_micros(100);
/// Samples of 50 ms without spinning after the CPU was wanted, at first and at most.
const REST_SAMPLES_MIN: u32 = 4;
const REST_SAMPLES_MAX: u32 = 64;
/// Waiting for a CPU shows another's claim when it takes this part of a sample ...
const WAIT_SHARE: u64 = 10;
/// ... in waits that are longer than any wake-up of an idle CPU.
const WAIT_NS_MIN: u64 = 200_000;

/// How long idle periods last, with the past fading.
#[derive(Default)]
struct Histogram {
    /// Periods that ended before 1, 2, 4 ... us.
    within: [u32; BUCKETS],
    /// Periods that outlasted the probe.
    longer: u32,
}

impl Histogram {
    fn add(&mut self, idle: Option<Duration>) {
        let bucket = idle.and_then(|idle| {
            let us = idle.as_micros();
            self.within.iter_mut().enumerate().find(|(i, _)| us < 1 << i).map(|(_, count)| count)
        });
        let count = match bucket {
            Some(count) => count,
            None => &mut self.longer,
        };
        *count = count.saturating_add(WEIGHT);
    }

    fn fade(&mut self) {
        for count in self.within.iter_mut().chain([&mut self.longer]) {
            *count -= count.div_ceil(8);
        }
    }

    /// The spin in microseconds, up to `limit`, that saves most when a sleep avoided is worth `worth`
    /// microseconds; 0 if none saves anything.
    fn best_spin_us(&self, limit: u32, worth: u32) -> u32 {
        let total: i64 = self.within.iter().chain([&self.longer]).map(|count| i64::from(*count)).sum();
        let (mut best, mut best_gain) = (0, 0);
        // Found so far: how many, and what finding them cost.
        let (mut found, mut cost) = (0i64, 0i64);
        for (i, count) in self.within.iter().enumerate() {
            let bound = (1u32 << i).min(limit);
            found += i64::from(*count);
            cost += i64::from(*count) * i64::from(bound);
            let gain = found * i64::from(worth) - cost - (total - found) * i64::from(bound);
            if gain > best_gain {
                (best, best_gain) = (bound, gain);
            }
            if bound == limit {
                break;
            }
        }
        best
    }
}

/// One spin to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// How long.
    pub time: Duration,
    probe: bool,
}

/// See the module.
pub struct Spin {
    limit_us: u32,
    worth_us: u32,
    histogram: Histogram,
    chosen_us: u32,
    periods: u32,
    /// Samples left to rest.
    resting: u32,
    next_rest: u32,
    disturbed: bool,
    /// Time spun since the last sample.
    spun: Duration,
}

impl Spin {
    /// Spins up to `limit_us`, where a sleep avoided is worth `worth_us`.
    #[must_use]
    pub fn new(limit_us: u32, worth_us: u32) -> Self {
        Self {
            limit_us,
            worth_us,
            histogram: Histogram::default(),
            chosen_us: 0,
            periods: 0,
            resting: 0,
            next_rest: REST_SAMPLES_MIN,
            disturbed: false,
            spun: Duration::ZERO,
        }
    }

    /// Whether it ever spins.
    #[inline]
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.limit_us > 0
    }

    /// An idle period begins: how long to spin, if at all.
    pub fn begin(&mut self) -> Option<Plan> {
        if self.limit_us == 0 || self.resting > 0 {
            return None;
        }
        self.periods = self.periods.wrapping_add(1);
        let probe = self.periods % PROBE_EVERY == 1;
        let us = if probe { self.limit_us } else { self.chosen_us };
        (us > 0).then(|| Plan { time: Duration::from_micros(u64::from(us)), probe })
    }

    /// A spin ended after `took`, with work found or not.
    pub fn end(&mut self, plan: Plan, took: Duration, found: bool, counters: &Counters) {
        self.spun += took;
        Counters::add(&counters.spins, 1);
        Counters::add(&counters.spins_paid, u64::from(found));
        if plan.probe {
            self.histogram.add(found.then_some(took));
        }
    }

    /// Another thread ran on this CPU while the worker looked for work.
    pub fn displaced(&mut self, took: Duration) {
        self.spun += took;
        self.rest();
    }

    fn rest(&mut self) {
        self.resting = self.next_rest;
        self.next_rest = (self.next_rest * 2).min(REST_SAMPLES_MAX);
        self.disturbed = true;
        self.chosen_us = 0;
    }

    /// Another 50 ms are over; `wanted` if the worker had to wait for its CPU. Returns the time spun in them.
    pub fn sample(&mut self, wanted: bool) -> Duration {
        if self.limit_us > 0 {
            if self.resting > 0 {
                self.resting -= 1;
            } else if wanted {
                self.rest();
            } else if !std::mem::take(&mut self.disturbed) {
                // A whole sample in which nobody else wanted the CPU.
                self.next_rest = REST_SAMPLES_MIN;
            }
            self.histogram.fade();
            if self.resting == 0 {
                self.chosen_us = self.histogram.best_spin_us(self.limit_us, self.worth_us);
            }
        }
        std::mem::take(&mut self.spun)
    }
}

/// Whether waiting `waited_ns` for a CPU in `runs` pieces during `wall_ns` shows that somebody else wants it.
/// The wake-up of an idle virtual CPU counts as waiting too and takes up to 50 us; a wait for another
/// thread's time slice takes milliseconds.
#[must_use]
pub fn is_wanted(waited_ns: u64, runs: u64, wall_ns: u64) -> bool {
    waited_ns > wall_ns / WAIT_SHARE && waited_ns > runs.max(1).saturating_mul(WAIT_NS_MIN)
}

/// What the scheduler says about the calling thread: time it waited for a CPU while runnable, and how often
/// it got one. Nothing on kernels that do not keep it.
pub struct SchedStat {
    file: Option<File>,
    last: (u64, u64),
}

impl SchedStat {
    /// Of the calling thread.
    #[must_use]
    pub fn of_this_thread() -> Self {
        let mut stat = Self { file: File::open("/proc/thread-self/schedstat").ok(), last: (0, 0) };
        stat.since_last();
        stat
    }

    /// Nanoseconds waited and runs since the last call.
    pub fn since_last(&mut self) -> (u64, u64) {
        let now = self.read().unwrap_or(self.last);
        let last = std::mem::replace(&mut self.last, now);
        (now.0.saturating_sub(last.0), now.1.saturating_sub(last.1))
    }

    fn read(&self) -> Option<(u64, u64)> {
        let mut buffer = [0u8; 96];
        let length = self.file.as_ref()?.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(buffer.get(..length)?).ok()?;
        // Time run, time waited, times run.
        let mut words = text.split_whitespace().skip(1);
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    fn best(periods: &[(u32, Option<u32>)], limit: u32, worth: u32) -> u32 {
        let mut histogram = Histogram::default();
        for (count, us) in periods {
            for _ in 0..*count {
                histogram.add(us.map(|us| US * us));
            }
        }
        histogram.best_spin_us(limit, worth)
    }

    #[test]
    fn the_spin_that_pays_is_chosen() {
        assert_eq!(best(&[], 100, 50), 0);
        assert_eq!(best(&[(10, Some(10))], 100, 50), 16, "the bound of the bucket");
        assert_eq!(best(&[(10, Some(10))], 12, 50), 12, "but never beyond the limit");
        assert_eq!(best(&[(10, None)], 100, 50), 0, "nothing comes in time");
        assert_eq!(best(&[(10, Some(3)), (10, None)], 100, 50), 4, "half of them are caught for little");
        assert_eq!(best(&[(1, Some(3)), (19, None)], 100, 50), 0, "too rare");
        assert_eq!(best(&[(10, Some(3)), (10, Some(90))], 100, 50), 4, "the far half is not worth its spin");
        assert_eq!(best(&[(10, Some(3)), (10, Some(90))], 100, 250), 100, "unless answers matter more");
        assert_eq!(best(&[(1, Some(90)), (9, None)], 100, 2500), 100);
        assert_eq!(best(&[(10, Some(0))], 0, 50), 0);
        assert_eq!(best(&[(10, Some(1500))], 2000, 10_000), 2000);
    }

    #[test]
    fn the_past_fades_to_nothing() {
        let mut histogram = Histogram::default();
        for _ in 0..100_000_000u32.div_ceil(WEIGHT) {
            histogram.add(Some(US));
        }
        for _ in 0..200 {
            histogram.fade();
        }
        assert_eq!(histogram.within, [0; BUCKETS]);
        // New habits win over old ones within half a second.
        for _ in 0..20 {
            histogram.add(Some(5 * US));
        }
        assert_eq!(histogram.best_spin_us(100, 50), 8);
        for _ in 0..10 {
            histogram.fade();
            (0..5).for_each(|_| histogram.add(None));
        }
        assert_eq!(histogram.best_spin_us(100, 50), 0);
    }

    /// Idle periods of `idle` each, for `samples` times 50 ms; returns the last choice.
    fn live(spin: &mut Spin, idle: Duration, samples: u32) -> u32 {
        let counters = Counters::default();
        for _ in 0..samples {
            for _ in 0..64 {
                if let Some(plan) = spin.begin() {
                    assert!(plan.time <= US * spin.limit_us);
                    spin.end(plan, idle.min(plan.time), idle < plan.time, &counters);
                }
            }
            spin.sample(false);
        }
        spin.chosen_us
    }

    #[test]
    fn spinning_follows_the_load() {
        let mut spin = Spin::new(100, 50);
        assert_eq!(live(&mut spin, US * 1000, 10), 0, "long idle periods: probes only");
        assert_eq!(live(&mut spin, US * 6, 20), 8, "work comes quickly");
        assert_eq!(live(&mut spin, US * 1000, 20), 0, "and no more");
        let mut never = Spin::new(0, 50);
        assert!(!never.is_allowed() && never.begin().is_none());
        never.displaced(US);
        never.sample(true);
        assert_eq!(never.begin(), None);
    }

    #[test]
    fn who_is_displaced_rests_longer_each_time() {
        let mut spin = Spin::new(100, 50);
        for rest in [4, 8, 16, 32, 64, 64] {
            assert!(spin.begin().is_some() || live(&mut spin, US * 6, 1) > 0);
            spin.displaced(US * 3000);
            for _ in 0..rest {
                assert_eq!(spin.begin(), None);
                spin.sample(false);
            }
            assert!((0..PROBE_EVERY).any(|_| spin.begin().is_some()));
        }
        // Left alone it forgets.
        live(&mut spin, US * 6, 2);
        spin.sample(true);
        assert_eq!(spin.resting, REST_SAMPLES_MIN, "waiting for the CPU counts as well");
    }

    #[test]
    fn time_spun_is_told_once() {
        let mut spin = Spin::new(100, 50);
        let plan = spin.begin().unwrap();
        spin.end(plan, US * 40, true, &Counters::default());
        assert_eq!((spin.sample(false), spin.sample(false)), (US * 40, Duration::ZERO));
    }

    #[test]
    fn waits_for_a_cpu_are_told_from_wake_ups() {
        const WALL: u64 = 50_000_000;
        assert!(!is_wanted(0, 0, WALL));
        assert!(!is_wanted(25_000_000, 500, WALL), "500 wake-ups of an idle CPU, 50 us each");
        assert!(is_wanted(25_000_000, 8, WALL), "eight time slices of somebody else");
        assert!(!is_wanted(3_000_000, 1, WALL), "one of them is an accident");
    }

    #[test]
    fn the_scheduler_is_asked_about_this_thread() {
        let mut stat = SchedStat::of_this_thread();
        stat.since_last();
        if stat.read().is_some_and(|(_, runs)| runs > 0) {
            std::thread::park_timeout(Duration::from_millis(1));
            assert!(stat.since_last().1 >= 1);
        }
        let mut none = SchedStat { file: None, last: (0, 0) };
        assert_eq!(none.since_last(), (0, 0));
    }
}
