//! Tunables: numbers inside the kernel that are a matter of measure, not of configuration - and rare events
//! that may happen at any time.
//!
//! Each number has a default and, beside it, the range a simulation draws from. A range reaches down to
//! where the code's unusual paths are taken all the time: a scan of one slot per slice, a memory for waiting
//! requests that is nearly always full. Nothing may depend on the default.
//!
//! [`Rare`] forces events that are legal at any time and seldom happen: a full pool, a scan that gives way.
//! Outside of a simulation it never does.

use std::ops::RangeInclusive;

macro_rules! tunables {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr, simulated $range:expr;)*) => {
        /// See the module.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Tunables {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for Tunables {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Tunables {
            /// All of them drawn from their simulated ranges.
            #[must_use]
            pub fn drawn(mut draw: impl FnMut(RangeInclusive<u64>) -> u64) -> Self {
                Self { $($name: draw($range) as $type,)* }
            }

            /// Names and values.
            #[must_use]
            pub fn list(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name as u64),)*]
            }
        }
    };
}

tunables! {
    /// Row slots a scan examines before others of its worker get their turn.
    scan_slice_slots: u32 = 256, simulated 1..=512;
    /// Pages of dropped tables given back per tick (8 MiB per 10 ms).
    bury_pages: u32 = 256, simulated 1..=256;
    /// Bytes of requests kept for waiting operations, per LDM instance (NDB's LongMessageBuffer default).
    waiting_bytes_max: u64 = 64 << 20, simulated 64..=64 << 20;
    /// Milliseconds between two looks for transactions that waited or idled too long.
    timeout_check_ms: u64 = 100, simulated 10..=400;
    /// Milliseconds after which a starting node asks peers again that have not said they are complete.
    ask_again_ms: u64 = 500, simulated 50..=2000;
    /// Schema changes that may wait at the master.
    schema_queue_max: u32 = 64, simulated 1..=64;
    /// Changes of one node's clients that may wait for the master.
    schema_forwarded_max: u32 = 256, simulated 1..=256;
}

/// See the module: a stream of chances, deterministic, owned by one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rare {
    state: u64,
    /// Of 65536.
    chance: u16,
}

impl Rare {
    /// Never.
    pub const NEVER: Self = Self { state: 0, chance: 0 };

    /// Events come with a chance of `chance` in 65536, in an order that `seed` fixes.
    #[must_use]
    pub fn new(seed: u64, chance: u16) -> Self {
        Self { state: seed | 1, chance }
    }

    /// A stream of its own for a block.
    #[must_use]
    pub fn split(self, number: u64) -> Self {
        Self { state: (self.state ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1, chance: self.chance }
    }

    /// Whether the rare event is to happen now.
    #[inline(always)]
    pub fn happens(&mut self) -> bool {
        cfg!(feature = "simulation") && self.chance > 0 && self.draw()
    }

    fn draw(&mut self) -> bool {
        // Marsaglia's xorshift: three shifts, any odd state.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 48) as u16 <= self.chance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_numbers_lie_in_their_ranges_and_defaults_too() {
        let least = Tunables::drawn(|range| *range.start()).list();
        let most = Tunables::drawn(|range| *range.end()).list();
        for ((name, default), ((_, least), (_, most))) in
            Tunables::default().list().into_iter().zip(least.into_iter().zip(most))
        {
            assert!((least..=most).contains(&default), "{name}: {default} is not in {least}..={most}");
        }
    }

    #[test]
    fn rare_events_never_happen_unless_asked_for() {
        let mut never = Rare::NEVER;
        assert!((0..1000).all(|_| !never.happens()));
        let mut some = Rare::new(7, 655);
        let count = (0..100_000).filter(|_| some.draw()).count();
        assert!((500..2000).contains(&count), "{count} of 100,000 at one in a hundred");
    }
}
