//! The kernel: the blocks of a data node as sans-IO state machines.
//!
//! A block owns its state and is a pure function of the signals it receives and the time it is told. It
//! never reads a clock, spawns a thread, opens a file or a socket, or asks for randomness; what it wants
//! done goes out through the [`Outbox`] as signals, events and effects. Blocks never call each other. The
//! one exception is inside an LDM, where lqh drives acc and tup as plain owned structs because they share a
//! row.
//!
//! A [`BlockSet`] is the blocks one worker thread hosts. The runtime (or a simulator) feeds it frames in
//! order and ships what the outbox holds:
//!
//! ```text
//!   frames in ──► BlockSet::handle(now, frame, out) ──► out: one byte buffer per route (worker, link, self)
//!   every 10 ms ─► BlockSet::tick(now, out)         ──► out: events for the log, effects for the runtime
//! ```
//!
//! Between two block instances frames arrive in the order they were sent, or the link is dead and node
//! failure handling follows. Protocols rely on this and on nothing else.

pub mod blocks;
pub mod ldm;
pub mod mainrole;
pub mod outbox;
pub mod pool;
pub mod setup;
pub mod tc;
#[cfg(test)]
mod testing;
pub mod tunables;

pub use blocks::BlockSet;
pub use outbox::{Effect, Event, Outbox, RouteId, Severity};
pub use setup::NodeSetup;

/// Monotonic time in nanoseconds since the node's start, as the runtime tells it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Now(pub u64);

impl Now {
    /// Milliseconds since the node's start.
    #[must_use]
    pub fn millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// This time plus `ms` milliseconds.
    #[must_use]
    pub fn after_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }
    /// Milliseconds since `earlier`, 0 if it is later.
    #[must_use]
    pub fn millis_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) / 1_000_000
    }
}
